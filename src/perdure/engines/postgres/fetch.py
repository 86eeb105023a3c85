"""Claims ready jobs for a worker: lane by lane, in order, under its lease and within the cap on running retries."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.engines.postgres.rows import from_text, to_job
from perdure.engines.postgres.verb import Script, Step, Verb
from perdure.errors import LeaseLost
from perdure.model.job import Job, WorkerId
from perdure.store.jobs import Want


def fetch(worker: WorkerId, wants: Sequence[Want], limit: int, schema: str) -> Verb[list[Job]]:
    """Claim up to `limit` jobs, going through the wants in their order."""
    capped = [want for want in wants if want.max_retries_running is not None]
    # Jobs that were claimed are either all answered or all left: so several statements share a transaction.
    return Verb(lambda: _script(worker, wants, limit, schema), is_transaction=bool(capped) or len(wants) > 1)


def _script(worker: WorkerId, wants: Sequence[Want], limit: int, schema: str) -> Script[list[Job]]:
    claimed: list[Job] = []
    is_checked = False
    if limit > 0:
        if len(wants) > 1:
            names = {from_text(want.queue) for want in wants}
            ((is_living, ready),) = yield Step("fetch_lease", {"worker": from_text(worker), "queues": sorted(names)})
            _check(worker, is_living)
            is_checked = True
            wants = [want for want in wants if from_text(want.queue) in ready]
        keys = [f"perdure {schema} {from_text(want.queue)}" for want in wants if want.max_retries_running is not None]
        if keys:
            yield Step("fetch_lock", {"keys": keys})
        for want in wants:
            fresh, retry = fit(want, limit - len(claimed))
            if fresh + retry > 0:
                rows = yield Step("fetch", _values(worker, want, fresh, retry))
                _check(worker, rows[0][-1])
                is_checked = True
                claimed += [to_job(row) for row in rows if row[0] is not None]
    if not is_checked:
        ((is_living, _),) = yield Step("fetch_lease", {"worker": from_text(worker), "queues": []})
        _check(worker, is_living)
    order = {want.queue: position for position, want in reversed(list(enumerate(wants)))}
    return sorted(claimed, key=lambda job: (order[job.queue], -job.priority, job.run_at, job.id))


def fit(want: Want, room: int) -> tuple[int, int]:
    """How many fresh and retry jobs to ask for, both lanes cut alike when there is less room than wanted."""
    fresh, retry = max(0, want.fresh), max(0, want.retry)
    wanted = fresh + retry
    if wanted <= room:
        return fresh, retry
    retry = (2 * room * retry + wanted) // (2 * wanted)
    return room - retry, retry


def _values(worker: WorkerId, want: Want, fresh: int, retry: int) -> dict[str, object]:
    return {
        "worker": from_text(worker),
        "queue": from_text(want.queue),
        "fresh": fresh,
        "retry": retry,
        "whole": fresh + retry,
        "is_strict": want.is_strict,
        "max_retries_running": want.max_retries_running,
    }


def _check(worker: WorkerId, is_living: bool) -> None:
    if not is_living:
        raise LeaseLost(
            f"The lease of worker {worker} has run out, or it never registered.", "Register under a new id."
        )
