"""Numbers of twice the digits, in arrays: sums and products that keep what rounding leaves out.

A `Twofold` is an unevaluated sum high + low with a bound on its error. Every operation is made of
error-free transforms (Knuth's sum, Dekker's product), so results are the same wherever float64 is
IEEE arithmetic that rounds to nearest, whatever `np.longdouble` may be there.

symbol      meaning
U           unit roundoff, 2^-53
TINY        what a product may lose where it is near the smallest numbers
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

U = 2.0**-53
TINY = 2.0**-1060
#: Room for the rounding of the bounds themselves.
MARGIN = 1.001
#: Dekker's factor, and the largest number that it can split.
SPLITTER, LARGEST = 134217729.0, 2.0**900


@dataclass(frozen=True)
class Number:
    """A number and how far it may be from the exact one.

    Examples
    --------
    >>> Number(1.0, 0.25).upper >= 1.25, Number(1.0, 0.0).lower
    (True, 1.0)
    """

    value: float
    error: float = 0.0

    @property
    def upper(self) -> float:
        """Not below the exact number."""
        far = self.value + self.error
        return float(np.nextafter(far, np.inf)) if self.error else far

    @property
    def lower(self) -> float:
        """Not above the exact number."""
        far = self.value - self.error
        return float(np.nextafter(far, -np.inf)) if self.error else far

    def plus(self, other: Number) -> Number:
        """The sum of two."""
        total, left = two_sum(self.value, other.value)
        return Number(float(total), float((self.error + other.error + abs(left)) * MARGIN))

    def widened(self, error: float) -> Number:
        """The same with a larger error."""
        return Number(self.value, (self.error + error) * MARGIN)


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b rounded, and what that left out."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def halves(a: Any) -> tuple[Any, Any]:
    """a as a sum of two numbers of half the digits."""
    scaled = SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a * b rounded, and what that left out, for numbers up to `LARGEST`."""
    product = a * b
    a1, a2 = halves(a)
    b1, b2 = halves(b)
    return product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)


class Twofold:
    """Arrays high + low, wrong by at most `error`.

    Parameters
    ----------
    high, low, error : arrays of one shape

    Examples
    --------
    >>> big = Twofold.of(np.array([1e16, 1.0, -1e16]))
    >>> big.sum(0).number().value
    1.0
    """

    __slots__ = ("error", "high", "low")
    __array_ufunc__ = None  # array - Twofold is a Twofold

    def __init__(self, high: Any, low: Any, error: Any):
        self.high, self.low, self.error = high, low, error

    @classmethod
    def of(cls, values: Any) -> Twofold:
        """Exactly these numbers."""
        high = np.asarray(values, np.float64)
        return cls(high, np.zeros_like(high), np.zeros_like(high))

    @classmethod
    def product(cls, a: Any, b: Any) -> Twofold:
        """a * b of arrays of float64."""
        high, low = two_product(a, b)
        is_tiny = (np.abs(high) < 2.0**-960) & (a != 0) & (b != 0)
        return cls(high, low, np.where(is_tiny, TINY, 0.0))

    @property
    def value(self) -> Any:
        """The nearest float64."""
        return self.high + self.low

    @property
    def shape(self) -> tuple[int, ...]:
        return self.high.shape

    def __getitem__(self, which: Any) -> Twofold:
        return Twofold(self.high[which], self.low[which], self.error[which])

    def __add__(self, other: Any) -> Twofold:
        if not isinstance(other, Twofold):
            other = Twofold.of(other)
        high, left = two_sum(self.high, other.high)
        low = (self.low + other.low) + left
        off = U * (2.0 * np.abs(self.low) + 2.0 * np.abs(other.low) + np.abs(left))
        high, low = two_sum(high, low)
        return Twofold(high, low, (self.error + other.error + off) * MARGIN)

    __radd__ = __add__

    def __neg__(self) -> Twofold:
        return Twofold(-self.high, -self.low, self.error)

    def __sub__(self, other: Any) -> Twofold:
        return self + (-other)

    def __rsub__(self, other: Any) -> Twofold:
        return (-self) + other

    def __mul__(self, factor: Any) -> Twofold:
        """Times exact numbers."""
        high, left = two_product(self.high, factor)
        part = self.low * factor
        low = part + left
        off = U * (2.0 * np.abs(part) + np.abs(left)) + TINY * (np.abs(high) < 2.0**-960)
        error = (np.abs(factor) * self.error + off) * MARGIN
        high, low = two_sum(high, low)
        return Twofold(high, low, error)

    __rmul__ = __mul__

    def sum(self, axis: int) -> Twofold:
        """The sum along an axis, by halves."""
        found = Twofold(*(np.moveaxis(a, axis, 0) for a in (self.high, self.low, self.error)))
        if found.high.shape[0] == 0:
            return Twofold.of(np.zeros(found.high.shape[1:]))
        while (n := found.high.shape[0]) > 1:
            half = n // 2
            joined = found[:half] + found[half : 2 * half]
            if n % 2:
                joined = stacked(joined, found[2 * half :])
            found = joined
        return found[0]

    def max(self, axis: int) -> Twofold:
        """The largest along an axis; its error is the largest of all."""
        chosen = np.expand_dims(np.argmax(self.value, axis), axis)
        high, low = (np.take_along_axis(a, chosen, axis) for a in (self.high, self.low))
        error = self.error.max(axis)
        return Twofold(high.squeeze(axis), low.squeeze(axis), error)

    def at_least(self, bound: Any) -> Twofold:
        """max(., bound) for exact bounds."""
        is_above = self.value > bound
        return Twofold(
            np.where(is_above, self.high, bound), np.where(is_above, self.low, 0.0), self.error
        )

    def number(self) -> Number:
        """A single one."""
        high, low, error = float(self.high), float(self.low), float(self.error)
        value = high + low
        left = abs((high - value) + low)
        return Number(value, (error + 2.0 * left) * MARGIN)


def stacked(one: Twofold, two: Twofold) -> Twofold:
    """Both, one below the other."""
    pairs = ((one.high, two.high), (one.low, two.low), (one.error, two.error))
    return Twofold(*(np.concatenate(pair) for pair in pairs))


def side_by_side(columns: list[Twofold]) -> Twofold:
    """Columns (n,) as (n, columns)."""
    found = [Twofold(t.high[None], t.low[None], t.error[None]) for t in columns]
    total = found[0]
    for column in found[1:]:
        total = stacked(total, column)
    return Twofold(total.high.T, total.low.T, total.error.T)


def maximum(one: Twofold, two: Twofold) -> Twofold:
    """The larger one of each pair."""
    is_first = one.value >= two.value
    return Twofold(
        np.where(is_first, one.high, two.high),
        np.where(is_first, one.low, two.low),
        np.maximum(one.error, two.error),
    )


def inner(a: np.ndarray, b: np.ndarray) -> Twofold:
    """The inner product of two arrays."""
    return Twofold.product(a, b).sum(0)
