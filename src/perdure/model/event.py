"""What happened, as values: the runtime tells them, observers turn them into log lines, counters and stories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from perdure.model.job import Job, JobId, NewJob
from perdure.model.outcome import Outcome


class AttemptEnded(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """An attempt has ended; observers are told once its outcome is durable."""

    job: Job
    outcome: Outcome
    limit: int
    """The effective max_attempts of the job; a rule of its policy may have lowered it, see `Outcome.limit`."""
    started_at: datetime
    ended_at: datetime
    next_tick_at: datetime | None = None
    """Where the job died and a recurring schedule made it: the schedule's next tick."""


class JobsEnqueued(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Jobs were handed to the store in one batch; inside a caller's transaction that may still be undone."""

    jobs: Sequence[NewJob]
    ids: Sequence[JobId]
    """The id that stands for each; another than the job's own where a unique key was taken."""
    started_at: datetime
    ended_at: datetime


class CommitLost(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A commit was refused: the job had moved on to another attempt or worker."""

    job: Job
    outcome: Outcome


class Forwarded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A dead job's sink has accepted it."""

    job: JobId
    task: str
    queue: str
    sink: str
    """What the sink is called; no address and no secret."""
    tries: int = 1
    schedule: str | None = None
    """The schedule that made the job, if one did."""


class ForwardFailed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A dead job's copy could not be handed to its sink; the job stays dead here."""

    job: JobId
    task: str
    queue: str
    sink: str
    """What the sink is called; no address and no secret. `none` where none is configured."""
    error: str
    tries: int = 1
    retry_in: timedelta | None = None
    """None when it is not tried again before a person asks for it."""
    schedule: str | None = None
    """The schedule that made the job, if one did."""


class WorkerStarted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    worker: str
    queues: tuple[str, ...]
    concurrency: int


class WorkerStopped(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    worker: str
    released: int


class LeaseExpired(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """This worker's own lease is lost; it dropped what it held and registers anew."""

    worker: str
    held: int


class WorkerReaped(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Another worker's lease ran out; its jobs were decided about here."""

    worker: str
    jobs: int


class StoreTrouble(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A store call failed and will be tried again; told once per outage, not once per try."""

    part: str
    """Who waits for the store: the worker, or a scheduler by itself."""
    error: str
    retry_in: timedelta


class StoreRecovered(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The outage is over: every part whose call had failed has made one that the store answered."""

    part: str
    outage: timedelta


class TicksFired(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A schedule came due: jobs were made for these ticks, and so many others were skipped."""

    schedule: str
    ticks: tuple[datetime, ...]
    skipped: int
    fired_at: datetime


class ScheduleBroken(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A schedule cannot fire; it is looked at again from time to time."""

    schedule: str
    problem: str


Event = (
    JobsEnqueued
    | AttemptEnded
    | CommitLost
    | Forwarded
    | ForwardFailed
    | WorkerStarted
    | WorkerStopped
    | LeaseExpired
    | WorkerReaped
    | StoreTrouble
    | StoreRecovered
    | TicksFired
    | ScheduleBroken
)


class Observer(Protocol):
    """Who is told of events; must be quick and must not raise."""

    def tell(self, event: Event) -> None: ...


class BatchObserver(Protocol):
    """An observer that takes many events at once, for whom one after the other would cost more."""

    def tell_all(self, events: Sequence[Event]) -> None: ...


def tell_all(observer: Observer, events: Sequence[Event]) -> None:
    """Tell many events, at once if the observer takes them so."""
    at_once: Callable[[Sequence[Event]], None] | None = getattr(observer, "tell_all", None)
    if at_once is not None:
        at_once(events)
        return
    for event in events:
        observer.tell(event)


class AttemptTrace(Protocol):
    """The span of one attempt, open while its handler runs."""

    def end(self, outcome: Outcome | None) -> None:
        """Close it; without an outcome the lease was lost and nobody waits for one. Must not raise."""
        ...


class Tracing(Protocol):
    """Who follows attempts from within, so that what a handler does belongs to its attempt."""

    def begin(self, job: Job) -> AttemptTrace:
        """Open the attempt's span in the running context. Must not raise."""
        ...
