"""Which file belongs to which image: names of annotations are words of others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from ..system.printable import path_words
from .records import AnnotationError

#: Endings of the images that are looked for.
IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")


def inner_path(name: str) -> PurePosixPath:
    """A name that stays inside of a folder, or an error."""
    path = PurePosixPath(name.replace("\\", "/"))
    unfit = not name or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]
    if unfit or "\0" in name or not path.name:
        raise AnnotationError(f"the image {path_words(name)!r} is not inside of its folder.")
    return path


def target_file(folder, image: str, ending: str, taken: dict[Path, str]) -> Path:
    """Where the annotation of an image is written; `taken` are the files of others."""
    file = Path(folder) / inner_path(image).with_suffix(ending)
    if file in taken:
        one, two = path_words(taken[file]), path_words(image)
        raise AnnotationError(f"{one} and {two} would both be written to {path_words(file)}.")
    taken[file] = image
    return file


def image_files(folder) -> list[Path]:
    """All images of a folder and its folders, in order."""
    return sorted(f for f in Path(folder).rglob("*") if f.suffix.lower() in IMAGES)


def by_stem(files: Iterable[Path], folder) -> dict[str, Path]:
    """Images by their names without ending, relative to the folder."""
    return {file.relative_to(folder).with_suffix("").as_posix(): file for file in files}


def image_size(file) -> tuple[int, int]:
    """(width, height) of an image as it is shown: turned by its EXIF orientation."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("images need Pillow: pip install widemargin[images]") from None
    try:
        with Image.open(file) as image:
            width, height = image.size
            turned = image.getexif().get(274, 1) in (5, 6, 7, 8)
    except FileNotFoundError:
        raise AnnotationError(f"{path_words(file)}: there is no such image.") from None
    except (OSError, ValueError, SyntaxError) as error:
        raise AnnotationError(f"{path_words(file)}: not an image that can be read.") from error
    return (height, width) if turned else (width, height)
