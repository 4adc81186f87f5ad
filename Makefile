# `make test` and `make demo` need only Python 3.11+, git and make: they create
# `.venv` and install what they need once.  `make PYTHON=python3.12 ...` picks another Python.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# every `name>=version` of pyproject.toml as `name==version`
LOWEST := 'import tomllib; \
  project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  groups = [project["dependencies"], project["optional-dependencies"]["test"]]; \
  print("\n".join(text.replace(">=", "==") for group in groups for text in group))'
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help venv demo test test-oldest check audit bench reproduce clean

help:
	@echo "make demo    learn on a small task and write pictures to demo-output/"
	@echo "make test    all tests and the examples in the docstrings"
	@echo "make test-oldest   a sample of them with the lowest versions that pyproject.toml allows"
	@echo "make check   style, types, import contract"
	@echo "make audit   random campaigns against the library, from where they stopped (hours)"
	@echo "make bench   numbers against other libraries"
	@echo "make reproduce   the papers' experiments as a page in reproduce-output/ (half an hour)"
	@echo "make venv    $(VENV) with everything for development"
	@echo "make clean   remove $(VENV), caches and outputs"

venv: $(VENV)/.with-dev

demo: $(VENV)/.with-plot
	$(BIN)/python -m widemargin.cli.demo --output demo-output

test: $(VENV)/.with-test
	$(BIN)/python -m pytest tests src --doctest-modules -q -n 2 --dist loadfile

# With an environment and a cache of compiled code of its own: Numba's versions share neither.
test-oldest: $(OLDEST)/.created
	WIDEMARGIN_OLDEST=1 NUMBA_CACHE_DIR=$(CURDIR)/$(OLDEST)/compiled $(OLDEST)/bin/python \
	  -m pytest tests/ladder/test_dependencies.py -q -n 2 -p no:cacheprovider

check: $(VENV)/.with-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# AUDIT="--seconds 600", "certificates", "--sample --seconds 150": what `python -m audits` takes
audit: $(VENV)/.with-test
	$(BIN)/python -m audits $(AUDIT)

bench: $(VENV)/.with-bench
	$(BIN)/python -m benchmarks

reproduce: $(VENV)/.with-plot
	$(BIN)/python -m widemargin reproduce --output reproduce-output

# One stamp for each extra; a change of pyproject.toml installs again.
$(VENV)/.with-%: pyproject.toml | $(VENV)/.created
	@echo "installing widemargin[$*] into $(VENV)"
	@$(PIP) install --editable ".[$*]"
	@touch $@

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "widemargin needs Python 3.11 or newer, but $(PYTHON) is" \
	    "$$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; \
	  exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(OLDEST)/.created: pyproject.toml
	@echo "installing widemargin[test] with the lowest versions into $(OLDEST)"
	@$(PYTHON) -m venv --clear $(OLDEST)
	@$(PYTHON) -c $(LOWEST) > $(OLDEST)/lowest.txt
	@$(OLDEST)/bin/python -m pip --disable-pip-version-check -qq install --editable ".[test]" \
	  --constraint $(OLDEST)/lowest.txt
	@touch $@

clean:
	rm -rf $(VENV) $(OLDEST) demo-output reproduce-output build dist .pytest_cache .mypy_cache .ruff_cache \
	  .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
