"""The map of `docs/architecture.md`: what it answers is so, and what it promises can be added.

Rows of "Where does a new thing go?" name a test that adds such a thing; the short ones are here.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import widemargin
from widemargin import Gap, StructuredSVM, SVMClassifier
from widemargin.kernels.functions import products
from widemargin.oracle.around import Around
from widemargin.problems import Multiclass
from widemargin.saving.tensorfile import named
from widemargin.solvers import OneSlack
from widemargin.solvers.learner import Progressive
from widemargin.solvers.traits import KernelMachines, Traits
from widemargin.stopping import Rule, StopReason
from widemargin.streams import ArrayStream, Chunk

PACKAGE = Path(widemargin.__file__).parent
ROOT = PACKAGE.parents[1]
DEFINED = {
    path.relative_to(PACKAGE).as_posix(): {
        node.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    for path in PACKAGE.rglob("*.py")
}
#: What is looked for, as the map says it -> the file, and what a search for it would ask for.
LOOK_UPS = {
    "Viterbi with loss augmentation": ("inference/viterbi.py", "path_by_errors"),
    "the gradient step of LaRank": ("solvers/larank/_loops.py", "LaRankState"),
    "the adaptive schedule of a stream": ("solvers/streaming_dual/solver.py", "OnGap"),
    "the gap of a stream": ("run/streams.py", "measure_stream"),
    "`sample_weight` and class weights": ("estimators/coding/weights.py", "weights_of_classes"),
    "the intercept": ("estimators/coding/flat_weights.py", "intercept_size"),
    "the equations of SVMD": ("solvers/svmd/_steps.py", "svmd_step"),
    "| loss between classes |": ("losses/", "ClassLoss"),
    "| kernel |": ("kernels/functions.py", "Kernel"),
    "| output structure |": ("problems/", "Multiclass"),
    "| kind of input |": ("inputs/", "Sequences"),
    "| stop rule,": ("stopping.py", "Rule"),
}


def page() -> str:
    path = ROOT / "docs" / "architecture.md"
    if not path.exists():
        pytest.skip("the package is installed without its documentation")
    return path.read_text("utf-8")


@pytest.mark.parametrize("question", LOOK_UPS)
def test_look_ups_are_answered_by_the_map_in_one_file(question):
    place, name = LOOK_UPS[question]
    (row,) = [line for line in page().splitlines() if line.startswith("|") and question in line]
    assert f"`{place}`" in row
    (home,) = [file for file in DEFINED if name in DEFINED[file]]
    assert home.startswith(place)


def test_the_equations_of_svmd_stand_in_one_file():
    noted = re.compile(r"# \((?:\d+, )*(48|49|50|51|52)(?:, \d+)*\)")
    places = {
        (number, file)
        for file in DEFINED
        if file.startswith("solvers/")
        for found in noted.finditer((PACKAGE / file).read_text("utf-8"))
        for number in re.findall(r"\d+", found[0])
    }
    assert places == {(str(number), "solvers/svmd/_steps.py") for number in range(48, 53)}


def test_what_solvers_import_of_run_and_saving_is_what_the_page_says():
    imported = {
        f"{folder}/{name}.py"
        for path in (PACKAGE / "solvers").rglob("*.py")
        for folder, name in re.findall(r"from \.+(run|saving)\.(\w+)", path.read_text("utf-8"))
    }
    (said,) = re.findall(r"solvers import ((?:.|\n)*?), which know\s+nothing of solvers", page())
    assert set(re.findall(r"`(\S+?)`", said)) == imported


def test_the_page_is_short():
    assert len(page().split()) < 2893  # half of what it was


def test_files_that_the_page_names_are_there():
    names = set(re.findall(r"`((?:[a-z_]+/)+_?[a-z_]+\.py)`", page()))
    assert len(names) > 15
    assert not [name for name in names if name not in DEFINED and not (ROOT / name).exists()]


def test_every_row_of_new_things_names_a_test_that_adds_one():
    table = page().split("## Where does a new thing go?")[1]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    for row in rows:
        links = re.findall(r"\]\(\.\./(tests/\S+?)\)", row)
        names = re.findall(r"\[`(test_\w+)`\]", row)
        assert len(links) == len(names) == 1, row
        assert f"def {names[0]}(" in (ROOT / links[0]).read_text("utf-8"), row


# ------------------------------------------------------------------------ things that are added


def rows(K: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return X, (X[:, :K] + 0.2 * rng.normal(size=(60, K))).argmax(1)


def test_a_loss_between_classes():
    class Grades:
        def matrix(self, classes):
            grades = np.asarray(classes, float)
            return np.abs(np.subtract.outer(grades, grades))

    X, y = rows()
    model = SVMClassifier(loss=Grades(), random_state=0).fit(X, y)
    assert model.loss_matrix_.tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    assert model.certificate_.gap <= model.tol


def test_a_kernel():
    @dataclass(frozen=True)
    class Cubed:
        def block(self, A, B):
            return (products(A, B) + 1.0) ** 3

        def diagonal(self, A):
            return (A.squares + 1.0) ** 3

    X, y = rows(2)
    own = SVMClassifier(kernel=Cubed(), precision="float64", random_state=0).fit(X, y)
    named = SVMClassifier(
        kernel="poly", degree=3, gamma=1.0, coef0=1.0, precision="float64", random_state=0
    ).fit(X, y)
    np.testing.assert_allclose(own.decision_function(X), named.decision_function(X), rtol=1e-6)


class KernelPerceptron:
    """Every mistake becomes a pattern whose coefficient is its label."""

    holds_examples = has_hinge = False
    grain, dual, square_norm, margin_cost = 1, np.nan, np.nan, None

    def __init__(self, task, support):
        self.task, self.support, self.progressive = task, support, Progressive()
        self.coefficients, self.offsets = np.zeros((0, 1)), np.zeros(1)
        self.n_visits = 0

    @property
    def n_kept(self):
        return self.support.n_slots

    n_bytes = property(lambda self: self.support.n_bytes)

    def numbers(self):
        return {}

    def absorb(self, part, row):
        for x, y in zip(part.X, np.sign(part.Y), strict=True):
            pattern = self.support.patterns_of(x[None, :])
            score = float((self.support.rows(pattern) @ self.coefficients).sum())
            self.n_visits += 1
            self.progressive.add(1, float(y * score <= 0))
            if y * score <= 0:
                self.support.store(np.array([self.n_kept]), pattern)
                self.coefficients = np.vstack([self.coefficients, [[y]]])

    def end_pass(self, tau=None): ...

    def arrays(self):
        return {"coefficients": self.coefficients} | named("support.", self.support.arrays())


@dataclass(frozen=True)
class PerceptronOfKernels:
    traits: ClassVar[Traits] = Traits(
        kernel=KernelMachines(("binary",), uncertified="the perceptron has no objective")
    )
    passes: int = 3

    def kernel_learner(self, task, support, rng):
        return KernelPerceptron(task, support)


def test_a_kernel_solver():
    X = np.random.default_rng(1).normal(size=(80, 2))
    y = np.where(np.abs(X).max(axis=1) > 0.9, 1, -1)  # no line parts them
    X = X[np.abs(np.abs(X).max(axis=1) - 0.9) > 0.15]
    y = np.where(np.abs(X).max(axis=1) > 0.9, 1, -1)
    solver = PerceptronOfKernels(passes=20)
    model = SVMClassifier(kernel="rbf", gamma=2.0, solver=solver, random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0 and 0 < model.n_support_ < len(y)
    assert model.certificate_ is None and model.uncertified_ == "the perceptron has no objective"


def test_a_faster_loop_for_a_layout(monkeypatch):
    from widemargin.layouts import BoxRows
    from widemargin.solvers.dual_coordinate.solver import BATCH

    loop, called = BATCH[BoxRows], []

    class Spy:
        def __getattr__(self, name):
            called.append(name)
            return getattr(loop, name)

    monkeypatch.setitem(BATCH, BoxRows, Spy())
    X, y = rows(2)
    model = SVMClassifier(solver="dual_coordinate", random_state=0).fit(X, y)
    assert {"init", "epoch"} <= set(called) and model.certificate_.gap <= model.tol


def test_an_estimator():
    class GradeClassifier(SVMClassifier):
        """Classes are numbers, and a mistake costs their distance."""

        def _costs(self):
            return np.abs(np.subtract.outer(self.classes_, self.classes_)).astype(float)

    X, y = rows()
    model = clone(GradeClassifier(C=2.0, random_state=0)).fit(X, y)
    assert model.get_params()["C"] == 2.0 and model.loss_matrix_.max() == 2.0
    assert cross_val_score(GradeClassifier(random_state=0), X, y, cv=2).mean() > 0.5


def test_a_picture():
    from widemargin.displays import ConvergenceDisplay

    class Bounds(ConvergenceDisplay):
        def plot(self, **given):
            drawn = super().plot(**given)
            drawn.figure_.suptitle("bounds")
            return drawn

    model = SVMClassifier(solver="one_slack", random_state=0).fit(*rows())
    drawn = Bounds.from_estimator(model)
    assert isinstance(drawn, Bounds) and drawn.figure_.get_suptitle() == "bounds"


def test_a_stop_rule_and_a_reason():
    class Third(Rule):
        def reason(self, progress):
            return "three epochs" if progress.epoch == 3 else None

    X, y = rows()
    model = SVMClassifier(solver="one_slack", stop=Third() | Gap(1e-12), random_state=0).fit(X, y)
    assert model.stopped_by_ == "three epochs" and len(model.history_) >= 3
    assert "three epochs" not in set(StopReason)


def test_an_input_that_comes_as_a_stream():
    class Days:
        """Rows of one day after the other, by a reader of one's own."""

        name, repeatable = "days", True

        def chunks(self, position=None):
            X, y = rows()
            for day in range(int(position or 0), 3):
                part = slice(20 * day, 20 * day + 20)
                yield Chunk(X[part], y[part], 20 * day, f"day {day}", position=day + 1)

    model = SVMClassifier(random_state=0).fit_stream(Days(), passes=None)
    whole = SVMClassifier(random_state=0).fit_stream(ArrayStream(*rows()), passes=None)
    assert model.certificate_.gap <= model.tol and model.fingerprint_ == whole.fingerprint_


