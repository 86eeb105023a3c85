"""What can be wrong with a job that can be read, as far as its own record tells; for the audits of the SQL engines."""

from __future__ import annotations

from collections.abc import Container, Iterable

from perdure.errors import BadPolicy
from perdure.model.job import Job
from perdure.model.policy.parser import parse_stored_policy
from perdure.model.state import LIVE
from perdure.store.audit import Fault

DAMAGED = "damaged"
"""The reason of a dead job that could not be read when it was claimed."""
PUT_BACK = "put it back into its queue"
HAND_ON = "let `reap` decide about it, as for any job of a vanished worker"


def faults_of(jobs: Iterable[Job], workers: Container[str]) -> list[Fault]:
    """What is wrong with some jobs."""
    found = [fault for job in jobs for fault in (job_fault(job, workers), policy_fault(job))]
    return [fault for fault in found if fault is not None]


def policy_fault(job: Job) -> Fault | None:
    """What is wrong with the job's own retry policy, while that still matters."""
    if job.retry is None or job.is_final:
        return None
    try:
        parse_stored_policy(job.retry)
    except BadPolicy as error:
        problem = f"the job's own retry policy cannot be read: {error.message}"
        return Fault(kind="policy", name=job.id, problem=problem)
    return None


def job_fault(job: Job, workers: Container[str]) -> Fault | None:
    """What is wrong with a job, if anything; `workers` are all that are registered."""
    problem, repair, detail = None, PUT_BACK, "job"
    if job.state == "running" and job.worker is None:
        problem = "it is running, and no worker has it"
    elif job.state == "running" and job.worker not in workers:
        problem, repair, detail = f"it is running for {job.worker}, which is not registered", HAND_ON, "reap"
    elif job.state == "dead" and job.reason == DAMAGED:
        problem = "it was set aside because it could not be read, and can be read now"
    elif job.state != "running" and (job.worker is not None or job.is_cancelling):
        problem, repair = f"it is {job.state}, and has a worker", "take the worker out of its record"
    elif job.state in LIVE and job.ended_at is not None:
        problem, repair = f"it is {job.state}, and has an end", "take the end out of its record"
    elif job.state not in LIVE and job.ended_at is None:
        problem, repair = f"it is {job.state}, and has no end", "let it end now"
    if problem is None:
        return None
    return Fault(kind="job", name=job.id, problem=problem, repair=repair, detail=detail)
