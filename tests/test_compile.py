"""Compiled code: cached across processes, never stale, never needed for an import."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import types
from numba.core.errors import TypingError

import widemargin
from widemargin.compile import INDEX, VECTOR, borrowing, pointer

PACKAGE = Path(widemargin.__file__).parent

FIT = """
import numpy as np
from widemargin.geometry import Geometry
from widemargin.oracle import make_oracle
from widemargin.problems import Binary
from widemargin.run import run
from widemargin.solvers import DualCoordinate, OneSlack
from widemargin.stopping import Gap

X = np.array([[1.0, 0.5], [-0.5, 1.0], [0.25, -1.0], [-1.0, -0.5]])
y = np.array([1.0, 1.0, -1.0, -1.0])
for solver in (DualCoordinate(), OneSlack()):
    oracle = make_oracle(Binary(2), X, y, 0.25)
    result = run(solver, oracle, Geometry(2), np.random.default_rng(0), Gap(1e-6))
    print(repr(round(result.certificate.primal, 6)))
"""

COUNT = """
from numba.core.dispatcher import Dispatcher
import gc
hits = misses = 0
for thing in gc.get_objects():
    if isinstance(thing, Dispatcher):
        hits += sum(thing.stats.cache_hits.values())
        misses += sum(thing.stats.cache_misses.values())
print(hits, misses)
"""


def python(code: str, home: Path, *paths: Path, **variables: str) -> list[str]:
    """The lines a new process prints, with its compiled code kept under `home`."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    environment["NUMBA_CACHE_DIR"] = str(home)
    environment["PYTHONPATH"] = os.pathsep.join(map(str, [*paths, PACKAGE.parent]))
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment.update(variables)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def copied_package(folder: Path) -> Path:
    """A copy of the package that a test may edit; the folder to import it from."""
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / "widemargin", ignore=leave)
    return folder


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, f"{old!r} is not once in {file.name}"
    file.write_text(text.replace(old, new))


def test_second_process_compiles_nothing(tmp_path):
    first = python(FIT + COUNT, tmp_path)
    second = python(FIT + COUNT, tmp_path)
    assert first[:2] == second[:2]
    hits, misses = map(int, first[2].split())
    assert misses > 0
    hits, misses = map(int, second[2].split())
    assert misses == 0
    assert hits > 0


LOOK = """
import numpy as np
from widemargin.geometry import Geometry
from widemargin.oracle import make_oracle
from widemargin.problems import Binary
from widemargin.solvers import DualCoordinate

X = np.array([[1.0, 0.5], [-0.5, 1.0], [0.25, -1.0], [-1.0, -0.5]])
oracle = make_oracle(Binary(2), X, np.array([1.0, 1.0, -1.0, -1.0]), 4.0)
print(oracle.find(0, np.array([0.0, 1.5]))[0])  # problems/binary.py
solver, rng = DualCoordinate(), np.random.default_rng(0)
state = solver.init(oracle, Geometry(2))
print(solver.epoch(oracle, Geometry(2), state, rng)[0].v.tolist())  # solvers/box.py
"""
DOT = "total += values[k] * w[j]", "total += 2.0 * values[k] * w[j]"


def test_an_edited_kernel_reaches_its_dependents_in_other_files(tmp_path):
    """`dot` of rows.py is inlined into, or called by, kernels of problems/ and solvers/."""
    source, home = copied_package(tmp_path / "source"), tmp_path / "cache"
    before = python(LOOK, home, source)
    edit(source / "widemargin" / "arrays" / "rows.py", *DOT)
    after = python(LOOK, home, source)
    assert after == python(LOOK, tmp_path / "other cache", source)
    assert all(old != new for old, new in zip(before, after, strict=True))


FIELDS = """
from typing import NamedTuple
import numpy as np
from numba import njit
from widemargin.compile import kernel


class Pair(NamedTuple):
    first: float
    second: float


def first(pair):
    return pair.first

first.__module__ = "widemargin.geometry"  # cached as one of the package that takes a foreign tuple
print(kernel(first)(Pair(1.0, 2.0)))
"""


def test_fields_in_another_order_are_compiled_again(tmp_path):
    """A tuple reaches a kernel as an argument: no import tells of it."""
    module, home = tmp_path / "pairs.py", tmp_path / "cache"
    for text, answer in (
        (FIELDS, "1.0"),
        (FIELDS, "1.0"),
        (
            FIELDS.replace(
                "    first: float\n    second: float", "    second: float\n    first: float"
            ),
            "2.0",
        ),
    ):
        module.write_text(text)
        os.utime(module, (1e9, 1e9))  # to Numba a file of the same time and size is the same
        assert python("import pairs", home, tmp_path) == [answer]


ORACLE = """
from typing import NamedTuple
import numpy as np
from numba import njit


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray


class Mine:
    n_features = 2

    def __init__(self):
        self.oracle = find

    def joint_feature(self, x, y):
        return 0.5 * y * x

    def loss(self, y_true, y):
        return float(y != y_true)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        score = x @ w - (0.0 if y_true is None else loss_scale * y_true)
        return 1.0 if score >= 0 else -1.0

    def pack(self, X, Y):
        return Data(np.ascontiguousarray(X), np.ascontiguousarray(Y))


@njit
def find(data, i, w, index, value):
    loss = MARGIN
    hinge = loss
    for k in range(2):
        index[k] = k
        value[k] = data.y[i] * data.X[i, k]
        hinge -= value[k] * w[k]
    if hinge <= 0.0:
        return 0.0, 0
    return loss, 2
"""

