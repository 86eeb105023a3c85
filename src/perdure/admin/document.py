"""Jobs, attempts, queues, workers, groups and schedules as plain data: what `--json` prints, in snake_case.

Times are ISO text ending in `Z`, durations are seconds, arguments and results are JSON values.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from perdure.admin.inspect import Stats
from perdure.admin.payload_view import EVERYTHING, PayloadView
from perdure.admin.schedules import description
from perdure.model.forward import Forward
from perdure.model.job import Attempt, Job
from perdure.model.queue.settings import QueueSettings
from perdure.model.schedule.definition import Schedule
from perdure.model.state import STATES
from perdure.store.reads import ErrorGroup, QueueInfo
from perdure.store.workers import WorkerInfo

Document = dict[str, Any]


def job_document(job: Job, view: PayloadView = EVERYTHING) -> Document:
    """A job with all that is kept of it, as far as the view shows it."""
    return {
        "id": job.id,
        "task": job.task,
        "queue": job.queue,
        "origin": job.origin,
        "state": job.state,
        "lane": job.lane,
        "reason": job.reason,
        "args": view.payload(job.args),
        "result": None if job.result is None else view.payload(job.result),
        "priority": job.priority,
        "delivery": job.delivery,
        "unique": job.unique,
        "retry": job.retry,
        "max_attempts": job.max_attempts,
        "timeout": seconds(job.timeout),
        "attempt": job.attempt,
        "failures": job.failures,
        "recoveries": job.recoveries,
        "delay": seconds(job.delay),
        "error": None if job.error is None else view.failure(job.error),
        "group": job.error.fingerprint(job.task) if job.error is not None and job.state == "dead" else None,
        "worker": job.worker,
        "is_cancelling": job.is_cancelling,
        "created_at": moment(job.created_at),
        "run_at": moment(job.run_at),
        "started_at": moment(job.started_at),
        "ended_at": moment(job.ended_at),
        "parked_at": moment(job.parked_at),
        "schedule": job.schedule,
        "tick_at": moment(job.tick_at),
    }


def forward_document(forward: Forward | None, view: PayloadView = EVERYTHING) -> Document | None:
    """How far the forwarding of a dead job is; None when it is not to be forwarded."""
    if forward is None:
        return None
    return {
        "state": forward.state,
        "sink": forward.sink,
        "tries": forward.tries,
        "error": None if forward.error is None else view.text(forward.error),
        "next_at": moment(forward.next_at),
        "tried_at": moment(forward.tried_at),
        "forwarded_at": moment(forward.forwarded_at),
    }


def attempt_document(attempt: Attempt, view: PayloadView = EVERYTHING) -> Document:
    """One attempt."""
    return {
        "attempt": attempt.attempt,
        "retry_count": attempt.attempt - 1,
        "outcome": attempt.outcome,
        "reason": attempt.reason,
        "error": None if attempt.error is None else view.failure(attempt.error),
        "worker": attempt.worker,
        "started_at": moment(attempt.started_at),
        "ended_at": moment(attempt.ended_at),
        "delay": seconds(attempt.delay),
    }


def queue_document(queue: QueueInfo, now: datetime) -> Document:
    """A queue, with the age of the job that has been ready for longest."""
    oldest = None if queue.oldest_ready_at is None else max(timedelta(0), now - queue.oldest_ready_at)
    return {
        "name": queue.name,
        **{state: getattr(queue, state) for state in STATES},
        "retrying": queue.retrying,
        "oldest_ready_age": seconds(oldest),
        "is_paused": queue.is_paused,
        "paused_at": moment(queue.paused_at),
        "pause_reason": queue.pause_reason,
        "paused_until": moment(queue.paused_until),
        "settings": settings_document(queue.settings),
    }


def settings_document(settings: QueueSettings) -> Document:
    """What an operator has set; null where nothing is."""
    return {
        "retry_share": settings.retry_share,
        "strict": settings.is_strict,
        "max_retries_running": settings.max_retries_running,
        "concurrency": settings.concurrency,
    }


def worker_document(worker: WorkerInfo, now: datetime) -> Document:
    """A worker, and whether its lease still runs."""
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "queues": list(worker.queues),
        "concurrency": worker.concurrency,
        "running": worker.running,
        "version": worker.version,
        "is_alive": worker.lease_until > now,
        "started_at": moment(worker.started_at),
        "beat_at": moment(worker.beat_at),
        "lease_until": moment(worker.lease_until),
    }


def group_document(group: ErrorGroup, view: PayloadView = EVERYTHING) -> Document:
    """An error group."""
    return {
        "fingerprint": group.fingerprint,
        "task": group.task,
        "count": group.count,
        "first_at": moment(group.first_at),
        "last_at": moment(group.last_at),
        "sample": None if group.sample is None else view.failure(group.sample),
        "sample_id": group.sample_id,
    }


def schedule_document(schedule: Schedule, view: PayloadView = EVERYTHING) -> Document:
    """A schedule with its definition, how it stands, and what it has done, as far as the view shows it."""
    known = schedule.definition
    return {
        "name": schedule.name,
        "state": schedule.standing,
        "problem": schedule.problem,
        "cron": known.cron,
        "tz": known.tz,
        "description": description(schedule),
        "is_recurring": known.is_recurring,
        "overlap": known.overlap,
        "missed": known.missed,
        "origin": schedule.origin,
        "task": known.task,
        "args": view.payload(known.args),
        "queue": known.queue,
        "priority": known.priority,
        "delivery": known.delivery,
        "retry": known.retry,
        "max_attempts": known.max_attempts,
        "timeout": seconds(known.timeout),
        "next_at": moment(schedule.next_tick_at),
        "last_tick_at": moment(schedule.last_tick_at),
        "last_job_id": schedule.last_job_id,
        "is_busy": schedule.is_busy,
        "fired": schedule.fired,
        "skipped": schedule.skipped,
        "queued": [moment(tick) for tick in schedule.backlog],
        "created_at": moment(schedule.created_at),
        "named_at": moment(schedule.named_at),
    }


def stats_document(stats: Stats) -> Document:
    """The numbers over all queues, and each queue's."""
    return {
        "at": moment(stats.at),
        "states": {state: getattr(stats, state) for state in STATES},
        "retrying": stats.retrying,
        "workers": stats.workers,
        "oldest_ready_age": seconds(stats.oldest_ready_age),
        "forwards": dict(stats.forwards),
        "queues": [queue_document(queue, stats.at) for queue in stats.queues],
    }


def moment(at: datetime | None) -> str | None:
    """A moment as ISO text in UTC."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def seconds(duration: timedelta | None) -> float | None:
    """A duration in seconds."""
    return None if duration is None else duration.total_seconds()
