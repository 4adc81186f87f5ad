"""`widemargin convert` and `widemargin demo`."""

from __future__ import annotations

from typing import Any

from ..streams import Prefetched, write_svmlight
from ..streams.opening import ARROW_ENDINGS
from ..streams.svmlight.writer import written
from .errors import NEEDS_ARROW, CommandError, UsageError
from .reading.rows import check_output, naming, open_data
from .show.speaking import give, say
from .show.words import many

#: So many of the images that are left out are named.
SHOWN = 5


def convert(args: Any) -> int:
    """`widemargin convert`: data in another format."""
    if args.to is not None:
        return convert_annotations(args)
    for name in ("source", "images", "names", "skip_bad_images"):
        if getattr(args, name):
            option = "from" if name == "source" else name.replace("_", "-")
            raise UsageError(f"--{option} is for annotations of images; name their format, --to.")
    if args.output != "-":
        check_output(args.output, inputs=args.data)
    stream = open_data(args, args.data)
    reader = Prefetched(stream)
    if args.output == "-":
        n_rows = print_rows(reader, 0 if args.to_zero_based else 1)
    else:
        with naming(args.output):
            n_rows = write_rows(reader, args.output, args.to_zero_based)
    if not args.quiet:
        say(f"{many(n_rows, 'rows')} in {args.output}")
    return 0


def convert_annotations(args: Any) -> int:
    """Annotations of images in another format; what it cannot hold is told."""
    from ..annotations import read_annotations, write_annotations

    if len(args.data) > 1:
        raise UsageError("annotations are converted one file or folder at a time.")
    found = read_annotations(
        args.data[0],
        args.source or "auto",
        images=args.images,
        classes=args.names.split(",") if args.names else None,
        skip_bad=args.skip_bad_images,
    )
    lost = write_annotations(found, args.output, args.to)
    if not args.quiet:
        boxes = sum(map(len, found.records))
        say(f"{many(len(found), 'images')} with {many(boxes, 'objects')} in {args.output}")
        for text in found.skipped[:SHOWN]:
            say(f"left out: {text}")
    if len(found.skipped) > (0 if args.quiet else SHOWN):
        say(f"{many(len(found.skipped), 'images or boxes')} left out in all")
    if lost:
        words = ", ".join(f"{name} ({count:,})" for name, count in sorted(lost.items()))
        say(f"warning: {args.to} cannot hold, and has lost: {words}")
    return 0


def write_rows(stream: Any, path: str, zero_based: bool) -> int:
    """A file whose format goes by its ending."""
    if not path.lower().endswith(ARROW_ENDINGS):
        return write_svmlight(stream, path, zero_based=zero_based)
    try:
        from ..streams.arrow.writer import write_arrow

        return write_arrow(stream, path)
    except ImportError:
        raise CommandError(f"{path}: {NEEDS_ARROW}") from None


def print_rows(stream: Any, base: int) -> int:
    """Write a stream to standard output as svmlight text."""
    n_rows = 0
    for chunk in stream.chunks():
        give(written(chunk, base))
        n_rows += chunk.size
    return n_rows


def demo(args: Any) -> int:
    """The command: the program of `make demo`."""
    try:
        from .demo import main
    except ImportError as error:
        raise CommandError(f"the demo needs {error.name}: pip install widemargin[plot]") from None
    main(["--output", args.output])
    return 0
