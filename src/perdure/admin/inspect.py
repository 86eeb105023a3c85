"""What can be asked: jobs, their history, queues, workers and the numbers over all of them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from perdure.admin.job_explanation import standing
from perdure.admin.reply_generator import Mapped, Steps, ask, stepped
from perdure.admin.scheduled import (
    ScheduledJob,
    attempts_over_runs,
    find,
    list_scheduled,
    scheduled_as_jobs,
)
from perdure.admin.selection import read_filters, read_id, require_dead
from perdure.errors import BadOption, NotFound
from perdure.model.forward import FORWARD_STATES, ForwardState
from perdure.model.job import Attempt, Job, JobId
from perdure.store import Store
from perdure.store.reads import JobFilter, QueueInfo
from perdure.store.reply import Reply
from perdure.store.workers import WorkerInfo

T = TypeVar("T")

LARGEST_PAGE = 1_000
_ALL = 1_000_000_000
"""More scheduled jobs than there can be."""


class Page(builtins.list[T]):
    """A list of what was asked for, with the cursor of the page after it; None on the last page."""

    def __init__(self, items: Iterable[T] = (), next_cursor: str | None = None) -> None:
        super().__init__(items)
        self.next_cursor = next_cursor


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers over all queues at one moment of the store's clock."""

    at: datetime
    waiting: int
    ready: int
    running: int
    retrying: int
    succeeded: int
    dead: int
    cancelled: int
    workers: int
    """How many workers have a lease that has not run out."""
    oldest_ready_at: datetime | None
    queues: tuple[QueueInfo, ...]
    forwards: Mapping[ForwardState, int]
    """How many dead jobs were to be forwarded, by how far that is."""

    @property
    def oldest_ready_age(self) -> timedelta | None:
        """How long the job that has been ready for longest has waited."""
        return None if self.oldest_ready_at is None else max(timedelta(0), self.at - self.oldest_ready_at)


@stepped
def get(store: Store, job_id: str) -> Steps[Job]:
    """The job with this id; raises JobNotFound. A scheduled job is its unfinished run, or waits for its next one."""
    found = yield from find(store, job_id)
    if isinstance(found, Job):
        return found
    now = yield from ask(store.now())
    return found.as_job(now)


@stepped
def get_many(store: Store, ids: Sequence[JobId]) -> Steps[builtins.list[Job]]:
    """The jobs and scheduled jobs with these ids, as far as there are any; in no order."""
    jobs = [job for job in (yield from ask(store.get(ids))) if job is not None]
    found = {job.id for job in jobs if job.schedule != job.id}
    others = [job_id for job_id in ids if job_id not in found]
    scheduled = (yield from scheduled_as_jobs(store, others)) if others else []
    return builtins.list({job.id: job for job in [*jobs, *scheduled]}.values())


@stepped
def look_up(store: Store, job_id: str) -> Steps[Job | ScheduledJob]:
    """What has this id, a job or a scheduled job; raises JobNotFound."""
    return (yield from find(store, job_id))


@stepped
def why(store: Store, job: Job) -> Steps[str]:
    """A sentence about why the job is where it is."""
    now = yield from ask(store.now())
    found = yield from ask(store.queues())
    registered = yield from ask(store.workers())
    queue = next((queue for queue in found if queue.name == job.queue), None)
    return standing(job, queue, registered, now)


def known_queue(store: Store, name: str) -> Reply[QueueInfo]:
    """The queue of this name; raises NotFound when it has no job and no switch."""

    def found(known: builtins.list[QueueInfo]) -> QueueInfo:
        for each in known:
            if each.name == name:
                return each
        raise NotFound(f"There is no queue {name[:128]!r}.", "A queue is there once it has a job or a switch.")

    return Mapped(store.queues(), found)


