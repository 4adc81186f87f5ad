"""The command `widemargin`: arguments, errors and exit codes. Nothing heavy is imported here."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module

from ..system.platform import INTERRUPTED, TERMINATED, hard_termination
from .arguments import build_parser
from .errors import CommandError, UsageError, as_message
from .show.speaking import say


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code.

    Examples
    --------
    >>> main(["--version"])
    widemargin 0.1.0
    0
    """
    with hard_termination() as was_asked:
        code = run(argv)
        return TERMINATED if code == INTERRUPTED and was_asked() else code


def run(argv: list[str] | None) -> int:
    """The exit code of a command; whatever went wrong is told."""
    debug = os.environ.get("WIDEMARGIN_DEBUG", "") not in ("", "0")
    known = None
    try:
        args = build_parser().parse_args(argv)
        known = vars(args)
        module, function = args.run.split(":")
        with spoken_warnings(getattr(args, "quiet", False)):
            code = getattr(import_module(f".{module}", __package__), function)(args)
        sys.stdout.flush()
    except SystemExit as leaving:  # argparse: --help, or wrong usage
        return leaving.code if isinstance(leaving.code, int) else 2
    except BrokenPipeError:  # whoever read our output has enough, as in `| head`
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except UsageError as error:
        say(f"error: {error}")
        return 2
    except Exception as error:  # one clean line, whatever it was
        if debug:
            raise
        say(f"error: {as_message(error, known)}")
        if not isinstance(error, (CommandError, ValueError, OSError, MemoryError)):
            say("this looks like a bug; WIDEMARGIN_DEBUG=1 shows where it happened")
        return 1
    return int(code or 0)


@contextlib.contextmanager
def spoken_warnings(quiet: bool) -> Iterator[None]:
    """Warnings as lines of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if quiet else "default")
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {as_message(message)}")
        yield


if __name__ == "__main__":
    sys.exit(main())
