"""Spellings of earlier versions in files."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin.kernels.budgets import BUDGETS
from widemargin.saving.earlier import todays_solver
from widemargin.saving.models import restored, stored_parameter
from widemargin.solvers import (
    CHOICES,
    NORMA,
    SVMD,
    AutoDamping,
    Averaged,
    Cached,
    ClampedResiduals,
    ConstantDamping,
    FreeResiduals,
    FunctionalDescent,
    GeometricDamping,
    GivenDamping,
    ImportanceDraws,
    InOrder,
    LaSVM,
    LinearDamping,
    Merge,
    Oldest,
    OneSlackCuts,
    OutOfCore,
    Pegasos,
    PowerDamping,
    Project,
    Radius,
    Smallest,
    UniformDraws,
)

#: The fields of 0.1.0 and their defaults.
DESCENT = {
    "epochs": 2,
    "sample": None,
    "working_set": "sequential",
    "window": None,
    "schedule": "auto",
    "scale": 1.0,
    "rate": 2.0,
    "radius": None,
    "revisit": None,
    "residuals": "free",
    "ceiling": {"float": "inf"},
    "average": 3.0,
    "tolerance": None,
    "inner": "dual_coordinate",
    "buffer": None,
    "budget": "project",
    "megabytes": 256.0,
}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {}),
        ({"epochs": 3, "revisit": 0.5}, {"passes": 3, "schedule": AutoDamping(revisit=0.5)}),
        ({"scale": 0.1}, {"schedule": AutoDamping(0.1)}),
        ({"schedule": "constant", "scale": 0.1}, {"schedule": ConstantDamping(0.1)}),
        ({"schedule": "linear", "revisit": 2.0}, {"schedule": LinearDamping(revisit=2.0)}),
        ({"schedule": "power", "rate": 0.5}, {"schedule": PowerDamping(rate=0.5)}),
        ({"schedule": "geometric"}, {"schedule": GeometricDamping()}),
        ({"radius": 0.5}, {"schedule": Radius(0.5)}),
        ({"residuals": "clamped"}, {"residuals": ClampedResiduals()}),
        ({"residuals": "clamped", "ceiling": 2.0}, {"residuals": ClampedResiduals(2.0)}),
        ({"ceiling": 2.0}, {"residuals": FreeResiduals()}),
        ({"working_set": "uniform"}, {"working_set": UniformDraws()}),
        ({"working_set": "importance", "window": 9}, {"working_set": ImportanceDraws(9)}),
        ({"window": 9}, {"working_set": InOrder()}),
        ({"inner": "one_slack"}, {"inner": OneSlackCuts()}),
        ({"buffer": 20}, {"budget": Project(20)}),
        ({"buffer": 9, "budget": "merge", "megabytes": 1.0}, {"budget": Merge(9, memory=1.0)}),
    ],
)
def test_words_became_objects(old, new):
    value = {"solver": "FunctionalDescent", "fields": DESCENT | old}
    assert restored(value, {}) == FunctionalDescent(**new)
    arrays: dict[str, np.ndarray] = {}
    today = stored_parameter("solver", FunctionalDescent(**new), arrays)
    assert todays_solver(today) == today  # what is of today stays
    assert restored(todays_solver(value), {}) == restored(today, {})


@pytest.mark.parametrize("kind", [SVMD, NORMA, Pegasos])
def test_budgets_became_objects(kind):
    fields = stored_parameter("solver", kind(), {})["fields"]
    for word, budget in {"oldest": Oldest(7), "smallest": Smallest(7)}.items():
        old = {"buffer": 7, "budget": word, "megabytes": 256.0}
        assert restored({"solver": kind.__name__, "fields": fields | old}, {}) == kind(
            budget=budget
        )
    old = {"buffer": None, "budget": "oldest", "megabytes": 256.0}
    assert restored({"solver": kind.__name__, "fields": fields | old}, {}) == kind()


def test_epochs_became_passes_and_bytes_megabytes():
    assert restored({"solver": "LaSVM", "fields": {"epochs": 3}}, {}) == LaSVM(passes=3)
    value = {"solver": "OutOfCore", "fields": {"block_bytes": 1 << 19}}
    assert restored(value, {}) == OutOfCore(memory=0.5)


def test_solvers_inside_others():
    inside = {"solver": "FunctionalDescent", "fields": DESCENT | {"radius": 2.0}}
    value = stored_parameter("solver", Averaged(Cached(FunctionalDescent())), {})
    value["fields"]["solver"]["fields"]["solver"] = inside
    assert restored(value, {}) == Averaged(Cached(FunctionalDescent(schedule=Radius(2.0))))


@pytest.mark.parametrize("wrong", [{"schedule": "slow"}, {"residuals": 3}, {"inner": None}])
def test_what_no_version_wrote(wrong):
    value = {"solver": "FunctionalDescent", "fields": DESCENT | wrong}
    with pytest.raises(TypeError, match=r"one of .* is needed"):
        restored(value, {})


def test_every_object_of_parameters_is_saved():
    for name, kind in CHOICES.items():
        given = (7,) if kind in (Radius, *BUDGETS.values()) else ()
        made = None if kind is GivenDamping else kind(*given)
        assert restored(stored_parameter("x", made, {}), {}) == made, name
