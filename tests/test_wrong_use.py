"""Wrong use that used to pass in silence."""

import numpy as np
import pytest

from widemargin import (
    MultilabelClassifier,
    SequenceTagger,
    SVMClassifier,
    SVMRegressor,
)

RNG = np.random.default_rng(0)
N = 30
X = RNG.standard_normal((N, 4))
Y = np.arange(N) % 3


# ------------------------------------------------------------------ rows of partial_fit


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rows_are_those_of_the_call(kernel):
    model = SVMClassifier(kernel=kernel, random_state=0).partial_fit(X, Y, classes=[0, 1, 2])
    model.partial_fit(X, Y)
    wrong = Y.copy()
    wrong[7] = 5
    with pytest.raises(ValueError, match="row 7 of X: the label 5 was never declared"):
        model.partial_fit(X, wrong)
    assert model.n_examples_seen_ == 2 * N


def test_rows_of_other_tasks():
    sets = [{k} for k in Y]
    labels = MultilabelClassifier(random_state=0).partial_fit(X, sets, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="row 2 of X: the label 9"):
        labels.partial_fit(X[:3], [{0}, {1}, {9}])
    words, tags = [[["a"], ["b"]]] * 4, [["A", "B"]] * 4
    tagger = SequenceTagger(random_state=0).partial_fit(words, tags)
    with pytest.raises(ValueError, match="row 1 of X: the label 'C'"):
        tagger.partial_fit(words[:2], [["A", "B"], ["A", "C"]])
    reals = SVMRegressor(random_state=0).partial_fit(X, X[:, 0])
    with pytest.raises(ValueError, match="5 features"):
        reals.partial_fit(np.ones((2, 5)), [0.0, 1.0])
