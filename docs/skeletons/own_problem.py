"""A problem in plain Python: where in a signal does it happen?

An example is a signal x of shape (length, channels) and the interval (start, stop) that is looked
for. A row scores <w, row>; the best interval is the one with the largest sum of scores.
"""

import numpy as np


class Interval:
    """Outputs are pairs (start, stop) with 0 <= start < stop <= length."""

    def __init__(self, n_channels):
        self.n_features = n_channels

    def joint_feature(self, x, y):
        """phi(x, y): the sum of the rows inside, so that <w, phi> is the sum of their scores."""
        return x[y[0] : y[1]].sum(axis=0)

    def loss(self, y_true, y):
        """Rows that lie in exactly one of the two intervals; exactly 0 at the truth."""
        both = max(0, min(y_true[1], y[1]) - max(y_true[0], y[0]))
        return float(y_true[1] - y_true[0] + y[1] - y[0] - 2 * both)

    def decode(self, x, w, y_true=None, loss_scale=1.0):
        """argmax_y <w, phi(x, y)>, plus loss_scale * loss(y_true, y) when y_true is given."""
        scores = x @ w
        if y_true is not None:  # a row outside the truth adds to the loss, one inside saves it
            scores = scores + loss_scale
            scores[y_true[0] : y_true[1]] -= 2 * loss_scale
        total = np.append(0.0, np.cumsum(scores))  # total[b] - total[a] is the sum over a..b
        lowest = np.minimum.accumulate(total[:-1])
        stop = int(np.argmax(total[1:] - lowest)) + 1
        return int(np.argmin(total[:stop])), stop

    def outputs(self, x):
        """Optional. All intervals: checks become exhaustive and slack rescaling exact."""
        n = len(x)
        return [(start, stop) for start in range(n) for stop in range(start + 1, n + 1)]
