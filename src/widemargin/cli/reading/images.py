"""Images and their annotations on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...annotations import Annotated, Annotations, read_annotations
from ...annotations.names import image_files
from ...estimators.images.reading import located
from ..errors import CommandError, UsageError

#: Formats that hold boxes.
BOX_FORMATS = ("voc", "coco", "yolo", "imglab", "csv")
#: Tasks whose inputs are images, and the formats that hold their truths.
IMAGE_TASKS = {
    "locate": BOX_FORMATS,
    "detect": BOX_FORMATS,
    "segment": ("masks", "coco"),
    "pose": ("parse", "coco", "yolo"),
}
#: Options of `train` that mean nothing to other tasks.
IMAGE_OPTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("images", "skip_bad_images"), tuple(IMAGE_TASKS)),
    **dict.fromkeys(("size", "neighbours", "void"), ("segment",)),
    **dict.fromkeys(("types", "rotations", "scales", "rounds"), ("pose",)),
}
#: What these formats hold.
TRUTHS = {"locate": "boxes", "detect": "boxes", "segment": "masks", "pose": "joints"}


def read_truths(
    args: Any, paths: list[str], task: str, names: list[str] | None = None
) -> Annotations:
    """Annotations of files or folders, with the places of their images.

    `names`: the only classes that count.
    """
    formats = IMAGE_TASKS[task]
    if args.format not in ("auto", *formats):
        have = f"{', '.join(formats)} have"
        raise UsageError(f"--format {args.format} has no {TRUTHS[task]}; {have}.")
    whole = Annotations([])
    for path in paths:
        found = read_annotations(
            path,
            args.format,
            images=args.images,
            classes=names,
            skip_bad=args.skip_bad_images,
        )
        folder = args.images or (path if os.path.isdir(path) else os.path.dirname(path) or ".")
        whole.records += located(found.records, folder)
        whole.skipped += found.skipped
        whole.skeleton = whole.skeleton or found.skeleton
    if not whole.records:
        raise CommandError(f"{paths[0]}: there are no images in it")
    if names:
        check_names(whole.records, names)
        whole.records = [with_classes(record, set(names)) for record in whole.records]
    return Annotations(whole.records, skeleton=whole.skeleton, skipped=whole.skipped)


def check_names(records: list[Annotated], names: list[str]) -> None:
    """Refuse a class that no object has."""
    known = {label for record in records for label in record.labels}
    strange = [name for name in names if name not in known]
    if strange:
        raise CommandError(
            f"--classes: no object is a {strange[0]!r}; there are {', '.join(sorted(known))}"
        )


def with_classes(record: Annotated, names: set[str]) -> Annotated:
    """The objects of these classes."""
    kept = [k for k, label in enumerate(record.labels) if label in names]
    return Annotated(
        record.path,
        record.size,
        record.boxes[kept],
        [record.labels[k] for k in kept],
        record.ignore[kept],
    )


def output_kind(args: Any, formats: tuple[str, ...], whole: tuple[str, ...]) -> str:
    """The format of predictions; those in `whole` are one file or folder for all images."""
    kind = "json" if args.format == "auto" else args.format
    if kind not in ("json", *formats):
        raise UsageError(f"--format {kind} is not for this model; json, {', '.join(formats)} are.")
    for name in ("scores", "margins", "kbest", "unlabelled", "ignore_new_features"):
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} is not for models of images.")
    if kind in whole and args.output is None:
        raise UsageError(f"--format {kind} is a file or a folder for all images: name it, -o OUT.")
    if args.draw:
        os.makedirs(args.draw, exist_ok=True)
    return kind


def image_paths(data: list[str], lines: Iterator[str]) -> Iterator[str]:
    """Images by name, of folders and of lines of standard input."""
    for name in data:
        if name == "-":
            yield from (line.rstrip("\r\n") for line in lines if line.strip())
        elif os.path.isdir(name):
            files = image_files(Path(name))
            if not files:
                raise CommandError(f"{name}: there are no images in it")
            yield from map(str, files)
        else:
            yield name
