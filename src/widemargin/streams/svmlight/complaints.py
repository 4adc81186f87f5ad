"""What is wrong with a line of svmlight text, in words.

The parser leaves a code and the place of a token; here the token is looked at again. A reason
quotes it, says what is wrong and, where an option would help, which.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from ...system.printable import printable
from ...system.sentences import Option, Sentence

if TYPE_CHECKING:
    from .stream import Place, SvmlightStream

TOKEN = re.compile(rb"[^ \t\n#]*")
HEXADECIMAL = re.compile(rb"[-+]?0[xX][0-9a-fA-F.]")
CONTROL = re.compile(rb"[\x00-\x1f]")
LONGEST_QUOTE = 40


def reason(code: int, token: bytes, stream: SvmlightStream, place: Place) -> str:
    """What is wrong with a token: the parser's `code`, in words."""
    from . import parser

    shown = quoted(token)
    if CONTROL.search(token):
        return f"{shown} has a control character in it"
    if code == parser.LABEL:
        return label_reason(token, place.labels)
    if code == parser.MALFORMED:
        return token_reason(token, stream.hash_bits is not None, stream.dtype)
    if code == parser.BELOW and stream.zero_based == "auto":
        return Sentence(
            f"{shown} has index 0, but no line of the first chunk has; pass ",
            Option("zero_based", True),
            " if indices begin at 0",
        )
    if code == parser.BEYOND and stream.n_features is not None:
        width = Option("n_features", stream.n_features)
        return Sentence(f"the index of {shown} is beyond ", width)
    most = parser.MOST_COLUMNS - bool(place.zero_based)
    return {
        parser.LABEL_LENGTH: f"label {shown} is longer than {parser.LONGEST_LABEL} bytes",
        parser.LABEL_CODE: f"label {shown} is not UTF-8",
        parser.ORDER: f"the index of {shown} is not larger than the one before it",
        parser.BELOW: Sentence(f"{shown} has index 0, but ", Option("zero_based", False)),
        parser.BEYOND: Sentence(
            f"the index of {shown} is larger than {most}; ", Option("hash_bits"), " would take it"
        ),
        parser.BAD_QUERY: f"{shown} is not a whole number of 64 bits",
        parser.QUERY_MISSING: "there is no qid, but the lines before have one",
        parser.QUERY_UNEXPECTED: f"there is {shown}, but the lines before have no qid",
    }[code]


def token_at(text: np.ndarray, at: int) -> bytes:
    """The token that begins at `at`; a CR at the end of its line does not belong to it."""
    token = TOKEN.match(text, at)  # type: ignore[call-overload]
    is_last = text[token.end()] == 10
    return token[0].removesuffix(b"\r") if is_last else token[0]


def quoted(token: bytes) -> str:
    """A token for a message: short, printable, in quotes."""
    text = token[: 4 * LONGEST_QUOTE + 4].decode("utf-8", "backslashreplace")
    if len(text) > LONGEST_QUOTE:
        text = text[:LONGEST_QUOTE] + "…"
    return f"'{printable(text)}'"


def number_reason(number: bytes) -> str | None:
    """Why a number that Python could read is refused, or None."""
    try:
        size = float(number)
    except ValueError:
        return None
    if b"n" in number.lower():  # nan, inf, infinity
        return "is not finite"
    return "is too large" if b"_" not in number and abs(size) > 1 else None


def is_word(label: bytes) -> bool:
    """Is this a text label, and not a bad number or a feature?"""
    if not label or b":" in label or CONTROL.search(label) or HEXADECIMAL.match(label):
        return False
    return number_reason(label) is None


def is_number(label: str) -> bool:
    """Would this label be read as a number?"""
    try:
        return math.isfinite(float(label)) and "_" not in label
    except ValueError:
        return False


def label_reason(token: bytes, labels: str) -> str:
    """What is wrong with a label."""
    shown = quoted(token)
    if b":" in token:
        return f"there is no label before {shown}"
    if labels == "text":
        return f"label {shown} is not a word"
    if labels == "lists" and b"," in token:
        return f"label {shown} is not a list of numbers"
    return f"label {shown} {number_reason(token) or 'is not a number'}"


def token_reason(token: bytes, is_hashed: bool, dtype: np.dtype) -> str:
    """What is wrong with a feature."""
    shown = quoted(token)
    index, colon, value = token.partition(b":")
    if not colon:
        return f"{shown} is not index:value"
    if not index:
        return f"{shown} has no index"
    if not is_hashed and not index.isdigit():
        negative = index[:1] == b"-" and index[1:].isdigit()
        return f"the index of {shown} is {'negative' if negative else 'not a whole number'}"
    if not value:
        return f"{shown} has no value"
    reason = number_reason(value) or "is not a number"
    of_type = f" for {dtype.name}" if reason == "is too large" and dtype == np.float32 else ""
    return f"the value of {shown} {reason}{of_type}"
