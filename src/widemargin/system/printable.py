"""Words of others (labels, names of features and files) so that a terminal shows them only.

A terminal obeys what it is sent: ESC and the C1 controls move the cursor, rename the window or
worse, bidirectional marks turn a line round, a newline forges one. Lone surrogates, which stand for
bytes of a file name that are not UTF-8, cannot be written at all.
"""

from __future__ import annotations

import os


def printable(text: str, keep: str = "") -> str:
    r"""The text with escapes in place of what is not printable; characters of `keep` stay.

    Examples
    --------
    >>> print(printable("caf\xe9 \x1b[2J\n\u202e\udcff"))
    café \x1b[2J\n\u202e\udcff
    >>> printable("two\nlines", keep="\n")
    'two\nlines'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)


def path_words(path: str | bytes | os.PathLike) -> str:
    r"""How messages and notes call a file.

    Examples
    --------
    >>> print(path_words(b"da\xffta.svm"))
    da\udcffta.svm
    """
    return printable(os.fsdecode(path))
