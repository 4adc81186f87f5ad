"""`widemargin info`: what a model is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from ...estimators.learning.driving import why_not_go_on
from ...system.printable import printable
from ..apply.command import load_model
from ..apply.scores import task_of
from ..errors import as_message
from ..reading.images import IMAGE_TASKS
from ..show.speaking import tell, tell_json
from ..show.words import (
    EXAMPLES,
    aligned,
    certificate_words,
    clock,
    headline,
    label_text,
    many,
    pass_words,
    size,
    solver_words,
    stop_words,
)

KERNEL_ONLY = ("kernel", "gamma", "degree", "coef0", "output_kernel", "precision")
LINEAR_ONLY = ("intercept_scaling", "tol", "max_passes")


def info(args: Any) -> int:
    """`widemargin info`: what a model is, as text or JSON."""
    model = load_model(args.model)
    tell_json(described(model, args.top)) if args.json else tell(info_text(model, args.top))
    return 0


def described(model: Any, top: int) -> dict[str, Any]:
    """Everything about a model as JSON."""
    history, notes = model.history_, getattr(model, "training_", None) or {}
    proof, reason = model.certificate_, getattr(model, "uncertified_", None)
    certificate = asdict(proof) if proof is not None else {}
    return {
        "task": task_of(model),
        "solver": solver_words(model.solver_),
        "parameters": parameters(model),
        "certificate": certificate | {"words": certificate_words(proof, reason)},
        "stopped_by": model.stopped_by_,
        "classes": np.asarray(getattr(model, "classes_", ())).tolist(),
        "features": int(getattr(model, "n_features_in_", 0)) or int(np.size(model.coef_)),
        "nonzero_weights": None if is_kernel(model) else int(np.count_nonzero(model.coef_)),
        "support_patterns": model.n_support_ if is_kernel(model) else None,
        "kernel_evaluations": count_of(history, "kernel_evaluations"),
        "examples": getattr(model, "n_examples_seen_", None),
        "progressive_loss": getattr(model, "progressive_loss_", None),
        "passes": history.last("passes"),
        "seconds": history.last("seconds"),
        "largest_weights": largest_weights(model, top),
        "fingerprint": str(model.fingerprint_) if hasattr(model, "fingerprint_") else None,
        "cannot_go_on": why_not(model),
        "training": notes,
    }


def why_not(model: Any) -> str | None:
    """Why the model cannot go on learning; None where it can."""
    if not hasattr(model, "partial_fit"):
        return "it learns from whole data only"
    reason = why_not_go_on(model)
    return None if reason is None else as_message(ValueError(reason))


def is_kernel(model: Any) -> bool:
    """Whether a model is a kernel machine."""
    return bool(getattr(model, "is_kernel_machine", False))


def hidden_parameters(model: Any) -> tuple[str, ...]:
    """Parameters that are not shown: they mean nothing to the model."""
    if not is_kernel(model):
        return KERNEL_ONLY
    unused = () if model.kernel in ("poly", "polynomial") else ("degree", "coef0")
    return (*LINEAR_ONLY, *unused)


def count_of(history: Any, name: str) -> int | None:
    """The newest number of a column that only some histories have."""
    return int(history.last(name)) if name in history else None


def parameters(model: Any) -> dict[str, Any]:
    """Constructor parameters as texts and numbers, without those that are not set."""
    found = {}
    for name, value in model.get_params(deep=False).items():
        if name == "solver":
            value = value if isinstance(value, str) else solver_words(value)
        elif name == "loss" and not isinstance(value, str):
            value = f"costs of {len(model.classes_)} x {len(model.classes_)} classes"
        elif name in hidden_parameters(model):
            continue
        elif name in ("output_kernel", "prior") and value is not None:
            value = value if isinstance(value, str) else "given"
        elif isinstance(value, np.ndarray):
            value = f"array of shape {value.shape}"
        if value is not None and value is not False:
            found[name] = value
    return found


def feature_name(model: Any, column: int) -> str:
    """How the data calls a column."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return str(names[column])
    reading = (getattr(model, "training_", None) or {}).get("reading", {})
    if reading.get("hash_bits") is not None:
        return f"hash {column}"
    return f"feature {column + (0 if reading.get('zero_based') else 1)}"


