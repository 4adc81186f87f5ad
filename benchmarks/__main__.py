"""python -m benchmarks [binary] [multiclass] [startup] [memory] [passes] [economy]"""

from __future__ import annotations

import argparse
import os
import sys

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is loaded


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="which ones; all by default")
    parser.add_argument("--repeats", type=int, default=5, help="interleaved repetitions")
    args = parser.parse_args()

    from . import costs, linear

    known = {
        "binary": lambda: linear.binary(args.repeats),
        "multiclass": lambda: linear.multiclass(args.repeats),
        "startup": costs.startup,
        "memory": costs.memory,
        "passes": lambda: costs.pass_time(min(args.repeats, 3)),
        "economy": costs.economy,
    }
    unknown = [name for name in args.names if name not in known]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(known)}")
    print("One thread; interleaved; least time of the repetitions; ratio > 1: ours is faster.")
    for name in args.names or known:
        try:
            print(known[name](), flush=True)
        except FileNotFoundError as error:
            print(f"\n{name}: skipped, the data is not here: {error}", flush=True)
        except ModuleNotFoundError as error:
            print(f"\n{name}: skipped, a peer is not installed: {error}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
