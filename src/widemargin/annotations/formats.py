"""Reading and writing by the name of a format; what a conversion loses is counted and named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..system.printable import path_words, printable
from . import box_csv, coco, imglab, joints_mat, mask_folder, voc, yolo
from .names import image_files, image_size, inner_path
from .records import Annotated, AnnotationError, Annotations, Reading, full
from .texts import parse_xml


class Format(NamedTuple):
    """How a format is read and written, and which entries of an object it holds."""

    read: Callable[..., Annotations]
    write: Callable[..., None]
    holds: set[str]
    keeps: bool = False  # whether further entries by name are kept


FORMATS = {
    "voc": Format(voc.read_voc, voc.write_voc, voc.HOLDS, True),
    "coco": Format(coco.read_coco, coco.write_coco, coco.HOLDS, True),
    "yolo": Format(yolo.read_yolo, yolo.write_yolo, yolo.HOLDS),
    "imglab": Format(imglab.read_imglab, imglab.write_imglab, imglab.HOLDS, True),
    "csv": Format(box_csv.read_csv, box_csv.write_csv, box_csv.HOLDS),
    "parse": Format(joints_mat.read_parse, joints_mat.write_parse, joints_mat.HOLDS),
    "masks": Format(mask_folder.read_masks, mask_folder.write_masks, mask_folder.HOLDS),
}
ENDINGS = {".json": "coco", ".csv": "csv", ".mat": "parse"}


def format_of(path) -> str:
    """The format of a file or a folder, by its ending or by what is in it."""
    root = Path(path)
    if root.is_dir():
        if next(root.rglob("*.xml"), None):
            return "voc"
        if next((f for f in root.rglob("*.txt") if f.name != "classes.txt"), None):
            return "yolo"
        if image_files(root):
            return "masks"
        raise AnnotationError(f"{path_words(path)}: no XML, no text and no images are in it.")
    if not root.exists():
        raise FileNotFoundError(f"{path_words(path)}: there is no such file.")
    if root.suffix.lower() == ".xml":
        return "imglab" if parse_xml(root).tag == "dataset" else "voc"
    if root.suffix.lower() in ENDINGS:
        return ENDINGS[root.suffix.lower()]
    raise AnnotationError(f"{path_words(path)}: its format is not known; name one of {known()}.")


def known() -> str:
    """All formats in words."""
    return ", ".join(FORMATS)


def read_annotations(path, format="auto", *, images=None, classes=None, skip_bad=False):
    """The records of a file or a folder of annotations.

    Parameters
    ----------
    path : file or folder
    format : "auto", "voc", "coco", "yolo", "imglab", "csv", "parse" or "masks"
    images : folder, optional
        Where the images are: sizes that the annotation does not tell come from them, and an image
        that is missing is an error.
    classes : list of str, optional
        Names of the classes of YOLO; else those of data.yaml.
    skip_bad : bool
        Leave out what is wrong, counted in `skipped`, instead of raising an error.

    Returns
    -------
    Annotations

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "boxes.csv")
    ...     _ = path.write_text("image,xmin,ymin,xmax,ymax,label\\na.jpg,1,1,20,30,cat\\n")
    ...     found = read_annotations(path)
    >>> found.names, found.records[0].boxes.tolist()
    (['cat'], [[0.0, 0.0, 20.0, 30.0]])
    """
    if format == "auto":
        format = format_of(path)
    if format not in FORMATS:
        raise ValueError(f"format is {printable(str(format))!r}; known are {known()}.")
    reading = Reading(skip_bad)
    found = FORMATS[format].read(path, reading, images=images, classes=classes)
    if images is not None:
        found.records = with_images(found.records, Path(images), reading)
    found.skipped, found.unread = reading.skipped, reading.unread
    return found


def with_images(records: list[Annotated], folder: Path, reading: Reading) -> list[Annotated]:
    """Those records whose images are there, with sizes."""
    kept = []
    for record in records:
        try:
            file = folder / inner_path(record.path)
            size = image_size(file)
            if record.size not in (None, size):
                told = f"{record.size[0]} x {record.size[1]}" if record.size else ""
                raise AnnotationError(
                    f"{path_words(file)}: it has {size[0]} x {size[1]} pixels; the annotation says "
                    f"{told}."
                )
            object.__setattr__(record, "size", size)
            kept.append(record)
        except AnnotationError as error:
            reading.refuse(str(error))
    return kept


def write_annotations(annotations: Annotations, path, format="auto") -> Counter:
    """Write records in a format; what the format cannot hold, counted by name.

    Parameters
    ----------
    annotations : Annotations
    path : file or folder
        A folder for VOC, YOLO and masks.
    format : str
        As in `read_annotations`; "auto" goes by the ending.

    Returns
    -------
    Counter
        The number of objects that lost each entry, such as {"joints": 3}.
    """
    if format == "auto":
        format = "imglab" if Path(path).suffix == ".xml" else ENDINGS.get(Path(path).suffix, "")
    if format not in FORMATS:
        raise ValueError(f"format is {printable(str(format))!r}; known are {known()}.")
    FORMATS[format].write(annotations, path)
    return losses(annotations, format)


def losses(annotations: Annotations, format: str) -> Counter:
    """What a format cannot hold of these records."""
    holds, lost = FORMATS[format].holds, Counter(annotations.unread)
    masked = format != "yolo" or yolo.holds_masks(annotations)
    for record in annotations.records:
        lost["ignore"] += 0 if "ignore" in holds else int(record.ignore.sum())
        lost["label"] += 0 if "label" in holds else sum(map(bool, record.labels))
        lost["size"] += int("size" not in holds and record.size is not None)
        if record.joints is not None and record.visible is not None:
            known_joints = ~np.isnan(record.joints[:, :, 0])
            lost["joints"] += 0 if "joints" in holds else int(known_joints.any(axis=1).sum())
            hidden = (known_joints & (record.visible != 2)).any(axis=1)
            lost["visible"] += 0 if "visible" in holds else int(hidden.sum())
        masks = [mask for mask in full(record, "masks") if mask is not None]
        lost["mask"] += 0 if "mask" in holds and masked else len(masks)
        if format == "masks":
            lost["box"] += len(record) - len(masks)
        if not FORMATS[format].keeps:
            for more in full(record, "more"):
                lost.update(more.keys())
    return +lost
