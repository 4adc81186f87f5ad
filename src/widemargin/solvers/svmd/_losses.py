"""Losses of the online kernel machines: a value, its gradient, and its Hessian times a vector.

    z = f(x, .) + b, the scores of one example's outputs; y its target; m the margin

name                   kind      l(z)                                                      margin
hinge                  binary    max(0, m - y z)                                  eq. 17   yes
squared_hinge          binary    max(0, m - y z)^2 / 2                                     yes
logistic               binary    log(1 + exp(-y z))                               eq. 21
multiclass             classes   max(0, m + max_{k != y} z_k - z_y)               eq. 19   yes
graph                  classes   max(0, max_{k != y} [m cost(y, k) + z_k] - z_y)  eq. 28   yes
multinomial            classes   log sum_k exp z_k - z_y                          eq. 23
novelty                novelty   max(0, m - z)                                    eq. 26   yes
epsilon_insensitive    real      max(0, |z - y| - width)
huber                  real      r^2 / 2 where |r| <= width, else width (|r| - width / 2); r = z - y
squared                real      (z - y)^2 / 2

A loss is two small compiled functions, passed to the loops as typed pointers:

    value(y, z, cost, shape, xi) -> l, dl/dm     writes xi = dl/dz
    curve(y, z, cost, shape, v, chi) -> 0        writes chi = (d^2 l / dz^2) v

`shape` is (m, width). The equations are those of Vishwanathan, Schraudolph and Smola (JMLR 7,
2006), whose gradient in feature space is sum_y xi_y k((x, y), .); where a loss has a kink, one of
its subgradients is taken. Ties between classes go to the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types

from ...compile import VECTOR, borrowing, pointer

MATRIX = types.float64[:, ::1]
VALUE = types.Tuple((types.float64, types.float64))(types.float64, VECTOR, MATRIX, VECTOR, VECTOR)
CURVE = types.float64(types.float64, VECTOR, MATRIX, VECTOR, VECTOR, VECTOR)


@dataclass(frozen=True)
class Loss:
    """A loss by name, with its two functions.

    Parameters
    ----------
    name : str
    kind : str
        The kind of task it is for.
    value, curve : compiled functions
    has_margin : bool
        Whether the nu-trick can adapt a margin of it.
    """

    name: str
    kind: str
    value: Any
    curve: Any
    has_margin: bool

    @property
    def pointers(self) -> tuple[Any, Any]:
        """Both functions, compiled for the types that the loops pass."""
        return pointer(self.value, VALUE), pointer(self.curve, CURVE)


# ------------------------------------------------------------ one output


@borrowing
def straight(y, z, cost, shape, v, chi):
    """Piecewise linear losses have no curvature."""
    for k in range(chi.size):
        chi[k] = 0.0
    return 0.0


@borrowing
def hinge(y, z, cost, shape, xi):
    gap = shape[0] - y * z[0]
    xi[0] = -y if gap > 0.0 else 0.0
    return max(0.0, gap), 1.0 if gap > 0.0 else 0.0


@borrowing
def squared_hinge(y, z, cost, shape, xi):
    gap = max(0.0, shape[0] - y * z[0])
    xi[0] = -y * gap
    return 0.5 * gap * gap, gap


@borrowing
def squared_hinge_curve(y, z, cost, shape, v, chi):
    chi[0] = y * y * v[0] if y * z[0] < shape[0] else 0.0
    return 0.0


@borrowing
def novelty(y, z, cost, shape, xi):
    gap = shape[0] - z[0]
    xi[0] = -1.0 if gap > 0.0 else 0.0
    return max(0.0, gap), 1.0 if gap > 0.0 else 0.0


@borrowing
def logistic(y, z, cost, shape, xi):
    m = y * z[0]
    e = np.exp(-abs(m))
    small = e / (1.0 + e)  # 1 / (1 + exp |m|)
    xi[0] = -y * (small if m > 0.0 else 1.0 - small)
    return np.log1p(e) + max(0.0, -m), 0.0


@borrowing
def logistic_curve(y, z, cost, shape, v, chi):
    e = np.exp(-abs(z[0]))
    chi[0] = y * y * e / ((1.0 + e) * (1.0 + e)) * v[0]
    return 0.0


# ------------------------------------------------------------ classes


@borrowing
def multiclass(y, z, cost, shape, xi):
    truth, best = int(y), -1
    for k in range(z.size):
        xi[k] = 0.0
        if k != truth and (best < 0 or z[k] > z[best]):
            best = k
    if best < 0:  # the only class so far
        return 0.0, 0.0
    gap = shape[0] + z[best] - z[truth]
    if gap <= 0.0:
        return 0.0, 0.0
    xi[best], xi[truth] = 1.0, -1.0
    return gap, 1.0


@borrowing
def graph(y, z, cost, shape, xi):
    truth, best, most = int(y), -1, 0.0
    for k in range(z.size):
        xi[k] = 0.0
        if k != truth:
            reach = shape[0] * cost[truth, k] + z[k]
            if best < 0 or reach > most:
                best, most = k, reach
    if best < 0 or most <= z[truth]:
        return 0.0, 0.0
    xi[best], xi[truth] = 1.0, -1.0
    return most - z[truth], cost[truth, best]


@borrowing
def largest(z):
    """max_k z_k; Numba's own may allocate, for an error to raise."""
    found = z[0]
    for k in range(1, z.size):
        found = max(found, z[k])
    return found


