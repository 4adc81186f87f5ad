"""The documentation is true: its code runs, prints what it says, and its links lead somewhere."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

from widemargin import LatentStructuredSVM, StructuredSVM, check_problem
from widemargin.geometry import Geometry
from widemargin.oracle import PythonOracle, make_oracle
from widemargin.run import run
from widemargin.solvers import OneSlack
from widemargin.stopping import Gap, Passes

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SKELETONS = DOCS / "skeletons"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")

if not DOCS.is_dir():
    pytest.skip("the documentation is not here", allow_module_level=True)


@pytest.fixture(autouse=True)
def skeletons_can_be_imported(monkeypatch):
    """As for a reader who has copied them into his folder."""
    monkeypatch.syspath_prepend(SKELETONS)


def blocks(page: Path) -> list[tuple[str, str]]:
    """The fenced blocks of a page as (language, text)."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.S | re.M)


def assert_prints(said: str, printed: str) -> None:
    """The same words, and numbers as close as another machine's rounding makes them."""
    assert NUMBER.sub("#", said).split() == NUMBER.sub("#", printed).split()
    for a, b in zip(NUMBER.findall(said), NUMBER.findall(printed), strict=True):
        assert float(a) == pytest.approx(float(b), rel=0.02, abs=0.06)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    if "matplotlib" in page.read_text("utf-8") or "Display" in page.read_text("utf-8"):
        pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    printed = ""
    for language, text in blocks(page):
        if language == "text":
            assert_prints(text, printed)
        if language == "python" and "# no-run" not in text:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(text, f"{page.name} block", "exec"), namespace)
            printed = output.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target
    for name in re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[^`*\s]+)`", text):
        assert (ROOT / name).exists(), name


def test_pages_show_the_skeletons_as_they_are():
    shown = {}
    for page in PAGES:
        found = re.findall(
            r"<!-- skeleton (\S+) -->\n```python\n(.*?)```\n<!-- /skeleton -->",
            page.read_text("utf-8"),
            re.S,
        )
        shown.update(found)
    assert shown == {path.name: path.read_text("utf-8") for path in SKELETONS.glob("*.py")}


def test_readme_names_the_two_commands():
    text = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_architecture_names_every_module():
    """Those of folders stand on the folder's own map: `test_sources.py`."""
    text = (DOCS / "architecture.md").read_text("utf-8")
    package = ROOT / "src" / "widemargin"
    missing = [
        f.name for f in package.glob("*.py") if f.name != "__init__.py" and f"{f.name}`" not in text
    ]
    assert not missing
    folders = [f.parent.name for f in package.glob("*/__init__.py")]
    assert not [name for name in folders if f"`{name}" not in text]


# ---------------------------------------------------------------- the skeletons


def signals(n: int = 40):
    """Signals of several lengths; in an interval the first channel is raised."""
    rng = np.random.default_rng(0)
    X, Y = [], []
    for length in rng.integers(1, 16, n):
        x = np.column_stack([rng.normal(size=(length, 2)), np.ones(length)])
        start, stop = sorted(rng.choice(length + 1, 2, replace=False))
        x[start:stop, 0] += 1.5
        X.append(x)
        Y.append((int(start), int(stop)))
    return X, Y


def skeleton(module: str, name: str):
    """A class of a skeleton file."""
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(
    ("module", "name"),
    [("own_problem", "Interval"), ("own_compiled_problem", "CompiledInterval")],
)
def test_skeleton_problems_pass_the_check(module, name):
    check_problem(skeleton(module, name)(3), *signals())


def test_compiled_skeleton_equals_the_python_one():
    X, Y = signals()
    problem = skeleton("own_compiled_problem", "CompiledInterval")(3)
    compiled, python = make_oracle(problem, X, Y, 1.0), PythonOracle(problem, X, Y, 1.0)
    rng = np.random.default_rng(1)
    for _ in range(5):
        w = rng.standard_normal(3)
        for i in range(len(Y)):
            (loss, index, value), (want, *sparse) = compiled.find(i, w), python.find(i, w)
            dense, wanted = np.zeros(3), np.zeros(3)
            dense[index], wanted[sparse[0]] = value, sparse[1]
            assert loss == want
            np.testing.assert_allclose(dense, wanted, atol=1e-12)
        assert compiled.measure(w) == pytest.approx(python.measure(w))


def test_both_paths_learn_the_same_weights():
    X, Y = signals()
    models = [
        StructuredSVM(skeleton(module, name)(3), C=0.1, solver="one_slack", tol=1e-10)
        for module, name in (
            ("own_problem", "Interval"),
            ("own_compiled_problem", "CompiledInterval"),
        )
    ]
    python, compiled = (model.fit(X, Y).coef_ for model in models)
    # |w - w*|^2 <= 2 gap: what a gap of 1e-10 of an objective of 21 leaves open
    np.testing.assert_allclose(python, compiled, rtol=0, atol=2e-4)


@pytest.mark.parametrize(
    "regulariser",
    [{}, {"prior": (0.3, [1.0, 2.0, 0.5])}, {"nonnegative": np.array([False, True, False])}],
    ids=["plain", "prior", "nonnegative"],
)
def test_skeleton_solver_reaches_the_optimum(regulariser):
    X, Y = signals()
    problem, geometry = skeleton("own_problem", "Interval")(3), Geometry(3, **regulariser)
    stop = Gap(1e-3) | Passes(3000)

    def solved(solver, stop):
        oracle = make_oracle(problem, X, Y, 0.1)
        return run(solver, oracle, geometry, np.random.default_rng(0), stop).certificate

    found = solved(skeleton("own_solver", "FrankWolfe")(), stop)
    best = solved(OneSlack(), Gap(1e-8) | Passes(3000))
    assert found.gap <= 1e-3
    assert found.dual <= best.primal * (1 + 1e-9)
    assert best.dual <= found.primal * (1 + 1e-9)


def test_latent_skeleton_passes_the_check_and_learns():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 2)) for n in rng.integers(1, 4, 15)]
    Y = [tuple((x[:, 0] > 0).astype(int).tolist()) for x in X]
    problem = skeleton("own_latent_problem", "Topics")(2)
    check_problem(problem, X, Y)
    model = LatentStructuredSVM(problem, random_state=0).fit(X, Y)
    assert (np.diff(model.rounds_["objective"]) <= 0).all()
    assert model.certificate_.scope == "round"
