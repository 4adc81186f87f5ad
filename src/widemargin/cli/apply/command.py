"""`widemargin predict`, `evaluate` and `verify`: a model applied to data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from ...saving.models import load
from ...streams import Prefetched
from ...system.replacing import replacing
from ..errors import CommandError, UsageError
from ..reading.rows import Watched, check_output, model_options, naming, open_arrow, open_data
from ..show.speaking import give, tell, tell_json
from ..show.words import certificate_words, label_text, score_text
from .images import evaluate_images, is_image_model, predict_images
from .scores import evaluated, inputs_of, task_of


def load_model(path: str) -> Any:
    """A model that was trained on rows of numbers."""
    model = load(path)
    if not hasattr(model, "fit_stream"):
        raise CommandError(f"{path}: a {type(model).__name__} needs its problem, which is code")
    return model


def data_of(args: Any, model: Any, **more: Any) -> Watched:
    """The data, read as that of the model was."""
    if task_of(model) == "tag":
        from ..reading.sequences import sequences_of

        return sequences_of(args, model, args.data)
    options = model_options(args, model) | more
    ignores = getattr(args, "ignore_new_features", False)
    is_hashed = (options.get("hash_bits") or args.hash_bits) is not None
    if not ignores and not is_hashed:
        options["n_features"] = int(model.n_features_in_)
    stream = open_data(args, args.data, **options)
    check_columns(args, model, stream, ignores)
    return stream


def check_columns(args: Any, model: Any, stream: Watched, ignores: bool) -> None:
    """Columns with names are taken in the order of the model, whatever theirs is."""
    known = getattr(model, "feature_names_in_", None)
    names = getattr(stream.stream, "feature_names", None)
    if known is None or names is None or list(known) == names:
        return
    for name in known:
        if name not in names:
            raise CommandError(f"{stream.name}: there is no column {name!r}, which the model needs")
    for name in names:
        if name not in known and not ignores:
            raise CommandError(f"{stream.name}: the model does not know the column {name!r}")
    source = args.data[0] if len(args.data) == 1 else args.data
    stream.stream = open_arrow(args, source, [str(name) for name in known])


def predict(args: Any) -> int:
    """`widemargin predict`: predictions for the data, one a line."""
    model = load_model(args.model)
    if args.output:
        check_output(args.output, inputs=[args.model, *args.data])
    if is_image_model(model):
        return predict_images(args, model, target)
    refuse_image_options(args)
    if task_of(model) == "tag":
        return predict_tags(args, model)
    for name in ("kbest", "margins"):
        if getattr(args, name):
            raise UsageError(f"--{name} is for models of train tag.")
    kind = {"labels": "lists" if args.unlabelled else args.labels}
    stream: Any = data_of(args, model, **kind)
    if stream.repeatable:
        stream = Prefetched(stream)
    with target(args.output) as write:
        for chunk in stream.chunks():
            X = inputs_of(model, chunk, args.ignore_new_features)
            write(prediction_lines(args, model, X))
    return 0


def refuse_image_options(args: Any) -> None:
    """Options of images with another model."""
    for name in ("images", "skip_bad_images", "draw"):
        if getattr(args, name, None):
            raise UsageError(f"--{name.replace('_', '-')} is for models of images.")


def predict_tags(args: Any, model: Any) -> int:
    """`predict` with a model of `train tag`."""
    from ..reading.sequences import tagged

    stream = data_of(args, model)
    with target(args.output) as write:
        for text in tagged(args, model, stream):
            write(text)
    return 0


@contextlib.contextmanager
def target(path: str | None) -> Iterator[Any]:
    """A function that writes text at once: to stdout, or to a file that appears when it is whole.

    A pipe is flushed after every chunk, so that `tail -f | widemargin predict` answers.
    """
    if path is None:
        yield give
        return
    with naming(path), replacing(path) as file:
        yield lambda text: file.write(text.encode("utf-8", "surrogateescape"))


def prediction_lines(args: Any, model: Any, X: Any) -> str:
    """The predictions of some rows as text, a line for each row."""
    if args.scores and hasattr(model, "decision_function"):
        scores = model.decision_function(X)
        rows = scores.tolist() if scores.ndim == 2 else [[score] for score in scores.tolist()]
        return "".join("\t".join(map(repr, row)) + "\n" for row in rows)
    if not hasattr(model, "classes_"):
        return "".join(f"{value!r}\n" for value in model.predict(X).tolist())
    texts = np.array([label_text(label) for label in model.classes_], dtype=object)
    chosen = np.searchsorted(model.classes_, model.predict(X))
    return "".join(f"{text}\n" for text in texts[chosen])


def evaluate(args: Any) -> int:
    """`widemargin evaluate`: how good a model is on the data."""
    model = load_model(args.model)
    if is_image_model(model):
        return evaluate_images(args, model)
    refuse_image_options(args)
    stream: Any = data_of(args, model)
    result = evaluated(model, Prefetched(stream), args.ignore_new_features)
    result |= {"model": args.model, "data": stream.name}
    tell_json(result) if args.json else tell(result_text(result))
    return 0


def result_text(result: dict[str, Any]) -> str:
    """The scores of an evaluation as text for people."""
    if result["task"] == "tag":
        from ..reading.sequences import tag_text

        return tag_text(result)
    if result["task"] == "rank":
        from .ranking import rank_text

        return rank_text(result)
    return score_text(result)


def verify(args: Any) -> int:
    """`widemargin verify`: the gap of a model, proven by one pass."""
    if args.output:
        check_output(args.output, inputs=args.data)
    model = load_model(args.model)
    if is_image_model(model):
        raise CommandError(f"{args.model}: its gap over all images is proven by fit already")
    stream = data_of(args, model)
    certificate = model.verify(Prefetched(stream))
    if args.output:
        with naming(args.output):
            model.save(args.output)
    tell_json(asdict(certificate)) if args.json else tell(certificate_words(certificate))
    return 0
