"""Numbers and XML in files of others: exact in both directions, harmless if they mean harm.

A number that is shifted by 1 or 0.5 is shifted as the decimal that it is written as: 48.2 - 1 is
47.2, and 48.2 again when it is written. XML is read without document types, so there are no
entities to expand, and to a limited depth.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

from ..system.printable import path_words, printable
from .records import AnnotationError

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
#: What XML 1.0 cannot hold.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
DEEPEST = 50


def number(text: Any, where: str, shift: str = "0") -> float:
    """A finite number, shifted by a decimal; `where` begins the error."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = repr(text)
    if not isinstance(text, str) or not NUMBER.fullmatch(text.strip()) or len(text) > 60:
        shown = printable(repr(text))
        raise AnnotationError(f"{where} is {shown[:60]}; a number is needed.")
    return float(Decimal(text.strip()) + Decimal(shift))


def total(one: float, two: float, sign: int = 1) -> float:
    """one + two, or one - two, as the decimals that they are written as."""
    return float(Decimal(repr(float(one))) + sign * Decimal(repr(float(two))))


def as_text(value: float, shift: str = "0") -> str:
    """A number as the shortest decimal that is read back as the same, shifted exactly.

    >>> as_text(47.2, "1"), as_text(3.0)
    ('48.2', '3')
    """
    text = format(Decimal(repr(float(value))) + Decimal(shift), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def as_number(value: float) -> int | float:
    """A whole number where it is one, for JSON."""
    return int(value) if value == int(value) else float(value)


@dataclass
class Node:
    """An element of an XML file."""

    tag: str
    line: int
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    text: str = ""

    def child(self, tag: str) -> Node | None:
        """The first child of this tag."""
        return next((node for node in self.children if node.tag == tag), None)

    def word(self, tag: str, default: str = "") -> str:
        """The text of the first child of this tag."""
        node = self.child(tag)
        return default if node is None else node.text.strip()


class TreeBuilder:
    """Builds nodes from what the parser reports."""

    def __init__(self, name: str):
        self.name = name
        self.open: list[Node] = []
        self.root = Node("", 0)
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = lambda tag: self.open.pop()
        self.parser.CharacterDataHandler = self.words
        self.parser.StartDoctypeDeclHandler = self.refuse_type

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        node = Node(tag, self.parser.CurrentLineNumber, attributes)
        if self.open:
            self.open[-1].children.append(node)
        else:
            self.root = node
        self.open.append(node)
        if len(self.open) > DEEPEST:
            raise AnnotationError(f"{self.name}: line {node.line}: elements are nested too deeply.")

    def words(self, text: str) -> None:
        if self.open:
            self.open[-1].text += text

    def refuse_type(self, *declared: Any) -> None:
        line = self.parser.CurrentLineNumber
        raise AnnotationError(f"{self.name}: line {line}: a document type is not read.")


def parse_xml(path: str | Path) -> Node:
    """The root of an XML file."""
    builder = TreeBuilder(path_words(path))
    try:
        with open(path, "rb") as file:
            builder.parser.ParseFile(file)
    except expat.ExpatError as error:
        words = expat.errors.messages.get(error.code, "damaged")
        raise AnnotationError(f"{builder.name}: line {error.lineno}: {words}.") from None
    return builder.root


def xml_text(text: str, where: str) -> str:
    """Text for an XML file; characters that XML cannot hold are refused."""
    if NOT_XML.search(text):
        raise AnnotationError(f"{where}: XML cannot hold the name {printable(text)!r}.")
    return escape(text, {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def parse_json(path: str | Path) -> Any:
    """What a JSON file holds; NaN and infinity are refused."""
    name = path_words(path)

    def no_constant(word: str) -> None:
        raise AnnotationError(f"{name}: {word} is not a number.")

    try:
        with open(path, "rb") as file:
            return json.load(file, parse_constant=no_constant)
    except RecursionError:
        raise AnnotationError(f"{name}: values are nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise AnnotationError(f"{name}: line {error.lineno}: {error.msg}.") from None
    except UnicodeDecodeError:
        raise AnnotationError(f"{name}: not UTF-8 text.") from None
    except AnnotationError:
        raise
    except ValueError as error:  # such as a whole number of 5,000 digits
        raise AnnotationError(f"{name}: {str(error).split(';')[0]}.") from None
