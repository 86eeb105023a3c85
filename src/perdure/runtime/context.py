"""What a handler can learn about the attempt it is running in, through `current_job()`.

What it is shown is made when it asks: most handlers never do.
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from perdure.errors import LeaseLost, Unsupported, UsageError
from perdure.model.job import Job, JobId
from perdure.model.state import Delivery
from perdure.store.jobs import Ended, JobStore


class CurrentJob(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt that is running here and now."""

    id: JobId
    task: str
    queue: str
    attempt: int
    failures: int
    max_attempts: int
    delivery: Delivery
    created_at: datetime
    started_at: datetime
    timeout: timedelta | None

    @property
    def fence(self) -> tuple[JobId, int]:
        """(job id, attempt): hand it to other systems, so that they can refuse a stale attempt."""
        return (self.id, self.attempt)

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this job: use it to make side effects happen once."""
        return self.id

    @property
    def is_last(self) -> bool:
        """Whether another failure ends the job dead."""
        return self.failures + 1 >= self.max_attempts

    def complete(self, connection: object, result: object = None) -> None:
        """Let the job succeed inside the handler's own open transaction: what it did and its end commit together.

        Raises LeaseLost when the attempt is not the job's current one any more; the transaction must then be rolled
        back. After it, return.
        """
        way = _completion(self, result)
        if not way.store.complete_within(connection, way.ended):
            raise _no_longer_current(self)

    async def complete_async(self, connection: object, result: object = None) -> None:
        """The same for connections that are awaited."""
        way = _completion(self, result)
        if not await way.store.complete_within_async(connection, way.ended):
            raise _no_longer_current(self)


class Completer(Protocol):
    """Who can let an attempt succeed from inside its handler."""

    def ended(self, job: Job, started_at: datetime, result: object) -> Ended:
        """The end that the attempt would have, had its handler returned this."""
        ...


class Entered(msgspec.Struct, frozen=True, gc=False):
    """An attempt whose handler is being run here."""

    job: Job
    max_attempts: int
    timeout: timedelta | None
    started_at: datetime
    store: JobStore | None = None
    """Where it can be completed from inside; None in a child process, which has no store."""
    completer: Completer | None = None


running: ContextVar[Entered | None] = ContextVar("perdure_running", default=None)


def current_job() -> CurrentJob:
    """The job whose attempt the caller is running in; only inside a handler."""
    entered = running.get()
    if entered is None:
        raise UsageError(
            "current_job() was called outside of a handler, so there is no current job.",
            "Call it in a task's function, in the thread or task that Perdure entered it in.",
        )
    job = entered.job
    return CurrentJob(
        id=job.id,
        task=job.task,
        queue=job.queue,
        attempt=job.attempt,
        failures=job.failures,
        max_attempts=entered.max_attempts,
        delivery=job.delivery,
        created_at=job.created_at,
        started_at=entered.started_at,
        timeout=entered.timeout,
    )


class _Completion(msgspec.Struct, frozen=True):
    """Where an attempt can be completed, and its end."""

    store: JobStore
    ended: Ended


def _completion(job: CurrentJob, result: object) -> _Completion:
    entered = running.get()
    if entered is None or entered.store is None or entered.completer is None or entered.job.fence != job.fence:
        raise Unsupported(
            "A job can be completed only where its attempt runs in the worker's own process, by its handler.",
            "Return from the handler instead; the worker commits the success. Tasks with process=True have no store.",
        )
    return _Completion(entered.store, entered.completer.ended(entered.job, entered.started_at, result))


def _no_longer_current(job: CurrentJob) -> LeaseLost:
    return LeaseLost(
        f"Attempt {job.attempt} of job {job.id} is not its current one any more.",
        "Roll the transaction back: another attempt has taken over, or the job has ended.",
    )
