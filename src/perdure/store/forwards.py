"""The verbs of forwarding: which dead jobs are due to their sink, who tries it, and what came of it.

A dead job is marked due by the commit that lets it die, in the same step. The mark goes when the job is replayed,
retried or discarded. Any number of workers may forward: a claim holds for a while and is then open to others, so a
job is forwarded at least once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from perdure.model.forward import Forward, ForwardState, Tried
from perdure.model.job import JobId
from perdure.store.reads import JobFilter
from perdure.store.reply import Reply


class DueForwards(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim got, and when the next one of these queues is due."""

    forwards: tuple[Forward, ...]
    next_at: datetime | None


class ForwardStore(Protocol):
    """The verbs of forwarding."""

    def forward(self, queues: Sequence[str], limit: int, lease: timedelta) -> Reply[DueForwards]:
        """Claim up to `limit` due forwards of these queues, the longest due first, for as long as the lease.

        Each has one try more than before.
        """
        ...

    def forwarded(self, tried: Sequence[Tried]) -> Reply[list[bool]]:
        """Write what tries came to; for each whether it was accepted.

        A success counts from any try, for the sink has the job. A failure counts from the newest try only, and not
        once the job is forwarded. Neither counts when the job has left that death behind.
        """
        ...

    def forward_now(self, where: JobFilter) -> Reply[int]:
        """Make the forwards of matching dead jobs due now, but of those that are forwarded; how many.

        A dead job that had no sink when it died gets a forward: workers ask for its sink when they try.
        """
        ...

    def forwards(self, ids: Sequence[JobId]) -> Reply[dict[JobId, Forward]]:
        """The forwards of these jobs; jobs without one are left out."""
        ...

    def forward_counts(self) -> Reply[dict[ForwardState, int]]:
        """How many forwards are in each state; states without any are left out."""
        ...
