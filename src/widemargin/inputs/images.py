"""Images as arrays of uint8, (H, W) where they are grey and (H, W, 3) where they have colours.

An image is a path, an image of Pillow, an array, or a record with a `path`. Files and Pillow's
images need Pillow (`pip install widemargin[images]`), which is imported where one is opened.

    turned upright    as the EXIF orientation says
    16 bits           the upper eight of them
    fractions         refused: no file tells what is white
    CMYK, palettes    as Pillow converts them to RGB; what is transparent keeps its colour
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from typing import Any

import numpy as np

#: Larger images are refused: their features would take gigabytes.
MOST_PIXELS = 50_000_000
#: Edges of the smallest image that holds a window.
LEAST_EDGE = 8
GREY = ("1", "L")
SIXTEEN_BITS = ("I;16", "I;16B", "I;16L", "I;16N")
#: What Pillow raises on files that are broken in one way or another.
BROKEN = (OSError, SyntaxError, ValueError, EOFError, struct.error, KeyError, IndexError, TypeError)


class ImageError(ValueError):
    """An image that cannot be used; the text names it."""


def image_name(image: Any, number: int | None = None) -> str:
    """What to call an image in messages: its path, else its number.

    Examples
    --------
    >>> image_name("cat.jpg"), image_name(np.zeros((2, 2)), 3)
    ('cat.jpg', 'image 3')
    """
    path = path_of(image)
    if path:
        return path
    return "the image" if number is None else f"image {number}"


def path_of(image: Any) -> str | None:
    """The path of an image, of a record or of what Pillow opened; None where there is none."""
    if isinstance(image, str | PathLike):
        return str(fspath(image))
    path = getattr(image, "path", None) or getattr(image, "filename", None)
    return str(fspath(path)) if isinstance(path, str | PathLike) and path else None


def open_image(image: Any, number: int | None = None) -> np.ndarray:
    """An image as an array of uint8, (H, W) or (H, W, 3).

    Parameters
    ----------
    image : path, image of Pillow, array of uint8 or uint16, or record with a `path`
    number : int, optional
        Its place in a list, for messages.

    Raises
    ------
    ImageError
        Where it is missing, broken, too large or too small.

    Examples
    --------
    >>> open_image(np.zeros((16, 20, 3), np.uint8)).shape
    (16, 20, 3)
    >>> open_image(np.zeros((1, 1), np.uint8), 4)
    Traceback (most recent call last):
    ...
    widemargin.inputs.images.ImageError: image 4: 1 x 1 pixels; at least 8 x 8 are needed.
    """
    name = image_name(image, number)
    if isinstance(image, np.ndarray):
        return checked_array(image, name)
    if hasattr(image, "convert") and hasattr(image, "getexif"):
        return from_pillow(image, name)
    path = path_of(image)
    if path is None:
        raise ImageError(
            f"{name}: a path, an image of Pillow or an array is needed, not {type(image).__name__}."
        )
    return from_file(path)


def open_images(images: Iterable[Any]) -> Iterator[np.ndarray]:
    """The images of a list one after another, never two at once."""
    return (open_image(image, number) for number, image in enumerate(images))


def checked_list(images: Any) -> list[Any]:
    """Images as a list; refuses one image in place of many."""
    if isinstance(images, str | PathLike) or path_of(images) or hasattr(images, "getexif"):
        raise ValueError("a list of images is needed, not one image; give [image].")
    if isinstance(images, np.ndarray) and images.dtype.kind in "uif" and images.ndim < 3:
        raise ValueError(
            f"a list of images is needed, not an array of shape {images.shape}; give [image]."
        )
    return list(images)


def some_images(images: Any) -> list[Any]:
    """Images to measure on, as a list; refuses none."""
    found = checked_list(images)
    if not found:
        raise ValueError("There are no images to measure on: X is empty.")
    return found


def checked_array(image: np.ndarray, name: str) -> np.ndarray:
    """An array of pixels in eight bits; refuses what is no image."""
    if image.ndim == 3 and image.shape[2] in (1, 2):  # grey, with or without what is transparent
        image = image[:, :, 0]
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (3, 4)):
        raise ImageError(f"{name}: an array (H, W) or (H, W, 3) is needed, not {image.shape}.")
    if image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    if image.dtype != np.uint8:
        raise ImageError(
            f"{name}: an array of uint8 is needed, not of {image.dtype}; numbers from 0 to 1 "
            "become (255 * image).astype('uint8')."
        )
    check_pixels(image.shape[1], image.shape[0], name)
    return np.ascontiguousarray(image[..., :3] if image.ndim == 3 else image)


def check_pixels(width: int, height: int, name: str) -> None:
    """Refuse images that are too small or too large to look for anything in."""
    if min(width, height) < LEAST_EDGE:
        raise ImageError(
            f"{name}: {width} x {height} pixels; at least {LEAST_EDGE} x {LEAST_EDGE} are needed."
        )
    if width * height > MOST_PIXELS:
        raise ImageError(
            f"{name}: {width} x {height} pixels are more than {MOST_PIXELS // 10**6} million; "
            "make the image smaller first."
        )


def from_file(path: str) -> np.ndarray:
    """The pixels of a file."""
    Image = pillow(path)
    try:
        with warnings.catch_warnings():  # `check_pixels` refuses them
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                return from_pillow(image, path)
    except ImageError:
        raise
    except FileNotFoundError:
        raise ImageError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise ImageError(f"{path}: a folder is no image.") from None
    except (*BROKEN, Image.DecompressionBombError) as error:
        raise ImageError(f"{path}: not readable as an image: {one_line(error, path)}.") from None


def pillow(name: str) -> Any:
    """Pillow's module of images; refuses where it is absent."""
    try:
        from PIL import Image
    except ImportError:
        raise ImageError(
            f"{name}: files of images need Pillow: pip install 'widemargin[images]'."
        ) from None
    return Image


def from_pillow(image: Any, name: str) -> np.ndarray:
    """The pixels of an image that Pillow has opened, turned upright."""
    from PIL import ImageOps

    width, height = image.size
    check_pixels(width, height, name)
    if image.mode == "F":
        raise ImageError(f"{name}: its pixels are fractions; save it with 8 or 16 bits.")
    try:
        upright = ImageOps.exif_transpose(image)
    except BROKEN:  # notes about the image that are broken do not make it unreadable
        upright = image
    try:
        if upright.mode in SIXTEEN_BITS or upright.mode == "I":
            deep = np.asarray(upright).astype(np.int64)
            return np.ascontiguousarray(np.clip(deep >> 8, 0, 255).astype(np.uint8))
        mode = "L" if upright.mode in GREY else "RGB"
        return np.asarray(upright if upright.mode == mode else upright.convert(mode))
    except BROKEN as error:
        text = one_line(error, name)
        raise ImageError(f"{name}: not readable as an image: {text}.") from None


def one_line(error: BaseException, path: str) -> str:
    """What an error says, in one line and without the path."""
    text = str(error).replace(repr(path), "the file").replace(path, "the file")
    return (text.splitlines() or [type(error).__name__])[0].rstrip(".")
