"""Names in files of earlier versions, and what they are today.

Only JSON values are translated here, to JSON values: what a file may say is checked afterwards, as
if a file of today had said it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Classes that a file may name -> what they are called today: estimators, solvers, kernels.
RENAMED: dict[str, str] = {}


def todays(name: Any) -> Any:
    """What the class that a file names is called today."""
    return RENAMED.get(name, name) if isinstance(name, str) else name


def todays_solver(value: Any) -> Any:
    """A stored parameter; of a solver, also one inside wrappers, with the fields of today."""
    if not isinstance(value, dict) or not isinstance(value.get("fields"), dict):
        return value
    if not isinstance(value.get("solver"), str):
        return value
    fields = {key: todays_solver(item) for key, item in value["fields"].items()}
    translate = TRANSLATED.get(value["solver"], dict)  # by the name that the file has
    return {"solver": todays(value["solver"]), "fields": translate(fields)}


def choice(name: str, **fields: Any) -> dict[str, Any]:
    """An object of parameters, as files have it."""
    return {"solver": name, "fields": fields}


def functional_descent(fields: dict[str, Any]) -> dict[str, Any]:
    """Words and loose numbers (0.1.0) became objects.

    Examples
    --------
    >>> old = {"schedule": "constant", "scale": 0.5, "rate": 2.0, "radius": None, "revisit": None}
    >>> functional_descent(old)["schedule"]
    {'solver': 'ConstantDamping', 'fields': {'scale': 0.5, 'revisit': 0.0}}
    """
    fields = with_budget(with_passes(fields))
    if "scale" not in fields:
        return fields
    numbers = {key: fields.get(key) for key in ("scale", "rate", "radius", "revisit")}
    window = {"window": fields.get("window")}
    gone = (*numbers, *window, "ceiling")
    kept = {key: item for key, item in fields.items() if key not in gone}
    kept["schedule"] = schedule(fields.get("schedule"), **numbers)
    if fields.get("residuals") == "clamped":
        kept["residuals"] = choice("ClampedResiduals", ceiling=fields.get("ceiling"))
    for name, words in WORDS.items():
        if isinstance(fields.get(name), str) and fields[name] in words:
            has_window = name == "working_set" and fields[name] != "sequential"
            kept[name] = choice(words[fields[name]], **window if has_window else {})
    return kept


def with_budget(fields: dict[str, Any]) -> dict[str, Any]:
    """The number of patterns, which one leaves and the memory of all were one by one (0.1.0).

    Examples
    --------
    >>> with_budget({"buffer": 20, "budget": "merge", "megabytes": 256.0})
    {'budget': {'solver': 'Merge', 'fields': {'limit': 20, 'memory': 256.0}}}
    """
    if "buffer" not in fields:
        return fields
    kept = {key: item for key, item in fields.items() if key not in ("buffer", "megabytes")}
    if fields["buffer"] is None:
        return kept | {"budget": None}
    name = str(fields.get("budget")).title()
    return kept | {"budget": choice(name, limit=fields["buffer"], memory=fields.get("megabytes"))}


def with_passes(fields: dict[str, Any]) -> dict[str, Any]:
    """Passes over the data were called epochs (0.1.0).

    Examples
    --------
    >>> with_passes({"epochs": 2, "tau": 0.1})
    {'tau': 0.1, 'passes': 2}
    """
    if "epochs" not in fields:
        return fields
    return {key: item for key, item in fields.items() if key != "epochs"} | {
        "passes": fields["epochs"]
    }


def with_memory(fields: dict[str, Any]) -> dict[str, Any]:
    """The memory of a block was told in bytes (0.1.0).

    Examples
    --------
    >>> with_memory({"block_bytes": 2**21})
    {'memory': 2.0}
    """
    if "block_bytes" not in fields:
        return fields
    kept = {key: item for key, item in fields.items() if key != "block_bytes"}
    return kept | {"memory": fields["block_bytes"] / 2**20}


def schedule(word: Any, scale: Any, rate: Any, radius: Any, revisit: Any) -> Any:
    """A schedule of today from its word and the numbers that stood beside it."""
    if radius is not None:
        return choice("Radius", length=radius)
    if word == "auto":
        return choice("AutoDamping", scale=scale, revisit=revisit)
    numbers = {"scale": scale, "revisit": revisit or 0.0}
    if word in ("power", "geometric"):
        return choice(f"{word.title()}Damping", **numbers, rate=rate)
    known = word in ("constant", "linear")
    return choice(f"{word.title()}Damping", **numbers) if known else word


WORDS = {
    "residuals": {"free": "FreeResiduals"},
    "working_set": {
        "sequential": "InOrder",
        "uniform": "UniformDraws",
        "importance": "ImportanceDraws",
    },
    "inner": {"dual_coordinate": "DualCoordinates", "one_slack": "OneSlackCuts"},
}
#: Solver, as files name it -> its fields of today from those of any version.
TRANSLATED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "FunctionalDescent": functional_descent,
    "OutOfCore": with_memory,
    **dict.fromkeys(("SVMD", "NORMA", "Pegasos"), lambda fields: with_budget(with_passes(fields))),
    **dict.fromkeys(("LaSVM", "LaRank", "SOnline", "SampledCuts"), with_passes),
}
