"""Examples kept in memory with their dual variables: what a stream leaves behind.

A cache is a batch problem that changes: examples are looked at (`enter`, `explore`), come in
(`admit`), are optimised (`visit`, `improve`, `finish`), and leave. Three kinds, after the three
loops of `DualCoordinate`:

    RowCache     one dual variable per example (`BoxRows`)
    ClassCache   one per class (`ClassRows`)
    PlaneCache   planes of any problem, with any geometry

Who leaves without mass is forgotten. Who leaves with mass is *retired*: its share stays in v and in
l(alpha), so the dual value stays a lower bound, and what it needs to come back in a later pass (its
dual variables, by row number) is kept in 16 bytes or a few more.
"""

from .classes import ClassCache
from .planes import PlaneCache
from .rows import RowCache

__all__ = ["ClassCache", "PlaneCache", "RowCache"]
