"""Random campaigns against the library, in child processes.

Without --seed or --sample the campaigns go on where earlier runs stopped, until each has the number
of trials that it asks for; results are kept in a file. `python -m audits NAME --seed N` repeats one
trial, and keeps nothing.
"""

from __future__ import annotations

import argparse
import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from .campaigns import Campaign, discover
from .results import Result, Results
from .running import run

ROOT = Path(__file__).parents[1]
#: Of a sample, where --seconds is not given.
SAMPLE_SECONDS = 150.0


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m audits", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="campaigns; all by default")
    parser.add_argument("--seed", type=int, help="the first seed; alone: this one trial")
    parser.add_argument("--trials", type=int, help="at most so many of each campaign in this run")
    parser.add_argument("--seconds", type=float, help="of all campaigns together")
    parser.add_argument(
        "--sample", action="store_true", help="seeds from the hash of the commit; keeps nothing"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds of a trial")
    parser.add_argument(
        "--any-sources", action="store_true", help="trials of other sources count, too"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "audit-output")
    args = parser.parse_args(argv)
    if args.sample and args.seed is not None:
        parser.error("--sample takes its seeds from the commit; drop --seed.")
    for name in ("trials", "workers", "seconds", "timeout"):
        if getattr(args, name) is not None and getattr(args, name) <= 0:
            parser.error(f"--{name} must be above 0.")
    return args


def main(argv: list[str] | None = None, package: str = "audits") -> int:
    """Run the command; 1 where something was found, else 0."""
    args = parse(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # children lead sessions of their own
    known = discover(package)
    unknown = [name for name in args.names if name not in known]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; known are {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[name] for name in args.names or known]
    if args.sample:
        return sample(chosen, args, package)
    if args.seed is not None:
        return repeat(chosen, args, package)
    return go_on(chosen, args, package)


def repeat(chosen: list[Campaign], args: argparse.Namespace, package: str) -> int:
    """The trials that --seed and --trials name."""
    seeds = range(args.seed, args.seed + (args.trials or 1))
    found = 0
    for campaign in chosen:
        options = args.seconds or float("inf"), min(args.workers, len(seeds)), args.timeout
        results = list(watched(campaign, run(campaign, seeds, *options), len(seeds), package))
        found += conclude(campaign, results, "")
    return int(found > 0)


def sample(chosen: list[Campaign], args: argparse.Namespace, package: str) -> int:
    """A few trials of each campaign with seeds of the commit, in a given time."""
    first = seed_of_commit()
    ends = time.monotonic() + (args.seconds or SAMPLE_SECONDS)
    found = 0
    for number, campaign in enumerate(chosen):
        # what a campaign leaves of its share is for those after it; each has a trial at least
        share = max(0.001, (ends - time.monotonic()) / (len(chosen) - number))
        seeds = range(first, first + args.trials) if args.trials else itertools.count(first)
        running = run(campaign, seeds, share, args.workers, args.timeout)
        results = list(watched(campaign, running, args.trials or 0, package))
        found += conclude(campaign, results, f" in {share:.0f} seconds")
    return int(found > 0)


def go_on(chosen: list[Campaign], args: argparse.Namespace, package: str) -> int:
    """Campaigns from where they stopped to their targets, or to the limits of this run."""
    kept = Results(args.output / "trials.jsonl")
    ends = time.monotonic() + (args.seconds or float("inf"))
    try:
        for campaign in chosen:
            done = kept.of(campaign, args.any_sources)
            seeds = [seed for seed in range(campaign.target) if seed not in done][: args.trials]
            left = ends - time.monotonic()
            if seeds and left > 0:
                running = run(campaign, seeds, left, args.workers, args.timeout)
                for result in watched(campaign, running, len(seeds), package):
                    kept.add(result)
    except KeyboardInterrupt:
        print("\ninterrupted; the next run goes on from here")
    found = 0
    for campaign in chosen:
        done = kept.of(campaign, args.any_sources)
        others = len(kept.of(campaign, any_sources=True)) - len(kept.of(campaign))
        note = f" of {campaign.target:,} asked for"
        if others and not args.any_sources:
            note += f" (and {others:,} seeds with other sources)"
        found += conclude(campaign, list(done.values()), note)
    return int(found > 0)


def watched(
    campaign: Campaign, results: Iterable[Result], of: int, package: str
) -> Iterator[Result]:
    """Results as they come, with findings and a line of progress printed."""
    began = last = time.monotonic()
    terminal, findings = sys.stdout.isatty(), 0
    for count, result in enumerate(results, 1):
        if result.finding is not None:
            findings += 1
            print(
                f"{campaign.name}: {result.finding}\n    {reproduction(campaign, result, package)}"
            )
        now = time.monotonic()
        if now - last >= (0.5 if terminal else 30.0):
            last = now
            total = f" of {of:,}" if of else ""
            rate = count / (now - began)
            text = f"{campaign.name}: {count:,}{total} trials, {rate:.1f}/s, {findings} findings"
            print(f"\r{text}   " if terminal else text, end="" if terminal else "\n", flush=True)
        yield result
    if terminal and last > began:
        print()


def conclude(campaign: Campaign, results: list[Result], note: str) -> int:
    """Print the totals of a campaign; the number of its findings."""
    findings = sum(result.finding is not None for result in results)
    seeds = [result.seed for result in results]
    span = f", seeds {min(seeds)} to {max(seeds)}" if seeds else ""
    print(f"{campaign.name}: {len(results):,} trials{note}{span}: {findings} findings", flush=True)
    return findings


def reproduction(campaign: Campaign, result: Result, package: str) -> str:
    """The command that repeats a trial."""
    return f"python -m {package} {campaign.name} --seed {result.seed}"


def seed_of_commit() -> int:
    """A number below 2^31 from the hash of the commit that is checked out."""
    command = ["git", "rev-parse", "HEAD"]
    asked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return int(asked.stdout.strip()[:8], 16) & 0x7FFFFFFF


if __name__ == "__main__":
    sys.exit(main())
