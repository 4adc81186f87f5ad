"""The only loop over epochs. What an epoch is, and what is known after it, an account says.

    account.begin()             what comes before the first epoch; a reason to stop, or None
    account.step()              an epoch, and where the run stands after it
    account.judge(progress)     a reason to stop, or None
    account.cut_short(signal)   an epoch was not finished: why
    account.conclude(reason)    the end: what is returned

certified   `run.Certified`         epochs over data in memory: bounds of the objective
counted     `run.Counted`           the same without an objective: mistakes
stream      `stream_passes.Driver`  passes over a stream
disk        `out_of_core.Passes`    passes over blocks on disk

Steps of an algorithm on examples that it keeps, until these are solved well enough, are no epochs:
`finish` and `improve` of the caches, the cuts that `KernelCuts` makes at the end of a pass,
`LaRankLearner.optimize`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from ..stopping import Reason


class Account(Protocol):
    """See the head of this file; `signals` are the exceptions that cut an epoch short."""

    @property
    def signals(self) -> tuple[type[BaseException], ...]: ...

    def begin(self) -> Reason | None: ...

    def step(self) -> Any: ...

    def judge(self, progress: Any) -> Reason | None: ...

    def cut_short(self, signal: BaseException) -> Reason: ...

    def conclude(self, reason: Reason) -> Any: ...


def epochs(account: Account) -> Iterator[Any]:
    """Epochs until there is a reason to stop; the last item is the conclusion."""
    try:
        reason = account.begin()
        while reason is None:
            progress = account.step()
            reason = account.judge(progress)
            if reason is None:
                yield progress
    except account.signals as signal:
        reason = account.cut_short(signal)
    yield account.conclude(reason)


def concluded(account: Account) -> Any:
    """What an account says at the end of all its epochs."""
    *_, last = epochs(account)
    return last
