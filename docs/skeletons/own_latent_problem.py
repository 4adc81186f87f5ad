"""A structured output with a hidden part: the tags of a sentence, and the topic behind them.

An example is a sentence x, rows of numbers (length, inputs), and its tags y, a tuple (length,). In
each of a few topics words carry other weights; which topic a sentence has is never told. An output
is a pair (y, z) of tags and topic, everywhere; `complete` finds the topic of known tags.
"""

import itertools

import numpy as np


class Topics:
    """Outputs are pairs (tags, topic)."""

    def __init__(self, n_inputs, n_tags=2, n_topics=2):
        self.shape = n_topics, n_tags, n_inputs
        self.n_features = n_topics * n_tags * n_inputs

    def joint_feature(self, x, y):
        """phi(x, (y, z)): the rows of every tag, in the block of the topic."""
        tags, topic = y
        phi = np.zeros(self.shape)
        np.add.at(phi[topic], list(tags), x)
        return phi.ravel()

    def loss(self, y_true, y):
        """Wrong tags. The topic of the truth is not known: it must not matter (it may be None)."""
        return float(np.count_nonzero(np.not_equal(y_true[0], y[0])))

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """The best pair: tags are independent once the topic is fixed."""
        scores = np.einsum("zti,ni->znt", w.reshape(self.shape), x)
        if y_true is not None:
            scores += loss_scale * (np.arange(self.shape[1]) != np.asarray(y_true[0])[:, None])
        topic = int(scores.max(axis=2).sum(axis=1).argmax())
        return tuple(scores[topic].argmax(axis=1).tolist()), topic

    def complete(self, x, y, w):
        """argmax_z <w, phi(x, (y, z))>: the topic that fits the tags best."""
        return int(np.argmax([w @ self.joint_feature(x, (y, z)) for z in range(self.shape[0])]))

    def outputs(self, x):
        """Optional. All pairs."""
        tags = itertools.product(range(self.shape[1]), repeat=len(x))
        return [(y, z) for y in tags for z in range(self.shape[0])]
