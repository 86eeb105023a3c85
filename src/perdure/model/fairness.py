"""Fairness between a queue's lanes: fresh work keeps its share whatever waits, and retries theirs."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from perdure.errors import BadOption
from perdure.model.shown import shown

WHOLE = 1_000_000
"""One whole job in the unit of the carried fraction."""

START_CARRY = WHOLE // 2
"""Where a fetcher's carried fraction starts: half a job, so that short lives are rounded fairly too."""

_QUEUE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)


class Split(NamedTuple):
    """How many jobs to fetch from each lane, and the fraction to carry to the next split."""

    fresh: int
    retry: int
    carry: int


class Fairness(msgspec.Struct, frozen=True, kw_only=True):
    """How one queue treats its retries."""

    retry_share: float = 0.2
    """The retry lane's part of what is fetched, 0 to 1; the rest is for fresh jobs."""
    is_strict: bool = False
    """Without it, what one lane cannot fill goes to the other."""
    retry_queue: str | None = None
    """Where jobs move after their first failure."""
    max_retries_running: int | None = None
    """How many retry-lane jobs may run at once, over all workers."""

    def __post_init__(self) -> None:
        _check_share(self.retry_share)
        if not isinstance(self.is_strict, bool):
            raise BadOption(f"is_strict is {shown(self.is_strict)}, and it is True or False.")
        if self.retry_queue is not None:
            _check_queue(self.retry_queue)
        if self.max_retries_running is not None:
            _check_running(self.max_retries_running)

    def split(self, count: int, carry: int) -> Split:
        """Share out `count` jobs; over any run of splits each lane is within one job of its exact share.

        `carry` is what the split before gave back, START_CARRY at first. It is a whole number of millionths
        of a job, so nothing drifts, and it stays below one job, so an idle lane saves nothing up.
        """
        # [INV-9] The fraction is carried on, so that each lane keeps its share at every batch size.
        due = carry + count * round(self.retry_share * WHOLE)
        retry, carry = divmod(due, WHOLE)
        return Split(fresh=count - retry, retry=retry, carry=carry)


def _check_share(share: object) -> None:
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise BadOption(
            f"retry_share is {shown(share)}, and it is a number from 0 to 1.",
            "0.2 gives a fifth of what is fetched to retries.",
        )


def _check_queue(name: object) -> None:
    if not isinstance(name, str) or not _QUEUE_NAME.fullmatch(name):
        raise BadOption(
            f"retry_queue is {shown(name)}, which is not the name of a queue.",
            "Names are 1 to 128 letters, digits, points, hyphens and underscores.",
        )


def _check_running(limit: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise BadOption(
            f"max_retries_running is {shown(limit)}, and it is a whole number from 1.",
            "Leave it out for no cap; to keep retries away from these workers give them a retry_queue.",
        )
