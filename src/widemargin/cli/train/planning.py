"""How `widemargin train` learns: which solver, how many passes, and why so."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ...saving.checkpoints import FILE
from ...saving.tensorfile import read_arrays
from ...solvers import NAMES
from ..errors import UsageError
from ..reading.rows import Watched
from .options import STREAMING, is_kernel_machine, new_solver


@dataclass(frozen=True)
class Plan:
    """How `train` learns, and why so."""

    solver: str
    passes: int | None
    reason: str
    is_kernel: bool = False
    is_large: bool = False  # whether the data is too large for memory

    @property
    def is_streaming(self) -> bool:
        return self.solver in STREAMING or self.is_large


def make_plan(args: Any, stream: Watched) -> Plan:
    """The solver and the number of passes of a training run."""
    passes = None if args.passes in (None, "auto") else args.passes
    solver = args.solver
    if is_kernel_machine(args):
        return kernel_plan(args, stream, passes)
    if not stream.repeatable:
        check_pipe(args, stream)
        if solver == "auto":
            return Plan("streaming_dual", 1, "a pipe can be read only once")
        return Plan(solver, 1 if solver in STREAMING else passes, "as asked for")
    if args.resume and solver == "auto":
        solver = earlier_solver(args.checkpoint) or solver
        if solver != "auto":
            return Plan(solver, passes, "as the checkpoint has it")
    if solver == "functional_descent" and stream.memory > args.memory:
        reason = f"more than --memory {args.memory:g}: examples come in their order"
        return Plan(solver, passes or new_solver(args, solver).passes, reason, is_large=True)
    if solver != "auto":
        return Plan(solver, passes, "as asked for")
    if passes is not None:
        return Plan("streaming_dual", passes, f"passes over the data are limited to {passes}")
    needed = f"about {max(1, round(stream.memory)):,} MB in memory"
    if args.task in ("tag", "rank"):
        if stream.memory > args.memory:
            return Plan("streaming_dual", None, f"{needed}, more than --memory {args.memory:g}")
        return Plan("auto", None, f"all data is loaded, {needed}")
    if stream.memory > args.memory:
        return Plan("out_of_core", None, f"{needed}, more than --memory {args.memory:g}")
    if args.checkpoint:
        return Plan("out_of_core", None, "makes checkpoints and proves the gap over all data")
    return Plan("auto", None, f"all data is loaded, {needed}")


def earlier_solver(folder: str) -> str | None:
    """The solver of the run that is resumed, by name."""
    if not has_state(folder):
        return None
    solver = read_arrays(os.path.join(folder, FILE))[1].get("params", {}).get("solver")
    kind = solver.get("solver") if isinstance(solver, dict) else None
    return next((name for name in STREAMING if NAMES[name].__name__ == kind), None)


def has_state(folder: str) -> bool:
    """Whether a run can go on from this folder."""
    return os.path.exists(os.path.join(folder, FILE))


def kernel_plan(args: Any, stream: Watched, passes: int | None) -> Plan:
    """Kernel machines are learnt online: rows in random order where they fit into memory."""
    if args.passes == "auto" and args.verify is False:
        raise UsageError("--passes auto needs the gap, which --no-verify leaves out.")
    if not stream.repeatable:
        check_pipe(args, stream)
        return Plan(args.solver, 1, "a pipe is read once, in its order", True)
    needed = f"about {max(1, round(stream.memory)):,} MB in memory"
    if stream.memory > args.memory:
        reason = f"{needed}, more than --memory {args.memory:g}: the rows come in their order"
        return Plan(args.solver, passes, reason, True)
    return Plan(args.solver, passes, f"all data is loaded, {needed}; rows in random order", True)


def check_pipe(args: Any, stream: Watched) -> None:
    """Refuse options that need data which can be read again."""
    streaming = args.solver in ("auto", *STREAMING) or is_kernel_machine(args)
    impossible = {
        "--checkpoint": args.checkpoint is not None,
        "--resume": args.resume,
        "--verify": bool(args.verify) and streaming,
        f"--passes {args.passes}": args.passes not in (None, 1) and streaming,
        "--solver out_of_core": args.solver == "out_of_core" and args.passes == "auto",
    }
    asked = [name for name, is_asked in impossible.items() if is_asked]
    if asked:
        raise UsageError(
            f"{stream.name} can be read only once: {' and '.join(asked)} is impossible with a "
            "pipe. Save the data to a file first."
        )