@stepped
def history(store: Store, job_id: str, limit: int = 100) -> Steps[builtins.list[Attempt]]:
    """One record per attempt, oldest first, at most `limit` of the newest; raises JobNotFound.

    Of a scheduled job the attempts over all of its runs.
    """
    check_limit(limit)
    found = yield from find(store, job_id)
    if isinstance(found, Job):
        return (yield from ask(store.history(found.id, limit)))
    pairs = yield from ask(attempts_over_runs(store, found, limit))
    return [attempt for _, attempt in reversed(pairs)]


@stepped
def list(store: Store, filters: Mapping[str, Any], *, limit: int = 50, cursor: str | None = None) -> Steps[Page[Job]]:
    """A page of matching jobs and scheduled jobs, newest first."""
    check_limit(limit)
    where = yield from read_filters(store, filters)
    after = None if cursor is None else read_id(cursor)
    # One more than asked for tells whether there is a next page without counting.
    jobs = yield from ask(newest(store, where, limit=limit + 1, after=after))
    return Page(jobs[:limit], jobs[limit - 1].id if len(jobs) > limit else None)


@stepped
def newest(store: Store, where: JobFilter, *, limit: int, after: JobId | None = None) -> Steps[builtins.list[Job]]:
    """Matching jobs and scheduled jobs, newest first by id."""
    jobs = yield from ask(store.list(where, limit=limit, after=after))
    until = jobs[-1].id if len(jobs) == limit else None
    scheduled = yield from list_scheduled(store, where, limit=limit, after=after, until=until)
    if not scheduled:
        return jobs
    # A job that became recurring after its only run is known as a job, too.
    found = {job.id: job for job in [*jobs, *scheduled]}
    return sorted(found.values(), key=lambda job: job.id, reverse=True)[:limit]


@stepped
def dead_letters(
    store: Store, filters: Mapping[str, Any], *, limit: int = 50, cursor: str | None = None
) -> Steps[Page[Job]]:
    """A page of matching dead jobs, newest first."""
    require_dead(filters)
    return (yield from ask(list(store, {**filters, "state": "dead"}, limit=limit, cursor=cursor)))


@stepped
def count(store: Store, filters: Mapping[str, Any]) -> Steps[int]:
    """How many jobs match, and scheduled jobs that are no jobs yet."""
    where = yield from read_filters(store, filters)
    number = yield from ask(store.count(where))
    return number + len((yield from list_scheduled(store, where, limit=_ALL)))


def queues(store: Store) -> Reply[builtins.list[QueueInfo]]:
    """Every queue that has a job, a pause or settings, by name."""
    return store.queues()


@stepped
def queue(store: Store, name: str) -> Steps[QueueInfo]:
    """One queue, all zeros where nothing is known of it."""
    found = yield from ask(store.queues())
    return next((known for known in found if known.name == name), QueueInfo(name=name))


def workers(store: Store) -> Reply[builtins.list[WorkerInfo]]:
    """Every registered worker, oldest first."""
    return store.workers()


@stepped
def stats(store: Store) -> Steps[Stats]:
    """The numbers over all queues."""
    now = yield from ask(store.now())
    found = yield from ask(store.queues())
    registered = yield from ask(store.workers())
    counted = yield from ask(store.forward_counts())
    oldest = [queue.oldest_ready_at for queue in found if queue.oldest_ready_at is not None]
    return Stats(
        at=now,
        waiting=sum(queue.waiting for queue in found),
        ready=sum(queue.ready for queue in found),
        running=sum(queue.running for queue in found),
        retrying=sum(queue.retrying for queue in found),
        succeeded=sum(queue.succeeded for queue in found),
        dead=sum(queue.dead for queue in found),
        cancelled=sum(queue.cancelled for queue in found),
        workers=sum(worker.lease_until > now for worker in registered),
        oldest_ready_at=min(oldest, default=None),
        queues=tuple(found),
        forwards={state: counted.get(state, 0) for state in FORWARD_STATES},
    )


def check_limit(limit: int) -> None:
    """Refuse pages that are empty or too large."""
    if not 1 <= limit <= LARGEST_PAGE:
        raise BadOption(
            f"limit is {limit}; it must lie between 1 and {LARGEST_PAGE}.",
            "Use the cursor for the next page.",
        )
