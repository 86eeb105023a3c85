"""Which policy holds for a job: job over task over queue over app, the operator's cap over all, each with an origin."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache

import msgspec

from perdure.errors import BadPolicy
from perdure.model.forward import NOWHERE, Sink
from perdure.model.job import Job
from perdure.model.policy.limit_choice import LimitChoice, Origin, Source
from perdure.model.policy.parser import parse_stored_policy
from perdure.model.policy.retry import Retry
from perdure.model.queue.fairness import checked_retry_queue
from perdure.model.queue.settings import NOTHING_SAID, QueueSettings

__all__ = ["AppPolicy", "Origin", "Policy", "QueuePolicy", "TaskPolicy", "resolve"]


class TaskPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a task says about its jobs; None where it says nothing."""

    retry: Retry | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None


class QueuePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What the code says about a queue and its jobs."""

    retry: Retry | None = None
    retry_place: str | None = None
    """The file that sets `retry`; None where the code does."""
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
    retry_place: str | None = None
    """The file or the environment variable that sets `retry`; None where the code does, or nobody."""
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
    choice: LimitChoice
    """What names limits for the job; `limit` is one of them."""
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
    beneath = _beneath(known, queue, app)
    own = None if job.retry is None else _parsed(job.retry)
    policy = beneath if own is None else Source(own, "job")
    choice = LimitChoice(
        job.max_attempts, known.max_attempts, policy, beneath, app.max_attempts_cap, is_task_known=task is not None
    )
    limit, limit_origin = choice.effective()
    timeout: timedelta | None = known.timeout
    timeout_origin: Origin | None = None if timeout is None else "task"
    if job.timeout is not None:
        timeout, timeout_origin = job.timeout, "job"
    sink, sink_origin = _sink(job, queue, app)
    return Policy(
        retry=policy.retry,
        retry_origin=policy.origin,
        limit=limit,
        limit_origin=limit_origin,
        choice=choice,
        timeout=timeout,
        timeout_origin=timeout_origin,
        retry_queue=queue.retry_queue,
        max_retry_after=app.max_retry_after,
        unknown_task_ttl=app.unknown_task_ttl,
        sink=sink,
        sink_origin=sink_origin,
        is_task_known=task is not None,
    )


def _beneath(task: TaskPolicy, queue: QueuePolicy, app: AppPolicy) -> Source:
    """The policy of a job that has none of its own."""
    if task.retry is not None:
        return Source(task.retry, "task")
    if queue.retry is not None:
        return Source(queue.retry, "queue", queue.retry_place)
    return Source(app.retry, "app", app.retry_place)


def _sink(job: Job, queue: QueuePolicy, app: AppPolicy) -> tuple[Sink | None, Origin | None]:
    sink = queue.sink or app.sink
    origin: Origin = "app" if queue.sink is None else "queue"
    if sink is None:
        return None, None
    # What dies in the very queue that dead jobs are copied to stays there, or copies would be copied for ever.
    return (None if sink == NOWHERE or sink.queue == (job.origin or job.queue) else sink), origin


@lru_cache(maxsize=512)
def _parsed(text: str) -> Retry | None:
    """The job's own policy; None when its text is of a form that this version cannot read.

    Options that only a newer version knows are left out, and the rest of the policy holds.
    """
    try:
        return parse_stored_policy(text)
    except BadPolicy:
        return None
