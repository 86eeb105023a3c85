"""What a handler can learn about the attempt it is running in, through `current_job()`."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime, timedelta

import msgspec

from perdure.errors import UsageError
from perdure.model.job import Job, JobId
from perdure.model.state import Delivery


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


running: ContextVar[CurrentJob] = ContextVar("perdure_current_job")


def current_job() -> CurrentJob:
    """The job whose attempt the caller is running in; only inside a handler."""
    try:
        return running.get()
    except LookupError:
        raise UsageError(
            "current_job() was called outside of a handler, so there is no current job.",
            "Call it in a task's function, in the thread or task that Perdure entered it in.",
        ) from None


def describe(job: Job, max_attempts: int, timeout: timedelta | None, started_at: datetime) -> CurrentJob:
    """The view of a job that its handler gets."""
    return CurrentJob(
        id=job.id,
        task=job.task,
        queue=job.queue,
        attempt=job.attempt,
        failures=job.failures,
        max_attempts=max_attempts,
        delivery=job.delivery,
        created_at=job.created_at,
        started_at=started_at,
        timeout=timeout,
    )
