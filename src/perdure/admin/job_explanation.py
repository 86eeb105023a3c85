"""Why a job is where it is and until when, in a sentence: what people ask first when a job does not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from perdure.model.job import Job
from perdure.store.reads import QueueInfo
from perdure.store.workers import WorkerInfo


def standing(job: Job, queue: QueueInfo | None, workers: Sequence[WorkerInfo], now: datetime) -> str:
    """Why the job is in its state; `queue` and `workers` are what the store knows of them."""
    match job.state:
        case "waiting":
            return _waiting(job, queue, workers, now)
        case "ready":
            return _ready(job, queue, workers, now)
        case "running":
            return _running(job, workers, now)
        case "succeeded":
            return f"Attempt {job.attempt} succeeded."
        case "cancelled":
            if job.reason == "discarded":
                return "It was dead, and a person discarded it."
            return "It was cancelled."
        case "dead":
            return _DEAD.get(job.reason or "", f"It ended without success: {job.reason or 'no reason kept'}.")


_DEAD: Mapping[str, str] = {
    "exhausted": "It failed as often as it may.",
    "timeout": "Its last permitted attempt ran past the timeout.",
    "lost": "Its worker vanished during the last permitted attempt.",
    "failed": "It is delivered at most once and failed, so it may not start again.",
    "outcome unknown": "It is delivered at most once, and nobody can tell whether it ran.",
    "expired": "The next retry would have come after the time that its policy allows (within).",
    "unrecoverable": "Its handler gave up, or its policy never retries this error.",
    "unknown task": "No worker knew its task for too long.",
    "bad payload": "Its arguments do not decode or do not fit the handler.",
}

_WAITS: Mapping[str | None, str] = {
    None: "It was enqueued for later.",
    "failed": "Attempt {attempt} failed; it waits for its retry.",
    "timeout": "Attempt {attempt} ran past its timeout; it waits for its retry.",
    "lost": "The worker of attempt {attempt} vanished; it waits for its retry.",
    "snoozed": "Its handler asked to be run later; nothing was counted.",
    "released": "It was given back when its worker stopped; nothing was counted.",
    "scheduled": "It waits for the next time of its schedule.",
    "paused": "Its schedule is paused; the time shown is when it would run if it were resumed now.",
    "broken": "Its schedule cannot fire here; `perdure schedules show` says why.",
    "parked": "No worker that serves its queue knows its task; it waits for one that does.",
}


def _waiting(job: Job, queue: QueueInfo | None, workers: Sequence[WorkerInfo], now: datetime) -> str:
    why = _WAITS.get(job.reason, _WAITS[None]).format(attempt=job.attempt)
    if job.run_at > now:
        return why
    blocked = _blocked(job, queue, workers, now)
    return f"{why} It is due now, but {blocked}." if blocked else f"{why} It is due now."


def _ready(job: Job, queue: QueueInfo | None, workers: Sequence[WorkerInfo], now: datetime) -> str:
    blocked = _blocked(job, queue, workers, now)
    return f"It could run now, but {blocked}." if blocked else "It waits for a free slot of a worker."


def _blocked(job: Job, queue: QueueInfo | None, workers: Sequence[WorkerInfo], now: datetime) -> str | None:
    if queue is not None and queue.is_paused:
        end = "" if queue.paused_until is None else f" until {queue.paused_until:%Y-%m-%d %H:%M:%S} UTC"
        return f"the queue {job.queue!r} is paused{end}" + (f" ({queue.pause_reason})" if queue.pause_reason else "")
    alive = [worker for worker in workers if worker.lease_until > now]
    if not any(job.queue in worker.queues for worker in alive):
        return f"no living worker serves the queue {job.queue!r}"
    limit = None if queue is None else queue.settings.concurrency
    if queue is not None and isinstance(limit, int) and queue.running >= limit:
        return f"the queue {job.queue!r} runs as many jobs at once as an operator lets it ({limit})"
    return None


def _running(job: Job, workers: Sequence[WorkerInfo], now: datetime) -> str:
    owner = next((worker for worker in workers if worker.id == job.worker), None)
    if owner is None or owner.lease_until <= now:
        return f"Attempt {job.attempt} was running when its worker vanished; any living worker will notice."
    asked = " Its worker has been asked to cancel it." if job.is_cancelling else ""
    return f"Attempt {job.attempt} runs on {owner.host}, process {owner.pid}.{asked}"
