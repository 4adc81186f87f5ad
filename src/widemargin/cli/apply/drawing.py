"""Pictures of what was found in images, as files."""

from __future__ import annotations

import os

import numpy as np

#: Orange and black, seen on all images.
FRAME, EDGE = (213, 94, 0), (0, 0, 0)


def save_drawing(
    folder: str, path: str, pixels: np.ndarray, boxes: np.ndarray, taken: dict[str, int]
) -> None:
    """An image with boxes."""
    from PIL import Image

    Image.fromarray(with_boxes(pixels, boxes)).save(drawing_file(folder, path, taken))


def drawing_file(folder: str, path: str, taken: dict[str, int]) -> str:
    """The picture of an image has its name; a second one of a name gets a number.

    Examples
    --------
    >>> taken = {}
    >>> [drawing_file("out", name, taken) for name in ("a/b.jpg", "c/b.png")]
    ['out/b.png', 'out/b-2.png']
    """
    stem = os.path.splitext(os.path.basename(path))[0]
    taken[stem] = taken.get(stem, 0) + 1
    name = stem if taken[stem] == 1 else f"{stem}-{taken[stem]}"
    return os.path.join(folder, f"{name}.png")


def with_boxes(pixels: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """A copy of an image in colours, with frames around boxes.

    Examples
    --------
    >>> with_boxes(np.zeros((9, 9), np.uint8), np.array([[2.0, 2, 7, 7]]))[2, 2].tolist()
    [213, 94, 0]
    """
    whole = pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, axis=2)
    out, thick = whole.copy(), max(1, round(min(whole.shape[:2]) / 150))
    for box in boxes:
        add_frame(out, box, thick + 1, EDGE)
    for box in boxes:
        add_frame(out, box, thick, FRAME)
    return out


def add_frame(out: np.ndarray, box: np.ndarray, thick: int, colour: tuple[int, int, int]) -> None:
    """A frame inside of a box."""
    height, width = out.shape[:2]
    x0, y0 = max(0, round(box[0])), max(0, round(box[1]))
    x1, y1 = min(width, round(box[2])), min(height, round(box[3]))
    out[y0 : y0 + thick, x0:x1] = out[max(y0, y1 - thick) : y1, x0:x1] = colour
    out[y0:y1, x0 : x0 + thick] = out[y0:y1, max(x0, x1 - thick) : x1] = colour
