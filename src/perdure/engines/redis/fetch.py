"""Claims ready jobs for a worker: lane by lane, in order, under its lease and within the limits of its queues."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.engines.redis.record import to_claimed
from perdure.engines.redis.verb import Argument, Call, Verb, Waiting
from perdure.errors import LeaseLost
from perdure.model.job import JobId, WorkerId
from perdure.store.jobs import Fetched, Want

MOST = 1000
"""The most jobs that one claim takes; a fetch may always give fewer than it was asked for."""


def fetch(worker: WorkerId, wants: Sequence[Want], limit: int, *, waiting: Waiting | None = None) -> Verb[Fetched]:
    """Claim up to `limit` jobs, going through the wants in their order; wait for a bell before, if that is given."""
    arguments: list[Argument] = [worker.encode(), max(0, min(limit, MOST))]
    for want in wants:
        arguments += (want.queue.encode(), want.count, want.retry_share, want.carry, b"1" if want.is_strict else b"")
        arguments += (to_limit(want.max_retries_running), to_limit(want.concurrency))
    # Not to be repeated: what a lost answer had claimed is given back after the next beats.
    answer = yield Call("fetch", arguments, is_write=True, is_repeatable=False, waiting=waiting)
    if answer is None:
        raise LeaseLost(
            f"The lease of worker {worker} has run out, or it never registered.", "Register under a new id."
        )
    now, ids, records, args, errors, lines, rooms = answer
    jobs, unreadable = to_claimed(ids, records, args, errors, worker, now)
    if unreadable:
        yield set_aside(worker, unreadable)
    if lines > 1:
        order = {want.queue: position for position, want in reversed(list(enumerate(wants)))}
        jobs.sort(key=lambda job: (order[job.queue], -job.priority, job.run_at, job.id))
    return Fetched(jobs=jobs, rooms=tuple(rooms))


def start(worker: WorkerId, attempts: Sequence[tuple[JobId, int]]) -> Verb[list[bool]]:
    """Record that the worker is about to enter the handlers of these attempts."""
    arguments: list[Argument] = [worker.encode()]
    for job_id, attempt in attempts:
        arguments += (job_id.encode(), attempt)
    started = set((yield Call("start", arguments, is_write=True)))
    return [job_id.encode() in started for job_id, _ in attempts]


def set_aside(worker: WorkerId, jobs: Sequence[tuple[bytes, bytes]]) -> Call:
    """The call that takes jobs from a worker that cannot be read: of each its id, and its record before the claim."""
    arguments: list[Argument] = [worker.encode()]
    for job_id, before in jobs:
        arguments += (job_id, before)
    return Call("set_aside", arguments, is_write=True)


def to_limit(limit: int | None) -> Argument:
    return b"" if limit is None else limit
