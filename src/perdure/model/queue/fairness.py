"""Fairness between a queue's lanes: fresh work keeps its share whatever waits, and retries theirs."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from perdure.errors import BadOption
from perdure.text.shown import shown

WHOLE = 1_000_000
"""One whole job in the unit of the carried fraction."""

START_CARRY = WHOLE // 2
"""Where a fetcher's carried fraction starts: half a job, so that short lives are rounded fairly too."""

MOST_RUNNING = 2**31 - 1
"""The largest limit on running jobs that every engine can count to."""

_INSTEAD = {
    "max_retries_running": "Leave it out for no cap; to keep retries away from these workers give them a retry_queue.",
    "concurrency": "Leave it out for no limit; to let nothing run, pause the queue.",
}

_QUEUE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)


class Split(NamedTuple):
    """How many jobs to fetch from each lane, and the fraction to carry to the next split."""

    fresh: int
    retry: int
    carry: int


def split(count: int, share: int, carry: int) -> Split:
    """Share out `count` jobs; `share` is the retry lane's part in millionths, `carry` what the split before gave back.

    Whole numbers only, so nothing drifts; the carry stays below one job, so an idle lane saves nothing up.
    """
    # [INV-9] The fraction is carried on, so that each lane keeps its share at every batch size.
    retry, carry = divmod(carry + count * share, WHOLE)
    return Split(fresh=count - retry, retry=retry, carry=carry)


class Fairness(msgspec.Struct, frozen=True, kw_only=True):
    """How one queue treats its retries, and how much of it may run at once."""

    retry_share: float = 0.2
    """The retry lane's part of what is fetched, 0 to 1; the rest is for fresh jobs."""
    is_strict: bool = False
    """Without it, what one lane cannot fill goes to the other."""
    retry_queue: str | None = None
    """Where jobs move after their first failure."""
    max_retries_running: int | None = None
    """How many retry-lane jobs may run at once, over all workers."""
    concurrency: int | None = None
    """How many jobs of the queue may run at once, over all workers."""

    def __post_init__(self) -> None:
        check_share(self.retry_share)
        if not isinstance(self.is_strict, bool):
            raise BadOption(f"is_strict is {shown(self.is_strict)}, and it is True or False.")
        if self.retry_queue is not None:
            checked_retry_queue(self.retry_queue)
        if self.max_retries_running is not None:
            check_limit("max_retries_running", self.max_retries_running)
        if self.concurrency is not None:
            check_limit("concurrency", self.concurrency)

    @property
    def share(self) -> int:
        """The retry share in millionths."""
        return round(self.retry_share * WHOLE)

    def split(self, count: int, carry: int) -> Split:
        """Share out `count` jobs; over any run of splits each lane is within one job of its exact share.

        `carry` is what the split before gave back, START_CARRY at first.
        """
        return split(count, self.share, carry)


def is_queue_name(name: object) -> bool:
    """Whether a queue can be called so."""
    return isinstance(name, str) and _QUEUE_NAME.fullmatch(name) is not None


def check_share(share: object) -> None:
    """Refuse what is no retry share."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise BadOption(
            f"retry_share is {shown(share)}, and it is a number from 0 to 1.",
            "0.2 gives a fifth of what is fetched to retries.",
        )


def checked_retry_queue(name: object) -> str:
    """The name of a retry queue, if it can be one."""
    if not isinstance(name, str) or not is_queue_name(name):
        raise BadOption(
            f"retry_queue is {shown(name)}, which is not the name of a queue.",
            "Names are 1 to 128 letters, digits, points, hyphens and underscores.",
        )
    return name


def check_limit(name: str, limit: object) -> None:
    """Refuse what is no limit on running jobs."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_RUNNING:
        raise BadOption(f"{name} is {shown(limit)}, and it is a whole number from 1.", _INSTEAD[name])
