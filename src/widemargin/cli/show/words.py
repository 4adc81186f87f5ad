"""Numbers and certificates in words, for terminals and pages."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ...system.printable import printable

SCOPES = {
    "data": "over all data",
    "cache": "over the kept examples only",
    "round": "in the last round only",
    "estimate": "estimated",
}
#: Tables with more classes show the most frequent confusions instead.
MOST_CLASSES = 20
#: What examples are called, where not so.
IMAGES = ("locate", "detect", "segment", "pose")
EXAMPLES = {"tag": "sequences", "rank": "queries", **dict.fromkeys(IMAGES, "images")}


def percent(value: float) -> str:
    """A share.

    Examples
    --------
    >>> percent(0.12345), percent(0.0000123), percent(float("nan"))
    ('12.3 %', '0.00123 %', '-')
    """
    return f"{100 * value:.3g} %" if math.isfinite(value) else "-"


def size(n_bytes: float) -> str:
    """A number of bytes.

    Examples
    --------
    >>> size(900), size(2.5e6)
    ('900 B', '2.5 MB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.3g} {unit}"
    return f"{n_bytes:.0f} B"


def clock(seconds: float) -> str:
    """A time.

    Examples
    --------
    >>> clock(0.123), clock(75), clock(4000)
    ('0.12 s', '1:15', '1:06:40')
    """
    if seconds < 10:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def pass_words(passes: float) -> str:
    """How often the data was read."""
    return f"{passes:.4g} pass{'' if passes == 1 else 'es'}"


def many(count: int, things: str) -> str:
    """How many of some things, whose name is given for several.

    Examples
    --------
    >>> many(1, "rows"), many(1200, "rows"), many(1, "queries"), many(1, "images or boxes")
    ('1 row', '1,200 rows', '1 query', '1 image or box')
    """
    if count == 1:
        things = " or ".join(map(singular, things.split(" or ")))
    return f"{count:,} {things}"


def singular(things: str) -> str:
    """The name of one of several things."""
    for ending, one in (("ies", "y"), ("xes", "x")):
        if things.endswith(ending):
            return things.removesuffix(ending) + one
    return things[:-1]


def label_text(label: Any) -> str:
    """A label or number as it stands in data."""
    label = label.item() if hasattr(label, "item") else label
    return repr(label).removesuffix(".0") if isinstance(label, float) else str(label)


def certificate_words(certificate: Any, reason: str | None = None) -> str:
    """What a certificate proves, and what it does not; without one, the `reason` for that."""
    if certificate is None:
        return f"There is no certificate: {reason or 'the solver gives none'}."
    primal, dual, gap = certificate.primal, certificate.dual, certificate.gap
    if certificate.scope == "data":
        text = (
            f"Proven over all data: the objective of this model is {primal:.7g}, and no weights "
            f"reach less than {dual:.7g}; {distance_words(primal, dual)}."
        )
        if certificate.is_estimate:
            text += " The decoder is approximate, so the objective is an estimate."
        return text
    if certificate.scope == "round":
        return (
            "Proven for the last round, with its hidden values held fixed: the objective of this "
            f"model is at most {primal:.7g}, and no weights reach less than {dual:.7g}, a gap of "
            f"{percent(gap)}. With other hidden values there may be better weights."
        )
    return (
        f"Over the kept examples only: their objective is {primal:.7g}, and no weights reach less "
        f"than {dual:.7g} on them, a gap of {percent(gap)}. The lower bound holds for all data, "
        "the objective does not: other examples may add to it. `widemargin verify` proves the gap "
        "over all data."
    )


def distance_words(primal: float, dual: float) -> str:
    """How far an objective may be above the optimum, which is `dual` or more.

    Examples
    --------
    >>> distance_words(3.0, 2.0), distance_words(3.0, 0.0)
    ('it is at most 50 % above the optimum', 'a gap of 3 is left')
    """
    if dual > 0:
        return f"it is at most {percent(max(primal - dual, 0.0) / dual)} above the optimum"
    return f"a gap of {primal - dual:.7g} is left"


def certificate_line(certificate: Any, reason: str | None = None) -> str:
    """What a certificate says, in one line."""
    if certificate is None:
        return f"no certificate: {reason or 'the solver has no objective'}"
    proven = "proven over all data" if certificate.scope == "data" else SCOPES[certificate.scope]
    if certificate.is_estimate:
        proven = "estimated, the search is not exact"
    return (
        f"objective {certificate.primal:.7g}, lower bound {certificate.dual:.7g}, gap "
        f"{percent(certificate.gap)} ({proven})"
    )


def stop_words(reason: str | None) -> str:
    """Why a fit ended, in words."""
    if reason is None:
        return "it has not ended"
    from ...stopping import known_reason  # imports NumPy

    known = known_reason(reason)
    return reason if known is None else known.words


def solver_words(solver: Any) -> str:
    """A solver with the parameters that are not the default."""
    if isinstance(solver, str):
        return solver
    changed = []
    for field in dataclasses.fields(solver):
        value = getattr(solver, field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if value != default:
            changed.append(f"{field.name}={value!r}")
    return f"{type(solver).__name__}({', '.join(changed)})"


def plain_json(value: Any) -> Any:
    """What JSON can hold: NaN and infinities become null, arrays lists, texts valid Unicode."""
    if isinstance(value, dict):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    if hasattr(value, "tolist"):
        return plain_json(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, int):
        return value
    return str(value).encode("utf-8", "backslashreplace").decode()  # no lone surrogates


def aligned(rows: list[list[str]]) -> str:
    """Rows of texts as columns: the first to the left, others to the right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = (
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    return "\n".join(lines)


def confusions(result: dict[str, Any], most: int = 20) -> list[list[str]]:
    """The most frequent mistakes, as rows (true, predicted, count)."""
    labels, table = [label_text(label) for label in result["classes"]], result["confusion"]
    found = [
        (count, labels[i], labels[j])
        for i, row in enumerate(table)
        for j, count in enumerate(row)
        if i != j and count
    ]
    found.sort(key=lambda item: -item[0])
    return [[true, predicted, str(count)] for count, true, predicted in found[:most]]


def headline(result: dict[str, Any]) -> list[tuple[str, str, float]]:
    """The numbers of an evaluation that count most: (name, text, value).

    Examples
    --------
    >>> headline({"task": "classify", "error": 0.125})
    [('error', '12.5 %', 0.125)]
    """
    if result["task"] == "regress":
        return [("mae", f"{result['mae']:.6g}", result["mae"])]
    if result["task"] == "rank":
        chosen = ("mean_loss", "ndcg@10", "map")
        known = [(key, float("nan") if result[key] is None else result[key]) for key in chosen]
        return [(key, f"{value:.6g}", value) for key, value in known]
    if result["task"] in ("locate", "detect"):
        return [(name, f"{result[name]:.3f}", result[name]) for name in ("AP50", "AP")]
    if result["task"] in ("segment", "pose"):
        kinds = ("IoU", "error") if result["task"] == "segment" else ("PCP_strict", "PCK")
        return [(name.replace("_", " "), percent(result[name]), result[name]) for name in kinds]
    if result["task"] == "novelty":
        return [("novel", percent(result["novel"]), result["novel"])]
    found = [("error", percent(result["error"]), result["error"])]
    if result["task"] == "tag" and result["per_type"]:
        found.append(("f1", f"{100 * result['f1']:.2f} %", result["f1"]))
    return found


def score_text(result: dict[str, Any]) -> str:
    """The scores of classes or targets as text for people."""
    n = many(result["examples"], "examples")
    if result["task"] == "regress":
        names = {
            "mae": "mean absolute error",
            "rmse": "root mean squared error",
            "mean_loss": "mean loss beyond epsilon",
            "r2": "R2",
        }
        return aligned([[n, ""], *([text, f"{result[key]:.6g}"] for key, text in names.items())])
    if result["task"] == "novelty":
        rows = [["label", "novel", "examples"]]
        for row in result["per_label"][:MOST_CLASSES]:
            name, share = label_text(row["label"]), percent(row["novel"])
            rows.append([name, share, f"{row['examples']:,}"])
        return f"{n}, novel {percent(result['novel'])}\n\n{aligned(rows)}"
    labels = [label_text(label) for label in result["classes"]]
    head = f"{n}, error {percent(result['error'])}, mean loss {result['mean_loss']:.6g}"
    rows = [["class", "precision", "recall", "F1", "support"]]
    for row in result["per_class"]:
        shares = [percent(row[key]) for key in ("precision", "recall", "f1")]
        rows.append([label_text(row["class"]), *shares, f"{row['support']:,}"])
    if len(labels) <= MOST_CLASSES:
        title = "confusion: true classes down, predicted across"
        table = [["", *labels]]
        for label, counts in zip(labels, result["confusion"], strict=True):
            table.append([label, *map(str, counts)])
    else:
        title, table = "most frequent confusions", [["true", "predicted", "count"]]
        table += confusions(result)
    return f"{head}\n\n{aligned(rows)}\n\n{title}\n{aligned(table)}"
