"""What a run keeps to go on from: the arrays of its learner, and its books as JSON.

One record serves all: a checkpoint has it beside the place in the stream, a model file and a pickle
beside what predicts. Restored, a run goes on bit for bit as if it had never ended.

books          what they are
rng            the state of the random numbers
rows, passes   examples learnt from in this pass, whole passes; `n_rows` in a pass, once known
n_calls        visits of passes at fixed weights
total_cost     sum of C_i over the first pass
spacing        examples between two rows of the history
seconds        so far
fingerprint    [count, total] of the examples learnt from
certificate    of the model as it stands, where there is one
rounding       what its ends were moved by, as a share of the objective
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from ..saving.header import checked_certificate, checked_fingerprint, checked_generator
from ..saving.schema import check
from ..saving.tensorfile import named
from ..streams.fingerprint import Fingerprint
from .certificate import restored

COUNTS = ("rows", "passes", "n_rows", "n_calls", "total_cost", "spacing", "rounding")


class Record(NamedTuple):
    """What a run keeps to go on from; see the head of this file."""

    arrays: dict[str, np.ndarray]
    books: dict[str, Any]  # and what the estimator adds to them
    path: str | None = None  # the model file that it was read from: not trusted


def books_of(run: Any) -> dict[str, Any]:
    """What a run knows besides its learner and its history."""
    certificate = run.certificate
    return {
        "rng": run.rng.bit_generator.state,
        **{name: getattr(run, name) for name in COUNTS},
        "seconds": run.elapsed,
        "fingerprint": [run.fingerprint.count, run.fingerprint.total],
        "certificate": None if certificate is None else dataclasses.asdict(certificate),
    }


def give_back(run: Any, record: Record) -> None:
    """Set a run that has begun back to where the record was taken."""
    books = record.books
    if record.path is not None:
        check(run.learner.schema().under("run."), named("run.", record.arrays))
    run.learner.restore(record.arrays)
    run.rng.bit_generator.state = books["rng"]
    for name in (*COUNTS, "seconds"):
        setattr(run, name, books.get(name, 0.0))  # files of 0.1.0 have no rounding
    run.fingerprint = Fingerprint(*books["fingerprint"])
    certificate = books["certificate"]
    run.certificate = None if certificate is None else restored(certificate)


def checked_books(books: dict[str, Any]) -> dict[str, Any]:
    """The books of a file, if what is in them can be used."""
    checked_generator(books["rng"])
    checked_fingerprint(books["fingerprint"])
    checked_certificate(books["certificate"])
    return books
