"""Boxes as a table of comma-separated values; the names of its columns say how boxes are meant.

columns                      boxes
x0, y0, x1, y1               0-based, right and lower end excluded: ours, and what is written
xmin, ymin, xmax, ymax       1-based, both ends included, as in PASCAL VOC
x, y, w, h                   0-based corner, width and height

Further columns: image (or file, filename, path), label (or class, name), ignore (or difficult),
width and height of the image. A row without a box is an image without objects.
"""

from __future__ import annotations

import csv
import io

from ..system.printable import path_words, printable
from ..system.replacing import replacing
from .records import AnnotationError, Annotations, Objects, Reading, checked_size, full
from .texts import as_text, number, total

HOLDS = {"label", "ignore", "size"}
IMAGE = ("image", "file", "filename", "path")
LABEL = ("label", "class", "name")
IGNORE = ("ignore", "difficult")
#: Columns of a box, and shifts of their numbers.
CORNERS = {
    ("x0", "y0", "x1", "y1"): ("0", "0", "0", "0"),
    ("xmin", "ymin", "xmax", "ymax"): ("-1", "-1", "0", "0"),
    ("x", "y", "w", "h"): ("0", "0", "0", "0"),
}
OURS = ["image", "width", "height", "x0", "y0", "x1", "y1", "label", "ignore"]


def read_csv(path, reading: Reading, **options) -> Annotations:
    """All rows, by images in the order of appearance."""
    where = path_words(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file, strict=True)
            header = [name.strip() for name in table.fieldnames or ()]
            table.fieldnames = header
            columns = next((c for c in CORNERS if set(c) <= set(header)), None)
            image = next((c for c in IMAGE if c in header), None)
            if columns is None or image is None:
                raise AnnotationError(
                    f"{where}: columns 'image' and x0, y0, x1, y1 (or xmin, ymin, xmax, ymax; or "
                    f"x, y, w, h) are needed; it has {printable(', '.join(header))[:100]}."
                )
            images: dict[str, Objects] = {}
            for row in table:
                try:
                    add_row(row, columns, image, f"{where}: line {table.line_num}", images, reading)
                except AnnotationError as error:
                    reading.refuse(str(error))
    except UnicodeDecodeError:
        raise AnnotationError(f"{where}: not UTF-8 text.") from None
    except csv.Error as error:
        raise AnnotationError(f"{where}: {error}.") from None
    return Annotations([objects.record() for objects in images.values()])


def add_row(row: dict, columns, image: str, where: str, images: dict, reading: Reading) -> None:
    """One row."""
    name = row[image]
    if not name or None in row or None in row.values():
        raise AnnotationError(f"{where}: not as many entries as the header, or no image.")
    size = None
    if row.get("width") and row.get("height"):
        sides = (number(row[side], f"{where}: {side}") for side in ("width", "height"))
        size = checked_size(sides, where)
    objects = images.setdefault(name, Objects(reading, where, name, size))
    if objects.size != size:
        raise AnnotationError(f"{where}: {printable(name)} has two sizes.")
    objects.where = f"{where} ({printable(name)})"
    if not any(row[c].strip() for c in columns):
        return
    shifts = zip(columns, CORNERS[columns], strict=True)
    box = [number(row[c], f"{where}: {c}", shift) for c, shift in shifts]
    if columns[2] == "w":
        box[2:] = [total(box[0], box[2]), total(box[1], box[3])]
    label = next((row[c] for c in LABEL if c in row), "")
    ignored = next((row[c].strip() for c in IGNORE if c in row), "0")
    objects.add(box, label, ignored.lower() in ("1", "true", "yes"))


def write_csv(annotations: Annotations, path) -> None:
    """One file."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(OURS)
    for record in annotations.records:
        size = record.size or ("", "")
        for k in range(len(full(record, "more"))):
            box = [as_text(value) for value in record.boxes[k]]
            table.writerow([record.path, *size, *box, record.labels[k], int(record.ignore[k])])
        if not len(record):
            table.writerow([record.path, *size, "", "", "", "", "", ""])
    with replacing(path) as out:
        out.write(text.getvalue().encode())
