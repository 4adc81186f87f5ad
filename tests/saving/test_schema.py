"""Every array that is written is declared, and what is not as declared is refused by its name."""

import numpy as np
import pytest

from audits import checkpoints, models
from widemargin import load
from widemargin.saving import checkpoints as checkpoint
from widemargin.saving.schema import (
    LABELS,
    MOST,
    Array,
    Derived,
    Entry,
    Item,
    Mismatch,
    Relation,
    Schema,
    bound_of,
    check,
    check_items,
    size_of,
)
from widemargin.saving.tensorfile import ModelFileError, read_arrays, write_arrays

#: Learners and models that share compiled code with other tests.
LEARNERS = [(kind, moment) for kind in checkpoints.KINDS for moment in checkpoints.MOMENTS]
RNG = np.random.default_rng(0)

ROWS = Schema(
    Array("indptr", "i8", ("n+1",), order="rising", first=0),
    Array("indices", "i4|i8", ("nnz",), low=0, below="n_columns"),
    Array("values", "f8", ("nnz",), finite=False),
    Array("flags", "?", (2,), optional=True),
    Array("numbers", "f8", (2,), entries=(Entry("n_seen", 0, 9, whole=True), Entry("mean"))),
    Relation("indptr", "does not end there", lambda a, s: a["indptr"][-1] == s["nnz"]),
    Derived("last", "indptr", lambda indptr: int(indptr[-1])),
)


def rows(**changes) -> dict[str, np.ndarray]:
    found = {
        "indptr": np.array([0, 1, 3]),
        "indices": np.array([0, 2, 3]),
        "values": np.array([1.0, -np.inf, 2.0]),
        "numbers": np.array([4.0, 0.5]),
    }
    found |= {name: np.asarray(array) for name, array in changes.items()}
    return {name: array for name, array in found.items() if array.dtype != object}


