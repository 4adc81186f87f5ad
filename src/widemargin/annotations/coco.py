"""COCO JSON: one file; boxes x, y, width, height; keypoints; polygons and run lengths."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..system.printable import path_words, printable
from ..system.replacing import replacing
from .records import Annotated, AnnotationError, Annotations, Objects, Reading, checked_size, full
from .segments import Segment, bounds, checked_counts, counts_as_text, counts_from_text
from .texts import as_number, number, parse_json, total

HOLDS = {"label", "ignore", "size", "joints", "visible", "mask"}
KNOWN = {"image_id", "category_id", "bbox", "iscrowd", "keypoints", "num_keypoints", "segmentation"}
#: Entries that are worked out again.
DERIVED = {"id", "area"}


def read_coco(path, reading: Reading, **options) -> Annotations:
    """The records of a file, in the order of its images."""
    where = path_words(path)
    root = parse_json(path)
    if not isinstance(root, dict) or not {"images", "annotations"} <= root.keys():
        raise AnnotationError(f"{where}: not a COCO file: no images and annotations.")
    names, joint_names, skeleton = categories(root.get("categories", []), where)
    images = {}
    for k, entry in enumerate(listed(root["images"], f"{where}: images")):
        images[known(entry, "id", f"{where}: image {k + 1}")] = image_objects(
            entry, f"{where}: image {k + 1}", reading
        )
    for k, entry in enumerate(listed(root["annotations"], f"{where}: annotations")):
        place = f"{where}: annotation {k + 1}"
        try:
            objects = images.get(known(entry, "image_id", place))
            label = names.get(known(entry, "category_id", place))
            if objects is None or label is None:
                kind = "image_id" if objects is None else "category_id"
                raise AnnotationError(f"{place}: there is no {kind} {entry[kind]!r}.")
            add_object(entry, objects, label, f"{place} of {objects.path}")
        except AnnotationError as error:
            reading.refuse(str(error))
    records = [objects.record() for objects in images.values()]
    return Annotations(records, list(names.values()), joint_names, skeleton)


def listed(value: Any, where: str) -> list:
    """A list of objects of JSON."""
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise AnnotationError(f"{where} must be a list of objects.")
    return value


def known(entry: dict, key: str, where: str) -> Any:
    """The identity in an entry."""
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise AnnotationError(f"{where}: {key} is {printable(repr(value))[:40]}.")
    return value


def categories(entries: Any, where: str) -> tuple[dict, list[str] | None, list | None]:
    """(names by number, names of joints, limbs)."""
    names, joint_names, skeleton = {}, None, None
    for k, entry in enumerate(listed(entries, f"{where}: categories")):
        place = f"{where}: category {k + 1}"
        name = entry.get("name")
        if not isinstance(name, str):
            raise AnnotationError(f"{place}: it has no name.")
        names[known(entry, "id", place)] = name
        if "keypoints" in entry:
            joint_names = [str(joint) for joint in entry["keypoints"]]
            limbs = entry.get("skeleton") or []
            try:
                skeleton = [(int(a) - 1, int(b) - 1) for a, b in limbs]
            except (TypeError, ValueError):
                raise AnnotationError(f"{place}: the skeleton is no list of pairs.") from None
    return names, joint_names, skeleton


def image_objects(entry: dict, where: str, reading: Reading) -> Objects:
    """An image without objects yet."""
    name = entry.get("file_name")
    if not isinstance(name, str) or not name:
        raise AnnotationError(f"{where}: it has no file_name.")
    size = None
    if "width" in entry and "height" in entry:
        sides = (number(entry[side], f"{where}: {side}") for side in ("width", "height"))
        size = checked_size(sides, where)
    return Objects(reading, f"{where} ({printable(name)})", name, size)


def add_object(entry: dict, objects: Objects, label: str, where: str) -> None:
    """One annotation."""
    mask = segment(entry.get("segmentation"), objects.size, where)
    given = entry.get("bbox")
    if given is None and mask is not None:
        box: list[float] = list(bounds(mask))
    else:
        if not isinstance(given, list) or len(given) != 4:
            raise AnnotationError(f"{where}: bbox must be a list of four numbers.")
        x, y, w, h = (number(value, f"{where}: bbox") for value in given)
        box = [x, y, total(x, w), total(y, h)]
    joints, visible = keypoints(entry.get("keypoints"), where)
    more = {}
    for key, value in entry.items():
        if key in KNOWN or key in DERIVED:
            continue
        if isinstance(value, str | int | float):
            more[key] = json.dumps(value)
        else:
            objects.reading.unread[key] += 1
    crowd = bool(entry.get("iscrowd", 0))
    objects.add(box, label, crowd, joints, visible, mask, more)


def keypoints(values: Any, where: str) -> tuple[np.ndarray | None, np.ndarray | None]:
    """(joints, visibility) of x, y, v, x, y, v, ...; 0, 0, 0 stands for unknown."""
    if values is None:
        return None, None
    if not isinstance(values, list) or len(values) % 3:
        raise AnnotationError(f"{where}: keypoints must be a list of x, y, v.")
    rows = np.array([number(v, f"{where}: keypoints") for v in values]).reshape(-1, 3)
    if not np.isin(rows[:, 2], (0, 1, 2)).all():
        raise AnnotationError(f"{where}: a keypoint has a visibility other than 0, 1, 2.")
    unknown = (rows == 0).all(axis=1)
    joints = np.array([[total(x, 0.5), total(y, 0.5)] for x, y in rows[:, :2].tolist()])
    joints = joints.reshape(-1, 2)
    joints[unknown] = np.nan
    return joints, rows[:, 2].astype(np.int8)


def segment(value: Any, size: tuple[int, int] | None, where: str) -> Segment | None:
    """The mask of an annotation."""
    if not value:
        return None
    if size is None:
        raise AnnotationError(f"{where}: a segmentation needs the size of its image.")
    try:
        if isinstance(value, list):
            return Segment(size, polygons=tuple(polygon(p, where) for p in value))
        if value["size"] != [size[1], size[0]]:
            raise ValueError(f"its size is {value['size']}, not {[size[1], size[0]]}")
        counts, is_text = value["counts"], isinstance(value["counts"], str)
        if is_text:
            counts = counts_from_text(counts)
        return Segment(size, counts=checked_counts(counts, size), is_text=is_text)
    except (TypeError, KeyError, ValueError) as error:
        if isinstance(error, AnnotationError):
            raise
        words = str(error) if isinstance(error, ValueError) else "neither polygons nor run lengths"
        raise AnnotationError(f"{where}: segmentation: {words}.") from None


def polygon(values: Any, where: str) -> tuple[float, ...]:
    """One ring of points."""
    if not isinstance(values, list) or len(values) < 6 or len(values) % 2:
        raise AnnotationError(f"{where}: a polygon has fewer than three points.")
    return tuple(number(v, f"{where}: polygon") for v in values)


def write_coco(annotations: Annotations, path) -> None:
    """One file."""
    numbers = {name: k + 1 for k, name in enumerate(annotations.names)}
    if any("" in record.labels for record in annotations.records):
        numbers.setdefault("", len(numbers) + 1)
    kinds: list[dict] = [{"id": k, "name": name} for name, k in numbers.items()]
    if any(record.joints is not None for record in annotations.records):
        most = max(r.joints.shape[1] for r in annotations.records if r.joints is not None)
        joint_names = annotations.joint_names or [f"joint {k + 1}" for k in range(most)]
        limbs = [[a + 1, b + 1] for a, b in annotations.skeleton or []]
        for kind in kinds:
            kind |= {"keypoints": joint_names, "skeleton": limbs}
    images: list[dict] = []
    entries: list[dict] = []
    for i, record in enumerate(annotations.records):
        image: dict = {"id": i + 1, "file_name": record.path}
        if record.size is not None:
            image |= {"width": record.size[0], "height": record.size[1]}
        images.append(image)
        for k in range(len(record)):
            own = {"id": len(entries) + 1, "image_id": i + 1}
            entries.append(own | written(record, k, numbers))
    root = {"images": images, "annotations": entries, "categories": kinds}
    with replacing(path) as out:
        out.write(json.dumps(root, allow_nan=False).encode() + b"\n")


def written(record: Annotated, k: int, numbers: dict[str, int]) -> dict[str, Any]:
    """One object as an annotation."""
    x0, y0, x1, y1 = record.boxes[k].tolist()
    w, h = total(x1, x0, -1), total(y1, y0, -1)
    entry: dict[str, Any] = {
        "category_id": numbers[record.labels[k]],
        "bbox": [as_number(value) for value in (x0, y0, w, h)],
        "area": as_number(w * h),
        "iscrowd": int(record.ignore[k]),
    }
    mask = full(record, "masks")[k]
    if mask is not None:
        entry["segmentation"], entry["area"] = written_segment(mask), int(mask.to_array().sum())
    if record.joints is not None and record.visible is not None:
        points = zip(record.joints[k].tolist(), record.visible[k].tolist(), strict=True)
        flat: list = []
        for (x, y), seen in points:
            at = [0, 0] if x != x else [as_number(total(v, 0.5, -1)) for v in (x, y)]
            flat += [*at, seen]
        entry |= {"keypoints": flat, "num_keypoints": int((record.visible[k] > 0).sum())}
    more = full(record, "more")[k]
    return entry | {key: from_text(value) for key, value in more.items()}


def from_text(text: str) -> Any:
    """A further entry: what was a number is one again."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def written_segment(mask: Segment) -> Any:
    """A mask as it was read."""
    if mask.polygons:
        return [[as_number(v) for v in polygon] for polygon in mask.polygons]
    counts: Any = counts_as_text(mask.counts) if mask.is_text else list(mask.counts)
    return {"size": [mask.size[1], mask.size[0]], "counts": counts}
