"""What happened, as values: the runtime tells them, observers turn them into log lines, counters and stories."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from perdure.model.job import Job, JobId
from perdure.model.outcome import Outcome


class AttemptEnded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An attempt's outcome is durable."""

    job: Job
    outcome: Outcome
    limit: int
    """The effective max_attempts that the decision was made with."""
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
    """A store call failed and will be tried again; told once per outage and part, not once per try."""

    part: str
    error: str
    retry_in: timedelta


class StoreRecovered(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    part: str
    outage: timedelta


Event = (
    AttemptEnded
    | CommitLost
    | Forwarded
    | ForwardFailed
    | WorkerStarted
    | WorkerStopped
    | LeaseExpired
    | WorkerReaped
    | StoreTrouble
    | StoreRecovered
)


class Observer(Protocol):
    """Who is told of events; must be quick and must not raise."""

    def tell(self, event: Event) -> None: ...
