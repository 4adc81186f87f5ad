"""Problems and data for tests and benchmarks: what a user would write, in plain Python."""

from __future__ import annotations

import numpy as np


class PythonChain:
    """Sequence labelling with first-order transitions, Hamming loss, decoded by NumPy Viterbi.

    Parameters
    ----------
    n_inputs, n_states : int

    Examples
    --------
    >>> chain = PythonChain(2, 3)
    >>> chain.n_features
    15
    >>> chain.decode(np.zeros((4, 2)), np.zeros(15)).shape
    (4,)
    """

    def __init__(self, n_inputs: int, n_states: int):
        self.n_inputs, self.n_states = n_inputs, n_states
        self.n_features = n_states * n_inputs + n_states * n_states
        self.smallest_loss = 1.0  # one wrong label: tightens the bound of slack rescaling

    def joint_feature(self, x, y):
        """Inputs summed per label, then counts of label pairs."""
        unary = np.zeros((self.n_states, self.n_inputs))
        np.add.at(unary, y, x)
        pair = np.zeros((self.n_states, self.n_states))
        np.add.at(pair, (y[:-1], y[1:]), 1.0)
        return np.concatenate([unary.ravel(), pair.ravel()])

    def loss(self, y_true, y):
        """Number of wrong labels."""
        return float(np.count_nonzero(y_true != y))

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """Viterbi."""
        split = self.n_states * self.n_inputs
        scores = x @ w[:split].reshape(self.n_states, self.n_inputs).T
        pair = w[split:].reshape(self.n_states, self.n_states)
        if y_true is not None:
            scores = scores + loss_scale
            scores[np.arange(len(x)), y_true] -= loss_scale
        best, back = scores[0], []
        for row in scores[1:]:
            through = best[:, None] + pair
            back.append(through.argmax(axis=0))
            best = through.max(axis=0) + row
        y = [int(best.argmax())]
        for pointer in reversed(back):
            y.append(int(pointer[y[-1]]))
        return np.array(y[::-1])


def make_words(n_words: int, n_inputs: int = 128, n_states: int = 26, seed: int = 0):
    """Words in the size of the letters data: noisy binary pictures of letters in likely orders."""
    rng = np.random.default_rng(seed)
    pictures = rng.random((n_states, n_inputs)) < 0.3
    follow = rng.dirichlet(np.full(n_states, 0.1), n_states)
    X, Y = [], []
    for _ in range(n_words):
        word = [int(rng.integers(n_states))]
        while len(word) < rng.integers(3, 12):
            word.append(int(rng.choice(n_states, p=follow[word[-1]])))
        flipped = rng.random((len(word), n_inputs)) < 0.2
        X.append((pictures[word] ^ flipped).astype(float))
        Y.append(np.array(word))
    return X, Y
