"""Saving and loading models: named arrays and a JSON header, never code.

A file holds the fitted arrays and the constructor's parameters. What cannot be written as numbers,
strings, lists and dicts is kept by what it amounts to: a loss object as its matrix, a solver as its
name and fields. The problem of a `StructuredSVM` is the caller's code and must be given again.
"""

from __future__ import annotations

import dataclasses
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .tensorfile import ModelFileError, read_arrays, write_arrays

#: Estimators that a file may name.
KNOWN = ("SVMClassifier", "SVMRegressor", "StructuredSVM")
FITTED = ("coef_", "intercept_", "classes_", "loss_matrix_")


class Saving:
    """`save(path)` for estimators."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to `path`, whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file; an old one is replaced.
        """
        save(self, path)


def save(model: Any, path: str | Path) -> None:
    """Write a fitted estimator; see the head of this file."""
    from sklearn.utils.validation import check_is_fitted

    from . import __version__

    check_is_fitted(model)
    arrays: dict[str, np.ndarray] = {}
    attributes: dict[str, Any] = {}
    for name in FITTED:
        value = getattr(model, name, None)
        if value is not None:
            attributes[name] = stored(value, name, arrays)
    for name, column in model.history_.columns.items():
        arrays[f"history.{name}"] = column
    for name in ("n_features_in_", "feature_names_in_"):
        if getattr(model, name, None) is not None:
            attributes[name] = stored(getattr(model, name), name, arrays)
    params = {}
    for name, value in model.get_params(deep=False).items():
        if name == "loss" and not isinstance(value, str):
            value = model.loss_matrix_
        params[name] = stored_parameter(name, value, arrays)
    header = {
        "estimator": type(model).__name__,
        "widemargin": __version__,
        "params": params,
        "attributes": attributes,
        "certificate": dataclasses.asdict(model.certificate_),
        "solver": stored_parameter("solver", model.solver_, arrays),
        "stopped_by": model.stopped_by_,
    }
    write_arrays(path, arrays, header)


def load(path: str | Path, *, problem: Any = None) -> Any:
    """Read a model that `save` wrote. No code in the file is ever run.

    Parameters
    ----------
    path : str or Path
    problem : Problem, optional
        For a `StructuredSVM`: the problem it was trained for.

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
    from .history import History
    from .run import Certificate

    arrays, header = read_arrays(path)
    name = header.get("estimator")
    if name not in KNOWN:
        raise ModelFileError(f"{path}: holds a model of kind {name!r}; known are {list(KNOWN)}.")
    try:
        kind = getattr(import_module("widemargin.estimators"), name)
        params = {k: restored(v, arrays) for k, v in header["params"].items()}
        if name == "StructuredSVM":
            if problem is None:
                raise ValueError(
                    f"{path}: a StructuredSVM's problem is code and is not in the file; "
                    "pass it: load(path, problem=...)."
                )
            params["problem"] = problem
        model = kind(**params)
        for attribute, value in header["attributes"].items():
            setattr(model, attribute, restored(value, arrays))
        columns = {k[8:]: v for k, v in arrays.items() if k.startswith("history.")}
        model.history_ = History(columns)
        model.certificate_ = Certificate(**header["certificate"])
        model.solver_ = restored(header["solver"], arrays)
        model.stopped_by_ = header["stopped_by"]
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{path}: the header does not describe a model: {error!r}.") from error
    if name == "StructuredSVM" and model.coef_.shape != (int(problem.n_features),):
        raise ValueError(
            f"{path}: the model has {model.coef_.size} weights, the problem given has "
            f"{problem.n_features}."
        )
    return model


def stored(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """A JSON value, or a reference to an array that is written beside it."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biuf" and value.dtype != np.float16:
            arrays[name] = np.ascontiguousarray(value)
            return {"array": name}
        return {"list": [plain(item, name) for item in value.tolist()]}
    return plain(value, name)


def stored_parameter(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A constructor parameter."""
    if name in ("problem", "stop"):  # code
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if not type(value).__module__.startswith("widemargin."):
            return "auto"  # a solver of the caller's own is code
        fields = {
            f.name: stored_parameter(f.name, getattr(value, f.name), arrays)
            for f in dataclasses.fields(value)
        }
        return {"solver": type(value).__name__, "fields": fields}
    if isinstance(value, dict):
        return {"pairs": [[plain(k, name), plain(v, name)] for k, v in value.items()]}
    if isinstance(value, tuple):
        parts = enumerate(value)
        return {"tuple": [stored(v, f"param.{name}.{k}", arrays) for k, v in parts]}
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    return stored(np.asarray(value) if isinstance(value, list) else value, f"param.{name}", arrays)


def plain(value: Any, name: str) -> Any:
    """A number, string, bool or None."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{name}: {value!r} of type {type(value).__name__} cannot be saved.")


def restored(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The inverse of `stored` and `stored_parameter`."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "list" in value:
        items = value["list"]
        strings = all(isinstance(item, str) for item in items)
        return np.array(items, dtype=str if strings else object)
    if "tuple" in value:
        return tuple(restored(item, arrays) for item in value["tuple"])
    if "pairs" in value:
        return dict(value["pairs"])
    solvers = import_module("widemargin.solvers")
    if value["solver"] not in solvers.__all__:
        raise KeyError(f"unknown solver {value['solver']}")
    fields = {key: restored(item, arrays) for key, item in value["fields"].items()}
    return getattr(solvers, value["solver"])(**fields)
