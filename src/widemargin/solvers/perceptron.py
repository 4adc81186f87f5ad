"""The averaged structured perceptron (Collins 2002; averaging of Freund and Schapire 1999).

    y_hat = argmax_y <w, phi(x, y)>;   where y_hat is wrong:  w <- w + weight_i delta
    result: the mean of w over all visits

symbol   code    meaning
W        w       step * w, the weights that the oracle is asked at
step     step    a power of two
t        clock   visits so far
u        u       sum over corrections of t * (change of W)

Oracles augment by the loss: they return argmax <W, phi> + loss. With a *step* in place of 1 the
weights are only scaled, W = step * w, so the predictions of a perceptron that begins at 0 stay what
they were, while the loss fades: an output is returned only if <w, phi> comes within loss / step of
the best one. The step is chosen at the first mistake such that this is 2^-30 of |delta|^2, the size
of a score; it is a power of two, so that scaling rounds nothing. What remains of the loss breaks
ties: an output that ties with the truth counts as a mistake, which the convergence theorem allows
(a correction is made where <w, delta> <= 0), and which is safer than to hope that prediction breaks
the tie the same way.

The mean of w after visits 1..T is ((T + 1) W - u) / (T step): a correction at visit t is part of
the T - t + 1 weights that follow it. So averaging costs as little as a correction.

There is no objective, C does not matter, and nothing can be certified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ..compile import kernel
from ..parameters import check_numbers, whole
from ..stopping import StopReason
from .protocol import Mistakes
from .traits import Linear, Traits, check_linear

#: The loss counts this share of |delta|^2 against a score.
FADE = 2.0**30


class Corrections(NamedTuple):
    """See the symbol table above."""

    w: np.ndarray  # (d,)
    u: np.ndarray  # (d,)
    factor: np.ndarray  # (n,) weights of the examples
    step: np.ndarray  # (1,) 0 before the first mistake
    clock: np.ndarray  # (1,)
    mistakes: np.ndarray  # (1,) of this epoch
    loss: np.ndarray  # (1,) of this epoch


@dataclass(frozen=True)
class Perceptron:
    """Corrections by wrong predictions, averaged over all visits.

    Ends after `passes` epochs, or with the first one without a mistake. It regularises nothing:
    `C`, `tol` and `max_passes` above `passes` make no difference. A loss says which outputs are
    wrong, no more: costs between labels, `loss=[[...]]`, are refused.

    Parameters
    ----------
    passes : int
    order : "random" or "sequential"
        A new permutation every epoch, or the order of the data.
    """

    passes: int = 10
    order: str = "random"

    traits: ClassVar[Traits] = Traits(
        Linear(
            problems="outputs",
            heeds=(),
            uncertified="the perceptron corrects mistakes and minimises no objective: there is no "
            "optimum to be close to",
        )
    )

    def __post_init__(self):
        check_numbers(self, passes=whole(1))
        if self.order not in ("random", "sequential"):
            raise ValueError(f"order is {self.order!r}; 'random' or 'sequential' is needed.")

    def init(self, oracle, geometry, start=None) -> Corrections:
        """No corrections yet; the weights of `start` count as one."""
        check_linear(self, oracle, geometry)
        n, d = oracle.n_examples, oracle.n_features
        w, step = np.zeros(d), np.zeros(1)
        if start is not None and np.any(start.w):
            step[0] = 2.0 ** np.round(np.log2(FADE / float(start.w @ start.w)))
            w = step[0] * np.array(start.w, np.float64)
        factor = np.ones(n) if oracle.weights is None else np.array(oracle.weights, np.float64)
        return Corrections(w, w.copy(), factor, step, np.zeros(1), np.zeros(1), np.zeros(1))

    def epoch(self, oracle, geometry, state: Corrections, rng):
        """One pass over the examples."""
        state.mistakes[0] = state.loss[0] = 0.0
        order = oracle.examples
        order = rng.permutation(order) if self.order == "random" else order
        state = oracle.sweep(correct, state, state.w, order)
        return state, Mistakes(int(state.mistakes[0]), float(state.loss[0]))

    def weights(self, state: Corrections) -> np.ndarray:
        """The mean of w over all visits."""
        T, step = state.clock[0], state.step[0]
        if T == 0.0 or step == 0.0:
            return np.zeros(state.w.size)
        return ((T + 1.0) * state.w - state.u) / (T * step)

    def done(self, epochs: int, mistakes: Mistakes) -> StopReason | None:
        """Nothing left to correct, or enough passes."""
        if mistakes.count == 0:
            return StopReason.NO_MISTAKES
        return StopReason.PASSES if epochs >= self.passes else None


@kernel
def correct(state, w, i, loss, index, value):
    """A visit: where the prediction is wrong, w += step * weight_i * delta."""
    factor = state.factor[i]
    if factor == 0.0:
        return True
    state.clock[0] += 1.0
    if loss <= 0.0:
        return True
    state.mistakes[0] += 1.0
    state.loss[0] += loss
    if state.step[0] == 0.0:
        norm = 0.0
        for k in range(index.size):
            norm += value[k] * value[k]
        if norm == 0.0:  # features that cannot tell the outputs apart
            return True
        state.step[0] = 2.0 ** np.round(np.log2(FADE * loss / norm))
    change = state.step[0] * factor
    for k in range(index.size):
        j = index[k]
        w[j] += change * value[k]
        state.u[j] += state.clock[0] * change * value[k]
    return True