@borrowing
def multinomial(y, z, cost, shape, xi):
    truth, top, total = int(y), largest(z), 0.0
    for k in range(z.size):
        xi[k] = np.exp(z[k] - top)
        total += xi[k]
    for k in range(z.size):
        xi[k] /= total
    value = np.log(total) + top - z[truth]
    xi[truth] -= 1.0
    return value, 0.0


@borrowing
def multinomial_curve(y, z, cost, shape, v, chi):
    """chi_k = p_k (v_k - sum_j p_j v_j)."""
    top, total, mean = largest(z), 0.0, 0.0
    for k in range(z.size):
        chi[k] = np.exp(z[k] - top)
        total += chi[k]
    for k in range(z.size):
        chi[k] /= total
        mean += chi[k] * v[k]
    for k in range(z.size):
        chi[k] *= v[k] - mean
    return 0.0


# ------------------------------------------------------------ real targets


@borrowing
def epsilon_insensitive(y, z, cost, shape, xi):
    r = z[0] - y
    xi[0] = np.sign(r) if abs(r) > shape[1] else 0.0
    return max(0.0, abs(r) - shape[1]), 0.0


@borrowing
def huber(y, z, cost, shape, xi):
    r, width = z[0] - y, shape[1]
    xi[0] = max(-width, min(width, r))
    if abs(r) <= width:
        return 0.5 * r * r, 0.0
    return width * (abs(r) - 0.5 * width), 0.0


@borrowing
def huber_curve(y, z, cost, shape, v, chi):
    chi[0] = v[0] if abs(z[0] - y) <= shape[1] else 0.0
    return 0.0


@borrowing
def squared(y, z, cost, shape, xi):
    xi[0] = z[0] - y
    return 0.5 * xi[0] * xi[0], 0.0


@borrowing
def squared_curve(y, z, cost, shape, v, chi):
    chi[0] = v[0]
    return 0.0


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("hinge", "binary", hinge, straight, True),
        Loss("squared_hinge", "binary", squared_hinge, squared_hinge_curve, True),
        Loss("logistic", "binary", logistic, logistic_curve, False),
        Loss("multiclass", "classes", multiclass, straight, True),
        Loss("graph", "classes", graph, straight, True),
        Loss("multinomial", "classes", multinomial, multinomial_curve, False),
        Loss("novelty", "novelty", novelty, straight, True),
        Loss("epsilon_insensitive", "real", epsilon_insensitive, straight, False),
        Loss("huber", "real", huber, huber_curve, False),
        Loss("squared", "real", squared, squared_curve, False),
    )
}
#: The loss of each kind of task unless another is asked for.
DEFAULTS = {
    "binary": "hinge",
    "classes": "graph",
    "real": "epsilon_insensitive",
    "novelty": "novelty",
}


def find_loss(name: str | None, kind: str, needs_margin: bool = False) -> Loss:
    """The loss of a name, or of a kind of task where there is none.

    Examples
    --------
    >>> find_loss(None, "binary").name
    'hinge'
    """
    name = DEFAULTS[kind] if name is None else name
    fitting = [loss.name for loss in LOSSES.values() if loss.kind == kind]
    if name not in fitting:
        raise ValueError(f"loss is {name!r}; for this task there are {', '.join(fitting)}.")
    loss = LOSSES[name]
    if needs_margin and not loss.has_margin:
        raise ValueError(
            f"nu adapts a margin, which the loss {name!r} has not; leave nu=None or take one of "
            f"{', '.join(n.name for n in LOSSES.values() if n.has_margin)}."
        )
    return loss