def largest_weights(model: Any, top: int) -> list[dict[str, Any]]:
    """For each output the weights that are largest in size."""
    task = task_of(model)
    if is_kernel(model) or task in IMAGE_TASKS:
        return []
    if task == "tag":
        from .tags import label_weights

        return label_weights(model, top)
    if task == "rank":
        weights = chosen_weights(model, model.coef_, top)
        return [{"class": None, "intercept": None, "weights": weights}]
    classes = getattr(model, "classes_", None)
    found = []
    for k, row in enumerate(model.coef_):
        name = None
        if classes is not None:
            name = label_text(classes[1] if len(classes) == 2 else classes[k])
        weights = chosen_weights(model, row, top)
        found.append({"class": name, "intercept": float(model.intercept_[k]), "weights": weights})
    return found


def chosen_weights(model: Any, row: np.ndarray, top: int) -> list[dict[str, Any]]:
    """The weights of an output that are largest in size."""
    chosen = np.argsort(-np.abs(row), kind="stable")[:top]
    return [
        {"feature": feature_name(model, int(j)), "weight": float(row[j])} for j in chosen if row[j]
    ]


def info_text(model: Any, top: int) -> str:
    """What a model is, as text for people."""
    about = described(model, top)
    classes = [label_text(label) for label in getattr(model, "classes_", ())]
    more = f" and {len(classes) - 20} more" if len(classes) > 20 else ""
    settings = ", ".join(f"{name}={value}" for name, value in about["parameters"].items())
    rows = [
        ["task", f"{about['task']} ({type(model).__name__})"],
        ["solver", about["solver"]],
        ["parameters", settings],
        ["features", f"{about['features']:,}{size_words(about)}"],
    ]
    if classes:
        rows.insert(1, ["classes", f"{len(classes)}: {', '.join(classes[:20])}{more}"])
    rows += training_rows(model, about)
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:{width}s}  {printable(text)}" for name, text in rows]
    lines += ["", about["certificate"]["words"]]
    for output in about["largest_weights"] if top else []:
        lines += ["", printable(weights_title(output, len(classes)))]
        table = [[entry["feature"], f"{entry['weight']:+.6g}"] for entry in output["weights"]]
        if output["intercept"] is not None:
            table.append(["intercept", f"{output['intercept']:+.6g}"])
        lines.append(aligned(table or [["none", ""]]))
    return "\n".join(lines)


def size_words(about: dict[str, Any]) -> str:
    """How many weights or patterns a model has, in words."""
    if about["support_patterns"] is None:
        return f", {many(about['nonzero_weights'], 'weights')} not zero"
    count = many(about["kernel_evaluations"] or 0, "kernel values")
    return f"; {many(about['support_patterns'], 'support patterns')}, {count} computed"


def training_rows(model: Any, about: dict[str, Any]) -> list[list[str]]:
    """What is known of the training, as rows (name, text)."""
    rows, notes = [], about["training"]
    data = notes.get("data")
    template = notes.get("reading", {}).get("template")
    if template:
        rows.append(["template", " ".join(template.split())])
    if about["examples"] is not None:
        what = EXAMPLES.get(about["task"], "examples")
        name = f" of {data['name']}" if data else ""
        name += f" ({size(data['bytes'])})" if data and data["bytes"] else ""
        rows.append(["trained on", f"{many(about['examples'], what)}{name}"])
    effort = f"{pass_words(about['passes'])}, {clock(about['seconds'])}"
    rows.append(["effort", f"{effort}; {stop_words(model.stopped_by_)}"])
    reason = about["cannot_go_on"]
    can = "can go on: train --continue" if reason is None else f"cannot go on: {reason}"
    rows.append(["learning", can])
    if about["progressive_loss"] is not None:
        rows.append(["progressive", f"mean loss {about['progressive_loss']:.6g} before learning"])
    held = notes.get("evaluation")
    if held:
        numbers = ", ".join(f"{name} {text}" for name, text, _ in headline(held))
        rows.append([held["on"], f"{numbers} on {held['name']}"])
    return rows


def weights_title(output: dict[str, Any], n_classes: int) -> str:
    """The line above the largest weights of an output."""
    if output["class"] is None:
        return output.get("title", "largest weights")
    rival = " against the other" if n_classes == 2 else ""
    return f"largest weights for class {output['class']}{rival}"
