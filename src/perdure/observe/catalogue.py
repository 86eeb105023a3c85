"""Every metric by name: its kind, labels and meaning. Exposition, alert rules, dashboard and docs all read it here."""

from __future__ import annotations

from typing import Literal

import msgspec

PREFIX = "perdure_"

Kind = Literal["counter", "gauge", "histogram"]

_JOB = ("queue", "task")


class Metric(msgspec.Struct, frozen=True):
    """One metric, as it is exported."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str

    @property
    def samples(self) -> tuple[str, ...]:
        """The names under which its values appear."""
        if self.kind == "histogram":
            return tuple(f"{self.name}{suffix}" for suffix in ("_bucket", "_count", "_sum"))
        return (self.name,)


def _counter(name: str, labels: tuple[str, ...], meaning: str) -> Metric:
    return Metric(f"{PREFIX}{name}_total", "counter", labels, meaning)


def _histogram(name: str, labels: tuple[str, ...], meaning: str) -> Metric:
    return Metric(f"{PREFIX}{name}_seconds", "histogram", labels, meaning)


def _gauge(name: str, labels: tuple[str, ...], meaning: str) -> Metric:
    return Metric(f"{PREFIX}{name}", "gauge", labels, meaning)


JOBS_ENQUEUED = _counter(
    "jobs_enqueued", _JOB, "jobs that this process made: enqueued, fired by schedules, copied to a sink's queue"
)
ATTEMPTS = _counter("attempts", (*_JOB, "outcome"), "attempts that ended, by how")
RETRIES = _counter("retries", _JOB, "attempts that followed a failure")
RETRY_EXHAUSTED = _counter("retry_exhausted", _JOB, "jobs that failed as often as their limit allows")
JOBS_FAILED = _counter("jobs_failed", _JOB, "attempts that failed, those included that are tried again")
JOBS_REQUEUED = _counter("jobs_requeued", _JOB, "failures that were followed by a retry")
JOBS_BURIED = _counter("jobs_failed_permanently", _JOB, "jobs that became dead")
JOBS_DLQ_FAILED = _counter("jobs_dlq_failed", _JOB, "dead jobs whose copy could not be handed to their sink")
COMMITS_LOST = _counter("commits_lost", _JOB, "outcomes that came too late: the job had moved on")
LEASE_LOST = _counter("lease_lost", (), "how often this worker lost its lease")

JOB_WAIT = _histogram("job_wait", _JOB, "from when a job was due to the start of its attempt")
ATTEMPT_DURATION = _histogram("attempt_duration", _JOB, "how long attempts ran")
RETRY_LATENCY = _histogram("retry_latency", _JOB, "the delays chosen before retries")
SCHEDULE_LAG = _histogram("schedule_lag", (), "from when a tick was due to when it was fired")

UP = _gauge("up", (), "1 if the store answered, else 0")
QUEUE_JOBS = _gauge("queue_jobs", ("queue", "state"), "jobs in the store")
QUEUE_OLDEST = _gauge("queue_oldest_ready_age_seconds", ("queue",), "how long the oldest ready job has been due")
QUEUE_PAUSED = _gauge("queue_paused", ("queue",), "1 while the queue is paused, else 0")
WORKERS = _gauge("workers", (), "workers with a lease that holds, of all processes")
WORKER_SLOTS = _gauge("worker_slots", ("state",), "this process's slots, busy or free")
BUILD_INFO = _gauge("build_info", ("version", "engine"), "always 1; its labels say what runs here")

CATALOGUE: tuple[Metric, ...] = (
    JOBS_ENQUEUED,
    ATTEMPTS,
    RETRIES,
    RETRY_EXHAUSTED,
    JOBS_FAILED,
    JOBS_REQUEUED,
    JOBS_BURIED,
    JOBS_DLQ_FAILED,
    COMMITS_LOST,
    LEASE_LOST,
    JOB_WAIT,
    ATTEMPT_DURATION,
    RETRY_LATENCY,
    SCHEDULE_LAG,
    UP,
    QUEUE_JOBS,
    QUEUE_OLDEST,
    QUEUE_PAUSED,
    WORKERS,
    WORKER_SLOTS,
    BUILD_INFO,
)

BUCKETS: tuple[float, ...] = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600,
)  # fmt: skip
"""The upper ends of the histograms' buckets, in seconds: from a quick handler to a long back-off."""

COUNTED = {
    JOBS_ENQUEUED: "enqueued",
    RETRIES: "retries",
    RETRY_EXHAUSTED: "exhausted",
    JOBS_FAILED: "failed",
    JOBS_REQUEUED: "requeued",
    JOBS_BURIED: "buried",
    JOBS_DLQ_FAILED: "dlq_failed",
    COMMITS_LOST: "commits_lost",
}
"""The counters by queue and task, and the field of a cell that each is."""
