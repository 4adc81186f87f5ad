"""imglab XML, which dlib reads: one file; boxes left, top, width, height; parts by name."""

from __future__ import annotations

import numpy as np

from ..system.printable import path_words, printable
from ..system.replacing import replacing
from .records import Annotated, AnnotationError, Annotations, Objects, Reading, checked_size, full
from .texts import Node, as_text, number, parse_xml, total, xml_text

HOLDS = {"label", "ignore", "size", "joints"}
KNOWN = {"left", "top", "width", "height", "ignore"}


def read_imglab(path, reading: Reading, **options) -> Annotations:
    """All images of a file."""
    where, root = path_words(path), parse_xml(path)
    images = root.child("images")
    if root.tag != "dataset" or images is None:
        raise AnnotationError(f"{where}: not a file of imglab: no <dataset> with <images>.")
    boxes = [box for image in images.children for box in image.children if box.tag == "box"]
    parts = (part for box in boxes for part in box.children if part.tag == "part")
    names = list(dict.fromkeys(part.attributes.get("name", "") for part in parts))
    if all(name.isdecimal() for name in names):
        names.sort(key=int)
    records = []
    for image in images.children:
        try:
            records.append(read_image(image, names, where, reading))
        except AnnotationError as error:
            reading.refuse(str(error))
    return Annotations(records, joint_names=names or None)


def read_image(image: Node, names: list[str], where: str, reading: Reading) -> Annotated:
    """One <image>."""
    place = f"{where}: line {image.line}"
    file = image.attributes.get("file", "")
    if not file:
        raise AnnotationError(f"{place}: an image has no file.")
    size = None
    if {"width", "height"} <= image.attributes.keys():
        sides = (number(image.attributes[s], f"{place}: {s}") for s in ("width", "height"))
        size = checked_size(sides, place)
    objects = Objects(reading, f"{place} ({printable(file)})", file, size)
    for box in image.children:
        if box.tag == "box":
            try:
                add_box(box, names, objects, where)
            except AnnotationError as error:
                reading.refuse(str(error))
    return objects.record()


def add_box(node: Node, names: list[str], objects: Objects, where: str) -> None:
    """One <box>."""
    place, given = f"{where}: line {node.line}", node.attributes
    sides = ("left", "top", "width", "height")
    left, top, width, height = (number(given.get(s), f"{place}: {s}") for s in sides)
    joints = None
    if names:
        joints = np.full((len(names), 2), np.nan)
        for part in node.children:
            if part.tag == "part":
                at = (number(part.attributes.get(c), f"{place}: {c}", "0.5") for c in ("x", "y"))
                joints[names.index(part.attributes.get("name", ""))] = list(at)
    visible = None if joints is None else np.where(np.isnan(joints[:, 0]), 0, 2)
    more = {key: value for key, value in given.items() if key not in KNOWN}
    box = [left, top, total(left, width), total(top, height)]
    ignored = given.get("ignore", "0") not in ("0", "false")
    objects.add(box, node.word("label"), ignored, joints, visible, more=more)


def write_imglab(annotations: Annotations, path) -> None:
    """One file."""
    lines = ["<?xml version='1.0' encoding='UTF-8'?>", "<dataset>", "<images>"]
    for record in annotations.records:
        lines += image_lines(record, annotations.joint_names)
    lines += ["</images>", "</dataset>", ""]
    with replacing(path) as out:
        out.write("\n".join(lines).encode())


def image_lines(record: Annotated, joint_names: list[str] | None) -> list[str]:
    """One image with its boxes."""
    where = path_words(record.path)
    size = record.size and f" width='{record.size[0]}' height='{record.size[1]}'"
    lines = [f'  <image file="{xml_text(record.path, where)}"{size or ""}>']
    for k, more in enumerate(full(record, "more")):
        x0, y0, x1, y1 = record.boxes[k].tolist()
        sides = {"top": y0, "left": x0, "width": total(x1, x0, -1), "height": total(y1, y0, -1)}
        given = {side: as_text(value) for side, value in sides.items()} | more
        if record.ignore[k]:
            given["ignore"] = "1"
        shown = " ".join(f'{key}="{xml_text(value, where)}"' for key, value in given.items())
        inner = f"<label>{xml_text(record.labels[k], where)}</label>" if record.labels[k] else ""
        if record.joints is not None:
            names = joint_names or [f"{j}" for j in range(record.joints.shape[1])]
            for name, (x, y) in zip(names, record.joints[k].tolist(), strict=False):
                if x == x:
                    at = f'x="{as_text(x, "-0.5")}" y="{as_text(y, "-0.5")}"'
                    inner += f'<part name="{xml_text(name, where)}" {at}/>'
        lines.append(f"    <box {shown}>{inner}</box>" if inner else f"    <box {shown}/>")
    return [*lines, "  </image>"]
