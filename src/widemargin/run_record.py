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
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from .certificate import Certificate
from .schema import MOST, Item, Mismatch, check_items
from .streams.fingerprint import Fingerprint

COUNTS = ("rows", "passes", "n_rows", "n_calls", "total_cost", "spacing")


#: What the books of a file must be; those of the estimator and of kernel machines are among them.
BOOKS = (
    Item("rng", dict),
    Item("rows", int, 0, MOST),
    Item("passes", float, 0, MOST),
    Item("n_rows", int, 0, MOST, none=True),
    Item("n_calls", int, 0, MOST),
    Item("total_cost", float, 0.0),
    Item("spacing", int, 1, MOST),
    Item("seconds", float, 0.0),
    Item("fingerprint", list, longest=2),
    Item("certificate", dict, none=True),
    Item("columns", int, 0, MOST),
    Item("is_fixed", bool),
    Item("may_grow", bool, optional=True),
    Item("n_evaluations", int, 0, MOST, optional=True),
    Item("n_examples", int, 1, MOST, none=True, optional=True),
)


class Record(NamedTuple):
    """See the head of this file."""

    arrays: dict[str, np.ndarray]
    books: dict[str, Any]  # and what the estimator adds to them


def books_of(run) -> dict[str, Any]:
    """What a run knows besides its learner and its history."""
    certificate = run.certificate
    return {
        "rng": run.rng.bit_generator.state,
        **{name: getattr(run, name) for name in COUNTS},
        "seconds": run.elapsed,
        "fingerprint": [run.fingerprint.count, run.fingerprint.total],
        "certificate": None if certificate is None else dataclasses.asdict(certificate),
    }


def give_back(run, record: Record) -> None:
    """Set a run that has begun back to where the record was taken."""
    books = record.books
    run.learner.restore(record.arrays)
    run.rng.bit_generator.state = books["rng"]
    for name in (*COUNTS, "seconds"):
        setattr(run, name, books[name])
    run.fingerprint = Fingerprint(*books["fingerprint"])
    certificate = books["certificate"]
    run.certificate = None if certificate is None else Certificate(**certificate)


def checked_books(books: Any) -> dict[str, Any]:
    """The books of a file, if they are what `books_of` writes."""
    check_items(BOOKS, books, "the run")
    found = books["fingerprint"]
    if len(found) != 2 or any(type(n) is not int or not 0 <= n < 2**64 for n in found):
        raise Mismatch("'fingerprint' of the run is not a pair of numbers")
    try:
        np.random.default_rng(0).bit_generator.state = books["rng"]
        None if books["certificate"] is None else Certificate(**books["certificate"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Mismatch("'rng' or 'certificate' of the run is not what a run has") from error
    return books
