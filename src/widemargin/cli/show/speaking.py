"""What the command line writes: results to stdout, everything else to stderr.

Labels, names and error texts come from files of others; a terminal gets them with escapes in place
of control characters (`system/printable.py`). Predictions and converted rows are data: they are
escaped where stdout is a terminal, and stay as they are in files and pipes.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ...system.printable import printable
from .words import plain_json


def say(text: str) -> None:
    """Print a line on standard error."""
    line = printable(" ".join(text.split()))
    print(f"widemargin: {line}", file=sys.stderr, flush=True)


def tell(text: str) -> None:
    """A result for people on stdout; the line ends in it are ours."""
    print(printable(text, keep="\n"), flush=True)


def give(text: str) -> None:
    """Write text to standard output at once."""
    sys.stdout.write(printable(text, keep="\n\t") if sys.stdout.isatty() else text)
    sys.stdout.flush()


def tell_json(value: Any) -> None:
    """Print a result on standard output as JSON."""
    print(json.dumps(plain_json(value)), flush=True)