class Counting(Around):
    """An oracle that counts the examples it was asked for."""

    asked = 0

    def sweep(self, update, state, w, order, grow=None):
        Counting.asked += len(order)
        return self.oracle.sweep(update, state, w, order, grow)

    def cut(self, w, examples):
        Counting.asked += len(examples)
        return self.oracle.cut(w, examples)


@dataclass(frozen=True)
class Counted(OneSlack):
    """One-slack cuts, and how many planes they take."""

    def around(self, oracle: Any) -> Any:
        return oracle if isinstance(oracle, Counting) else Counting(oracle)

    def init(self, oracle, geometry, start=None):
        return super().init(self.around(oracle), geometry, start)

    def epoch(self, oracle, geometry, state, rng):
        return super().epoch(self.around(oracle), geometry, state, rng)


def test_a_wrapper_of_oracles():
    X, y = rows()
    Counting.asked = 0
    plain = StructuredSVM(Multiclass(4, 1 - np.eye(3)), solver="one_slack", random_state=0)
    own = StructuredSVM(Multiclass(4, 1 - np.eye(3)), solver=Counted(), random_state=0)
    np.testing.assert_array_equal(own.fit(X, y).coef_, plain.fit(X, y).coef_)
    assert Counting.asked >= 60 * (own.history_.last("passes") - 1)  # one of them measures
