"""A kind of input: signals of different lengths, packed one below the other in one array."""

import numpy as np

from widemargin.inputs.hashing import hashed_items


class Signals:
    """Signal i is rows begin[i] .. begin[i + 1] - 1."""

    def __init__(self, rows, begin):
        self.rows, self.begin = rows, np.asarray(begin, np.int64)

    @classmethod
    def of(cls, signals):
        """A list of arrays (length, channels) as one set."""
        lengths = [len(signal) for signal in signals]
        return cls(np.concatenate(signals), np.cumsum([0, *lengths]))

    def __len__(self):
        return len(self.begin) - 1

    def __getitem__(self, which):
        """Signal `which` as the problem takes it; those of a slice or an array as a set."""
        if isinstance(which, int | np.integer):
            return self.rows[self.begin[which] : self.begin[which + 1]]
        chosen = np.arange(len(self))[which]
        lengths = np.diff(self.begin)[chosen]
        begin = np.append(0, np.cumsum(lengths))
        places = np.repeat(self.begin[chosen] - begin[:-1], lengths) + np.arange(begin[-1])
        return Signals(self.rows[places], begin)

    def joined(self, other):
        """These signals, and those of `other` behind them."""
        begin = np.append(self.begin, self.begin[-1] + other.begin[1:])
        return Signals(np.concatenate([self.rows, other.rows]), begin)

    @property
    def n_bytes(self):
        """Bytes in memory, roughly."""
        return self.rows.nbytes + self.begin.nbytes

    def hashes(self, Y):
        """Of each signal with its truth, (n,) uint64: the same for the same numbers."""
        return hashed_items([(x, list(y)) for x, y in zip(self, Y, strict=True)])
