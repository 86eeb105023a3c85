"""How things went lately, from a sample of the store: rates that need no history of metrics.

It looks at the last few hundred jobs that ended well or were cancelled, the newest dead ones and the next waiting ones,
and of those at the ones that did something within a window of time. What it costs does not grow with the store. Where
more than these did something within the window, the numbers are those of a sample; then `is_sample` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from perdure.admin.reply_generator import Steps, ask, stepped
from perdure.store import Store
from perdure.store.reads import MOST_RECENT, Recent

_PROMOTION = timedelta(seconds=5)
"""So long a waiting job that is due may stay so while workers are alive."""
_AT_LIMIT = frozenset({"exhausted", "timeout", "lost"})


class RecentRates(msgspec.Struct, frozen=True, kw_only=True):
    """What happened within the window."""

    window: timedelta
    attempts: int
    retries: int
    exhausted: int
    """How many jobs failed as often as their limit allows."""
    dead: int
    wait: timedelta | None
    """The longest time that 95 % of the newest attempts waited for their start at most."""
    retry_delay: timedelta | None
    """The longest that 95 % of the jobs that wait for a retry were told to wait at most."""
    overdue: dict[str, datetime]
    """By queue, since when a waiting job has been due: workers make such jobs ready, so none does."""
    is_sample: bool
    """There was more than was looked at."""

    @property
    def retry_rate(self) -> float:
        """Which part of the attempts were retries."""
        return self.retries / self.attempts if self.attempts else 0.0


@stepped
def pulse(store: Store, window: timedelta, queue: str | None = None) -> Steps[RecentRates]:
    """How things went within the window, in one queue or in all."""
    now = yield from ask(store.now())
    ended = yield from ask(store.recent("succeeded", MOST_RECENT))
    dead = yield from ask(store.recent("dead", MOST_RECENT))
    waiting = yield from ask(store.recent("waiting", MOST_RECENT))
    return measure([ended, dead, waiting], now, window, queue)


def measure(samples: Sequence[Sequence[Recent]], now: datetime, window: timedelta, queue: str | None) -> RecentRates:
    """What some jobs say about the window before `now`."""
    since = now - window
    jobs = [job for sample in samples for job in sample if _moment(job) >= since and queue in (None, job.queue)]
    ran = [job for job in jobs if job.attempt > 0]
    dead = [job for job in ran if job.state == "dead"]
    waits = [max(timedelta(0), job.started_at - job.run_at) for job in ran if _has_waited(job) and job.started_at]
    delays = [job.delay for job in ran if job.state == "waiting" and job.failures and job.delay is not None]
    return RecentRates(
        window=window,
        attempts=sum(_attempts(job) for job in ran),
        retries=sum(max(0, _attempts(job) - 1) for job in ran),
        exhausted=sum(job.reason in _AT_LIMIT for job in dead),
        dead=len(dead),
        wait=_high(waits),
        retry_delay=_high(delays),
        overdue=_overdue([job for sample in samples for job in sample], now, queue),
        is_sample=any(len(sample) >= MOST_RECENT and _moment(sample[-1]) >= since for sample in samples),
    )


def _overdue(jobs: Sequence[Recent], now: datetime, queue: str | None) -> dict[str, datetime]:
    found: dict[str, datetime] = {}
    for job in jobs:
        if job.state == "waiting" and job.run_at <= now - _PROMOTION and queue in (None, job.queue):
            found[job.queue] = min(job.run_at, found.get(job.queue, job.run_at))
    return found


def _moment(job: Recent) -> datetime:
    """When the job last did something; a waiting one did at its newest start."""
    return job.ended_at or job.started_at or datetime.min.replace(tzinfo=job.run_at.tzinfo)


def _attempts(job: Recent) -> int:
    """How many attempts counted: what was snoozed or given back is none, and no retry of anything."""
    return job.failures + 1 if job.state in ("succeeded", "cancelled") else max(job.failures, 1)


def _has_waited(job: Recent) -> bool:
    # The run_at of a job that waits again is that of its next attempt.
    return job.state in ("succeeded", "dead")


def _high(durations: list[timedelta]) -> timedelta | None:
    """The 95th percentile."""
    if not durations:
        return None
    ordered = sorted(durations)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
