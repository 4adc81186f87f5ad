"""Compiled reading of svmlight text: bytes to the arrays of a CSR matrix, in one pass.

    <label> [qid:<integer>] <index>:<value> ... [# comment]

The text lies in a buffer with a newline behind its end, so no loop tests for the end. A bad line
leaves a record (line, code, where the token begins, where the line begins) and no row; what is
wrong with it is said in Python (`complaints.py`), which looks at the token again. Numbers that
compiled code cannot decide (`decimals.py`) are listed in `odd` and converted by Python.

symbol      meaning
text, at    the bytes, and where we are in them
bits        a float64 as an unsigned integer
powers      the table of `decimals.py`
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compile import inlined, kernel
from .decimals import (
    DIGITS,
    GOOD,
    INFINITE,
    LARGE,
    MALFORMED,
    MINUS,
    NONE,
    ODD,
    ONE,
    PLUS,
    SIGN,
    TEN,
    ZERO,
    byte,
    converted,
    eight_bytes,
    four_bytes,
    powers_of_five,
    read_digits,
    read_number,
    u64,
)

TWO = u64(2)
NEWLINE, BLANK, TAB, RETURN, HASH, COLON, COMMA = (u64(ord(c)) for c in "\n \t\r#:,")
LANES, HIGH_BITS = u64(0x0101010101010101), u64(0x8080808080808080)  # of eight bytes in a word
#: Bits of the least float64 that is infinite as float64 or float32.
OVERFLOW_OF = {
    "float64": INFINITE,
    "float32": np.float64(2.0**128 - 2.0**103).view(np.uint64),
}
LONGEST_LABEL = 255
#: Largest number of columns, so that 32 bits hold it and every index.
MOST_COLUMNS = 2**31 - 1

# What labels are, and whether lines have queries.
NUMBER, TEXT, LISTS = 0, 1, 2
NO_QUERY, QUERY, UNDECIDED = 0, 1, 2

# Codes of bad lines, besides those of a number. (Numbered without gaps, files of long numbers were
# read a few per cent slower.)
LABEL, LABEL_LENGTH, LABEL_CODE, ORDER, BELOW, BEYOND = 2, 3, 4, 6, 7, 8
BAD_QUERY, QUERY_MISSING, QUERY_UNEXPECTED, FULL = 9, 10, 11, 13

# Numbers that Python converts: an entry, a label, an entry whose sign a hash has changed.
ENTRY, OF_LABEL, FLIPPED = 0, 1, 2


class Counters(NamedTuple):
    """What a call of `parse_lines` leaves and the next one takes up; all uint64."""

    at: int
    line: int
    rows: int = 0
    entries: int = 0
    labels: int = 0
    bad: int = 0
    odd: int = 0
    columns: int = 0  # the largest + 1
    queries: int = UNDECIDED  # NO_QUERY, QUERY, or UNDECIDED until the first good line


class Rules(NamedTuple):
    """How lines are to be read."""

    labels: int  # NUMBER, TEXT or LISTS
    base: int  # 0 or 1: the index of the first column
    n_columns: int  # at most so many
    hash_bits: int  # 0 for no hashing
    heads: bool  # read the labels only
    overflow: np.uint64  # bits of the least value that is too large


class Arrays(NamedTuple):
    """What `parse_lines` fills."""

    values: np.ndarray  # uint64: bits of the entries
    indices: np.ndarray  # uint32
    indptr: np.ndarray  # uint32
    labels: np.ndarray  # uint64: bits; one per row, or all those of lists
    heads: np.ndarray  # uint64 (rows, 2): span of a label in the text, or of a list in `labels`
    qid: np.ndarray  # int64
    lines: np.ndarray  # int64
    odd: np.ndarray  # int64 (room, 3): ENTRY, OF_LABEL or FLIPPED; its place; where in the text
    bad: np.ndarray  # int64 (room, 4)


@inlined
def skip_blanks(text, at):
    """The first byte that is neither a space nor a tab."""
    c = byte(text, at)
    while c in (BLANK, TAB):
        at += ONE
        c = byte(text, at)
    return at


@inlined
def is_line_end(text, at):
    """Is here the end of what counts of a line: a newline, CR LF or a comment?"""
    c = byte(text, at)
    return c in (NEWLINE, HASH) or (c == RETURN and byte(text, at + ONE) == NEWLINE)


@inlined
def is_token_end(text, at):
    """Is this no byte of a token?"""
    c = byte(text, at)
    return c in (BLANK, TAB) or is_line_end(text, at)


@inlined
def next_line(text, at):
    """Where the next line begins; eight bytes at a time."""
    found = NONE
    while found == NONE:
        word = eight_bytes(text, at) ^ (NEWLINE * LANES)  # newlines are zero bytes now
        found = (word - LANES) & ~word & HIGH_BITS
        at += u64(8)
    at -= u64(8)
    while byte(text, at) != NEWLINE:
        at += ONE
    return at + ONE


@kernel
def is_utf8(text, at, end):
    """Are these bytes well-formed UTF-8 (no surrogates, nothing overlong)?"""
    while at < end:
        c = byte(text, at)
        at += ONE
        if c < u64(0x80):
            continue
        if c < u64(0xC2) or c > u64(0xF4):
            return False
        n = ONE if c < u64(0xE0) else (TWO if c < u64(0xF0) else u64(3))
        if at + n > end:
            return False
        second = byte(text, at)
        low = u64(0xA0) if c == u64(0xE0) else (u64(0x90) if c == u64(0xF0) else u64(0x80))
        high = u64(0x9F) if c == u64(0xED) else (u64(0x8F) if c == u64(0xF4) else u64(0xBF))
        if second < low or second > high:
            return False
        for k in range(ONE, n):
            if byte(text, at + k) & u64(0xC0) != u64(0x80):
                return False
        at += n
    return True


@inlined
def name_end(text, at):
    """Where a word without `:` and `#` ends."""
    c = byte(text, at)
    while c > BLANK and c != HASH and c != COLON:
        at += ONE
        c = byte(text, at)
    return at


@kernel
def read_text(text, at):
    """(end, code) of the text label at `at`."""
    end = name_end(text, at)
    if end == at or not is_token_end(text, end):
        return end, LABEL
    if end - at > u64(LONGEST_LABEL):
        return end, LABEL_LENGTH
    return end, (GOOD if is_utf8(text, at, end) else LABEL_CODE)


@kernel
def read_list(text, at, powers, labels, n_labels, odd, n_odd):
    """(end, code, n_labels, n_odd): the numbers at `at`, commas between them, into `labels`."""
    if byte(text, name_end(text, at)) == COLON:  # a feature already: the list is empty
        return at, GOOD, n_labels, n_odd
    while True:
        first = at
        bits, at, code = read_number(text, at, powers)
        is_last = is_token_end(text, at)
        if code in (MALFORMED, LARGE) or not (is_last or byte(text, at) == COMMA):
            return at, LABEL, n_labels, n_odd
        if code == ODD:
            if n_odd == u64(odd.shape[0]):
                return at, FULL, n_labels, n_odd
            odd[n_odd, 0], odd[n_odd, 1], odd[n_odd, 2] = OF_LABEL, n_labels, first
            n_odd += ONE
        labels[n_labels] = bits
        n_labels += ONE
        if is_last:
            return at, GOOD, n_labels, n_odd
        at += ONE


@kernel
def read_query(text, at):
    """(query, end, code) of the integer behind `qid:`."""
    sign = byte(text, at)
    at += ONE if sign in (PLUS, MINUS) else NONE
    number, end, fits = read_index(text, at)
    most = SIGN if sign == MINUS else SIGN - ONE
    if end == at or not fits or number > most or not is_token_end(text, end):
        return 0, end, BAD_QUERY
    return (-np.int64(number) if sign == MINUS else np.int64(number)), end, GOOD


@kernel
def long_index(text, at, end):
    """(number, end, does it fit) for twenty digits and more."""
    number = NONE
    for k in range(at, end):
        digit = byte(text, k) - ZERO
        if number > (~NONE - digit) // TEN:
            return number, end, False
        number = number * TEN + digit
    return number, end, True


@inlined
def read_index(text, at):
    """(number, end, does it fit into 64 bits) of the digits at `at`."""
    number, end = read_digits(text, at, NONE)
    fits = True
    if end - at > DIGITS:
        number, end, fits = long_index(text, at, end)
    return number, end, fits


@inlined
def mixed(word):
    """The finaliser of splitmix64."""
    word = (word ^ (word >> u64(30))) * u64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> u64(27))) * u64(0x94D049BB133111EB)
    return word ^ (word >> u64(31))


@kernel
def read_name(text, at):
    """(hash, end) of an index or a name: splitmix64 of the number, or mixed FNV-1a of the bytes."""
    number, end, fits = read_index(text, at)
    if end > at and fits and byte(text, end) == COLON:
        return mixed(number + u64(0x9E3779B97F4A7C15)), end
    word = u64(0xCBF29CE484222325)
    end = name_end(text, at)
    for k in range(at, end):
        word = (word ^ byte(text, k)) * u64(0x100000001B3)
    return mixed(word), end


@kernel
def parse_lines(text, end, rules, powers, arrays, counters):
    """Read lines from counters[AT] up to `end`, or until there is no room for bad or odd ones.

    `text` and `powers` are addresses: an array is seven words in every call, and is counted.
    """
    kind, base, bits = rules.labels, u64(rules.base), rules.hash_bits
    mask, n_columns = (ONE << u64(bits)) - ONE, u64(rules.n_columns)
    values, indices, indptr, labels, heads, qid, lines, odd, bad = arrays
    at, line, row, entries, n_labels, n_bad, n_odd, columns, queries = counters
    odd_room, bad_room = u64(odd.shape[0]), u64(bad.shape[0])
    while at < end and n_bad < bad_room:
        begin, start, labels_now, odd_now = at, entries, n_labels, n_odd
        at = skip_blanks(text, at)
        line += ONE
        if is_line_end(text, at):
            at = next_line(text, at)
            continue
        token = at
        if kind == NUMBER:
            number, at, code = read_number(text, at, powers)
            labels[row] = number
            labels_now += ONE
            if code in (MALFORMED, LARGE) or not is_token_end(text, at):
                code = LABEL
        elif kind == TEXT:
            at, code = read_text(text, at)
        else:
            at, code, labels_now, odd_now = read_list(
                text, at, powers, labels, n_labels, odd, n_odd
            )
        heads[row, 0] = n_labels if kind == LISTS else token
        heads[row, 1] = labels_now if kind == LISTS else at
        if code == ODD:
            code = FULL if odd_now == odd_room else GOOD
            if code == GOOD:
                odd[odd_now, 0], odd[odd_now, 1], odd[odd_now, 2] = OF_LABEL, row, token
                odd_now += ONE
        least, query, has_query = base, 0, NONE
        if code == GOOD and not rules.heads:
            at = skip_blanks(text, at)
            token = at
            if four_bytes(text, at) == u64(0x3A646971):  # "qid:"
                query, at, code = read_query(text, at + u64(4))
                has_query = ONE
            if code == GOOD and queries != u64(UNDECIDED) and has_query != queries:
                code = QUERY_UNEXPECTED if has_query else QUERY_MISSING
        while code == GOOD and not rules.heads:
            at = skip_blanks(text, at)
            if is_line_end(text, at):
                break
            token, sign = at, NONE
            if bits:
                word, at = read_name(text, at)
                index, fits, sign = word & mask, True, word & SIGN
            else:
                index, at, fits = read_index(text, at)
            if at == token or byte(text, at) != COLON:
                code = MALFORMED
                break
            first = at + ONE
            number, at, code = read_number(text, first, powers)
            if code == MALFORMED or number & ~SIGN >= rules.overflow or not is_token_end(text, at):
                code = MALFORMED
                break
            if not bits:
                if not fits or index >= n_columns + base:
                    code = BEYOND
                    break
                if index < least:
                    code = BELOW if index < base else ORDER
                    break
                least = index + ONE
                index -= base
            if code == ODD:
                if odd_now == odd_room:
                    code = FULL
                    break
                odd[odd_now, 0] = FLIPPED if sign else ENTRY
                odd[odd_now, 1], odd[odd_now, 2] = entries, first
                odd_now += ONE
                code = GOOD
            values[entries] = number ^ sign
            indices[entries] = index
            entries += ONE
        if code == FULL:  # this line again, with more room
            at, entries = begin, start
            line -= ONE
            break
        at = next_line(text, at if code == GOOD else token)
        if code != GOOD:
            entries = start
            bad[n_bad, 0], bad[n_bad, 1], bad[n_bad, 2], bad[n_bad, 3] = line, code, token, begin
            n_bad += ONE
            continue
        columns = max(columns, least - base)
        n_labels, n_odd = labels_now, odd_now
        queries = has_query if queries == u64(UNDECIDED) else queries
        qid[row], lines[row] = query, line
        row += ONE
        indptr[row] = entries
    return at, line, row, entries, n_labels, n_bad, n_odd, columns, queries


@kernel
def count_mark(text, at, end, mark):
    """How often the byte `mark` occurs; eight bytes at a time, a count per lane."""
    total, pattern = NONE, mark * LANES
    while at < end:
        sums, stop = NONE, min(at + u64(8 * 255), end)
        whole = at + (stop - at) // u64(8) * u64(8)
        for k in range((whole - at) // u64(8)):
            word = eight_bytes(text, at + k * u64(8)) ^ pattern
            sums += ~(((word & ~HIGH_BITS) + ~HIGH_BITS) | word | ~HIGH_BITS) >> u64(7)
        for shift in range(NONE, u64(64), u64(8)):
            total += (sums >> shift) & u64(255)
        for k in range(whole, stop):
            total += u64(byte(text, k) == mark)
        at = stop
    return total


@kernel
def gather(text, heads, table):
    """Copy span i of the text into row i of `table`, whose rest is zero."""
    for i in range(u64(heads.shape[0])):
        for k in range(heads[i, 1] - heads[i, 0]):
            table[i, k] = byte(text, heads[i, 0] + k)


class Parsed(NamedTuple):
    """Rows of a text and what was wrong with other lines; arrays as in `Arrays`, trimmed."""

    values: np.ndarray  # float64
    indices: np.ndarray  # int32
    indptr: np.ndarray  # int32
    labels: np.ndarray  # float64
    heads: np.ndarray
    qid: np.ndarray
    lines: np.ndarray
    bad: np.ndarray
    line: int  # lines read so far
    n_columns: int  # the largest column + 1
    queries: int


def parse(
    text: np.ndarray, begin: int, end: int, line: int, rules: Rules, queries: int, skip: bool
) -> Parsed:
    """Read the lines of text[begin:end]; without `skip` only up to the first bad one.

    Parameters
    ----------
    text : array of uint8
        At least 8 bytes longer than `end`; text[end] is a newline if text[end - 1] is not.
    line : int
        Number of lines before `begin`.
    queries : int
        NO_QUERY, QUERY or UNDECIDED: the first good line decides.
    """
    address, powers = u64(text.ctypes.data), u64(powers_of_five().ctypes.data)

    def count(mark):
        return int(count_mark(address, u64(begin), u64(end), mark))

    n, entries = count(NEWLINE) + 1, 0 if rules.heads else count(COLON)
    arrays = Arrays(
        np.empty(entries, np.uint64),
        np.empty(entries, np.uint32),
        np.zeros(n + 1, np.uint32),
        np.empty(n + count(COMMA) if rules.labels == LISTS else n, np.uint64),
        np.empty((n, 2), np.uint64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty((64, 3), np.int64),
        np.empty((64 if skip else 1, 4), np.int64),
    )
    counters = Counters(begin, line, queries=queries)
    while True:
        counted: Any = (u64(count) for count in counters)
        left = parse_lines(address, u64(end), rules, powers, arrays, Counters(*counted))
        counters = Counters(*(int(count) for count in left))
        if counters.at >= end or (counters.bad and not skip):
            break
        crowded = "bad" if counters.bad == len(arrays.bad) else "odd"
        table = getattr(arrays, crowded)
        arrays = arrays._replace(**{crowded: np.concatenate([table, np.empty_like(table)])})
    rows, entries = counters.rows, counters.entries
    values, labels = arrays.values[:entries].view(float), arrays.labels.view(float)
    for kind, place, at in arrays.odd[: counters.odd].tolist():
        number = converted(text, at)
        if kind == OF_LABEL:
            labels[place] = number
        else:
            values[place] = -number if kind == FLIPPED else number
    return Parsed(
        values,
        arrays.indices[:entries].view(np.int32),
        arrays.indptr[: rows + 1].view(np.int32),
        labels[: counters.labels],
        arrays.heads[:rows],
        arrays.qid[:rows],
        arrays.lines[:rows],
        arrays.bad[: counters.bad],
        counters.line,
        counters.columns,
        counters.queries,
    )


def texts(text: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """The spans `heads` of the text as an array of str, each distinct one decoded once."""
    width = int((heads[:, 1] - heads[:, 0]).max()) if len(heads) else 1
    table = np.zeros((len(heads), width), np.uint8)
    gather(u64(text.ctypes.data), heads, table)
    distinct, inverse = np.unique(table.view(f"S{width}").ravel(), return_inverse=True)
    return np.array([label.decode() for label in distinct.tolist()], dtype=str)[inverse]
