"""What every estimator does between checked data and fitted attributes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches
from sklearn.utils.validation import validate_data

from ...arrays.magnitudes import check_magnitudes, refuse_overflow
from ...arrays.matrices import checked, checked_items
from ...arrays.random import generator_of
from ...geometry import Geometry, check_size
from ...oracle.compiled import CompiledOracle
from ...oracle.making import make_oracle
from ...oracle.protocol import CHUNK
from ...parameters import check_spelling
from ...run.callbacks import SklearnCallbacks
from ...run.epochs import Progress, run
from ...saving.models import LEARNT
from ...solvers import (
    NAMES,
    DualCoordinate,
    KernelSolver,
    OneSlack,
    ProximalNewton,
    Solver,
    Start,
    StreamingSolver,
    Uncertified,
    traits_of,
)
from ...solvers.dual_coordinate import box
from ...solvers.dual_coordinate.solver import loop_for
from ...solvers.traits import SOURCES, Linear, Traits, check_loss
from ...stopping import Gap, Passes, Rule, Seconds, each_rule
from .convergence import reason_of, warn_unless_converged

if TYPE_CHECKING:
    from ...oracle.protocol import Oracle


#: Newton steps pay up to this many features, and this many non-zeros per row.
NEWTON_FEATURES, NEWTON_ROW = 1000, 300
#: Up to so many examples of a compiled problem, one cut a sweep takes fewer sweeps than ascent; but
#: cuts are dense, and a hundred of them should not take more than 256 megabytes.
FEW_EXAMPLES, CUT_FEATURES = 10, 300_000


class SolverParameters:
    """`solver__x` in `get_params` and `set_params`: a frozen solver is replaced, not altered."""

    solver: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with `deep` also those of a solver instance, as `solver__x`."""
        params: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        if deep and dataclasses.is_dataclass(params["solver"]):
            params.update(solver_params(params["solver"], "solver"))
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `solver__x=...` puts a changed solver in place of the old one."""
        nested = {key: params.pop(key) for key in list(params) if key.startswith("solver__")}
        super().set_params(**params)  # type: ignore[misc]
        for key, value in nested.items():
            self.solver = with_param(named_solver(self.solver), key.split("__")[1:], value)
        return self


def solver_params(solver: Any, prefix: str) -> dict[str, Any]:
    """Fields of a solver, and of the solver inside a wrapper."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(solver):
        value = getattr(solver, field.name)
        found[f"{prefix}__{field.name}"] = value
        if dataclasses.is_dataclass(value):
            found.update(solver_params(value, f"{prefix}__{field.name}"))
    return found


def with_param(solver: Any, path: list[str], value: Any) -> Any:
    """A copy of the solver with one field changed."""
    check_param_name(type(solver), path[0])
    if len(path) > 1:
        value = with_param(getattr(solver, path[0]), path[1:], value)
    return dataclasses.replace(solver, **{path[0]: value})


def check_param_name(kind: type, name: str) -> None:
    """Refuse what is no field of a solver."""
    check_spelling(kind, name)
    known = [field.name for field in dataclasses.fields(kind)]
    if name not in known:
        raise ValueError(f"{kind.__name__} has no parameter {name!r}; it has {known}.")


def named_solver(solver: Any) -> Any:
    """A solver instance from an instance or a name."""
    found = choice_of(solver)
    if found is None:
        raise ValueError("solver='auto' has no parameters; name a solver before solver__...")
    return found() if isinstance(solver, str) else found


def choice_of(solver: Any) -> Any:
    """What a parameter `solver` stands for: None for "auto", a class for a name, or an instance."""
    if not isinstance(solver, str):
        check_solver(solver)
        return solver
    if solver != "auto" and solver not in NAMES:
        known = ", ".join(map(repr, ("auto", *NAMES)))
        raise ValueError(f"solver is {solver!r}; known are {known}.")
    return NAMES.get(solver)


def traits_asked(solver: Any) -> Traits:
    """What a parameter `solver` stands for can do; "auto" finds a solver of weights."""
    found = choice_of(solver)
    return Traits(Linear(SOURCES)) if found is None else traits_of(found)


def check_solver(solver: Any) -> None:
    """A frozen instance with the three functions of a solver, and so the solver it wraps."""
    kinds = Solver | StreamingSolver | Uncertified | KernelSolver
    is_solver = isinstance(solver, kinds) and dataclasses.is_dataclass(solver)
    if isinstance(solver, type) or not is_solver:
        raise TypeError(f"solver must be a name or a solver instance, got {solver!r}.")
    inner = getattr(solver, "solver", None)
    if inner is not None:
        check_solver(inner)
        lacks = None if traits_of(inner).learns("memory") else "epochs over data in memory"
        lacks = "an objective" if traits_of(inner).uncertified else lacks
        if lacks is not None:
            raise ValueError(
                f"{type(solver).__name__} works on {lacks}, and {type(inner).__name__} has none; "
                "use it as it is."
            )


