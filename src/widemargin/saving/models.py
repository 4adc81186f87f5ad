"""Saving and loading models: named arrays and a JSON header, never code.

A file holds the fitted arrays and the constructor's parameters. What cannot be written as numbers,
strings, lists and dicts is kept by what it amounts to: a loss object as its matrix, a solver as its
name and fields. Code is not kept: a stop rule becomes None, a solver of the caller's own "auto",
and the problem of a `StructuredSVM` or the kernel function of an `SVMClassifier` must be given
again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..kernels.functions import NAMES as KERNELS
from ..kernels.functions import make_kernel
from ..losses import Taxonomy
from ..run.history import History
from ..run.record import Record, checked_books
from ..streams.fingerprint import Fingerprint
from .earlier import todays, todays_solver
from .header import (
    HEADER,
    REFUSED,
    RUN,
    check_places,
    checked_certificate,
    checked_fingerprint,
    checked_kernel,
    described,
    split_attributes,
)
from .schema import LABELS, Array, Mismatch, Schema, check, check_items
from .tensorfile import ModelFileError, named, read_arrays, under, write_arrays

#: Those whose problem is code, and has to be given again.
WITH_PROBLEM = ("LatentStructuredSVM", "StructuredSVM")
FITTED = ("coef_", "intercept_", "classes_", "loss_matrix_", "class_weights_")
LEARNT = ("progressive_loss_", "n_examples_seen_", "fingerprint_")  # from a stream
#: Of a kernel machine, besides its patterns.
MACHINE = ("margin_cost_", "offset_")
SEEN = ("n_features_in_", "feature_names_in_")
#: Parameters that are lists of labels, names or pairs of them.
LISTS = ("constraints", "transition_features")
#: Types of arrays that are written as lists, because the file format has no arrays of them.
LISTED = ("str", "object", "int16", "uint16", "float16")
#: Why a model that was loaded cannot go on.
FOR_PREDICTION = "its file was saved for prediction, without what learning goes on from"
#: Names of arrays that no attribute or parameter refers to begin so.
PARTS = ("history.", "machine.", "run.")


class Saving:
    """Mixin: `save(path)` of estimators."""

    #: Fitted attributes that only this estimator has: arrays, numbers, strings.
    _saved: tuple[str, ...] = ()
    #: Numbers and words without which a file is not whole.
    _needed: tuple[str, ...] = ("n_features_in_",)
    #: Usual attributes that `_restored` makes from others.
    _derived: tuple[str, ...] = ()

    def _declared(self) -> Schema:
        """What the arrays among the fitted attributes must be."""
        raise NotImplementedError

    def _restored(self) -> None:
        """After loading: make what a file does not hold, and refuse what does not go together."""

    def _machine_arrays(self) -> dict[str, np.ndarray] | None:
        """Patterns and coefficients of a kernel machine; None for other models."""
        return None

    def save(self, path: str | Path, for_prediction: bool = False) -> None:
        """Write the fitted model to `path`, whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file; an old one is replaced.
        for_prediction : bool
            Leave out what only learning on needs. Predictions and `verify` are the same; a
            `partial_fit` of the loaded model is refused.

        Notes
        -----
        What a file discloses, n being patterns or kept examples, d columns, K outputs:

        - `coef_` (8 d K bytes), the history (about 150 bytes a row) and all parameters. Names of
          features, classes and the vocabulary of a tagger are words of the training data.
        - The support patterns of a kernel machine are training rows, 4 d or 8 d bytes each (8 or 12
          per entry where they are sparse) and 8 K for coefficients. Predictions need them.
        - To learn on, after `partial_fit` or a stream: the examples that `streaming_dual` keeps,
          which are training rows with their targets (12 bytes per entry, 40 + 8 K each), for other
          problems with their planes; the window of functional descent; further patterns of a
          kernel machine, and where examples came by `partial_fit` or `fit_stream` the kernel
          values between patterns (4 n^2 or 8 n^2 bytes, at most the solver's `memory`), which
          would not be the same to the last bit if they were computed anew. `fit` leaves no kernel
          values.

        The loaded model goes on as if it had never been saved, bit for bit on the same machine. A
        file of a model that cannot go on says why: a batch solver leaves only weights, and examples
        that are objects of a problem's own are no numbers that a file could hold (a pickle does).
        """
        save(self, path, for_prediction)


def save(model: Any, path: str | Path, for_prediction: bool = False) -> None:
    """Write a fitted estimator; see the head of this file."""
    from sklearn.utils.validation import check_is_fitted

    from .. import __version__

    check_is_fitted(model)
    arrays: dict[str, np.ndarray] = {}
    attributes: dict[str, Any] = {}
    machine = model._machine_arrays()
    usual = FITTED if machine is None else FITTED + MACHINE
    for name in usual + model._saved:
        value = getattr(model, name, None)
        if value is not None and name not in model._derived:
            attributes[name] = stored(value, name, arrays)
    arrays |= named("history.", model.history_.columns)
    for name in SEEN + LEARNT[:2]:
        if getattr(model, name, None) is not None:
            attributes[name] = stored(getattr(model, name), name, arrays)
    params = {}
    for name, value in model.get_params(deep=False).items():
        if name == "loss" and not isinstance(value, str):
            value = getattr(model, "loss_matrix_", value)
        params[name] = stored_parameter(name, value, arrays)
    header = {
        "estimator": type(model).__name__,
        "widemargin": __version__,
        "params": params,
        "attributes": attributes,
        "certificate": model.certificate_ and dataclasses.asdict(model.certificate_),
        "uncertified": getattr(model, "uncertified_", None),
        "solver": stored_parameter("solver", model.solver_, arrays),
        "stopped_by": model.stopped_by_,
    }
    if machine is not None:
        header["kernel"] = stored_parameter("kernel", model.kernel_, arrays)
        arrays |= named("machine.", machine)
    if getattr(model, "fingerprint_", None) is not None:
        header["fingerprint"] = [model.fingerprint_.count, model.fingerprint_.total]
    if getattr(model, "training_", None) is not None:  # what the command line notes, as JSON
        header["training"] = model.training_
    header |= going_on(model, arrays, for_prediction)
    write_arrays(path, arrays, header)


def going_on(model: Any, arrays: dict[str, np.ndarray], for_prediction: bool) -> dict[str, Any]:
    """What learning goes on from, or why it cannot, for models that can learn on at all."""
    if not hasattr(model, "partial_fit"):
        return {}
    found = FOR_PREDICTION if for_prediction else model._going_on()
    if isinstance(found, str):
        return {"prediction_only": found}
    arrays |= named("run.", found.arrays)
    return {"run": found.books}


def load(path: str | Path, *, problem: Any = None, kernel: Any = None) -> Any:
    """Read a model that `save` wrote. No code in the file is ever run.

    Parameters
    ----------
    path : str or Path
    problem : Problem, optional
        For a `StructuredSVM` or `LatentStructuredSVM`: the problem it was trained for.
    kernel : callable, optional
        For a model whose kernel is a function: that function.

    Raises
    ------
    ModelFileError
        When the file is not a whole, unaltered model.

    Examples
    --------
    >>> import tempfile, os
    >>> from widemargin import SVMRegressor
    >>> path = os.path.join(tempfile.mkdtemp(), "line.model")
    >>> SVMRegressor().fit([[0.0], [1.0]], [0.0, 1.0]).save(path)
    >>> load(path).predict([[1.0]]).shape
    (1,)
    """
    arrays, header = read_arrays(path)
    name = header["estimator"] = todays(header.get("estimator"))
    known = import_module("widemargin.estimators").__all__
    if name not in known:
        raise ModelFileError(f"{path}: holds a model of kind {name!r}; known are {known}.")
    if name in WITH_PROBLEM and problem is None:
        raise ValueError(
            f"{path}: a {name}'s problem is code and is not in the file; "
            "pass it: load(path, problem=...)."
        )
    if "kernel" in header and header["kernel"] is None and kernel is None:
        raise ValueError(
            f"{path}: the kernel of this model is a function, which is code and is not in the "
            "file; pass it: load(path, kernel=...)."
        )
    with refusing(path):
        model = rebuilt(header, arrays, problem, kernel, str(path))
    if name in WITH_PROBLEM and model.coef_.size != getattr(problem, "n_features", None):
        size, found = model.coef_.size, getattr(problem, "n_features", "no n_features")
        raise ValueError(f"{path}: the model has {size} weights, the problem given has {found}.")
    return model


@contextmanager
def refusing(path: str | Path | None) -> Iterator[None]:
    """Whatever is wrong with a file is said as such; `None` is no file."""
    try:
        yield
    except REFUSED as error:
        if path is None:
            raise
        raise ModelFileError(f"{path}: {described(error)}") from error


def rebuilt(header: dict[str, Any], arrays, problem: Any, kernel: Any, path: str):
    """The model that a file describes; whatever does not fit is an error."""
    check_items(HEADER, header)
    parts = {name: part for name, part in header.items() if name != "training"}
    check_places(parts, arrays, PARTS)
    model = unfitted(header, arrays, problem, kernel)
    set_attributes(model, header["attributes"], arrays)
    if ("kernel" in header) != bool(getattr(model, "is_kernel_machine", False)):
        raise Mismatch("the header and the parameters disagree on whether there is a kernel")
    if "kernel" in header:
        kernel = make_kernel(restored(header["kernel"], arrays) or kernel)
        model._set_machine(kernel, under("machine.", arrays))
    set_books(model, header, arrays)
    if hasattr(model, "partial_fit"):
        set_going_on(model, header, arrays, path)
    return model


def set_going_on(model: Any, header: dict[str, Any], arrays, path: str) -> None:
    """What `going_on` wrote; files of earlier versions have nothing of it."""
    model._lasting = header.get("prediction_only", FOR_PREDICTION)
    if "run" in header:
        books = checked_books(check_items(RUN, header["run"], "the run"))
        model._lasting = Record(under("run.", arrays), books, path)
        model._trained = model._shaping_params()


def unfitted(header: dict[str, Any], arrays, problem: Any, kernel: Any):
    """An estimator with the parameters of a file."""
    kind = getattr(import_module("widemargin.estimators"), header["estimator"])
    params = {k: restored(v, arrays) for k, v in header["params"].items()}
    if header["estimator"] in WITH_PROBLEM:
        params["problem"] = problem
    if "kernel" in header and header["kernel"] is None:
        params["kernel"] = kernel
    model = kind(**params)
    model._check_parameters()
    return model


def set_attributes(model: Any, attributes: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """What was learnt, each array compared with what the estimator declares."""
    known = FITTED + MACHINE + model._saved + SEEN + LEARNT[:2]
    for attribute in attributes:
        if attribute not in known:
            raise KeyError(f"unknown attribute {attribute}")
    found, others = split_attributes({k: restored(v, arrays) for k, v in attributes.items()})
    missing = [name for name in model._needed if name not in others]
    if missing:
        raise Mismatch(f"{missing[0]!r} of the attributes is missing")
    for attribute, value in (found | others).items():
        setattr(model, attribute, value)
    sizes = {k: v for k, v in others.items() if type(v) is int}
    names = Array("feature_names_in_", LABELS, ("n_features_in_",), optional=True)
    check(Schema(model._declared(), names), found, sizes)
    model._restored()


def set_books(model: Any, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """What is known of the fit."""
    columns = under("history.", arrays)
    check(History.schema(columns).under("history."), named("history.", columns))
    model.history_ = History(columns)
    model.certificate_ = checked_certificate(header["certificate"])
    model.uncertified_ = header.get("uncertified")
    model.solver_ = restored(header["solver"], arrays)
    model.stopped_by_ = header["stopped_by"]
    if "fingerprint" in header:
        model.fingerprint_ = Fingerprint(*checked_fingerprint(header["fingerprint"]))
    if "training" in header:
        model.training_ = header["training"]


def stored(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """A JSON value, or a reference to an array that is written beside it."""
    if isinstance(value, np.ndarray):
        kind = "str" if value.dtype.kind == "U" else value.dtype.name
        if kind not in LISTED:
            arrays[name] = np.ascontiguousarray(value)
            return {"array": name}
        return {"list": [plain(item, name) for item in value.tolist()], "type": kind}
    if isinstance(value, list):  # of names, perhaps very many
        text = "\0".join(value).encode("utf-8", "surrogatepass")
        arrays[name] = np.frombuffer(text, np.uint8)
        return {"strings": name, "count": len(value)}
    if isinstance(value, float) and not np.isfinite(value):  # JSON has no such numbers
        return {"float": str(value)}
    return plain(value, name)


def stored_parameter(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A constructor parameter as a header stores it."""
    if name in ("problem", "stop"):  # code
        return None
    if isinstance(value, Taxonomy):
        trees = {"parents": value.parents, "weights": value.weights or {}}
        pairs = {
            k: [[plain(a, name), plain(b, name)] for a, b in v.items()] for k, v in trees.items()
        }
        return {"taxonomy": pairs, "normalize": bool(value.normalize)}
    if type(value) in KERNELS.values():
        fields = {f.name: plain(getattr(value, f.name), name) for f in dataclasses.fields(value)}
        return {"kernel": type(value).__name__, "fields": fields}
    if name == "kernel" and not isinstance(value, str):  # code
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if type(value) not in known_solvers().values():
            return "auto"  # a solver of the caller's own is code
        fields = {
            f.name: stored_parameter(f.name, getattr(value, f.name), arrays)
            for f in dataclasses.fields(value)
        }
        if fields.get("solver") == "auto":  # and so is a wrapper of one
            return "auto"
        return {"solver": type(value).__name__, "fields": fields}
    if isinstance(value, dict):
        return {"pairs": [[plain(k, name), plain(v, name)] for k, v in value.items()]}
    if name not in LISTS and (
        isinstance(value, tuple) or (isinstance(value, list) and name == "prior")
    ):
        parts = [np.asarray(part) if isinstance(part, list | tuple) else part for part in value]
        return {"tuple": [stored(v, f"param.{name}.{k}", arrays) for k, v in enumerate(parts)]}
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if name in LISTS and isinstance(value, list | tuple | set):
        return {"items": [plain_items(item, name) for item in value]}
    return stored(np.asarray(value) if isinstance(value, list) else value, f"param.{name}", arrays)


def plain(value: Any, name: str) -> Any:
    """A number, string, bool or None as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{name}: {value!r} of type {type(value).__name__} cannot be saved.")


def plain_items(value: Any, name: str) -> Any:
    """A plain value, or a list of plain values, as JSON has them."""
    if isinstance(value, list | tuple):
        return [plain(item, name) for item in value]
    return plain(value, name)


def restored(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The inverse of `stored` and `stored_parameter`."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "float" in value:
        return float(value["float"])
    if "list" in value:
        if value["type"] not in LISTED:
            raise KeyError(f"unknown type {value['type']}")
        return np.array(value["list"], dtype=value["type"])
    if "tuple" in value:
        return tuple(restored(item, arrays) for item in value["tuple"])
    if "pairs" in value:
        return dict(value["pairs"])
    if "items" in value:
        return [tuple(item) if isinstance(item, list) else item for item in value["items"]]
    if "strings" in value:
        name = value["strings"]
        check(Schema(Array(name, "u1", ("n_bytes",))), {name: arrays[name]})
        text = arrays[name].tobytes().decode("utf-8", "surrogatepass")
        found = text.split("\0") if value["count"] else []
        if len(found) != value["count"]:
            raise ValueError(f"{value['strings']} has {len(found)} names, not {value['count']}")
        return found
    if "taxonomy" in value:
        trees = {key: dict(pairs) for key, pairs in value["taxonomy"].items()}
        return Taxonomy(trees["parents"], trees["weights"], value["normalize"])
    if "kernel" in value:
        return checked_kernel(todays(value["kernel"]), value["fields"])
    value = todays_solver(value)
    solver = known_solvers().get(value["solver"])
    if solver is None:
        raise KeyError(f"unknown solver {value['solver']}")
    return solver(**{key: restored(item, arrays) for key, item in value["fields"].items()})


def known_solvers() -> dict[str, Any]:
    """The solvers of this package by the names of their classes."""
    solvers = import_module("widemargin.solvers")
    kinds = {name: getattr(solvers, name) for name in solvers.__all__}
    return {name: kind for name, kind in kinds.items() if dataclasses.is_dataclass(kind)}
