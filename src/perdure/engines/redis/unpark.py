"""Claims parked jobs for a worker that knows their tasks, without waiting until they are due."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.engines.redis.fetch import MOST, set_aside, to_limit
from perdure.engines.redis.record import to_claimed
from perdure.engines.redis.verb import Argument, Call, Verb
from perdure.model.job import Job, WorkerId
from perdure.store.jobs import Want


def unpark(worker: WorkerId, wants: Sequence[Want], tasks: Sequence[str], limit: int) -> Verb[list[Job]]:
    """Claim up to `limit` parked jobs of these tasks, going through the wants in their order."""
    arguments: list[Argument] = [worker.encode(), max(0, min(limit, MOST)), len(tasks), *(t.encode() for t in tasks)]
    for want in wants:
        arguments += (want.queue.encode(), to_limit(want.max_retries_running), to_limit(want.concurrency))
    # Not to be repeated: what a lost answer had claimed is given back after the next beats.
    answer = yield Call("unpark", arguments, is_write=True, is_repeatable=False)
    now, ids, records, args, errors = answer
    jobs, unreadable = to_claimed(ids, records, args, errors, worker, now)
    if unreadable:
        yield set_aside(worker, unreadable)
    return jobs
