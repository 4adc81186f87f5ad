"""PASCAL VOC: a folder with an XML file for every image, boxes 1-based with both ends included."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from ..system.printable import path_words, printable
from ..system.replacing import replacing
from .names import target_file
from .records import Annotated, AnnotationError, Annotations, Objects, Reading, checked_size, full
from .texts import Node, as_text, number, parse_xml, xml_text

#: Entries of a box, and by how much each differs from ours.
CORNERS = {"xmin": "-1", "ymin": "-1", "xmax": "0", "ymax": "0"}
KNOWN = {"name", "difficult", "bndbox"}
#: The entries of our objects that this format holds.
HOLDS = {"label", "ignore", "size"}


def read_voc(path, reading: Reading, **options) -> Annotations:
    """All XML files of a folder and its folders, or one file."""
    root = Path(path)
    files = sorted(root.rglob("*.xml")) if root.is_dir() else [root]
    folder = root if root.is_dir() else root.parent
    records = []
    for file in files:
        try:
            records.append(read_file(file, folder, reading))
        except AnnotationError as error:
            reading.refuse(str(error))
    return Annotations(records)


def read_file(file: Path, folder: Path, reading: Reading) -> Annotated:
    """The record of one XML file."""
    root, where = parse_xml(file), path_words(file)
    if root.tag != "annotation":
        raise AnnotationError(f"{where}: the root is <{printable(root.tag)}>, not <annotation>.")
    name = root.word("filename") or file.with_suffix(".jpg").name
    within = file.parent.relative_to(folder).as_posix()
    image = (PurePosixPath(within) / name.replace("\\", "/").split("/")[-1]).as_posix()
    node, size = root.child("size"), None
    if node is not None:
        sides = (number(node.word(side), f"{where}: {side}") for side in ("width", "height"))
        size = checked_size(sides, where)
    objects = Objects(reading, where, image, size)
    for child in root.children:
        if child.tag == "object":
            add_object(child, objects, where)
    return objects.record()


def add_object(node: Node, objects: Objects, where: str) -> None:
    """One <object>."""
    place = f"{where}: line {node.line}"
    corners = node.child("bndbox")
    if corners is None:
        objects.reading.refuse(f"{place}: an object has no bndbox.")
        return
    try:
        box = [number(corners.word(c), f"{place}: {c}", s) for c, s in CORNERS.items()]
    except AnnotationError as error:
        objects.reading.refuse(str(error))
        return
    more = {}
    for child in node.children:
        if child.children and child.tag not in KNOWN:
            objects.reading.unread[child.tag] += 1
        elif child.tag not in KNOWN:
            more[child.tag] = child.text.strip()
    objects.add(box, node.word("name"), node.word("difficult") == "1", more=more)


def write_voc(annotations: Annotations, path) -> None:
    """A file for every image."""
    taken: dict[Path, str] = {}
    texts = [
        (target_file(path, record.path, ".xml", taken), file_text(record))
        for record in annotations.records
    ]
    for file, text in texts:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as out:
            out.write(text.encode())


def file_text(record: Annotated) -> str:
    """The XML of one image."""
    where = path_words(record.path)
    name = xml_text(PurePosixPath(record.path).name, where)
    lines = ["<annotation>", f"  <filename>{name}</filename>"]
    if record.size is not None:
        width, height = record.size
        sides = f"<width>{width}</width><height>{height}</height><depth>3</depth>"
        lines.append(f"  <size>{sides}</size>")
    for k, more in enumerate(full(record, "more")):
        corners = zip(CORNERS.items(), record.boxes[k].tolist(), strict=True)
        numbers = (f"<{c}>{as_text(v, s.lstrip('-'))}</{c}>" for (c, s), v in corners)
        lines += ["  <object>", f"    <name>{xml_text(record.labels[k], where)}</name>"]
        lines += [f"    <{tag}>{xml_text(v, where)}</{tag}>" for tag, v in more.items()]
        lines.append(f"    <difficult>{int(record.ignore[k])}</difficult>")
        lines += [f"    <bndbox>{''.join(numbers)}</bndbox>", "  </object>"]
    return "\n".join([*lines, "</annotation>", ""])
