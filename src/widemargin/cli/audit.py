"""`widemargin audit`: a certificate judged by an independent evaluation of the training data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..auditing import audit as judge
from .apply.command import data_of, load_model
from .apply.images import is_image_model
from .apply.scores import task_of
from .errors import CommandError
from .reading.rows import Loaded, load_rows
from .show.speaking import tell, tell_json


def audit(args: Any) -> int:
    """The command; 0 where the certificate is confirmed."""
    model = load_model(args.model)
    if is_image_model(model):
        raise CommandError(f"{args.model}: audit judges no certificates of models of images")
    data = data_in_memory(args, model)
    found = judge(model, data.X, data.y, sample_weight=data.weight, qid=data.qid)
    if args.json:
        tell_json(asdict(found))
    else:
        tell(str(found))
    return 0 if found.verdict else 1


def data_in_memory(args: Any, model: Any) -> Loaded:
    """All examples, read as those of the model were."""
    stream = data_of(args, model)
    if task_of(model) == "tag":
        from .reading.sequences import load_sequences

        loaded = load_sequences(stream)
    else:
        loaded = load_rows(stream)
    assert loaded is not None  # there is no limit of memory
    return loaded
