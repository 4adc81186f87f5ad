"""SequenceTagger: kinds of input, streams, files, and what it says about bad input."""

from __future__ import annotations

import pickle
import warnings
from itertools import chain

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import widemargin
from widemargin import SequenceTagger
from widemargin.inputs.sequences import Sequences, Vocabulary
from widemargin.losses import Taxonomy
from widemargin.solvers import DualCoordinate, StreamingDual
from widemargin.streams import IteratorStream

WORDS = ["the", "a", "cat", "dog", "bird", "sees", "chases", "barks", "sings", "big", "small"]
KIND = dict(zip(WORDS, "DDNNNVVVVAA", strict=True))


def sentences(n=40, seed=0):
    """Tokens with features as names; labels with noise."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = [WORDS[k] for k in rng.integers(0, len(WORDS), rng.integers(1, 6))]
        X.append([[f"w={word}", f"end={word[-1]}"] for word in words])
        y.append([KIND[word] if rng.random() < 0.9 else "N" for word in words])
    return X, y


def as_dicts(X):
    return [[{"w": a[2:], "end": {b[4:]: 1.0}} for a, b in x] for x in X]


def as_arrays(X):
    vocabulary = Vocabulary()
    packed = vocabulary.encode(X)
    return [packed[i].rows.toarray() for i in range(len(packed))]


@pytest.mark.parametrize("kind", ["dicts", "arrays", "csr", "packed", "renamed"])
def test_all_kinds_of_input_give_one_model(kind):
    X, y = sentences()
    model = SequenceTagger(C=0.3, tol=1e-6, random_state=0).fit(X, y)
    other = {
        "dicts": as_dicts,
        "arrays": as_arrays,
        "csr": lambda X: [sp.csr_matrix(x) for x in as_arrays(X)],
        "packed": lambda X: Vocabulary().encode(X),
        "renamed": lambda X: Vocabulary(["end=x", "w=never"]).encode(X),
    }[kind]
    if kind == "dicts":  # names differ: w:cat, end:t
        again = SequenceTagger(C=0.3, tol=1e-6, random_state=0).fit(other(X), y)
    else:
        again = SequenceTagger(C=0.3, tol=1e-6, random_state=0).fit(other(X), y)
    assert again.certificate_.primal == pytest.approx(model.certificate_.primal, rel=2e-6)
    assert again.predict(other(X)) == model.predict(X)


def test_a_mean_loss_is_the_sum_with_other_weights():
    X, y = sentences()
    lengths = np.array([len(x) for x in X], float)
    one = SequenceTagger(C=1.0, loss="mean_hamming", tol=1e-5, random_state=0).fit(X, y)
    assert one.certificate_.gap <= 1e-5
    weights = [np.full(len(x), 1.0 / len(x)) for x in X]
    two = SequenceTagger(C=1.0, tol=1e-5, random_state=0).fit(X, y, token_weight=weights)
    assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=2e-5)
    assert lengths.min() >= 1


def test_cost_matrices_and_losses():
    X, y = sentences()
    K = 4
    plain = SequenceTagger(C=0.3, tol=1e-6, random_state=0).fit(X, y)
    ones = SequenceTagger(C=0.3, tol=1e-6, random_state=0, loss=1.0 - np.eye(K)).fit(X, y)
    assert ones.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-6)
    tree = {"A": "word", "N": "word", "D": "other", "V": "other", "word": "root", "other": "root"}
    taxonomy = SequenceTagger(C=0.3, random_state=0, loss=Taxonomy(tree)).fit(X, y)
    assert taxonomy.loss_matrix_.shape == (K, K)
    with pytest.raises(ValueError, match="loss is 'zero_one'"):
        SequenceTagger(loss="zero_one").fit(X, y)


def test_labels_of_any_kind():
    X, y = sentences(15)
    tuples = [[(1, label) for label in labels] for labels in y]
    mixed = [[1 if label == "N" else label for label in labels] for labels in y]
    numbers = [np.array([ord(label) for label in labels]) for labels in y]
    plain = SequenceTagger(random_state=0).fit(X, y).predict(X)
    found = SequenceTagger(random_state=0).fit(X, tuples).predict(X)
    assert [[label for _, label in labels] for labels in found] == plain
    assert set(map(type, chain.from_iterable(SequenceTagger().fit(X, mixed).predict(X)))) == {
        int,
        str,
    }
    assert SequenceTagger(random_state=0).fit(X, numbers).classes_.dtype.kind == "i"


def test_embeddings_beside_names():
    X, y = sentences(30)
    rng = np.random.default_rng(0)
    vector = {word: rng.standard_normal(5) for word in WORDS}
    numbers = [np.array([vector[token[0][2:]] for token in x]) for x in X]
    pairs = list(zip(X, numbers, strict=True))
    model = SequenceTagger(random_state=0, tol=1e-5).fit(pairs, y)
    assert model.coef_.shape[0] == 5 + len(model.feature_names_)
    alone = SequenceTagger(random_state=0, tol=1e-5).fit(X, y)
    assert model.certificate_.primal < alone.certificate_.primal
    assert len(model.predict(pairs)) == 30
    assert any("column" in r.feature for r in model.explain(pairs[0], n=50)[0].reasons)


def test_embeddings_beside_csr_rows_are_the_wider_matrix():
    X, y = sentences(30)
    rng = np.random.default_rng(0)
    arrays = as_arrays(X)
    numbers = [rng.standard_normal((len(x), 3)) for x in arrays]
    pairs = [(sp.csr_matrix(x), e) for x, e in zip(arrays, numbers, strict=True)]
    wide = [np.hstack(both) for both in zip(arrays, numbers, strict=True)]
    model = SequenceTagger(random_state=0).fit(pairs, y)
    again = SequenceTagger(random_state=0).fit(wide, y)
    np.testing.assert_allclose(model.coef_, again.coef_)
    assert model.predict(pairs) == again.predict(wide)
    pairs[2] = pairs[2][0], pairs[2][1][:-1]
    with pytest.raises(ValueError, match=r"sequence 2 is a pair of matrices of \d and \d rows"):
        model.predict(pairs)


def test_transition_features_separate_what_single_ones_cannot():
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(60):  # a flip turns the label round: neither the word nor the label alone tells
        flips = rng.random(6) < 0.5
        X.append([["flip" if flip else "keep"] for flip in flips])
        y.append((np.cumsum(flips) % 2).tolist())
    plain = SequenceTagger(C=1.0, random_state=0, tol=1e-3).fit(X, y)
    model = SequenceTagger(C=1.0, random_state=0, tol=1e-3, transition_features=["flip"]).fit(X, y)
    assert model.score(X, y) == 1.0 and plain.score(X, y) < 0.9
    assert model.transition_coef_.shape == (1, 2, 2)
    with pytest.raises(ValueError, match="no feature has the name 'flop'"):
        SequenceTagger(transition_features=["flop"]).fit(X, y)
    with pytest.raises(ValueError, match="9 is no column"):
        SequenceTagger(transition_features=[9]).fit(X, y)


def test_transition_features_stand_beside_the_steps_of_the_data():
    X, y = sentences()
    begin = np.cumsum([0, *map(len, X)])
    words = sorted({name for x in X for token in x for name in token})
    dense = np.array([[name in token for name in words] for x in X for token in x], float)
    rows, steps = sp.csr_matrix(dense), sp.csr_matrix(dense[:, :3])
    named = SequenceTagger(random_state=0, transition_features=[3, 4])
    given = SequenceTagger(random_state=0)
    both = sp.csr_matrix(dense[:, :5])
    named.fit(Sequences(rows, begin, edges=steps), y)
    given.fit(Sequences(rows, begin, edges=both), y)
    assert np.array_equal(named.weights_, given.weights_)
    assert named.transition_coef_.shape == (5, 4, 4)


@pytest.mark.parametrize(
    ("scheme", "labels", "message"),
    [
        ("bio", ["B-x", "O", "I-x"], "position 2: the label 'I-x' follows 'O', which constraints="),
        ("bio", ["I-x", "I-x", "O"], "position 0: the label 'I-x' comes first, which"),
        ("iobes", ["O", "O", "B-x"], "position 2: the label 'B-x' comes last, which"),
        ([("B-x", "O")], ["B-x", "O", "I-x"], "position 1: .* which the constraints forbid"),
    ],
)
@pytest.mark.parametrize("solver", ["auto", "streaming_dual"])
def test_labels_that_break_the_constraints_are_named(scheme, labels, message, solver):
    X = [[["a"], ["b"], ["c"]]] * 2
    model = SequenceTagger(constraints=scheme, solver=solver)
    with pytest.raises(ValueError, match=message):
        model.fit(X, [["O", "O", "O"], labels])


def test_constraints_hold_in_predictions():
    rng = np.random.default_rng(1)
    X = [rng.standard_normal((8, 3)) for _ in range(40)]
    y = []
    for x in X:
        labels, inside = [], False
        for value in x[:, 0]:
            labels.append(("I-x" if inside else "B-x") if value > 0 else "O")
            inside = value > 0
        y.append(labels)
    model = SequenceTagger(C=0.01, constraints="bio", random_state=0).fit(X, y)
    noise = [rng.standard_normal((8, 3)) for _ in range(200)]
    for ranked in model.predict_kbest(noise, 3):
        for _, labels in ranked:
            before = "O"
            for label in labels:
                assert label != "I-x" or before in ("B-x", "I-x")
                before = label
    by_hand = SequenceTagger(C=0.01, constraints=[("O", "I-x"), (None, "I-x")], random_state=0).fit(
        X, y
    )
    assert by_hand.predict(noise) == model.predict(noise)


def test_k_best_margins_and_explanations_fit_together():
    X, y = sentences()
    model = SequenceTagger(random_state=0).fit(X, y)
    for x, ranked, margins in zip(X, model.predict_kbest(X, 200), model.margins(X), strict=True):
        scores = [score for score, _ in ranked]
        assert scores == sorted(scores, reverse=True)
        assert [ranked[0][1]] == model.predict([x])
        for t, label in enumerate(ranked[0][1]):
            rivals = [score for score, labels in ranked if labels[t] != label]
            if rivals:
                assert margins[t] == pytest.approx(scores[0] - rivals[0], abs=1e-9)
        for t, why in enumerate(model.explain(x, n=100)):
            assert why.label == ranked[0][1][t] and why.margin >= -1e-12
            assert sum(r.effect for r in why.reasons) == pytest.approx(why.margin, abs=1e-9)
    with pytest.raises(ValueError, match="k is 0"):
        model.predict_kbest(X, 0)


@pytest.mark.parametrize(
    "solver", ["one_slack", "n_slack", "dual_coordinate", "block_frank_wolfe", "streaming_dual"]
)
def test_every_solver(solver):
    X, y = sentences(60)
    best = SequenceTagger(C=0.3, tol=1e-6, random_state=0).fit(X, y).certificate_
    model = SequenceTagger(C=0.3, tol=1e-3, solver=solver, random_state=0).fit(X, y)
    assert model.certificate_.scope == "data" and model.certificate_.gap <= 1e-3
    assert model.certificate_.dual <= best.primal * (1 + 1e-9)
    assert model.certificate_.primal >= best.dual * (1 - 1e-9)


def test_slack_rescaling():
    X, y = sentences(25)
    model = SequenceTagger(C=0.3, tol=1e-4, rescaling="slack", random_state=0).fit(X, y)
    assert model.certificate_.gap <= 1e-4 and not model.certificate_.is_estimate


# ------------------------------------------------------------------ streams


def parts(X, y, size=7):
    return lambda: ((X[k : k + size], y[k : k + size]) for k in range(0, len(X), size))


@pytest.mark.parametrize("kind", ["tokens", "packed"])
def test_a_stream_learns_new_names_on_the_way(kind):
    X, y = sentences(80)
    batch = SequenceTagger(C=0.3, tol=1e-5, random_state=0).fit(X, y)
    source = parts(X, y)
    if kind == "packed":

        def source():
            return ((Vocabulary().encode(x), labels) for x, labels in parts(X, y)())

    model = SequenceTagger(C=0.3, tol=1e-3, random_state=0)
    model.fit_stream(IteratorStream(source), passes=None)
    assert model.certificate_.scope == "data" and model.certificate_.gap <= 1e-3
    assert model.certificate_.primal == pytest.approx(batch.certificate_.primal, rel=2e-3)
    assert sorted(model.feature_names_) == sorted(batch.feature_names_)
    assert model.progressive_loss_ > 0
    once = SequenceTagger(C=0.3, tol=1e-2, random_state=0).fit_stream(IteratorStream(source))
    assert once.certificate_.scope == "cache"
    assert once.verify(IteratorStream(source)).scope == "data"
    with pytest.raises(ValueError, match="not the data that the model was trained on"):
        once.verify(IteratorStream(parts(X[:-1], y[:-1])))


def test_a_small_cache_still_learns():
    X, y = sentences(400)
    model = SequenceTagger(C=0.1, solver=StreamingDual(memory=0.05), random_state=0)
    model.fit_stream(IteratorStream(parts(X, y, 20)), passes=2, verify=True)
    assert model.score(X, y) > 0.85


def test_partial_fit_with_labels_that_come_late():
    X, y = sentences(60)
    model = SequenceTagger(C=0.3, random_state=0)
    model.partial_fit(X[:5], y[:5], classes=["A", "D", "N", "V"])
    for k in range(5, 60, 5):
        model.partial_fit(X[k : k + 5], y[k : k + 5])
    assert model.n_examples_seen_ == 60 and model.score(X, y) > 0.85
    with pytest.raises(ValueError, match="label 'Q' is not among the labels"):
        model.partial_fit(X[:1], [["Q"] * len(X[0])])


# ------------------------------------------------------------------ conventions


def test_saved_models_are_the_same(tmp_path):
    X, y = sentences(20)
    for options in (
        {},
        {"constraints": [("D", "D"), (None, "V")], "loss": 1.0 - np.eye(4)},
        {"transition_features": ["w=the", "w=cat"]},
    ):
        if "constraints" in options:
            labels = [["N"] * len(x) for x in X]
            labels[0] = ["A", "D", "N", "V", "N"][: len(X[0])]
            pairs = [(x, [KIND[t[0][2:]] for t in x]) for x in X]
            bad = [k for k, (_, t) in enumerate(pairs) if "D D" in " ".join(t) or t[0] == "V"]
            keep = [k for k in range(len(X)) if k not in bad]
            data = [pairs[k][0] for k in keep], [pairs[k][1] for k in keep]
        else:
            data = X, y
        model = SequenceTagger(random_state=0, **options).fit(*data)
        path = tmp_path / "tagger.model"
        model.save(path)
        loaded = widemargin.load(path)
        assert loaded.predict(X) == model.predict(X)
        assert loaded.feature_names_ == model.feature_names_
        assert np.array_equal(loaded.coef_, model.coef_)
        assert loaded.certificate_ == model.certificate_
        assert loaded.explain(X[0]) == model.explain(X[0])


def test_clone_pickle_and_grid_search():
    X, y = sentences(30)
    model = SequenceTagger(C=0.2, random_state=0)
    assert clone(model).get_params() == model.get_params()
    model.fit(X, y)
    assert pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)
    search = GridSearchCV(SequenceTagger(random_state=0), {"C": [0.01, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.6
    assert cross_val_score(model, X, y, cv=3).shape == (3,)


def test_pipelines_with_routed_metadata():
    X, y = sentences()
    with config_context(enable_metadata_routing=True):
        tagger = SequenceTagger(random_state=0).set_score_request(sample_weight=True)
        pipe = make_pipeline(FunctionTransformer(as_dicts), tagger).fit(X, y)
        weights = np.arange(len(y)) % 3
        lengths = np.array([len(labels) for labels in y])
        right = [
            sum(one == two for one, two in zip(*pair, strict=True))
            for pair in zip(pipe.predict(X), y, strict=True)
        ]
        wanted = weights @ right / (weights @ lengths)
        assert pipe.score(X, y, sample_weight=weights) == pytest.approx(wanted)
        assert pipe.score(X, y) == pytest.approx(np.sum(right) / lengths.sum())


def test_validation_stops_a_fit():
    X, y = sentences(60)
    rule = widemargin.Validation(X[40:], y[40:], patience=2)
    model = SequenceTagger(C=1.0, tol=1e-9, random_state=0, stop=rule)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:40], y[:40])
    assert model.stopped_by_ in ("validation", "gap")


def test_unknown_words_are_left_out_and_unknown_labels_are_wrong():
    X, y = sentences(20)
    model = SequenceTagger(random_state=0).fit(X, y)
    assert len(model.predict([[["w=unheard"], []]])[0]) == 2
    assert model.predict([]) == []
    right = model.predict(X[:1])[0]
    assert model.score(X[:1], [right]) == 1.0
    assert model.score(X[:1], [["?"] * len(right)]) == 0.0


# ------------------------------------------------------------------ bad input

TOKENS = [[["a"], ["b"]], [["b"]]]
LABELS = [[0, 1], [1]]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (TOKENS, LABELS[:1], "X has 2 sequences and y has 1"),
        ([], [], "no sequences"),
        ([[["a"], ["b"]], []], [[0, 1], []], "sequence 1 is empty"),
        (TOKENS, [[0, 1], [1, 0]], "sequence 1 has 1 positions in X and 2 labels in y"),
        (TOKENS, [[0, 0], [0]], "only one label, 0;"),
        ([[], []], [[], []], "y has no labels: all sequences are empty"),
        (TOKENS, [[0, 1], None], r"y\[1\] is None; a list of labels is needed"),
        (TOKENS, ["ab", "a"], r"y\[0\] is 'ab'; a list of labels is needed"),
        ([[["a"], {"b": 1}], [["b"]]], LABELS, "sequence 0, position 1: the token is"),
        ([[["a"], "b"], [["b"]]], LABELS, "sequence 0, position 1: the token is 'b'"),
        ([[[1], [2]], [[3]]], LABELS, "a feature is 1; names of features are strings"),
        ([[{"a": None}, {}], [{}]], LABELS, "feature 'a' has the value None"),
        ([np.zeros((2, 3)), np.zeros((1, 2))], LABELS, "sequence 1 has shape"),
        ([np.full((2, 3), np.nan), np.zeros((1, 3))], LABELS, "NaN or infinity in X"),
        ([np.zeros((0, 3)), np.zeros((1, 3))], LABELS, "sequence 0 is empty"),
    ],
)
def test_bad_input(X, y, message):
    with pytest.raises(ValueError, match=message):
        SequenceTagger().fit(X, y)


def test_bad_numbers_of_a_dict():
    with pytest.raises(ValueError, match="NaN or infinity"):
        SequenceTagger().fit([[{"a": np.inf}, {}], [{}]], LABELS)


def test_bad_parameters_and_predictions():
    model = SequenceTagger()
    with pytest.raises(NotFittedError):
        model.predict(TOKENS)
    with pytest.raises(ValueError, match="C must be"):
        SequenceTagger(C=-1).fit(TOKENS, LABELS)
    with pytest.raises(ValueError, match="token_weight of sequence 1"):
        model.fit(TOKENS, LABELS, token_weight=[[1, 1], [1, 1]])
    with pytest.raises(ValueError, match="token_weight of sequence 0 must be finite"):
        model.fit(TOKENS, LABELS, token_weight=[[1, -1], [1]])
    with pytest.raises(ValueError, match="sample_weight has shape"):
        model.fit(TOKENS, LABELS, sample_weight=[1.0])
    model.fit(TOKENS, LABELS)
    with pytest.raises(ValueError, match="features with names"):
        model.predict([np.zeros((2, 2))])
    with pytest.raises(ValueError, match="X has 2 sequences and y has 1"):
        model.score(TOKENS, LABELS[:1])
    with pytest.raises(ValueError, match="sequence 0 has 2 positions in X and 1 labels"):
        model.score(TOKENS, [[0], [1]])
    numbers = SequenceTagger().fit([np.eye(2), np.eye(2)[:1]], LABELS)
    with pytest.raises(ValueError, match="X has 3 features per position; the model has 2"):
        numbers.predict([np.zeros((1, 3))])
    with pytest.raises(ValueError, match="trained on columns without names"):
        numbers.predict(TOKENS)


def test_bad_packed_sequences():
    with pytest.raises(ValueError, match="begin must start with 0 and end with 3"):
        Sequences(np.zeros((3, 1)), [0, 2])
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        Sequences(np.zeros((2, 1)), [0, 2, 2])
    with pytest.raises(ValueError, match="3 names for 1 columns"):
        Sequences(np.zeros((2, 1)), [0, 2], names=["a", "b", "c"])
    with pytest.raises(ValueError, match="a matrix of numbers is needed"):
        Sequences(np.array([["a"]]), [0, 1])
    with pytest.raises(IndexError):
        Sequences(np.zeros((2, 1)), [0, 2])[1]


def test_few_sequences_of_many_weights_take_no_dense_cuts():
    """One sequence and many labels: 640,000 weights a cut would be too much."""
    X = [[{"word": f"w{k}"} for k in range(800)]]
    y = [[f"tag{k % 800}" for k in range(800)]]
    model = SequenceTagger(random_state=0, max_passes=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert isinstance(model.solver_, DualCoordinate)
