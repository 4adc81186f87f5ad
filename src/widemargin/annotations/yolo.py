"""YOLO: a text file for every image, a line for every object, relative to the size of the image.

    class cx cy w h                     a box
    class cx cy w h  x y v  x y v ...   with joints: `kpt_shape: [J, 3]` (or [J, 2]) in data.yaml
    class x y x y x y ...               a polygon

`data.yaml`, in the folder or above it, has the names of the classes; of YAML only its keys `names`
and `kpt_shape` are read. Sizes come from the images. A box is read to a millionth of a pixel, and
written with as many digits as it takes to be read as the same.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

from ..system.printable import path_words, printable
from ..system.replacing import replacing
from .names import by_stem, image_files, image_size, target_file
from .records import Annotated, AnnotationError, Annotations, Objects, Reading, full, needed_size
from .segments import Segment, bounds
from .texts import number

HOLDS = {"label", "size", "joints", "visible", "mask"}
#: Pixels are rounded to so many digits.
DIGITS = 6
MOST_DIGITS = 17


def read_yolo(path, reading: Reading, images=None, classes=None) -> Annotations:
    """All text files of a folder; their images are in `images`, or beside them."""
    root = Path(path)
    files = sorted(f for f in root.rglob("*.txt") if f.name != "classes.txt")
    names, joints = header(root)
    names = list(classes) if classes else names
    folder = found_images(root, images)
    known = by_stem(image_files(folder), folder)
    records = []
    for file in files:
        try:
            image = known.get(file.relative_to(root).with_suffix("").as_posix())
            if image is None:
                raise AnnotationError(f"{path_words(file)}: there is no image of this name.")
            records.append(read_file(file, image, folder, names, joints, reading))
        except AnnotationError as error:
            reading.refuse(str(error))
    return Annotations(records, list(names or []))


def found_images(root: Path, images) -> Path:
    """The folder of the images: as given, or `images` where the files are in `labels`."""
    if images is not None:
        return Path(images)
    parts = list(root.absolute().parts)
    if "labels" in parts:
        at = len(parts) - 1 - parts[::-1].index("labels")
        other = Path(*parts[:at], "images", *parts[at + 1 :])
        if other.is_dir():
            return other
    return root


def header(root: Path) -> tuple[list[str] | None, tuple[int, int] | None]:
    """(names of the classes, (J, 2 or 3)) of data.yaml in the folder or up to two above it."""
    for folder in (root, *root.absolute().parents[:2]):
        for file in (folder / "data.yaml", folder / "data.yml"):
            if file.is_file():
                return parse_header(file)
    return None, None


def parse_header(file: Path) -> tuple[list[str] | None, tuple[int, int] | None]:
    """The two keys of a data.yaml."""
    where = path_words(file)
    try:
        lines = file.read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        raise AnnotationError(f"{where}: not UTF-8 text.") from None
    names, shape = None, None
    for k, line in enumerate(lines):
        if match := re.fullmatch(r"names\s*:\s*(.*)", line):
            names = listed_names(match[1].strip(), lines[k + 1 :], f"{where}: line {k + 1}")
        elif match := re.fullmatch(r"kpt_shape\s*:\s*\[\s*(\d{1,4})\s*,\s*([23])\s*\].*", line):
            shape = int(match[1]), int(match[2])
    return names, shape


def listed_names(first: str, rest: list[str], where: str) -> list[str]:
    """Names as [a, b], as lines `- a`, or as lines `0: a`."""
    found: dict[int, str] = {}
    if first.startswith(("[", "{")):
        inner = first[1 : first.rfind("]" if first[0] == "[" else "}")]
        items = re.findall(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,"'])+""", inner)
        for item in (item.strip() for item in items if item.strip()):
            add_name(item, first[0] == "{", found, where)
        return ordered(found, where)
    for line in rest:
        if line.strip() and not line.strip().startswith("#"):
            match = re.fullmatch(r"\s+(.*)|(-\s.*)", line)
            if match is None:
                break
            item = (match[1] or match[2]).strip()
            is_list = item.startswith("-")
            add_name(item[1:].strip() if is_list else item, not is_list, found, where)
    return ordered(found, where)


def add_name(item: str, is_mapped: bool, found: dict[int, str], where: str) -> None:
    """One name, with its number before it where it has one."""
    place, shown = len(found), printable(repr(item))[:60]
    if is_mapped:
        match = re.fullmatch(r"(\d{1,6})\s*:\s*(.*)", item)
        if match is None:
            raise AnnotationError(f"{where}: names has the entry {shown}.")
        place, item = int(match[1]), match[2]
    if item.startswith('"'):
        try:
            item = json.loads(item)
        except ValueError:
            raise AnnotationError(
                f"{where}: names has the entry {printable(item)!r:.60}."
            ) from None
    elif item.startswith("'"):
        item = item[1:-1].replace("''", "'")
    found[place] = item


def ordered(found: dict[int, str], where: str) -> list[str]:
    """Names by number, without holes."""
    if sorted(found) != list(range(len(found))):
        raise AnnotationError(f"{where}: the numbers of names have holes.")
    return [found[k] for k in range(len(found))]


def read_file(file, image, folder, names, joints, reading: Reading) -> Annotated:
    """The record of one text file."""
    size = image_size(image)
    objects = Objects(reading, path_words(file), image.relative_to(folder).as_posix(), size)
    try:
        lines = file.read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        raise AnnotationError(f"{path_words(file)}: not UTF-8 text.") from None
    for k, line in enumerate(lines):
        place = f"{path_words(file)}: line {k + 1}"
        if line.strip():
            try:
                add_line(line.split(), objects, size, names, joints, place)
            except AnnotationError as error:
                reading.refuse(str(error))
    return objects.record()


