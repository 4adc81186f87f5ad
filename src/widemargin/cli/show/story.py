"""What the page of a model tells, or that of an unfinished run in its folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ...run.certificate import Certificate, restored
from ...run.history import History
from ...saving.checkpoints import FILE
from ...saving.tensorfile import read_arrays, under
from ...system.printable import path_words
from ..errors import CommandError
from ..info.command import described, parameters
from .words import EXAMPLES, label_text


@dataclass(frozen=True)
class Story:
    """What a page shows of a fit."""

    title: str
    certificate: Certificate | None
    history: History
    solver: str
    tol: float
    parameters: dict[str, Any]
    stopped_by: str | None
    examples: int | None
    progressive_loss: float | None
    fingerprint: str | None
    about: dict[str, Any]  # the rest of the facts
    notes: dict[str, Any]
    unit: str = "examples"
    uncertified: str | None = None  # why there is no certificate


def story_of_model(model: Any, name: str) -> Story:
    """What a page shows of a fitted or loaded model."""
    about = described(model, 0)
    classes = [label_text(label) for label in about["classes"]]
    facts = {"features": f"{about['features']:,}"}
    if classes:
        facts["classes"] = ", ".join(classes[:50]) + (", ..." if len(classes) > 50 else "")
    reading = about["training"].get("reading", {})
    if reading.get("template"):
        facts["template"] = reading["template"]
    return Story(
        f"{path_words(os.path.basename(name))}: {about['task']}",
        model.certificate_,
        model.history_,
        about["solver"],
        float(model.tol),
        parameters(model),
        model.stopped_by_,
        about["examples"],
        about["progressive_loss"],
        about["fingerprint"],
        facts,
        about["training"],
        EXAMPLES.get(about["task"], "examples"),
        getattr(model, "uncertified_", None),
    )


def story_of_run(folder: str) -> Story:
    """What a page shows of a run, from its checkpoint."""
    path = os.path.join(folder, FILE)
    if not os.path.exists(path):
        raise CommandError(f"{folder}: there is no checkpoint in this folder")
    arrays, header = read_arrays(path)
    try:
        history = History(under("history.", arrays))
        if header["certificate"] is not None:
            certificate = restored(header["certificate"])
        else:
            ends = {name: history.last(name) for name in ("primal", "dual", "gap")}
            scope = "data" if len(history) and history["exact"][-1] == 1.0 else "cache"
            certificate = restored({**ends, "scope": scope})
        count, total = header["fingerprint"]
        params = {name: parameter_text(value) for name, value in header["params"].items()}
        return Story(
            f"{path_words(os.path.basename(os.path.normpath(folder)))}: a run that has not ended",
            certificate,
            history,
            str(params.get("solver")),
            float(header["params"]["tol"]),
            {name: text for name, text in params.items() if text not in ("None", "False")},
            header["reason"],
            int(count),
            None,
            f"{count} examples, {total:016x}",
            {"features": f"{header['columns']:,}"},
            {"data": {"name": stream_name(header["stream"])}},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CommandError(f"{path}: not a checkpoint of this version ({error!r})") from None


def stream_name(signature: dict[str, Any]) -> str:
    """What a checkpoint calls its data."""
    files = signature.get("files") or [signature.get("name", "?")]
    return ", ".join(str(file) for file in files[:5]) + (", ..." if len(files) > 5 else "")


def parameter_text(value: Any) -> str:
    """A parameter as a checkpoint stores it, as text."""
    if isinstance(value, dict) and "fields" in value:
        fields = (f"{k}={parameter_text(v)}" for k, v in value["fields"].items())
        return f"{value['solver']}({', '.join(fields)})"
    if isinstance(value, dict) and "pairs" in value:
        return ", ".join(f"{k}: {v}" for k, v in value["pairs"])
    if isinstance(value, dict) and "array" in value:
        return "an array"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
