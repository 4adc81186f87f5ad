"""`StreamingDual`: dual ascent on a stream, and the examples that it keeps.

solver            `StreamingDual` (Ramanan 2013, Algorithm 2) and the schedules it is compared with
_pool             what the three caches share
_rows             `RowCache`: one dual variable per example (`BoxRows`)
_classes          `ClassCache`: one per class (`ClassRows`)
planes            `PlaneCache`: planes of any problem, with any geometry

A cache is a batch problem that changes: examples are looked at (`enter`, `explore`), come in
(`admit`), are optimised (`visit`, `improve`, `finish`), and leave. Its three kinds follow the three
loops of `DualCoordinate`.

Who leaves without mass is forgotten. Who leaves with mass is *retired*: its share stays in v and in
l(alpha), so the dual value stays a lower bound, and what it needs to come back in a later pass (its
dual variables, by row number) is kept in 16 bytes or a few more.
"""
