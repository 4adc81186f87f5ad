"""Compiled splitting of lines into fields, and numbering of what is equal.

Text of a million lines has far fewer different words. So a word is a span of the text until it
gets a number; only the first span of each number becomes a string.

symbol      meaning
text        bytes, with a newline behind the last line
start, stop span of a field
first       (rows + 1,) number of the first field of each line
code        number of the word in a span; equal words have equal ones, in order of appearance
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile import inlined, kernel

u64 = np.uint64
NONE, ONE = u64(0), u64(1)
NEWLINE, RETURN, TAB, BLANK = (np.uint8(ord(c)) for c in "\n\r\t ")


class Fields(NamedTuple):
    """The fields of some lines; blank lines and comments have none."""

    start: np.ndarray  # uint64
    stop: np.ndarray
    first: np.ndarray  # uint64 (rows + 1,)
    lines: np.ndarray  # int64 (rows,), from 1
    spans: np.ndarray  # uint64 (rows, 2): the whole line
    begin: np.ndarray  # int64: rows at which a sequence begins, and the number of rows
    line: int  # lines read so far

    @property
    def n_rows(self) -> int:
        return len(self.lines)


def split(
    text: np.ndarray, begin: int, end: int, line: int, tabs: bool, comment: bytes = b""
) -> Fields:
    """Fields of the lines of text[begin:end], and the sequences that blank lines separate.

    Parameters
    ----------
    text : array of uint8
        text[end] is a newline if text[end - 1] is not.
    line : int
        Number of lines before `begin`.
    tabs : bool
        Each tab separates two fields, which may be empty; otherwise runs of spaces and tabs do.
    comment : bytes
        Lines that begin so are left out; b"" for none.
    """
    part = text[begin : end + 1]
    n_lines = int(np.count_nonzero(part == NEWLINE)) + 1
    n_marks = int(np.count_nonzero((part == TAB) | (part == BLANK))) + n_lines
    start, stop = np.empty(n_marks, np.uint64), np.empty(n_marks, np.uint64)
    first, lines = np.zeros(n_lines + 1, np.uint64), np.empty(n_lines, np.int64)
    spans, starts = np.empty((n_lines, 2), np.uint64), np.empty(n_lines + 1, np.int64)
    mark = np.frombuffer(comment, np.uint8)
    n_fields, rows, n_starts, line = split_lines(
        text, u64(begin), u64(end), line, tabs, mark, start, stop, first, lines, spans, starts
    )
    begins = np.append(starts[:n_starts], rows)
    return Fields(
        start[:n_fields], stop[:n_fields], first[: rows + 1], lines[:rows], spans[:rows], begins,
        int(line),
    )  # fmt: skip


@inlined
def is_comment(text, at, stop, mark):
    """Does the line at `at` begin with `mark`?"""
    if mark.size == 0 or stop - at < u64(mark.size):
        return False
    same = True
    for k in range(u64(mark.size)):
        same &= text[at + k] == mark[k]
    return same


@kernel
def split_lines(text, at, end, line, tabs, mark, start, stop, first, lines, spans, starts):
    """Fill the arrays of `Fields`; the numbers of fields, rows, sequences and lines."""
    n, row, n_starts, is_new = NONE, NONE, NONE, True
    while at < end:
        line += 1
        last = at
        while text[last] != NEWLINE:
            last += ONE
        following = last + ONE
        if last > at and text[last - ONE] == RETURN:
            last -= ONE
        left = at
        while left < last and (text[left] == BLANK or text[left] == TAB):
            left += ONE
        if left == last:
            is_new = True
        elif not is_comment(text, at, last, mark):
            if is_new:
                starts[n_starts] = row
                n_starts += ONE
                is_new = False
            spans[row, 0], spans[row, 1], lines[row] = at, last, line
            begin = at if tabs else left
            while begin < last or (tabs and begin == last):
                k = begin
                while k < last and text[k] != TAB and (tabs or text[k] != BLANK):
                    k += ONE
                start[n], stop[n] = begin, k
                n += ONE
                begin = k + ONE
                while not tabs and begin < last and (text[begin] == BLANK or text[begin] == TAB):
                    begin += ONE
            row += ONE
            first[row] = n
        at = following
    return n, row, n_starts, line


class Numbered(NamedTuple):
    """Spans or keys by number."""

    code: np.ndarray  # int64
    where: np.ndarray  # int64: where each number occurs first


def number_spans(text: np.ndarray, start: np.ndarray, stop: np.ndarray) -> Numbered:
    """Give equal spans of the text the same number."""
    code, where = np.empty(start.size, np.int64), np.empty(start.size, np.int64)
    n = fill_span_codes(text, start, stop, new_table(start.size), code, where)
    return Numbered(code, where[:n])


def number_keys(keys: np.ndarray) -> Numbered:
    """Give equal integers the same number.

    Examples
    --------
    >>> number_keys(np.array([7, 3, 7], np.uint64))
    Numbered(code=array([0, 1, 0]), where=array([0, 1]))
    """
    code, where = np.empty(keys.size, np.int64), np.empty(keys.size, np.int64)
    n = fill_key_codes(keys, new_table(keys.size), code, where)
    return Numbered(code, where[:n])


def new_table(n: int) -> np.ndarray:
    """An empty hash table, at most half full with n entries."""
    return np.full(1 << max(4, (2 * n).bit_length()), -1, np.int64)


@inlined
def mixed(word):
    """The finaliser of splitmix64."""
    word = (word ^ (word >> u64(30))) * u64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> u64(27))) * u64(0x94D049BB133111EB)
    return word ^ (word >> u64(31))


@kernel
def hash_bytes(text, begin, end):
    """FNV-1a of a span, then mixed."""
    word = u64(0xCBF29CE484222325)
    for k in range(begin, end):
        word = (word ^ u64(text[k])) * u64(0x100000001B3)
    return mixed(word)


@kernel
def is_equal(text, begin, end, other, other_end):
    """Do two spans hold the same bytes?"""
    if end - begin != other_end - other:
        return False
    for k in range(end - begin):  # noqa: SIM110 - compiled
        if text[begin + k] != text[other + k]:
            return False
    return True


@kernel
def fill_span_codes(text, start, stop, table, code, where):
    """Open addressing; how many different spans there are."""
    mask, n = u64(table.size) - ONE, 0
    for i in range(u64(start.size)):
        begin, end = start[i], stop[i]
        slot = hash_bytes(text, begin, end) & mask
        while True:
            known = table[slot]
            if known < 0:
                table[slot], where[n], code[i] = n, i, n
                n += 1
                break
            j = u64(where[known])
            if is_equal(text, begin, end, start[j], stop[j]):
                code[i] = known
                break
            slot = (slot + ONE) & mask
    return n


@kernel
def fill_key_codes(keys, table, code, where):
    """Open addressing; how many different keys there are."""
    mask, n = u64(table.size) - ONE, 0
    for i in range(u64(keys.size)):
        key = keys[i]
        slot = mixed(key) & mask
        while True:
            known = table[slot]
            if known < 0:
                table[slot], where[n], code[i] = n, i, n
                n += 1
                break
            if keys[u64(where[known])] == key:
                code[i] = known
                break
            slot = (slot + ONE) & mask
    return n
