"""Claims ready jobs for a worker: lane by lane, in order, under its lease and within the limits of its queues."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from perdure.engines.postgres.rows import (
    CLAIMED,
    ID,
    PRIORITY,
    RUN_AT,
    from_array,
    from_number,
    from_text,
    is_id,
    to_claimed,
)
from perdure.engines.postgres.verb import Row, Script, Step, Verb
from perdure.errors import LeaseLost
from perdure.model.job import Job, JobId, WorkerId
from perdure.store.jobs import Fetched, Want

_by_time, _by_priority = itemgetter(RUN_AT, ID), itemgetter(PRIORITY)
ROOM = CLAIMED
"""Where the room offered stands in a row, after the columns of the job."""


def fetch(worker: WorkerId, wants: Sequence[Want], limit: int, schema: str) -> Verb[Fetched]:
    """Claim up to `limit` jobs, going through the wants in their order."""
    # Jobs that were claimed are either all answered or all left: so several statements share a transaction.
    is_transaction = len(wants) > 1 or any(map(_is_limited, wants))
    return Verb(
        lambda: _script(worker, wants, limit, schema),
        is_transaction=is_transaction,
        plan="fetch",
    )


def start(worker: WorkerId, attempts: Sequence[tuple[JobId, int]]) -> Verb[list[bool]]:
    """Record that the worker is about to enter the handlers of these attempts."""
    return Verb(lambda: _start(worker, attempts), is_repeatable=True)


def _start(worker: WorkerId, attempts: Sequence[tuple[JobId, int]]) -> Script[list[bool]]:
    known = sorted(attempt for attempt in attempts if is_id(attempt[0]))
    values = {
        "worker": from_text(worker),
        "ids": from_array(job_id for job_id, _ in known),
        "attempts": from_array(str(attempt) for _, attempt in known),
    }
    started = {job_id for (job_id,) in (yield Step("start", values))}
    return [job_id in started for job_id, _ in attempts]


def _script(worker: WorkerId, wants: Sequence[Want], limit: int, schema: str) -> Script[Fetched]:
    claimed: dict[str, list[Row]] = {want.queue: [] for want in wants}
    left = limit
    rooms: list[int] = []
    in_vain: set[str] = set()
    is_checked = False
    if limit > 0 and len(wants) > 1:
        names = {from_text(want.queue) for want in wants}
        ((is_living, ready),) = yield Step("fetch_lease", {"worker": from_text(worker), "queues": sorted(names)})
        _check(worker, is_living)
        is_checked = True
        in_vain = {want.queue for want in wants if from_text(want.queue) not in ready}
    if limit > 0:
        limited = {want.queue for want in wants if _is_limited(want) and want.queue not in in_vain}
        if limited:
            yield Step("fetch_lock", {"keys": [f"perdure {schema} {from_text(queue)}" for queue in limited]})
    for want in wants:
        room, count = 0, min(want.count, left)
        if count > 0 and want.queue not in in_vain:
            values = _values(worker, want, count)
            rows = yield Step("fetch", values)
            if rows:
                room = offered = rows[0][ROOM]
            else:
                ((offered, could_give, is_living),) = yield Step("fetch_nothing", values)
                _check(worker, is_living)
                room = offered if want.is_strict and could_give else 0
            is_checked = True
            if len(rows) < offered:
                in_vain.add(want.queue)
            claimed[want.queue] += rows
            left -= len(rows)
        rooms.append(room)
    if not is_checked:
        ((is_living, _),) = yield Step("fetch_lease", {"worker": from_text(worker), "queues": []})
        _check(worker, is_living)
    return Fetched(jobs=_in_order(claimed, worker), rooms=tuple(rooms))


def _in_order(claimed: dict[str, list[Row]], worker: WorkerId) -> list[Job]:
    """The jobs queue by queue: priority, then run_at, then id."""
    jobs: list[Job] = []
    for queue, rows in claimed.items():
        rows.sort(key=_by_time)
        rows.sort(key=_by_priority, reverse=True)
        jobs += to_claimed(rows, queue, worker)
    return jobs


def _is_limited(want: Want) -> bool:
    return want.max_retries_running is not None or want.concurrency is not None


def _values(worker: WorkerId, want: Want, count: int) -> dict[str, object]:
    return {
        "worker": from_text(worker),
        "queue": from_text(want.queue),
        "count": str(count),
        "share": str(want.retry_share),
        "carry": str(want.carry),
        "is_strict": want.is_strict,
        "max_retries_running": from_number(want.max_retries_running),
        "concurrency": from_number(want.concurrency),
    }


def _check(worker: WorkerId, is_living: bool) -> None:
    if not is_living:
        raise LeaseLost(
            f"The lease of worker {worker} has run out, or it never registered.", "Register under a new id."
        )
