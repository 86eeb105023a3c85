"""The verbs that move jobs; each is one atomic step, durable when its reply arrives.

Store time decides: a verb that needs the time asks the store's own clock, never the caller's. Every write about a
running job is fenced by (job id, attempt, worker); one that does not match changes nothing and says so in its reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, Protocol

import msgspec

from perdure.model.change import Change
from perdure.model.job import Job, JobId, NewJob, WorkerId
from perdure.model.outcome import Outcome
from perdure.store.reads import JobFilter
from perdure.store.reply import Reply
from perdure.store.workers import Renewal


class Want(msgspec.Struct, frozen=True, kw_only=True):
    """What a fetch asks of one queue: how many jobs at most, how its lanes share them, and its limits."""

    queue: str
    count: int
    retry_share: int = 0
    """The retry lane's part, in millionths."""
    carry: int = 0
    """The fraction that the fetch before left over, in millionths of a job."""
    is_strict: bool = False
    """Without it, what one lane cannot fill goes to the other."""
    max_retries_running: int | None = None
    concurrency: int | None = None


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """What a fetch claimed, and the room that each want was offered, from which its next carry follows."""

    jobs: list[Job]
    rooms: tuple[int, ...]
    """0 where nothing could be claimed: paused, at its limit, nothing ready, asked before in vain, or not reached."""


class Ended(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One attempt to commit: its fence, what follows, and when it ran."""

    job_id: JobId
    attempt: int
    worker: WorkerId
    task: str
    outcome: Outcome
    started_at: datetime
    ended_at: datetime


class Promoted(msgspec.Struct, frozen=True, kw_only=True):
    """What a promote did: how many jobs became ready, and when the next waiting job is due."""

    count: int
    next_run_at: datetime | None
    now: datetime
    """The store's clock, by which jobs are due."""


class Reaped(msgspec.Struct, frozen=True, kw_only=True):
    """What a reap found: the workers it struck off, jobs that run under no living worker, and who is left."""

    workers: tuple[WorkerId, ...]
    jobs: tuple[Job, ...]
    renewals: tuple[Renewal, ...] = ()
    """The newest renewal of each worker that is still registered."""


CancelAnswer = Literal["cancelled", "asked", "already cancelled", "already ended", "not found"]
"""cancelled: it ended now · asked: it is running, its worker was asked to stop it."""

ChangeAnswer = Literal["changed", "wrong state", "not found"]

ReplayAnswer = Literal["replayed", "wrong state", "unique key busy", "not found"]


class JobStore(Protocol):
    """The verbs that move jobs."""

    def enqueue(self, jobs: Sequence[NewJob]) -> Reply[list[JobId]]:
        """Make jobs durable, all or none; give the id that stands for each, in order.

        An id that exists already is left as it is (a repeated enqueue after a lost reply). A job whose (task, unique
        key) is taken by a live job is not made; the live job's id stands for it.
        """
        ...

    def enqueue_within(self, connection: object, jobs: Sequence[NewJob]) -> list[JobId]:
        """The same inside the caller's own open transaction, on the caller's connection; it commits or rolls back."""
        ...

    async def enqueue_within_async(self, connection: object, jobs: Sequence[NewJob]) -> list[JobId]:
        """The same for connections that are awaited; those that block are used as they are."""
        ...

    def complete_within(self, connection: object, ended: Ended) -> bool:
        """Commit an attempt inside its handler's own open transaction; whether the fence matched.

        When that transaction has committed, the ordinary commit of the same fence is answered as accepted.
        """
        ...

    async def complete_within_async(self, connection: object, ended: Ended) -> bool:
        """The same for connections that are awaited; those that block are used as they are."""
        ...

    def fetch(self, worker: WorkerId, wants: Sequence[Want], limit: int) -> Reply[Fetched]:
        """Claim up to `limit` ready jobs for a worker, going through the wants in their order.

        The room offered to a want is the least of its `count`, what is left of `limit`, and what its queue's
        `concurrency` leaves over all workers. Of it `split(room, retry_share, carry)` gives each lane its part; what a
        lane cannot fill goes to the other unless `is_strict`. A queue that filled less than its room is not asked again
        by a later want. Inside a lane: priority (higher first), then run_at, then id. Paused queues give nothing. Each
        job claimed is `running`, owned by the worker, its attempt one higher. `started_at` is the time of the claim; an
        at-most-once job has none until `start`. Raises LeaseLost when the worker was struck off.
        """
        ...

    def unpark(self, worker: WorkerId, wants: Sequence[Want], tasks: Sequence[str], limit: int) -> Reply[list[Job]]:
        """Claim up to `limit` waiting jobs of these tasks that were parked, though they are not due yet.

        A worker that does not know a job's task parks it; one that knows the task need not wait until it comes back.
        Pauses and the wants' `concurrency` and `max_retries_running` hold as in a fetch; `count`, shares and priorities
        do not matter. Gives nothing when the worker's lease has run out.
        """
        ...

    def start(self, worker: WorkerId, attempts: Sequence[tuple[JobId, int]]) -> Reply[list[bool]]:
        """Record that a worker is about to enter the handlers of these attempts of at-most-once jobs.

        Returns for each whether the worker may enter: it was not struck off, and the attempt is the job's current one.
        The attempts it may enter have a `started_at` from then on; a job that has none was never entered.
        """
        ...

    def commit(self, ended: Sequence[Ended]) -> Reply[list[bool]]:
        """Write what follows attempts; for each whether it was accepted (the fence matched a running attempt)."""
        ...

    def promote(self, limit: int) -> Reply[Promoted]:
        """Make up to `limit` waiting jobs that are due ready."""
        ...

    def reap(self, limit: int, silent: Sequence[Renewal] | None = None) -> Reply[Reaped]:
        """Strike off vanished workers, and show up to `limit` running jobs that have no living worker.

        A worker in `silent` is struck off if the renewal given there is still its newest. Without `silent`, the store's
        clock decides whose lease has run out; that is only right where this clock cannot jump. The caller decides about
        each job and commits with the vanished worker's id in the fence.
        """
        ...

    def prune(self, older_than: timedelta, limit: int) -> Reply[int]:
        """Delete up to `limit` succeeded or cancelled jobs that ended so long ago, with history; never dead ones.

        Notes whose time is over go with them.
        """
        ...

    def cancel(self, ids: Sequence[JobId], reason: str) -> Reply[list[CancelAnswer]]:
        """Cancel waiting and ready jobs; ask the worker of running ones to stop them."""
        ...

    def change(self, ids: Sequence[JobId], change: Change) -> Reply[list[ChangeAnswer]]:
        """Make waiting and ready jobs as the change says; what it does not name stays.

        A job whose new run_at has come is ready, another one waits. A job that runs or has ended is left as it is: a
        change and a fetch of one job happen one after the other.
        """
        ...

    def retry(self, ids: Sequence[JobId]) -> Reply[list[ReplayAnswer]]:
        """Make waiting, dead or cancelled jobs ready now; for dead and cancelled ones failures start again at 0."""
        ...

    def replay(self, where: JobFilter, limit: int, every: timedelta) -> Reply[int]:
        """Put up to `limit` matching dead jobs back, oldest first, the n-th of them due n × `every` from now.

        Attempts stay in the history, failures start again at 0, the queue is the origin. Jobs whose unique key is
        busy stay dead. Gives how many were put back.
        """
        ...

    def discard(self, where: JobFilter, limit: int) -> Reply[int]:
        """Dismiss up to `limit` matching dead jobs, oldest first: they end cancelled, reason `discarded`."""
        ...