def pick_solver(oracle: Oracle, geometry: Geometry) -> Any:
    """What "auto" means, by the layout and the size of the data, never by the clock."""
    loop = loop_for(oracle, geometry)
    if loop is not None:
        if loop is box:
            rows = oracle.data.rows
            per_row = rows.values.size / max(1, oracle.n_examples)
            if rows.n_columns <= NEWTON_FEATURES and per_row <= NEWTON_ROW:
                return ProximalNewton()
        return DualCoordinate()
    if isinstance(oracle, CompiledOracle):
        are_few = oracle.n_examples <= FEW_EXAMPLES and oracle.n_features <= CUT_FEATURES
        if are_few and not oracle.is_layout:  # rows of single examples are never long lists
            return OneSlack()  # such as one ranking of thousands
        return DualCoordinate()
    return DualCoordinate(cached_sweeps=50, worth=0.02)  # a call from Python is worth many sweeps


def is_number(value: Any) -> bool:
    """Whether this is a finite real number (`True` is not one)."""
    number = isinstance(value, int | float | np.integer | np.floating)
    return number and not isinstance(value, bool) and bool(np.isfinite(value))


def check_positive(name: str, value: Any, allow_none: bool = False) -> None:
    """Refuse a parameter that is no finite number above zero."""
    if value is None and allow_none:
        return
    if not is_number(value) or value <= 0:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}.")


def check_parameters(estimator: Any) -> None:
    """Numbers that every estimator has, before any work is done."""
    check_positive("C", estimator.C)
    check_positive("tol", estimator.tol)
    check_positive("max_passes", estimator.max_passes, allow_none=True)
    check_positive("max_seconds", estimator.max_seconds, allow_none=True)
    if estimator.stop is not None and not isinstance(estimator.stop, Rule):
        raise TypeError(f"stop must be a rule of widemargin.stopping, got {estimator.stop!r}.")
    for rule in each_rule(estimator.stop):
        check_held_out(getattr(rule, "X", None), f"X of {type(rule).__name__}")
    choice_of(estimator.solver)


def check_held_out(X: Any, name: str) -> None:
    """Matrices of `HeldOut` and `Validation` are sound and finite."""
    X = checked_items(X[0] if isinstance(X, tuple) and X else X, name)
    entries = X.data if sp.issparse(X) else X
    is_real = isinstance(entries, np.ndarray) and entries.dtype.kind == "f"
    if is_real and not np.isfinite(entries).all():
        raise ValueError(f"{name} contains NaN or infinity.")


def checked_data(estimator: Any, X: Any, y: Any, **checks: Any) -> Any:
    """X (n, d) dense or CSR and y (n,), finite; remembers the number and names of features."""
    return validate_data(
        estimator,
        checked(X),
        y,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        accept_large_sparse=True,
        **checks,
    )


