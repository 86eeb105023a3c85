"""Which policy holds for a job: job over task over queue over app, the operator's cap over all, each with an origin."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Literal

import msgspec

from perdure.errors import BadPolicy
from perdure.model.fairness import checked_retry_queue
from perdure.model.forward import NOWHERE, Sink
from perdure.model.job import Job
from perdure.model.queue_settings import NOTHING_SAID, QueueSettings
from perdure.model.retry import Retry

Origin = Literal["job", "task", "queue", "app", "operator's cap"]


class TaskPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a task says about its jobs; None where it says nothing."""

    retry: Retry | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None


class QueuePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What the code says about a queue and its jobs."""

    retry: Retry | None = None
    retry_queue: str | None = None
    """Where jobs move after their first failure."""
    settings: QueueSettings = NOTHING_SAID
    sink: Sink | None = None
    """Where its dead jobs are forwarded to; None where the code says nothing."""

    def __post_init__(self) -> None:
        if self.retry_queue is not None:
            checked_retry_queue(self.retry_queue)


class AppPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What holds when nobody nearer says anything, and what nobody may exceed."""

    retry: Retry
    max_attempts_cap: int | None = None
    max_retry_after: timedelta = timedelta(days=1)
    unknown_task_ttl: timedelta = timedelta(days=7)
    sink: Sink | None = None


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The policy that holds for one job, every value with its origin."""

    retry: Retry
    retry_origin: Origin
    limit: int
    """The effective max_attempts: the most failures that the job may have."""
    limit_origin: Origin
    timeout: timedelta | None
    timeout_origin: Origin | None
    retry_queue: str | None
    max_retry_after: timedelta
    unknown_task_ttl: timedelta
    sink: Sink | None = None
    """Where the job is forwarded to when it dies."""
    sink_origin: Origin | None = None
    """Who says so, or says that it stays; None where nobody says anything."""
    is_task_known: bool = True
    """Whether the task's own policy was at hand; without it nobody may declare the job exhausted."""


def resolve(job: Job, task: TaskPolicy | None, queue: QueuePolicy, app: AppPolicy) -> Policy:
    """The policy for a job; `task` is None where the task is not registered."""
    known = task or TaskPolicy()
    retry, retry_origin = _retry(job, known, queue, app)
    limit, limit_origin = _limit(job, known, retry, retry_origin)
    if app.max_attempts_cap is not None and limit > app.max_attempts_cap:
        limit, limit_origin = app.max_attempts_cap, "operator's cap"
    timeout: timedelta | None = known.timeout
    timeout_origin: Origin | None = None if timeout is None else "task"
    if job.timeout is not None:
        timeout, timeout_origin = job.timeout, "job"
    sink, sink_origin = _sink(job, queue, app)
    return Policy(
        retry=retry,
        retry_origin=retry_origin,
        limit=limit,
        limit_origin=limit_origin,
        timeout=timeout,
        timeout_origin=timeout_origin,
        retry_queue=queue.retry_queue,
        max_retry_after=app.max_retry_after,
        unknown_task_ttl=app.unknown_task_ttl,
        sink=sink,
        sink_origin=sink_origin,
        is_task_known=task is not None,
    )


def _retry(job: Job, task: TaskPolicy, queue: QueuePolicy, app: AppPolicy) -> tuple[Retry, Origin]:
    own = None if job.retry is None else _parsed(job.retry)
    if own is not None:
        return own, "job"
    if task.retry is not None:
        return task.retry, "task"
    if queue.retry is not None:
        return queue.retry, "queue"
    return app.retry, "app"


def _limit(job: Job, task: TaskPolicy, retry: Retry, retry_origin: Origin) -> tuple[int, Origin]:
    if job.max_attempts is not None:
        return job.max_attempts, "job"
    # A job's own policy brings its own limit; it would be odd if the task's number overruled the nearer policy.
    if task.max_attempts is not None and retry_origin != "job":
        return task.max_attempts, "task"
    return retry.max_attempts, retry_origin


def _sink(job: Job, queue: QueuePolicy, app: AppPolicy) -> tuple[Sink | None, Origin | None]:
    sink = queue.sink or app.sink
    origin: Origin = "app" if queue.sink is None else "queue"
    if sink is None:
        return None, None
    # What dies in the very queue that dead jobs are copied to stays there, or copies would be copied for ever.
    return (None if sink == NOWHERE or sink.queue == (job.origin or job.queue) else sink), origin


@lru_cache(maxsize=512)
def _parsed(text: str) -> Retry | None:
    """The job's own policy; None when its text is of a form that this version does not know."""
    try:
        return Retry.parse(text)
    except BadPolicy:
        return None
