"""`widemargin` for sequences: reading, predicting and measuring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from ...inference.legal_steps import IllegalSteps, forbidden_steps
from ...metrics import TagCounts
from ...streams import Chunk, Prefetched, StreamError, open_stream
from ...streams.opening import joined
from ...system.printable import printable
from ..errors import CommandError, UsageError
from ..show.words import aligned, many, percent
from .rows import MEGABYTE, Loaded, Watched, checked_source, line_memory, without_data

#: Memory of loaded sequences, at most, per byte of column text: the default template has 19
#: features of 12 bytes for a dozen bytes of text, twice while parts are put together.
COLUMN_GROWTH = 60.0
#: Confusions that an evaluation keeps.
MOST_CONFUSIONS = 20


class WatchedSequences(Watched):
    """A stream of sequences that tells how much of it was read."""

    @property
    def memory(self) -> float:
        """Megabytes that the sequences may take when they are loaded."""
        growth = COLUMN_GROWTH if self.options["format"] == "conll" else 10.0
        return growth * (5.0 if self.is_packed else 1.0) * self.n_bytes / MEGABYTE

    @property
    def reading(self) -> dict[str, Any]:
        """How the data was read, for the notes of a model; the template is kept as text."""
        found = {"format": self.options["format"]}
        if found["format"] == "conll":
            columns: Any = self.stream
            found |= {
                "template": columns.used_template.text,
                "n_columns": columns.n_inputs,
                "separator": columns.separator,
                "comment": columns.comment,
            }
        return found


def open_sequences(args: Any, paths: list[str]) -> WatchedSequences:
    """The stream of sequences that `train tag` learns from."""
    source = checked_source(paths)
    format = "conll" if args.format == "auto" else args.format
    options: dict[str, Any] = {}
    if format == "conll":
        options = {"template": args.template, "comment": args.comment}
        options["separator"] = "\t" if args.tabs else None
    return WatchedSequences(
        open_stream(source, format=format, **options, **line_memory(args)),
        {"format": format, **options},
    )


def sequences_of(args: Any, model: Any, paths: list[str]) -> WatchedSequences:
    """A stream of sequences, read as the data of the model was."""
    reading = dict((getattr(model, "training_", None) or {}).get("reading", {}))
    format = reading.pop("format", None)
    if format is None:
        raise CommandError(
            "the model does not know the format of its data: it was not made by widemargin train"
        )
    asked = getattr(args, "format", "auto")
    if asked not in ("auto", format):
        raise UsageError(f"--format {asked}: the model was trained on {format} files.")
    if getattr(args, "unlabelled", False):
        if format != "conll":
            raise UsageError(f"--unlabelled: lines of {format} files begin with a label (any).")
        reading["labels"] = None
    options = reading | line_memory(args)
    stream = open_stream(checked_source(paths), format=format, **options)
    return WatchedSequences(stream, {"format": format, **reading})


def load_sequences(
    stream: Watched, limit: float = np.inf, constraints: str | None = None
) -> Loaded | None:
    """All sequences of a stream, or None if they take more than `limit` megabytes.

    Labels that break the constraints are told with their line, which `fit` does not know.
    """
    parts: list[Chunk] = []
    size = 0
    for chunk in Prefetched(stream).chunks():
        if chunk.y is None:
            raise StreamError(f"{chunk.source}: there are no labels to learn from")
        parts.append(chunk)
        size += chunk.X.rows.data.nbytes + chunk.X.rows.indices.nbytes
        if 2 * size > limit * MEGABYTE:
            return None
    if constraints is not None:
        check_labels(parts, constraints)
    weight = None
    if any(part.weight is not None for part in parts):
        weight = np.concatenate(
            [np.ones(part.size) if part.weight is None else part.weight for part in parts]
        )
    labels = [y for part in parts for y in part.y]
    places = tuple(map(without_data, parts))
    X = joined([part.X for part in parts])
    return Loaded(X, labels, weight, name=stream.name, parts=places)


def check_labels(parts: list[Chunk], constraints: str) -> None:
    """Refuse labels that break the constraints."""
    names = sorted({label for part in parts for labels in part.y for label in labels})
    number = {name: k for k, name in enumerate(names)}
    forbidden = np.vstack(forbidden_steps(constraints, names))
    found = IllegalSteps(forbidden, names, constraints)
    for part in parts:
        label = np.array([number[label] for label in chain.from_iterable(part.y)])
        found.add(part.X.begin, label, part.where)
    found.refuse()


# ------------------------------------------------------------------ predictions


def tagged(args: Any, model: Any, stream: Watched) -> Iterator[str]:
    """The lines of the data with their labels behind them, a chunk at a time."""
    if args.scores:
        raise UsageError("--scores is for rows; --margins and --kbest are for sequences.")
    if args.kbest and args.margins:
        raise UsageError("--kbest and --margins exclude each other.")
    source: Any = stream.stream
    is_table = stream.options["format"] == "conll"
    tables = source.tables() if is_table else ((chunk, None) for chunk in source.chunks())
    for chunk, texts in tables:
        if args.kbest:
            yield "".join(kbest_blocks(model.predict_kbest(chunk.X, args.kbest), texts))
            continue
        columns = [[[str(label)] for label in labels] for labels in model.predict(chunk.X)]
        if args.margins:
            for cells, margins in zip(columns, model.margins(chunk.X), strict=True):
                for cell, margin in zip(cells, margins.tolist(), strict=True):
                    cell.append(f"{margin:.6g}")
        yield "".join(block(k, columns, texts) for k in range(len(columns)))


def block(k: int, columns: list[list[list[str]]], texts: list[list[str]] | None) -> str:
    """Sequence k, a line for each position with its new cells, and a blank line."""
    if texts is None:
        lines = ["\t".join(cells) for cells in columns[k]]
    else:
        pairs = zip(texts[k], columns[k], strict=True)
        lines = [separator(text).join([text, *cells]) for text, cells in pairs]
    return "\n".join(lines) + "\n\n"


def separator(line: str) -> str:
    """What stands between the cells of a line."""
    return "\t" if "\t" in line else " "


def kbest_blocks(found: list[Any], texts: list[list[str]] | None) -> Iterator[str]:
    """For each sequence its taggings, best first, each below `# rank score`."""
    for k, taggings in enumerate(found):
        for rank, (score, labels) in enumerate(taggings, 1):
            lines = None if texts is None else [texts[k]]
            cells = [[str(label)] for label in labels]
            yield f"# {rank} {score:.10g}\n" + block(0, [cells], lines)


# ------------------------------------------------------------------ scores


class TagScores:
    """Token errors and chunks.

    Parameters
    ----------
    model : fitted SequenceTagger
    ignore_new : bool
        Makes no difference: features that the model does not know have no weight.
    """

    def __init__(self, model: Any, ignore_new: bool = False):
        self.model, self.counts = model, TagCounts()
        self.known = {str(label) for label in model.classes_}
        self.confusions: Counter[tuple[str, str]] = Counter()
        self.unknown: Counter[str] = Counter()

    def add(self, chunk: Chunk) -> None:
        """Predict a chunk; labels that the model does not know are errors."""
        found = [list(map(str, labels)) for labels in self.model.predict(chunk.X)]
        self.counts.add(chunk.y, found)
        pairs = zip(chain.from_iterable(chunk.y), chain.from_iterable(found), strict=True)
        self.confusions.update(pair for pair in pairs if pair[0] != pair[1])
        strange = set(chain.from_iterable(chunk.y)) - self.known
        if strange:
            labels = chain.from_iterable(chunk.y)
            self.unknown.update(label for label in labels if label in strange)

    def result(self) -> dict[str, Any]:
        """The scores of all chunks so far, as JSON."""
        counts = self.counts
        whole = counts.chunks()
        return {
            "task": "tag",
            "examples": counts.n_sequences,
            "tokens": counts.n_tokens,
            "error": 1.0 - counts.accuracy,
            "accuracy": counts.accuracy,
            "whole_sequences": counts.n_right_sequences / max(1, counts.n_sequences),
            "precision": whole.precision,
            "recall": whole.recall,
            "f1": whole.f1,
            "chunks": whole._asdict(),
            "per_type": [
                {
                    "type": kind,
                    "precision": score.precision,
                    "recall": score.recall,
                    "f1": score.f1,
                    **score._asdict(),
                }
                for kind, score in counts.by_type().items()
            ],
            "unknown_labels": dict(self.unknown),
            "confusions": [
                {"true": true, "predicted": found, "count": count}
                for (true, found), count in self.confusions.most_common(MOST_CONFUSIONS)
            ],
        }


def tag_text(result: dict[str, Any]) -> str:
    """The scores of taggings as text for people."""
    parts = [
        f"{many(result['examples'], 'sequences')}, {many(result['tokens'], 'tokens')}, token error "
        f"{percent(result['error'])}, whole sequences right {percent(result['whole_sequences'])}"
    ]
    unknown = unknown_words(result)
    if unknown:
        parts[0] += f"\n{unknown}"
    if result["per_type"]:
        parts.append(aligned([list(TYPE_HEAD), *type_rows(result)]))
    if result["confusions"]:
        rows = [[row["true"], row["predicted"], f"{row['count']:,}"] for row in
                result["confusions"]]  # fmt: skip
        parts.append(
            "most frequent confusions\n" + aligned([["true", "predicted", "count"], *rows])
        )
    return "\n\n".join(parts)


TYPE_HEAD = ("chunks", "precision", "recall", "F1", "true", "predicted", "right")


def type_rows(result: dict[str, Any]) -> list[list[str]]:
    """The scores of chunks, of all types and of each, as rows."""
    whole = {"type": "all", **{key: result[key] for key in ("precision", "recall", "f1")}}
    rows = []
    for row in [whole | result["chunks"], *result["per_type"]]:
        shares = [f"{100 * row[key]:.2f} %" for key in ("precision", "recall", "f1")]
        counts = [f"{row[key]:,}" for key in ("n_true", "n_predicted", "n_right")]
        rows.append([row["type"] or "(no type)", *shares, *counts])
    return rows


def unknown_words(result: dict[str, Any]) -> str:
    """Labels of the data that the model does not know."""
    unknown = result["unknown_labels"]
    if not unknown:
        return ""
    names = ", ".join(f"{printable(label)} ({count:,})" for label, count in sorted(unknown.items()))
    return f"labels that the model does not know, counted as errors: {names}"
