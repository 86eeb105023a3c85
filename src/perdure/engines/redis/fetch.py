"""Claims ready jobs for a worker: lane by lane, in order, under its lease and within the cap on running retries."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.engines.redis.rows import to_jobs
from perdure.engines.redis.verb import Argument, Call, Verb
from perdure.errors import LeaseLost
from perdure.model.job import Job, WorkerId
from perdure.store.jobs import Want

MOST = 1000
"""The most jobs that one claim takes; a fetch may always give fewer than it was asked for."""


def fetch(worker: WorkerId, wants: Sequence[Want], limit: int) -> Verb[list[Job]]:
    """Claim up to `limit` jobs, going through the wants in their order."""
    arguments: list[Argument] = [worker.encode(), max(0, min(limit, MOST))]
    for want in wants:
        cap: Argument = b"" if want.max_retries_running is None else want.max_retries_running
        arguments += (want.queue.encode(), want.fresh, want.retry, b"1" if want.is_strict else b"", cap)
    # Not to be repeated: what a lost answer had claimed is given back after the next beats.
    answer = yield Call("fetch", arguments, is_write=True, is_repeatable=False)
    if answer is None:
        raise LeaseLost(
            f"The lease of worker {worker} has run out, or it never registered.", "Register under a new id."
        )
    order = {want.queue: position for position, want in reversed(list(enumerate(wants)))}
    return sorted(to_jobs(answer), key=lambda job: (order[job.queue], -job.priority, job.run_at, job.id))
