"""Chunks as conlleval counts them; a state machine that goes tag by tag is the judge."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from widemargin.metrics import (
    TagCounts,
    chunk_f1,
    chunk_scores,
    find_chunks,
    token_accuracy,
)


def chunks_of(tags: list[str]) -> list[tuple[int, int, str]]:
    found = find_chunks([tags])
    kinds = [found.types[k] for k in found.kind]
    return list(zip(found.begin.tolist(), found.end.tolist(), kinds, strict=True))


def conlleval_chunks(tags: list[str]) -> set[tuple[int, int, str]]:
    """Pairs of neighbours that end or begin a chunk, as the script of the shared tasks has them."""
    ends = {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O"), ("E", "E"), ("E", "I"), ("E", "O")}
    starts = {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I"), ("E", "E"), ("E", "I"), ("O", "E")}
    found, begin = set(), None
    before, kind_before = "O", ""
    for t, tag in enumerate([*tags, "O"]):
        prefix, _, kind = tag.partition("-")
        is_end = (before, prefix) in ends or (before != "O" and kind_before != kind)
        is_end |= before in ("[", "]")
        if is_end and begin is not None:
            found.add((begin, t, kind_before))
            begin = None
        if (before, prefix) in starts or (prefix != "O" and kind_before != kind) or prefix in "[]":
            begin = t
        before, kind_before = prefix, kind
    return found


def tags_of(prefixes: str):
    inside = [f"{prefix}-{kind}" for prefix in prefixes for kind in ("X", "Y")]
    return st.lists(st.sampled_from(["O", "O", *inside]), min_size=1, max_size=9)


@settings(max_examples=1000)
@given(st.one_of(tags_of("BI"), tags_of("I"), tags_of("EI"), tags_of("[]")))
def test_chunks_are_those_of_conlleval(tags):
    assert set(chunks_of(tags)) == conlleval_chunks(tags)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["X", "Y", ""])), max_size=6))
def test_every_scheme_gives_back_the_chunks_it_was_written_from(runs):
    """Runs of positions, typed or outside, written in each scheme."""
    chunks, at = [], 0
    for length, kind in runs:
        chunks.append((at, at + length, kind))
        at += length
    wanted = [chunk for chunk in chunks if chunk[2]]

    def written(first, middle, last, single):
        tags = []
        for begin, end, kind in chunks:
            n = end - begin
            shape = [single] if n == 1 else [first, *[middle] * (n - 2), last]
            tags += [f"{prefix}-{kind}" if kind else "O" for prefix in shape]
        return tags

    schemes = ["BIIB", "BIES", "BILU", "IIEE", "BMES", "BIEB"]
    for first, middle, last, single in schemes:
        tags = written(first, middle, last, single)
        if tags:
            assert chunks_of(tags) == wanted, tags
            bare = [tag.replace("-X", "").replace("-Y", "") for tag in tags]
            assert [c[:2] for c in chunks_of(bare)] == [c[:2] for c in wanted]


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        ("B-NP I-NP O B-NP", [(0, 2, "NP"), (3, 4, "NP")]),
        ("I-NP I-NP B-NP I-VP", [(0, 2, "NP"), (2, 3, "NP"), (3, 4, "VP")]),  # IOB1
        ("O I-NP", [(1, 2, "NP")]),
        ("B-NP I-VP I-VP", [(0, 1, "NP"), (1, 3, "VP")]),
        ("I-NP E-NP I-NP E-NP", [(0, 2, "NP"), (2, 4, "NP")]),
        ("E-NP E-NP", [(0, 1, "NP"), (1, 2, "NP")]),
        ("S-NP S-NP B-NP E-NP B-NP", [(0, 1, "NP"), (1, 2, "NP"), (2, 4, "NP"), (4, 5, "NP")]),
        ("[-NP ]-NP O", [(0, 1, "NP"), (1, 2, "NP")]),
        ("B-A-1 I-A-1 I-A-2", [(0, 2, "A-1"), (2, 3, "A-2")]),
        ("NN VB . O", []),
    ],
)
def test_known_cases(tags, wanted):
    assert chunks_of(tags.split()) == wanted


def test_a_chunk_ends_with_its_sentence():
    assert find_chunks([["B-NP"], ["I-NP", "I-NP"]]).begin.tolist() == [0, 1]


def test_a_wrong_end_makes_a_chunk_wrong():
    true = [["B-NP", "I-NP", "I-NP", "B-VP", "I-VP", "B-NP", "O", "B-PP"]]
    found = [["B-NP", "I-NP", "O", "B-VP", "I-VP", "B-NP", "B-NP", "B-PP"]]
    score = chunk_scores(true, found)
    assert score == (4, 5, 3)
    assert score.precision == 0.6 and score.recall == 0.75
    assert score.f1 == pytest.approx(2 / 3)
    assert token_accuracy(true, found) == 0.75


@settings(max_examples=300)
@given(st.data())
def test_counts_add_up(data):
    pairs = data.draw(
        st.lists(
            tags_of("BIES").flatmap(
                lambda true: st.tuples(
                    st.just(true),
                    st.lists(
                        st.sampled_from(["O", "B-X", "I-X", "B-Z"]),
                        min_size=len(true),
                        max_size=len(true),
                    ),
                )
            ),
            min_size=1,
            max_size=5,
        )
    )
    parts, whole = TagCounts(), TagCounts()
    for true, found in pairs:
        parts.add([true], [found])
    whole.add(*zip(*pairs, strict=True))
    assert parts.chunks() == whole.chunks() and parts.by_type() == whole.by_type()
    assert parts.accuracy == whole.accuracy
    right = sum(len(set(chunks_of(a)) & set(chunks_of(b))) for a, b in pairs)
    assert whole.chunks().n_right == right
    totals = [sum(column) for column in zip(*whole.by_type().values(), strict=True)] or [0, 0, 0]
    assert tuple(totals) == whole.chunks()
    assert whole.n_right_sequences == sum(a == b for a, b in pairs)


def test_nothing_to_count():
    assert chunk_scores([["O"]], [["O"]]) == (0, 0, 0)
    assert chunk_f1([["O"]], [["O"]]) == 0.0
    assert chunk_scores([["B-X"]], [["O"]]).precision == 0.0
    assert TagCounts().accuracy == 0.0


@pytest.mark.parametrize(
    ("true", "found", "message"),
    [
        ([["O"]], [["O"], ["O"]], "1 sequences and y_pred has 2"),
        ([["O"]], [["O", "O"]], "sequence 0 has 1 tags in y_true, 2 in y_pred"),
        (["O"], ["O"], "sequence 0 is a string"),
        ([[1]], [[1]], "a tag is 1; strings"),
    ],
)
def test_bad_input(true, found, message):
    with pytest.raises(ValueError, match=message):
        chunk_scores(true, found)
