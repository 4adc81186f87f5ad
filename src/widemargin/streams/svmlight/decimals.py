"""Decimal numbers in bytes to the nearest floats, compiled, with integer arithmetic only.

    [sign] digits [. digits] [e [sign] digits]

Compiled code here may reorder floating point, so none is used: whole numbers below 2^53 are exact,
the rest is Eisel-Lemire (D. Lemire, Number parsing at a gigabyte per second, 2021; no fallback
needed up to 19 digits: Mushtak and Lemire, 2023). Of longer numbers the first 19 digits decide if
that number and the next give the same float; the few others have the code ODD, and Python reads
them (`converted`). No loop tests for the end of the text: some byte behind it is not a digit.

symbol      meaning
text, at    address of the bytes, and where we are in them
q           decimal exponent: the number is mantissa * 10^q
bits        a float64 as an unsigned integer
powers      address of 128 bits of 5^q each, normalised, q = -342 .. 308, high word first
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as numba_intrinsic

from ...compile import inlined, kernel

intrinsic: Any = numba_intrinsic  # its stub does not know that the typing context is hidden

u64 = np.uint64
NONE, ONE, TEN = u64(0), u64(1), u64(10)
DOT, PLUS, MINUS, ZERO = (u64(ord(c)) for c in ".+-0")
SMALLEST_POWER, LARGEST_POWER = -342, 308
SIGN, INFINITE = u64(1 << 63), u64(0x7FF << 52)
EXACT, MANTISSA = u64(1 << 53), u64((1 << 52) - 1)
DIGITS = u64(19)  # that always fit into 64 bits
MOST_EXPONENT = 10**15  # beyond any number of digits; further digits do not matter
#: 2^1024 - 2^970, the least number that rounds to infinity.
OVERFLOW = np.frombuffer(str((1 << 1024) - (1 << 970)).encode(), np.uint8)
NUMERAL = re.compile(rb"[-+]?[\d.]+(?:[eE][-+]?\d+)?")

# Codes: read; no number; infinite; left to Python. `parser.py` has those between.
GOOD, MALFORMED, LARGE, ODD = 0, 1, 5, 12


@intrinsic
def leading_zeros(typingctx, word):
    """Zero bits above the highest one; 64 for zero."""

    def codegen(context, builder, signature, args):
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@intrinsic
def wide_product(typingctx, a, b):
    """The high and the low word of a * b."""

    def codegen(context, builder, signature, args):
        word, wide = ir.IntType(64), ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return cgutils.pack_array(builder, [high, builder.trunc(product, word)])

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), codegen


def loader(size: int):
    """An intrinsic (address, place): the unsigned integer of `size` bits at address + place."""

    def codegen(context, builder, signature, args):
        kind = ir.IntType(size)
        place = builder.inttoptr(builder.add(*args), kind.as_pointer())
        return builder.zext(builder.load(place, align=1), ir.IntType(64))

    @intrinsic
    def load(typingctx, address, place):
        return types.uint64(types.uint64, types.uint64), codegen

    return load


byte, four_bytes, eight_bytes = loader(8), loader(32), loader(64)


@lru_cache(None)
def powers_of_five() -> np.ndarray:
    """The table `powers`: 5^q, or 1 / 5^-q rounded up, with the highest of 128 bits set."""
    words = []
    for q in range(SMALLEST_POWER, LARGEST_POWER + 1):
        power = 5 ** abs(q)
        size = power.bit_length()
        if q >= 0:
            word = power << 128 - size if size <= 128 else power >> size - 128
        else:
            exponent = (power - 1).bit_length()
            word = (1 << (exponent + 127 if q >= -27 else 2 * exponent + 128)) // power + 1
            word >>= max(word.bit_length() - 128, 0)
        words += [word >> 64, word & (1 << 64) - 1]
    return np.array(words, u64)


@kernel
def float_bits(mantissa, q, powers):
    """Bits of the float nearest to mantissa * 10^q, ties to even."""
    if mantissa == NONE or q < SMALLEST_POWER:
        return NONE
    if q > LARGEST_POWER:
        return INFINITE
    zeros = leading_zeros(mantissa)
    w = mantissa << zeros
    place = u64(q - SMALLEST_POWER) << u64(4)
    high, low = wide_product(w, eight_bytes(powers, place))
    if high & u64(0x1FF) == u64(0x1FF):  # the 64 bits below could carry into the rounding
        more, _ = wide_product(w, eight_bytes(powers, place + u64(8)))
        low += more
        if more > low:
            high += ONE
    upper = high >> u64(63)
    shift = upper + u64(9)
    m = high >> shift
    exponent = (((152170 + 65536) * q) >> 16) + 63 + np.int64(upper) - np.int64(zeros) + 1023
    if exponent <= 0:  # subnormal
        if exponent < -62:
            return NONE
        m >>= u64(1 - exponent)
        m += m & ONE
        return m >> ONE  # 2^52 carries into the exponent as it should
    exact_tie = low <= ONE and -4 <= q <= 23 and m & u64(3) == ONE and m << shift == high
    if not exact_tie:
        m += m & ONE
    m >>= ONE
    if m >= EXACT:
        m >>= ONE
        exponent += 1
    if exponent >= 0x7FF:
        return INFINITE
    return (u64(exponent) << u64(52)) | (m & MANTISSA)


@kernel
def long_number(text, at, q, powers):
    """(bits, code) of the digits at `at`, more than 19 of them, times 10^q."""
    mantissa, kept, is_fraction, is_cut, first_cut = NONE, NONE, False, False, at
    while True:
        c = byte(text, at)
        if c == DOT:
            is_fraction = True
        elif c - ZERO >= TEN:
            break
        elif kept < DIGITS:
            mantissa = mantissa * TEN + (c - ZERO)
            kept += ONE if mantissa else NONE
            q -= 1 if is_fraction else 0
            first_cut = at + ONE
        else:
            is_cut |= c != ZERO
            q += 0 if is_fraction else 1
        at += ONE
    bits = float_bits(mantissa, q, powers)
    if bits == INFINITE:
        return bits, LARGE
    if not is_cut:
        return bits, GOOD
    above = float_bits(mantissa + ONE, q, powers)
    if above == bits:
        return bits, GOOD
    if above == INFINITE:  # digits beyond the 19th tell on which side of `OVERFLOW` it is
        for k in range(DIGITS, u64(OVERFLOW.size)):
            if byte(text, first_cut) == DOT:
                first_cut += ONE
            digit = byte(text, first_cut) if first_cut < at else ZERO
            if digit != u64(OVERFLOW[k]):
                return (bits, ODD) if digit < u64(OVERFLOW[k]) else (above, LARGE)
            first_cut += ONE
        return above, LARGE
    return bits, ODD


@inlined
def read_digits(text, at, number):
    """Append the digits at `at` to a number (modulo 2^64); the number and the end."""
    digit = byte(text, at) - ZERO
    while digit < TEN:
        number = number * TEN + digit
        at += ONE
        digit = byte(text, at) - ZERO
    return number, at


@kernel
def read_exponent(text, at):
    """The exponent behind an `e`, where it ends, and whether there is one."""
    sign = byte(text, at)
    at += ONE if sign in (PLUS, MINUS) else NONE
    first, q = at, np.int64(0)
    while byte(text, at) - ZERO < TEN:
        if q < MOST_EXPONENT:
            q = 10 * q + np.int64(byte(text, at) - ZERO)
        at += ONE
    return (-q if sign == MINUS else q), at, at > first


@inlined
def read_number(text, at, powers):
    """(bits, end, code) of the decimal number at `at`."""
    sign, code, written, fraction = NONE, GOOD, 0, NONE
    c = byte(text, at)
    if c == MINUS:
        sign = SIGN
        at += ONE
    elif c == PLUS:
        at += ONE
    first = at
    mantissa, at = read_digits(text, at, NONE)
    n_digits = at - first
    c = byte(text, at)
    if c == DOT:
        at += ONE
        point = at
        mantissa, at = read_digits(text, at, mantissa)
        fraction = at - point
        n_digits += fraction
        c = byte(text, at)
    if c | u64(32) == u64(101):
        written, at, is_there = read_exponent(text, at + ONE)
        code = GOOD if is_there else MALFORMED
    q = written - np.int64(fraction)
    if n_digits == NONE or code != GOOD:
        bits, code = NONE, MALFORMED
    elif n_digits > DIGITS:
        bits, code = long_number(text, first, written, powers)
    elif q == 0 and mantissa < EXACT:
        bits = np.float64(np.int64(mantissa)).view(np.uint64)
    else:
        bits = float_bits(mantissa, q, powers)
        code = LARGE if bits == INFINITE else GOOD
    return bits | sign, at, code


def converted(text: np.ndarray, at: int) -> float:
    """The number at `at` as Python reads it, for the code ODD."""
    return float(NUMERAL.match(text, at)[0])  # type: ignore
