"""Heat maps as SVG text with an embedded PNG: no library."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape

import numpy as np

from .charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, Series, drawn, grid

#: Low to high: dark blue, green, yellow, told apart by colour-blind readers and in grey.
COLOURS = np.array([(32, 24, 84), (46, 84, 140), (34, 140, 134), (122, 200, 82), (250, 228, 60)])


def heat_map(
    title: str,
    values: np.ndarray,
    x_limits: tuple[float, float],
    y_limits: tuple[float, float],
    x_label: str,
    y_label: str,
    series: Sequence[Series] = (),
) -> str:
    """A picture of `values` in [0, 1], rows from low y to high y, with lines and dots on it.

    Examples
    --------
    >>> text = heat_map("a", np.eye(2), (0.0, 1.0), (0.0, 1.0), "x", "y")
    >>> "data:image/png;base64," in text
    True
    """
    across = Axis(*x_limits, LEFT, WIDTH - RIGHT)
    up = Axis(*y_limits, HEIGHT - BOTTOM, TOP)
    address = base64.b64encode(png(coloured(values[::-1]))).decode("ascii")
    picture = (
        f'<image x="{LEFT}" y="{TOP}" width="{WIDTH - RIGHT - LEFT}" '
        f'height="{HEIGHT - BOTTOM - TOP}" preserveAspectRatio="none" '
        f'href="data:image/png;base64,{address}"/>'
    )
    lines = "".join(drawn(one, across, up) for one in series)
    key = "".join(
        f'<span><i class="c{one.colour} {one.kind}"></i>{escape(one.name)}</span>' for one in series
    )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    side = (
        f'<text x="14" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 14 {middle})">{escape(y_label)}</text>'
    )
    return (
        f'<div class="chart"><div class="key"><b>{escape(title)}</b>{key}</div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{picture}{grid(across, up, x_label, False)}{side}{lines}</svg></div>"
    )


def coloured(values: np.ndarray) -> np.ndarray:
    """(rows, columns, 3) bytes of values in [0, 1]."""
    at = np.linspace(0.0, 1.0, len(COLOURS))
    channels = [np.interp(values, at, COLOURS[:, c]) for c in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8)


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of bytes (rows, columns, 3).

    Examples
    --------
    >>> png(np.zeros((2, 3, 3), np.uint8))[:4]
    b'\\x89PNG'
    """
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows, 9)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
