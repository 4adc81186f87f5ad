"""Floating-point numbers with a bound on their error, and sums to twice the digits.

symbol      meaning
u           2^-53, the largest relative error of one operation
gamma(k)    k u / (1 - k u), that of k operations one after the other (Higham, section 3.1)
s, c        a sum and its correction: s + c is the sum to twice the digits
m           sum of the sizes |terms|

`two_sum` and `two_product` give the error of an operation exactly (Knuth; Dekker). A sum of n terms
made with them is wrong by gamma(n)^2 m at most before it is rounded (Ogita, Rump, Oishi 2005,
proposition 5.5). Functions that use them are compiled by `strict`: fast-math would cancel the
corrections, which are 0 in exact arithmetic.

Where a term is smaller than 1e-290 its own error may underflow: `TINY` per term covers that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic as numba_intrinsic

from ..compile import inlined, strict

U = 2.0**-53
TINY = 1e-320
#: What sums of error bounds, all of one sign, may lose to rounding: n u for a billion terms.
MARGIN = 1.0 + 1e-6

intrinsic: Any = numba_intrinsic  # its stub does not know that the typing context is hidden


class Bounded(NamedTuple):
    """A number and how far it may be from the exact one."""

    value: float
    error: float

    @property
    def upper(self) -> float:
        """A float that is not below the exact number."""
        far = self.value + self.error
        return float(np.nextafter(far, np.inf) if self.error else far)

    @property
    def lower(self) -> float:
        """A float that is not above the exact number."""
        far = self.value - self.error
        return float(np.nextafter(far, -np.inf) if self.error else far)

    def plus(self, other: Bounded) -> Bounded:
        """The sum of two, its own rounding included."""
        value, left = two_sum.py_func(self.value, other.value)
        return Bounded(value, (self.error + other.error + abs(left)) * MARGIN)


def gamma(k: Any) -> Any:
    """Largest relative error of k operations one after the other, for numbers or arrays of them.

    Examples
    --------
    >>> gamma(1) == U / (1 - U)
    True
    """
    return k * U / (1.0 - k * U)


@intrinsic
def fused(typingctx, a, b, c):
    """a * b + c rounded once."""

    def codegen(context, builder, signature, args):
        return builder.fma(*args)

    double = types.float64
    return double(double, double, double), codegen


@inlined
def two_sum(a, b):
    """a + b rounded, and what that left out."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@inlined
def two_product(a, b):
    """a * b rounded, and what that left out."""
    product = a * b
    return product, fused(a, b, -product)


@strict
def total2(terms):
    """(sum, correction, sum of sizes) of an array."""
    s, c, m = 0.0, 0.0, 0.0
    for k in range(terms.size):
        s, left = two_sum(s, terms[k])
        c += left
        m += abs(terms[k])
    return s, c, m


@strict
def product2(a, b):
    """(sum, correction, sum of sizes) of the products of two arrays."""
    s, c, m = 0.0, 0.0, 0.0
    for k in range(a.size):
        p, below = two_product(a[k], b[k])
        s, left = two_sum(s, p)
        c += left + below
        m += abs(p)
    return s, c, m


def settled(s: float, c: float, m: float, n: int) -> Bounded:
    """The number of a sum of n terms with its correction."""
    value = s + c
    if m == 0.0:
        return Bounded(value, 0.0)
    return Bounded(value, (2 * U * abs(value) + 2 * gamma(n + 2) ** 2 * m + n * TINY) * MARGIN)


def bounded_sum(terms: np.ndarray) -> Bounded:
    """The sum of an array.

    Examples
    --------
    >>> bounded_sum(np.array([1e16, 1.0, -1e16])).value
    1.0
    """
    s, c, m = total2(terms)
    return settled(s, c, m, terms.size)


def bounded_product(a: np.ndarray, b: np.ndarray) -> Bounded:
    """The inner product of two arrays."""
    s, c, m = product2(a, b)
    return settled(s, c, m, a.size)
