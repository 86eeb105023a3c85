"""Claims parked jobs for a worker that knows their tasks, without waiting until they are due."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.engines.postgres.fetch import is_limited
from perdure.engines.postgres.rows import from_number, from_text, to_claimed
from perdure.engines.postgres.verb import Script, Step, Verb
from perdure.model.job import Job, WorkerId
from perdure.store.jobs import Want


def unpark(worker: WorkerId, wants: Sequence[Want], tasks: Sequence[str], limit: int, schema: str) -> Verb[list[Job]]:
    """Claim up to `limit` parked jobs of these tasks, going through the wants in their order."""
    # Jobs that were claimed are either all answered or all left.
    is_transaction = len(wants) > 1 or any(map(is_limited, wants))
    return Verb(lambda: _script(worker, wants, tasks, limit, schema), is_transaction=is_transaction)


def _script(
    worker: WorkerId, wants: Sequence[Want], tasks: Sequence[str], limit: int, schema: str
) -> Script[list[Job]]:
    names = [from_text(task) for task in tasks]
    queues = [from_text(want.queue) for want in wants]
    # Idle polls only read.
    parked = {queue for (queue,) in (yield Step("unpark_peek", {"queues": queues, "tasks": names}))}
    some = [want for want in wants if from_text(want.queue) in parked]
    limited = sorted({want.queue for want in some if is_limited(want)})
    if limited:
        yield Step("fetch_lock", {"keys": [f"perdure {schema} {from_text(queue)}" for queue in limited]})
    jobs: list[Job] = []
    for want in some:
        if len(jobs) < limit:
            values = {
                "worker": from_text(worker),
                "queue": from_text(want.queue),
                "tasks": names,
                "count": str(limit - len(jobs)),
                "max_retries_running": from_number(want.max_retries_running),
                "concurrency": from_number(want.concurrency),
            }
            rows = yield Step("unpark", values)
            claimed, unreadable = to_claimed(rows, want.queue, worker)
            jobs += claimed
            if unreadable:
                yield Step("set_aside", {"ids": unreadable, "worker": from_text(worker)})
    return jobs
