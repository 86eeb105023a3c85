"""What the API answers about schedules and the jobs that are made with one, as types."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from perdure.model.schedule.definition import Missed, Origin, Overlap, Standing
from perdure.model.state import Delivery
from perdure.web.schemas.documents import AttemptDocument, Document

ClassicType = Literal["AT_LEAST_ONCE", "AT_MOST_ONCE"]
ExecutionStatus = Literal["SUCCESS", "FAILED", "RUNNING", "CANCELLED", "RELEASED", "PARKED", "SNOOZED"]


class ClassicJob(Document):
    """A request that is sent at each tick of a rule."""

    id: str
    """The name of its schedule, which all of its runs carry; the id of a one-shot job's only run."""
    schedule: str | None
    """Null once the job has ended."""
    api: str
    type: ClassicType
    is_recurring: bool | None
    """Null once the job has ended."""
    max_retry_count: int
    status: Literal["active", "paused", "done", "broken", "orphaned", "ended"]
    """`ended`: it was cancelled or deleted, or its only run succeeded, died or was cancelled."""
    next_execution_time: datetime | None
    """When an unfinished run that has not started is due, else the next tick; while the only run of a one-shot job is
    running, when that attempt was due."""
    last_execution_time: datetime | None
    last_status: ExecutionStatus | None
    """How the last attempt ended."""
    last_run_id: str | None
    """The unfinished run, else the newest; null before the first."""
    why: str | None = None
    """On request: why it is where it is."""


class ClassicSchedule(Document):
    """When a job runs that was made with a schedule."""

    job_id: str
    name: str
    schedule: str
    tz: str
    description: str | None
    is_recurring: bool
    is_paused: bool
    next_execution_time: datetime | None
    """The next retry of a run that has failed, else the next tick."""
    next_tick: datetime | None
    last_tick: datetime | None


class ExecutionDocument(AttemptDocument):
    """One attempt of one run."""

    job_id: str
    run_id: str
    """The id of the run: a job like any other."""
    status: ExecutionStatus
    execution_time: datetime | None
    http_status: int | None
    """Null where no answer came."""


class Executions(Document):
    """The attempts over all runs, newest first."""

    attempts: list[ExecutionDocument]


class ScheduleDocument(Document):
    """A schedule with its definition, how it stands, and what it has done."""

    name: str
    state: Standing
    problem: str | None
    cron: str
    tz: str
    description: str | None
    is_recurring: bool
    overlap: Overlap
    missed: Missed
    origin: Origin
    task: str
    args: Any
    queue: str
    priority: int
    delivery: Delivery
    retry: str | None
    max_attempts: int | None
    timeout: float | None
    next_at: datetime | None
    last_tick_at: datetime | None
    last_job_id: str | None
    is_busy: bool
    fired: int
    skipped: int
    queued: list[datetime]
    created_at: datetime
    named_at: datetime | None


class SchedulePage(Document):
    """A page of schedules by name."""

    schedules: list[ScheduleDocument]
    next_cursor: str | None
    """Ask for the next page with it; null on the last."""


class ScheduleSwitched(Document):
    """A schedule's switch after a change."""

    name: str
    is_paused: bool
    is_changed: bool


class ScheduleRemoved(Document):
    """A schedule that is gone."""

    name: str
    is_removed: bool


class ScheduleRun(Document):
    """The job that was made of a schedule at once."""

    name: str
    id: str


class TicksDocument(Document):
    """The next ticks of a schedule, whether it is paused or not."""

    name: str
    cron: str
    tz: str
    ticks: list[datetime]
