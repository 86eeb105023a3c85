"""Everything that can be asked of a store without changing it, and what operators set about a queue."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, Protocol

import msgspec

from perdure.model.failure import Failure
from perdure.model.forward import ForwardState
from perdure.model.job import Attempt, Job, JobId
from perdure.model.queue.settings import FIELDS, NOTHING_SAID, QueueSettings
from perdure.model.state import Lane, State
from perdure.store.reply import Reply
from perdure.store.workers import WorkerInfo


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs are meant; all that is set must hold."""

    ids: tuple[JobId, ...] | None = None
    state: State | None = None
    task: str | None = None
    queue: str | None = None
    """Matches the queue that the job is in, or its origin."""
    error: str | None = None
    """A part of the last error's type or message, letter case ignored."""
    group: str | None = None
    """The fingerprint of an error group."""
    reason: str | None = None
    schedule: str | None = None
    """The name of the schedule that made them."""
    forward: ForwardState | None = None
    """How far the forwarding of a dead job is."""
    before: datetime | None = None
    """Ended (or, if not ended, created) before this moment."""
    after: datetime | None = None


RecentState = Literal["succeeded", "dead", "waiting"]

MOST_RECENT = 500
"""How many jobs `recent` gives at most, whatever it is asked for."""


class QueueInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A queue: how many jobs in each state, whether it is paused, and what an operator has set."""

    name: str
    waiting: int = 0
    ready: int = 0
    running: int = 0
    retrying: int = 0
    """How many of the waiting and ready ones are in the retry lane."""
    succeeded: int = 0
    dead: int = 0
    cancelled: int = 0
    oldest_ready_at: datetime | None = None
    """The run_at of the job that has been ready for longest."""
    is_paused: bool = False
    paused_at: datetime | None = None
    pause_reason: str | None = None
    paused_until: datetime | None = None
    """When the pause ends by itself, by the store's clock; None: only when somebody resumes it."""
    settings: QueueSettings = NOTHING_SAID
    """What an operator has set."""


class ErrorGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Dead jobs that failed alike."""

    fingerprint: str
    task: str
    count: int
    first_at: datetime
    last_at: datetime
    sample: Failure | None
    sample_id: JobId


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed of a job to tell how things went lately; its arguments, error and result are left out."""

    task: str
    queue: str
    state: State
    lane: Lane
    attempt: int
    failures: int
    run_at: datetime
    reason: str | None = None
    delay: timedelta | None = None
    started_at: datetime | None = None
    """When its newest attempt began."""
    ended_at: datetime | None = None


class SchemaStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Which version of the schema the store has, and which this Perdure wants."""

    found: int
    wanted: int

    @property
    def is_current(self) -> bool:
        return self.found == self.wanted


class ReadStore(Protocol):
    """Everything that can be asked."""

    def get(self, ids: Sequence[JobId]) -> Reply[builtins.list[Job | None]]:
        """The jobs with these ids, in order; None for those that do not exist."""
        ...

    def history(self, job_id: JobId, limit: int) -> Reply[builtins.list[Attempt]]:
        """One record per attempt, oldest first, the running one included; at most `limit` of the newest."""
        ...

    def list(self, where: JobFilter, *, limit: int, after: JobId | None = None) -> Reply[builtins.list[Job]]:
        """Matching jobs, newest first by id; `after` is the last id of the page before."""
        ...

    def count(self, where: JobFilter) -> Reply[int]:
        """How many jobs match."""
        ...

    def queues(self) -> Reply[builtins.list[QueueInfo]]:
        """Every queue that has a job, a pause or settings, by name."""
        ...

    def groups(self, where: JobFilter, limit: int) -> Reply[builtins.list[ErrorGroup]]:
        """The error groups of matching dead jobs, largest first."""
        ...

    def recent(self, state: RecentState, limit: int) -> Reply[builtins.list[Recent]]:
        """Up to `limit` and MOST_RECENT jobs of one kind, at a cost that the number of all jobs does not change.

        `succeeded`: succeeded and cancelled ones, the last to end first · `dead`: the newest by id first · `waiting`:
        the next that are due first.
        """
        ...

    def workers(self) -> Reply[builtins.list[WorkerInfo]]:
        """Every registered worker, oldest first."""
        ...

    def schema(self) -> Reply[SchemaStatus]:
        """Which version of the schema the store has."""
        ...

    def now(self) -> Reply[datetime]:
        """The store's clock."""
        ...


class QueueStore(Protocol):
    """What operators set about a queue."""

    def pause(self, queue: str, reason: str | None, until: datetime | None = None) -> Reply[bool]:
        """Stop fetching from the queue, until a moment of the store's clock if one is given.

        Gives whether that changed anything. Pausing a paused queue changes nothing, unless it is to end at another
        time: then the end is the new one, and the reason too if one is given.
        """
        ...

    def resume(self, queue: str) -> Reply[bool]:
        """Fetch from the queue again; whether that changed anything."""
        ...

    def configure(self, queue: str, settings: QueueSettings, only: Sequence[str] = FIELDS) -> Reply[QueueSettings]:
        """Set what an operator says about a queue, of the values named in `only`; what is now set.

        A value of None takes back what was set, so that the code is followed again.
        """
        ...

    def settings(self) -> Reply[dict[str, QueueSettings]]:
        """What operators have set, by queue; queues about which nothing is set are left out."""
        ...