def test_sizes_are_found_and_compared():
    assert check(ROWS, rows(), {"n_columns": 4}) == {
        "n_columns": 4,
        "n": 2,
        "nnz": 3,
        "n_seen": 4,
        "last": 3,
    }
    assert size_of("2*n+3*m+1", {"n": 2, "m": 5}) == 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": None}, "array 'values' is missing"),
        ({"more": [1]}, "array 'more' has no place in this file"),
        ({"values": [1.0, 2.0]}, r"'values' has 2 items along axis 0, not 3 \(nnz\)"),
        ({"values": [[1.0, 2.0, 3.0]]}, "'values' has 2 axes, not 1"),
        ({"values": [1, 2, 3]}, "'values' is of type int64, not f8"),
        ({"values": [1.0, np.nan, 3.0]}, "'values' holds a NaN"),
        ({"indices": [0, 2, 4]}, "'indices' has the value 4; all are below n_columns"),
        ({"indices": [0, -1, 3]}, "'indices' has the value -1; all are at least 0"),
        ({"indptr": [0, 3, 1]}, "'indptr' is not rising"),
        ({"indptr": [1, 1, 3]}, "'indptr' has another first value than 0"),
        ({"indptr": [0, 1, 2]}, "'indptr' does not end there"),
        ({"flags": [1, 0]}, "'flags' is of type int64"),
        ({"numbers": [4.5, 0.0]}, "'n_seen' in array 'numbers' is 4.5, which is not a whole"),
        ({"numbers": [10.0, 0.0]}, "'n_seen' in array 'numbers' is 10.0; it is within 0 and 9"),
        ({"numbers": [1.0, np.inf]}, "'numbers' holds an infinite number"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    with pytest.raises(Mismatch, match=message):
        check(ROWS, rows(**change), {"n_columns": 4})


def test_parts_have_sizes_of_their_own():
    both = Schema(
        Array("n", "i8", (1,), entries=(Entry("n_columns", 0, MOST),)),
        ROWS.under("a.", known={"n_columns": "n_columns"}),
        Schema(ROWS, prefix="b.", optional=True, known={"n_columns": "a.n"}),
    )
    given = {"n": np.array([4])} | {f"a.{name}": array for name, array in rows().items()}
    assert check(both, given)["a.nnz"] == 3
    given |= {f"b.{name}": array for name, array in rows().items()}
    with pytest.raises(Mismatch, match=r"array 'b\.indices' has the value 3; all are below n_col"):
        check(both, given)
    del given["b.values"]
    with pytest.raises(Mismatch, match=r"array 'b\.(values|indices)'"):
        check(both, given)


def test_labels_of_two_kinds_have_no_order():
    classes = Schema(Array("classes_", LABELS, ("K",), order="increasing"))
    assert check(classes, {"classes_": np.array(["a", "b"])}) == {"K": 2}
    with pytest.raises(Mismatch, match="is not increasing"):
        check(classes, {"classes_": np.array(["a", 1], object)})


@pytest.mark.parametrize("value", [True, 1.5, "1", None, -1, 10**30, [1]])
def test_numbers_of_json_are_of_their_type_and_range(value):
    with pytest.raises(Mismatch, match="'rows' of the header"):
        check_items((Item("rows", int, 0, MOST),), {"rows": value})


# ------------------------------------------------------------ learners


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    """What a learner declares, and what it wrote: found once for all tests of it."""
    folder, found = tmp_path_factory.mktemp("states"), {}

    def state(kind, moment):
        if (kind, moment) not in found:
            kept, *_ = checkpoints.base(kind, moment, folder)
            with pytest.MonkeyPatch.context() as patch:
                seen = []
                patch.setattr(checkpoint, "check", lambda *given: seen.append(given))
                checkpoints.take_up(kind, kept, folder)
            found[kind, moment] = next(s for s in seen if "learner.progressive" in s[1])
        return found[kind, moment]

    return state


@pytest.mark.parametrize(("kind", "moment"), LEARNERS, ids=lambda part: str(part))
def test_every_array_of_a_learner_is_declared_and_compared(states, kind, moment):
    schema, arrays = states(kind, moment)
    sizes = check(schema, arrays)
    assert arrays.keys() <= schema.names
    alone = lonely_sizes(schema)
    for name, wanted in schema.arrays():
        if name not in arrays:
            continue
        prefix = name.removesuffix(wanted.name)
        own = sizes | {n.removeprefix(prefix): s for n, s in sizes.items() if n.startswith(prefix)}
        for what, altered in violations(wanted, arrays[name], own, alone):
            with pytest.raises(Mismatch) as refused:
                check(
                    schema,
                    {**arrays, name: altered} if altered is not None else without(arrays, name),
                )
            assert "array '" in str(refused.value), what


def without(arrays, name):
    """All arrays but one."""
    return {n: a for n, a in arrays.items() if n != name}


def lonely_sizes(schema) -> set[str]:
    """Sizes that only one array has: it may be of any length."""
    named = [size for _, wanted in schema.arrays() for size in wanted.shape]
    return {size for size in named if isinstance(size, str) and named.count(size) == 1}


def violations(wanted: Array, found: np.ndarray, sizes, alone):
    """(what is wrong, the array altered so) for everything that is declared of an array."""
    if not wanted.optional:
        yield "missing", None
    yield "type", found.astype(np.complex64)
    yield "axes", found[None]
    for axis, size in enumerate(wanted.shape):
        if size not in alone:
            longer = [length + (k == axis) for k, length in enumerate(found.shape)]
            yield f"axis {axis}", np.resize(found, longer).astype(found.dtype)
    if not found.size:
        return
    values = []
    if wanted.low is not None and found.dtype.kind != "u":
        values.append(bound_of(wanted.low, sizes) - 1)
    if wanted.high is not None and bound_of(wanted.high, sizes) < MOST:
        values.append(bound_of(wanted.high, sizes) + 1)
    if wanted.below is not None:
        values.append(bound_of(wanted.below, sizes))
    if found.dtype.kind == "f" and not wanted.nan:
        values += [np.nan] + [np.inf] * wanted.finite
    if wanted.whole:
        values.append(0.5)
    for value in values:
        yield f"value {value}", with_value(found, 0, value)
    if wanted.first is not None:
        yield "first", with_value(found, 0, found[0] + 1)
    if found.size > 1 and (wanted.order == "increasing" or wanted.distinct):
        yield "twice", with_value(found, 1, found[0])
    if wanted.order and found[0] != found[-1]:
        yield "reversed", found[::-1].copy()
    for k, entry in enumerate(wanted.entries):
        for bound, step in ((entry.low, -1), (entry.high, 1)):
            if bound is not None and bound_of(bound, sizes) < MOST:
                yield entry.name, with_value(found, k, bound_of(bound, sizes) + step)


def with_value(array, place, value):
    """A copy with another value at one place."""
    copy = array.copy()
    copy.reshape(-1)[place] = value
    return copy


# ------------------------------------------------------------ models


@pytest.mark.parametrize("kind", ["two classes", "tagger", "label tree", "rbf", "own taxonomy"])
def test_every_array_of_a_model_is_compared(tmp_path, kind):
    arrays, header = models.base(kind, tmp_path)
    path = tmp_path / "altered.model"
    for name, array in arrays.items():
        others = [array.astype(bool)] if name != "classes_" else []  # labels may be
        for altered in (array[None], np.append(array.ravel(), array.ravel()), *others):
            write_arrays(path, {**arrays, name: np.ascontiguousarray(altered)}, header)
            with pytest.raises(ModelFileError, match=r"array '|'feature_names_|names"):
                load(path)
        write_arrays(path, without(arrays, name), header)
        with pytest.raises(ModelFileError, match=f"array '{name}'"):
            load(path)
    write_arrays(path, arrays, header)
    assert read_arrays(path)[1] == header
    load(path)


def test_changes_that_go_together_are_refused(tmp_path):
    arrays, header = models.base("tagger", tmp_path)
    path, more = tmp_path / "forged.model", 5000

    def forge(numbers, params, **changed):
        attributes = header["attributes"] | numbers
        altered = header | {"attributes": attributes, "params": header["params"] | params}
        write_arrays(path, arrays | changed, altered)
        return path

    names = arrays["feature_names_"].tobytes().decode() + "".join(f"\0n{k}" for k in range(more))
    count = names.count("\0") + 1
    numbers = {
        "n_features_in_": count,
        "feature_names_": {"strings": "feature_names_", "count": count},
    }
    text = np.frombuffer(names.encode(), np.uint8)
    with pytest.raises(ModelFileError, match=r"array 'weights_' has [0-9]+, not "):
        load(forge(numbers, {}, feature_names_=text))
    steps = {"transition_features": {"items": ["s1"] * more}}
    with pytest.raises(ModelFileError, match=r"array 'weights_' has [0-9]+, not "):
        load(forge({"n_edges_": more}, steps))
    with pytest.raises(ModelFileError, match="'edge_names_' and transition_features exceed"):
        load(forge({}, steps))
    same = "\0".join(["a"] * header["attributes"]["feature_names_"]["count"])
    with pytest.raises(ModelFileError, match="array 'feature_names_' has a name twice"):
        load(forge({}, {}, feature_names_=np.frombuffer(same.encode(), np.uint8)))


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        (
            "columns",
            0,
            10**9,
            "support.columns' has the value 1000000000; all are below 5000",
        ),
        ("starts", 1, 5 * 10**7, "'machine.support.starts' is not rising"),
        ("starts", -1, 3, "'machine.support.starts' (is not rising|does not end with the entries)"),
        ("squares", 0, -1.0, "'machine.support.squares' has the value -1.0"),
        (
            "counts",
            0,
            2,
            r"'n_slots'|support.squares' has [0-9]+ items along axis 0, not 2",
        ),
    ],
)
def test_sparse_patterns_stay_inside(tmp_path, name, place, value, message):
    arrays, header = models.base("rbf, sparse", tmp_path)
    changed = arrays[f"machine.support.{name}"].copy()
    changed[place] = value
    path = tmp_path / "forged.model"
    write_arrays(path, arrays | {f"machine.support.{name}": changed}, header)
    with pytest.raises(ModelFileError, match=f"forged.model: .*({message})"):
        load(path)


@pytest.mark.parametrize("campaign", [models, checkpoints])
def test_forged_files(tmp_path, monkeypatch, campaign):
    few = {"rows", "LaSVM", "out of core", "two classes", "rbf", "tagger"}
    kinds = {kind: made for kind, made in campaign.KINDS.items() if kind in few}
    monkeypatch.setattr(campaign, "KINDS", kinds)
    campaign.base.cache_clear()
    assert [campaign.trial(seed, tmp_path) for seed in range(60)] == [None] * 60
    campaign.base.cache_clear()
