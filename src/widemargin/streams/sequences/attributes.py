"""Compiled reading of attributes `name` and `name:value`, where `\\:` is no separator.

symbol      meaning
text        address of the bytes
start, stop span of an attribute
colon       where its name ends
"""

from __future__ import annotations

import numpy as np

from ...compile import kernel
from ..svmlight.decimals import GOOD, ODD, ONE, byte, converted, powers_of_five, read_number, u64

COLON, BACKSLASH = u64(ord(":")), u64(ord("\\"))
UNIT = np.float64(1.0).view(np.uint64)


def read_attributes(
    text: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Ends of names, values, and the first bad attribute (-1 for none)."""
    n = start.size
    colon, bits, codes = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.int64)
    address, powers = u64(text.ctypes.data), u64(powers_of_five().ctypes.data)
    bad = split_attributes(address, start, stop, powers, colon, bits, codes)
    values = bits.view(np.float64)
    if bad < 0:
        for k in np.flatnonzero(codes == ODD).tolist():
            values[k] = converted(text, int(colon[k]) + 1)
    return colon, values, int(bad)


@kernel
def split_attributes(text, start, stop, powers, colon, bits, codes):
    """Fill the last three; the number of the first bad attribute, or -1."""
    for i in range(u64(start.size)):
        at, end = start[i], stop[i]
        while at < end and byte(text, at) != COLON:
            at += ONE if byte(text, at) != BACKSLASH else u64(2)
        at = min(at, end)
        colon[i], bits[i], codes[i] = at, UNIT, GOOD
        if at < end:
            number, last, code = read_number(text, at + ONE, powers)
            if at == start[i] or last != end or code not in (GOOD, ODD):
                return np.int64(i)
            bits[i], codes[i] = number, code
    return -1


@kernel
def blank_positions(text, at, end):
    """Overwrite `.12` in `qid:3.12` with spaces, in the second field of every line."""
    blank, tab, newline, dot = np.uint8(32), np.uint8(9), np.uint8(10), np.uint8(46)
    while at < end:
        while text[at] == blank or text[at] == tab:
            at += ONE
        while text[at] > blank:  # the tag
            at += ONE
        while text[at] == blank or text[at] == tab:
            at += ONE
        while text[at] > blank and text[at] != dot:
            at += ONE
        if text[at] == dot and text[at - ONE] - np.uint8(48) < np.uint8(10):
            first = at
            at += ONE
            while text[at] - np.uint8(48) < np.uint8(10):
                at += ONE
            if at > first + ONE and text[at] <= blank:
                text[first:at] = blank
        while text[at] != newline:
            at += ONE
        at += ONE
