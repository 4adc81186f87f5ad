"""Fits repeat: those of the record, and under a clock that lies."""

import itertools
import time

import pytest

from tests.ladder.recorded_fits import FITS, agree, described, fitted, overlap, recorded


@pytest.fixture(scope="module")
def record():
    return recorded()


def test_the_record_is_of_these_fits(record):
    assert list(record) == list(FITS)


@pytest.mark.parametrize("name", FITS)
def test_fits_are_those_of_the_record(record, name):
    """Another processor may round otherwise: certificates overlap, numbers agree roughly."""
    new, old = described(fitted(name)), record[name]
    assert overlap(new, old)
    assert new["solver"] == old["solver"]
    if not old["certificate"]:  # nothing else ties the two together, and a near tie is a coin
        assert agree(new, old, rtol=0.05)


@pytest.mark.parametrize(
    "name", ["own problem", "larank", "out of core", "kernel stream", "tagger"]
)
def test_no_result_depends_on_the_clock(monkeypatch, name):
    straight = described(fitted(name))
    for step in (1e-9, 3.0):  # a clock that stands, and one that runs
        ticks = itertools.count(0.0, step)
        monkeypatch.setattr(time, "perf_counter", lambda ticks=ticks: next(ticks))
        assert described(fitted(name)) == straight