def add_line(words, objects: Objects, size, names, joints, where: str) -> None:
    """One object."""
    if not words[0].isascii() or not words[0].isdecimal():
        shown = printable(words[0])[:40]
        raise AnnotationError(f"{where}: the class is {shown!r}; a number is needed.")
    label = words[0].lstrip("0") or "0"
    if names is not None:
        if len(label) > 6 or int(label) >= len(names):
            raise AnnotationError(f"{where}: class {label[:40]}; there are {len(names)} names.")
        label = names[int(label)]
    values = [number(word, f"{where}: entry {k + 2}") for k, word in enumerate(words[1:])]
    n_joints = joints[0] * joints[1] if joints else 0
    if len(values) == 4 + n_joints:
        points, visible = relative_joints(values[4:], joints, size)
        objects.add(from_relative(values[:4], size), label, False, points, visible)
    elif len(values) >= 6 and len(values) % 2 == 0 and not joints:
        sides = size * (len(values) // 2)
        polygon = tuple(round(v * s, DIGITS) for v, s in zip(values, sides, strict=True))
        mask = Segment(size, polygons=(polygon,))
        objects.add(bounds(mask), label, mask=mask)
    else:
        wanted = "" if joints else ", or a polygon"
        raise AnnotationError(f"{where}: {len(words)} entries; {5 + n_joints} are needed{wanted}.")


def from_relative(values, size) -> list[float]:
    """cx, cy, w, h as shares of the image into corners in pixels."""
    (cx, cy, w, h), (width, height) = values, size
    ends = [(cx - w / 2) * width, (cy - h / 2) * height]
    ends += [(cx + w / 2) * width, (cy + h / 2) * height]
    return [round(value, DIGITS) + 0.0 for value in ends]


def relative_joints(values, joints, size):
    """(joints, visibility) in pixels; (0, 0) with no visibility stands for unknown."""
    if not joints:
        return None, None
    rows = np.array(values).reshape(joints)
    points = np.round(rows[:, :2] * size, DIGITS)
    unknown = (rows == 0).all(axis=1)
    points[unknown] = np.nan
    seen = rows[:, 2] if joints[1] == 3 else np.where(unknown, 0, 2)
    return points, seen.astype(np.int8)


def write_yolo(annotations: Annotations, path) -> None:
    """A text file for every image, and data.yaml."""
    numbers = {name: k for k, name in enumerate(annotations.names)}
    records = annotations.records
    if any("" in record.labels for record in records):
        numbers.setdefault("", len(numbers))
    most = max((r.joints.shape[1] for r in records if r.joints is not None), default=0)
    with_masks = holds_masks(annotations)
    taken: dict[Path, str] = {}
    texts = {}
    for record in records:
        needed_size(record)
        file = target_file(path, record.path, ".txt", taken)
        lines = [
            object_line(record, k, numbers, most, with_masks)
            for k in range(len(record))
            if not record.ignore[k]
        ]
        texts[file] = "".join(f"{line}\n" for line in lines)
    words = "".join(f"  {k}: {json.dumps(name)}\n" for name, k in numbers.items())
    shape = f"kpt_shape: [{most}, 3]\n" if most else ""
    texts[Path(path) / "data.yaml"] = f"{shape}names:\n{words}"
    for file, text in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as out:
            out.write(text.encode())


def holds_masks(annotations: Annotations) -> bool:
    """Whether lines are polygons: where every object is one ring, and nothing has joints."""
    records = [record for record in annotations.records if len(record)]
    masks = [mask for record in records for mask in full(record, "masks")]
    rings = all(mask is not None and len(mask.polygons) == 1 for mask in masks)
    return bool(masks) and rings and all(record.joints is None for record in records)


def object_line(record: Annotated, k: int, numbers, most: int, with_masks: bool) -> str:
    """One object; `with_masks`: its polygon."""
    width, height = size = needed_size(record)
    words = [str(numbers[record.labels[k]])]
    if with_masks:
        (ring,) = full(record, "masks")[k].polygons
        sides = size * (len(ring) // 2)
        return " ".join(words + [share(v, s) for v, s in zip(ring, sides, strict=True)])
    x0, y0, x1, y1 = record.boxes[k].tolist()
    across, down = relative_span(x0, x1, width), relative_span(y0, y1, height)
    words += [across[0], down[0], across[1], down[1]]
    if most:
        joints, visible = np.full((most, 2), np.nan), np.zeros(most, np.int8)
        if record.joints is not None and record.visible is not None:
            joints[: record.joints.shape[1]] = record.joints[k]
            visible[: record.joints.shape[1]] = record.visible[k]
        for (x, y), seen in zip(joints.tolist(), visible.tolist(), strict=True):
            at = ["0", "0"] if x != x else [share(x, width), share(y, height)]
            words += [*at, str(seen)]
    return " ".join(words)


def share(value: float, side: int) -> str:
    """A coordinate as a share, with the fewest digits that are read as the same pixel."""
    for digits in range(DIGITS, MOST_DIGITS + 1):
        text = f"{value / side:.{digits}g}"
        if round(float(text) * side, DIGITS) == round(value, DIGITS):
            break
    return text


def relative_span(low: float, high: float, side: int) -> tuple[str, str]:
    """(centre, length) as shares, with the fewest digits that are read as the same ends."""
    ends = round(low, DIGITS), round(high, DIGITS)
    for digits in range(DIGITS, MOST_DIGITS + 1):
        centre, length = (
            f"{(low + high) / 2 / side:.{digits}g}",
            f"{(high - low) / side:.{digits}g}",
        )
        read = from_relative([float(centre), 0.0, float(length), 0.0], (side, 1))
        if (read[0], read[2]) == ends:
            break
    return centre, length
