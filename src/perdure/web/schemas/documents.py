"""What the API answers, as types: the documents of perdure.admin, described for OpenAPI and for readers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from perdure.model.job import AttemptOutcome
from perdure.model.state import Delivery, Lane, State


class Document(msgspec.Struct, kw_only=True):
    """An object that the API answers."""


class FailureDocument(Document):
    """An error, as it was raised."""

    type: str
    message: str
    detail: Any
    """What is known beside the message; of an HTTP job's attempt: status, ms, excerpt."""
    frame: str | None
    trace: str | None


class JobDocument(Document):
    """A job with all that is kept of it; durations are seconds."""

    id: str
    task: str
    queue: str
    origin: str | None
    state: State
    lane: Lane
    reason: str | None
    args: Any
    result: Any
    priority: int
    delivery: Delivery
    unique: str | None
    retry: str | None
    max_attempts: int | None
    timeout: float | None
    attempt: int
    failures: int
    recoveries: int
    delay: float | None
    error: FailureDocument | None
    group: str | None
    worker: str | None
    is_cancelling: bool
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    parked_at: datetime | None
    schedule: str | None
    """The schedule that made it."""
    tick_at: datetime | None


class JobShown(JobDocument):
    """A job, and on request a sentence about why it is where it is."""

    why: str | None = None


class JobPage(Document):
    """A page of jobs, newest first."""

    jobs: list[JobDocument]
    next_cursor: str | None
    """Ask for the next page with it; null on the last."""


class Enqueued(Document):
    """A job that was made, or the live one with the same unique key that stands for it."""

    id: str
    is_new: bool


class EnqueuedMany(Document):
    """The jobs of a batch, in its order."""

    jobs: list[Enqueued]


class AttemptDocument(Document):
    """One attempt."""

    attempt: int
    retry_count: int
    """How many attempts there were before it."""
    outcome: AttemptOutcome
    reason: str | None
    error: FailureDocument | None
    worker: str | None
    started_at: datetime | None
    ended_at: datetime | None
    delay: float | None


class History(Document):
    """The attempts of a job, oldest first."""

    attempts: list[AttemptDocument]


class Cancelled(Document):
    """What became of a cancellation; `asked`: it is running, and its worker was asked to stop it."""

    id: str
    answer: str


class Retried(Document):
    """A job that is ready again."""

    id: str
    state: State


class GroupDocument(Document):
    """Dead jobs that failed alike."""

    fingerprint: str
    task: str
    count: int
    first_at: datetime
    last_at: datetime
    sample: FailureDocument | None
    sample_id: str


class Groups(Document):
    """Error groups, largest first."""

    groups: list[GroupDocument]


class Discarded(Document):
    """How many dead jobs were dismissed, or in a dry run would be."""

    count: int
    is_dry_run: bool


class ReplayDocument(Document):
    """What a replay did, or in a dry run would do."""

    id: str | None
    """Null for a dry run, which leaves no trace."""
    at: datetime
    count: int | None
    """How many were put back; null until it is done."""
    matching: int | None
    """How many dead jobs matched; the others stay dead: no canaries, or their unique key is busy."""
    is_dry_run: bool
    request: dict[str, Any]
    """What was asked for."""


class Replays(Document):
    """The replays that were asked for over the API, newest first."""

    replays: list[ReplayDocument]


class QueueSettingsDocument(Document):
    """What an operator has set about a queue; null where nothing is, "none" where a limit is taken away."""

    retry_share: float | None
    strict: bool | None
    max_retries_running: int | Literal["none"] | None
    concurrency: int | Literal["none"] | None


class QueueDocument(Document):
    """A queue: its jobs by state, its switch, and what is set about it."""

    name: str
    waiting: int
    ready: int
    running: int
    succeeded: int
    dead: int
    cancelled: int
    retrying: int
    oldest_ready_age: float | None
    is_paused: bool
    paused_at: datetime | None
    pause_reason: str | None
    paused_until: datetime | None
    settings: QueueSettingsDocument


class Queues(Document):
    """Every queue that has a job or a switch, by name."""

    queues: list[QueueDocument]


class Switched(Document):
    """A queue's switch after a change."""

    queue: str
    is_paused: bool
    is_changed: bool


class WorkerDocument(Document):
    """A worker, and whether its lease still runs."""

    id: str
    host: str
    pid: int
    queues: list[str]
    concurrency: int
    running: int
    version: str
    is_alive: bool
    started_at: datetime
    beat_at: datetime
    lease_until: datetime


class Workers(Document):
    """Every registered worker, oldest first."""

    workers: list[WorkerDocument]


class States(Document):
    """How many jobs are in each state."""

    waiting: int
    ready: int
    running: int
    succeeded: int
    dead: int
    cancelled: int


class StatsDocument(Document):
    """The numbers over all queues."""

    at: datetime
    states: States
    retrying: int
    workers: int
    oldest_ready_age: float | None
    forwards: dict[str, int]
    """How many dead jobs with a sink are pending, failing, stopped or forwarded; what is left out is 0."""
    queues: list[QueueDocument]


class Health(Document):
    """How the server is."""

    status: str
    engine: str | None = None
    schema: int | None = None