def row_blocks(X: Any, y: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """(X, y) in blocks of rows; CSR blocks are views, for SciPy's own slices are copies."""
    for rows in gen_batches(len(y), CHUNK):
        if not sp.issparse(X):
            yield X[rows], y[rows]
            continue
        begin, end = X.indptr[rows.start], X.indptr[rows.stop]
        starts = X.indptr[rows.start : rows.stop + 1] - begin
        shape = (rows.stop - rows.start, X.shape[1])
        yield sp.csr_matrix((X.data[begin:end], X.indices[begin:end], starts), shape), y[rows]


def checked_inputs(estimator: Any, X: Any, reset: bool = False) -> Any:
    """X (n, d) alone, dense or CSR, finite; with the number of features of the fit unless reset."""
    return validate_data(
        estimator,
        checked(X),
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        accept_large_sparse=True,
        reset=reset,
    )


def fit_linear(
    estimator: Any,
    problem: Any,
    X: Any,
    y: Any,
    target: np.ndarray,
    weights: np.ndarray | None,
    rescaling: str = "margin",
) -> None:
    """Fit an estimator with `coef_` and `intercept_`."""
    check_size(problem.n_features)  # before anything of that size is allocated
    geometry = estimator._geometry(problem.n_features)
    oracle = make_oracle(problem, X, target, estimator.C, weights, rescaling)

    def train_loss(w: np.ndarray) -> float:
        """Already encoded: one compiled pass, where the layout has one."""
        found = oracle.data.losses(w) if oracle.is_layout else None
        return float(estimator._mean_loss(X, y, w) if found is None else found / oracle.n_examples)

    finish_fit(estimator, oracle, geometry, X, y, train_loss)


def hand_over(estimator: Any, w: np.ndarray) -> None:
    """Set the fitted attributes from flat weights, which must be numbers."""
    refuse_overflow("The weights", w)
    for name, value in estimator._attributes(w).items():
        setattr(estimator, name, value)


def finish_fit(
    estimator: Any,
    oracle: Oracle,
    geometry: Geometry,
    X: Any,
    y: Any,
    train_loss: Callable[[np.ndarray], float] | None = None,
) -> None:
    """Run the solver under scikit-learn's callbacks and set what was learnt."""
    check_magnitudes(oracle)
    estimator._run = estimator._lasting = None  # what an earlier fit left behind
    for name in LEARNT:
        estimator.__dict__.pop(name, None)
    rule = SklearnCallbacks(estimator, X, y, estimator._attributes)
    last = solve(
        estimator,
        oracle,
        geometry,
        evaluate=lambda X, y, w: estimator._mean_loss(estimator._other_rows(X), y, w),
        train_loss=train_loss or (lambda w: estimator._mean_loss(X, y, w)),
        rule=rule,
    )
    hand_over(estimator, last.w)
    rule.finish(last.w)
    if last.certificate is not None:  # the solver promises one
        warn_unless_converged(estimator, last.certificate, estimator.stopped_by_, X)


def solve(
    estimator: Any,
    oracle: Oracle,
    geometry: Geometry,
    evaluate: Callable[..., float],
    train_loss: Callable[[np.ndarray], float],
    rule: Rule | None = None,
) -> Progress:
    """Run the estimator's solver on the oracle; sets `solver_`, `certificate_`, `history_`."""
    auto = isinstance(estimator.solver, str) and estimator.solver == "auto"
    solver = pick_solver(oracle, geometry) if auto else named_solver(estimator.solver)
    if traits_of(solver).needs_kernel:
        raise ValueError(
            f"{type(solver).__name__} learns kernel machines, and {type(estimator).__name__} is a "
            "linear model; use SVMClassifier(kernel=...)."
        )
    if not isinstance(getattr(estimator, "loss", ""), str):  # costs that the caller gave
        check_loss(solver, getattr(estimator, "loss_matrix_", None))
    stop = stop_rule(estimator, rule)
    rng = generator_of(estimator.random_state)
    start = getattr(estimator, "_start", None) if estimator.warm_start else None
    if start is not None and start.w.size != oracle.n_features:
        start = None
    ready = stop.prepared(evaluate, lambda w: mean_hinge(oracle, w))
    last = run(solver, oracle, geometry, rng, ready, train_loss, start)
    estimator.solver_ = solver
    estimator.certificate_ = last.certificate
    estimator.uncertified_ = traits_of(solver).uncertified
    estimator.history_ = last.history
    estimator.stopped_by_ = reason_of(last, stop)
    if estimator.warm_start:
        estimator._start = Start(last.w, getattr(last.state, "beta", None))
    return last


def with_columns(X: Any, columns: int) -> Any:
    """Rows with so many columns; in CSR a file tells only of those that it has."""
    if isinstance(X, tuple):  # documents and their queries
        return (with_columns(X[0], columns), *X[1:])
    X = checked(X)
    if not sp.issparse(X):
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != columns or X.dtype.kind not in "fiub":
            raise ValueError(
                f"The held-out X has shape {X.shape} and type {X.dtype}; numbers of shape "
                f"(rows, {columns}) are needed."
            )
        return X
    if X.shape[1] > columns:
        return X[:, :columns]
    return sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], columns), copy=False)


def mean_hinge(oracle: Oracle, w: np.ndarray) -> float:
    """Of all examples by their weights; what it takes is not counted."""
    with oracle.tally.aside():
        return oracle.measure(w) / oracle.total_cost


def stop_rule(estimator: Any, rule: Rule | None, spent: float = 0.0) -> Rule:
    """The estimator's limits as one rule; `spent` seconds are gone already."""
    stop: Rule = Gap(estimator.tol)
    if estimator.max_passes is not None:
        stop = stop | Passes(estimator.max_passes)
    if estimator.max_seconds is not None:
        stop = stop | Seconds(max(0.0, estimator.max_seconds - spent))
    for extra in (estimator.stop, rule):
        if extra is not None:
            stop = stop | extra
    return stop
