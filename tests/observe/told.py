"""Jobs and events as the runtime would tell them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from perdure.model.decide import decide
from perdure.model.event import AttemptEnded
from perdure.model.failure import Failure
from perdure.model.job import Job, JobId, NewJob, WorkerId
from perdure.model.outcome import Ending, Raised, Returned
from perdure.model.policy.resolve import AppPolicy, QueuePolicy, TaskPolicy, resolve
from perdure.model.policy.retry import Retry

NOW = datetime(2024, 1, 1, 12, 0, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
JOB = JobId("01890a5d-ac96-774b-bcce-b302099a8057")


def a_job(**changes: Any) -> Job:
    """A job that is running."""
    given: dict[str, Any] = {
        "id": JOB,
        "task": "send",
        "queue": "mail",
        "state": "running",
        "lane": "fresh",
        "args": b"{}",
        "priority": 0,
        "run_at": NOW,
        "attempt": 1,
        "failures": 0,
        "recoveries": 0,
        "delivery": "at_least_once",
        "created_at": NOW,
        "worker": WorkerId("worker-1"),
    }
    return Job(**{**given, **changes})


def a_new_job(**changes: Any) -> NewJob:
    return NewJob(**{"id": JOB, "task": "send", "queue": "mail", "args": b"{}", **changes})


def raised(kind: str = "ValueError", message: str = "it broke") -> Raised:
    return Raised(error=Failure(type=kind, message=message, lineage=(kind, "Exception")))


def attempt(
    ending: Ending | None = None,
    *,
    retry: Retry | None = None,
    wait: timedelta = SECOND,
    took: timedelta = SECOND,
    **changes: Any,
) -> AttemptEnded:
    """An attempt as it is told, decided about by the real decision."""
    job = a_job(**changes)
    own = TaskPolicy(retry=retry or Retry.preset("scheduler"))
    policy = resolve(job, own, QueuePolicy(), AppPolicy(retry=Retry.preset("standard")))
    started_at = job.run_at + wait
    outcome = decide(job, ending or Returned(), policy, started_at + took, Random(1))
    return AttemptEnded(job=job, outcome=outcome, limit=policy.limit, started_at=started_at, ended_at=started_at + took)
