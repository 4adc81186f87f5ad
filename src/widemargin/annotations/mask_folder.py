"""A folder of masks: an image for every image, in which the value of a pixel is its class.

A value other than 0 is an object of that name ("1", "255", ...), its box the box around its pixels.
Of images with a palette the numbers are taken, and 255 there is "void", to be ignored. JPEG blurs
values: what is above 127 is the object "255".
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ..system.printable import path_words
from ..system.replacing import replacing
from .names import image_files, target_file
from .records import Annotated, AnnotationError, Annotations, Objects, Reading, full, needed_size
from .segments import Segment, bounds

HOLDS = {"label", "size", "mask"}
LOSSY = (".jpg", ".jpeg")
VOID = 255


def read_masks(path, reading: Reading, images=None, **options) -> Annotations:
    """All masks of a folder; names of images are those of `images` with the same stem."""
    root = Path(path)
    known = {}
    if images is not None:
        known = {f.stem: f.relative_to(images).as_posix() for f in image_files(images)}
    records = []
    for file in image_files(root):
        try:
            name = known.get(file.stem, file.relative_to(root).as_posix())
            if images is not None and file.stem not in known:
                raise AnnotationError(f"{path_words(file)}: there is no image of this name.")
            records.append(mask_record(file, name, reading))
        except AnnotationError as error:
            reading.refuse(str(error))
    return Annotations(records)


def mask_record(file: Path, name: str, reading: Reading) -> Annotated:
    """The objects of one mask."""
    values, has_palette = mask_values(file)
    height, width = values.shape
    objects = Objects(reading, path_words(file), name, (width, height))
    for value in np.unique(values[values > 0]).tolist():
        mask = Segment.from_array(values == value)
        objects.add(bounds(mask), str(value), has_palette and value == VOID, mask=mask)
    return objects.record()


def mask_values(file: Path) -> tuple[np.ndarray, bool]:
    """(values of the pixels (height, width), whether they are numbers of a palette)."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("masks need Pillow: pip install widemargin[images]") from None
    try:
        with Image.open(file) as image:
            has_palette = image.mode == "P"
            single = image if image.mode in ("1", "L", "P", "I", "I;16") else image.convert("L")
            values = np.array(single)
    except (OSError, ValueError, SyntaxError) as error:
        raise AnnotationError(f"{path_words(file)}: not an image that can be read.") from error
    if values.dtype == bool:
        values = values.astype(np.uint8) * 255
    if file.suffix.lower() in LOSSY:
        values = np.where(values > 127, 255, 0).astype(np.uint8)
    return values, has_palette


def write_masks(annotations: Annotations, path) -> None:
    """A PNG for every image; classes whose names are no numbers are numbered from 1 on."""
    from PIL import Image

    numbers = class_values(annotations.names)
    taken: dict[Path, str] = {}
    files = [target_file(path, record.path, ".png", taken) for record in annotations.records]
    for record, file in zip(annotations.records, files, strict=True):
        width, height = needed_size(record)
        deep = max(numbers.values(), default=0) > 255
        values = np.zeros((height, width), np.uint16 if deep else np.uint8)
        void = False
        for label, ignored, mask in zip(
            record.labels, record.ignore, full(record, "masks"), strict=True
        ):
            if mask is not None:
                values[mask.to_array()] = VOID if ignored else numbers[label]
                void |= bool(ignored)
        image = Image.fromarray(values)
        if void:
            image.putpalette([v for k in range(256) for v in (k, k, k)])
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as out:
            image.save(out, "png")


def class_values(names: list[str]) -> dict[str, int]:
    """The value of each class: its name where all names are numbers from 1 on."""
    if all(re.fullmatch("[1-9][0-9]{0,3}", name) for name in names):
        return {name: int(name) for name in names}
    return {name: k + 1 for k, name in enumerate([*names, ""])}