FIT_MINE = (
    FIT.replace("from widemargin.problems import Binary", "from mine import Mine")
    .replace("Binary(2)", "Mine()")
    .replace("DualCoordinate(), OneSlack()", "OneSlack(),")
)


def test_an_edited_oracle_of_a_user_is_noticed(tmp_path):
    module, home = tmp_path / "mine.py", tmp_path / "cache"
    module.write_text(ORACLE.replace("MARGIN", "1.0"))
    before = python(FIT_MINE, home, tmp_path)
    assert python(FIT_MINE + COUNT, home, tmp_path)[1].split()[1] == "0"  # cached as well
    module.write_text(ORACLE.replace("MARGIN", "3.0"))  # a file of the same size
    os.utime(module, (module.stat().st_atime, module.stat().st_mtime + 2))
    after = python(FIT_MINE, home, tmp_path)
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert after == python(FIT_MINE, tmp_path / "other cache", tmp_path)


def test_an_oracle_of_a_user_follows_an_edited_package(tmp_path):
    """A user's oracle may call our kernels: it must not keep an old copy of them."""
    source, home = copied_package(tmp_path / "source"), tmp_path / "cache"
    imports = "from widemargin.arrays.rows import Rows, as_rows, row_dot"
    own = ORACLE.replace("(NamedTuple):", "(NamedTuple):\n    rows: Rows")
    own = own.replace("from numba import njit", f"from numba import njit\n{imports}")
    own = own.replace("return Data(", "return Data(as_rows(X), ")
    score = "data.y[i] * row_dot(data.rows, np.uint64(i), w)"
    own = own.replace("    hinge = loss\n", f"    hinge = loss - {score}\n")
    own = own.replace("        hinge -= value[k] * w[k]\n", "").replace("MARGIN", "1.0")
    (tmp_path / "mine.py").write_text(own)
    look = """
import numpy as np
from mine import Mine
from widemargin.oracle import make_oracle
oracle = make_oracle(Mine(), np.eye(2), np.ones(2), 1.0)
print(oracle.find(0, np.array([0.75, 0.0]))[0])
"""
    assert python(look, home, tmp_path, source) == ["1.0"]
    edit(source / "widemargin" / "arrays" / "rows.py", *DOT)
    assert python(look, tmp_path / "other cache", tmp_path, source) == ["0.0"]
    assert python(look, home, tmp_path, source) == ["0.0"]


def test_no_writable_cache(tmp_path):
    """Neither the given folder, nor the package's, nor the user's can be written: it still runs."""
    source = copied_package(tmp_path / "source")
    for folder in [
        source / "widemargin",
        *(p for p in (source / "widemargin").rglob("*") if p.is_dir()),
    ]:
        (folder / "__pycache__").write_text("a file, not a folder")
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    out = python(
        FIT.replace("DualCoordinate(), OneSlack()", "DualCoordinate(),"),
        blocked / "cache",
        source,
        HOME=str(blocked),
        XDG_CACHE_HOME=str(blocked),
        LOCALAPPDATA=str(blocked),
    )
    assert float(out[0]) > 0


def test_import_loads_no_numba_and_compiles_nothing(tmp_path):
    code = """
import sys
import widemargin
assert "numba" not in sys.modules, "import widemargin loads numba"
assert "llvmlite" not in sys.modules
print(sorted(name for name in dir(widemargin) if name[0] != "_")[:1] != [])
assert "numba" not in sys.modules, "dir(widemargin) loads numba"
"""
    assert python(code, tmp_path / "cache") == ["True"]
    assert not list((tmp_path / "cache").rglob("*.nb*")) if (tmp_path / "cache").exists() else True


def test_importing_every_module_compiles_nothing(tmp_path):
    """Decorators are lazy: the cache stays empty until something runs."""
    code = """
import importlib, pkgutil, widemargin
for module in pkgutil.walk_packages(widemargin.__path__, "widemargin."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
    python(code, tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*.nbc"))


def test_borrowing_kernels_count_no_references_and_cannot_allocate():
    """Arrays pass through as they are; a function that makes one is refused when it is compiled."""

    def first_row(matrix):
        return matrix.shape[0], matrix[0]

    def sum_of_row(matrix):
        return row(matrix)[1].sum()

    row = borrowing(first_row)
    matrix = np.arange(6.0).reshape(2, 3)
    count = sys.getrefcount(matrix)
    assert borrowing(sum_of_row)(matrix) == 3.0
    assert sys.getrefcount(matrix) == count
    with pytest.raises(TypingError, match="empty"):
        borrowing(lambda n: np.empty(n).size)(3)


def test_a_pointer_borrows_where_its_function_does():
    """What is passed to a loop is compiled as it was declared, for its one signature."""

    def first_of(x):
        return x[0]

    def last_of(x):
        return x[-1]

    signature = types.float64(VECTOR)
    made, plain = pointer(borrowing(first_of), signature), pointer(last_of, signature)
    assert made.targetoptions["_nrt"] is False and "_nrt" not in plain.targetoptions
    assert made(np.array([3.0, 4.0])) == 3.0 and plain(np.array([3.0, 4.0])) == 4.0
    assert made.get_compile_result(signature).signature == signature
    with pytest.raises(TypingError, match="compilation disabled"):
        made.get_compile_result(types.float64(INDEX))
