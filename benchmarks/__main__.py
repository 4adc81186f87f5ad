"""python -m benchmarks [NAME ...]; without names all but those of ON_REQUEST.

These take minutes, memory3gb also 8 GB of disk in TMPDIR; of the kernel machines lasvm_short,
larank_short and functional_descent_time are what runs unasked. svmd writes docs/results/svmd.md
anew; `python -m benchmarks.svmd SECTION` a part of it.
"""

from __future__ import annotations

import argparse
import os
import sys

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is loaded

ON_REQUEST = (
    "chunk_choices",
    "images",
    "shapes",
    "labels",
    "memory3gb",
    "lasvm",
    "larank",
    "larank_mnist",
    "svmd",
    "maps",
    "functional_descent",
    "functional_descent_planes",
    "defaults",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="which ones; all but those that take minutes by default"
    )
    parser.add_argument("--repeats", type=int, default=5, help="interleaved repetitions")
    parser.add_argument("--gigabytes", type=float, default=3.0, help="of memory3gb")
    args = parser.parse_args()

    from . import (
        chunking,
        costs,
        defaults,
        functional_descent,
        functional_descent_planes,
        images,
        labels,
        larank,
        lasvm,
        latent,
        linear,
        maps,
        parsing,
        places,
        proofs,
        ranking,
        sequence_files,
        sequences,
        shapes,
        streaming,
        svmd,
    )

    known = {
        "binary": lambda: linear.binary(args.repeats),
        "multiclass": lambda: linear.multiclass(args.repeats),
        "startup": costs.startup,
        "memory": costs.memory,
        "passes": lambda: costs.pass_time(min(args.repeats, 3)),
        "parsing": lambda: parsing.run(args.repeats),
        "places": lambda: places.run(min(args.repeats, 3)),
        "proofs": lambda: proofs.proofs(min(args.repeats, 3)),
        "ranking": ranking.run,
        "letters": lambda: sequences.letters(min(args.repeats, 2)),
        "chunking": lambda: chunking.run(min(args.repeats, 2)),
        "chunk_memory": chunking.memory,
        "chunk_choices": chunking.choices,
        "sequence_files": lambda: sequence_files.run(args.repeats),
        "rivals": lambda: streaming.rivals(min(args.repeats, 3)),
        "latent": latent.latent,
        "threads": latent.threads,
        "labels": labels.run,
        "images": lambda: images.run(min(args.repeats, 3)),
        "shapes": shapes.run,
        "lasvm_short": lasvm.short,
        "larank_short": lambda: larank.short(min(args.repeats, 3)),
        "functional_descent_time": lambda: functional_descent.seconds(min(args.repeats, 2)),
        "lasvm": lambda: lasvm.lasvm(min(args.repeats, 2)),
        "larank": larank.run,
        "larank_mnist": lambda: larank.run(("mnist",)),
        "svmd": svmd.run,
        "functional_descent": functional_descent.run,
        "functional_descent_planes": lambda: functional_descent_planes.run(args.repeats),
        "defaults": defaults.run,
        "maps": lambda: maps.run(min(args.repeats, 2)),
        "memory3gb": lambda: streaming.memory3gb(args.gigabytes),
    }
    unknown = [name for name in args.names if name not in known]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(known)}")
    print("One thread; interleaved; least time of the repetitions; ratio > 1: ours is faster.")
    for name in args.names or [name for name in known if name not in ON_REQUEST]:
        try:
            print(known[name](), flush=True)
        except FileNotFoundError as error:
            print(f"\n{name}: skipped, the data is not here: {error}", flush=True)
        except ModuleNotFoundError as error:
            print(f"\n{name}: skipped, a peer is not installed: {error}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
