"""Claims ready jobs for a worker: lane by lane, in order, under its lease and within the limits of its queues."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from perdure.engines.postgres.claim_ranges import Read, Reading
from perdure.engines.postgres.rows import (
    CLAIMED,
    ID,
    LANE,
    PRIORITY,
    RUN_AT,
    from_array,
    from_number,
    from_text,
    is_id,
    to_claimed,
)
from perdure.engines.postgres.slow_claims import SlowClaims
from perdure.engines.postgres.verb import Row, Script, Step, Verb
from perdure.errors import LeaseLost
from perdure.model.job import Job, JobId, WorkerId
from perdure.store.jobs import Fetched, Want

_by_time, _by_priority = itemgetter(RUN_AT, ID), itemgetter(PRIORITY)
ROOM, IS_SLOW = CLAIMED, CLAIMED + 1
"""Where the room offered stands in a row, after the columns of the job, and whether the claim was slow."""

Observed = list[tuple[str, Reading, Read]]
"""What was found in the ranges that claims of slow queues read; it counts when the claims are committed."""


def fetch(worker: WorkerId, wants: Sequence[Want], limit: int, schema: str, slow: SlowClaims) -> Verb[Fetched]:
    """Claim up to `limit` jobs, going through the wants in their order."""
    # Jobs that were claimed are either all answered or all left: so several statements share a transaction.
    is_transaction = len(wants) > 1 or any(map(is_limited, wants))
    observed: Observed = []

    def observe() -> None:
        for queue, reading, read in observed:
            slow.observe(queue, reading, read)

    def script() -> Script[Fetched]:
        observed.clear()
        fetched = yield from _script(worker, wants, limit, schema, slow, observed)
        if observed and not is_transaction:
            observe()
        return fetched

    return Verb(script, is_transaction=is_transaction, plan="fetch", when_committed=observe if is_transaction else None)


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


def _script(
    worker: WorkerId, wants: Sequence[Want], limit: int, schema: str, slow: SlowClaims, observed: Observed
) -> Script[Fetched]:
    claimed: dict[str, list[Row]] = {want.queue: [] for want in wants}
    left = limit
    rooms: list[int] = []
    in_vain: set[str] = set()
    is_checked = False
    if limit > 0 and len(wants) > 1:
        # Whether something is ready in a queue whose claims are slow is found out by claiming.
        peeked = {want.queue: from_text(want.queue) for want in wants if want.queue not in slow}
        ((is_living, ready, is_slow),) = yield _peek(worker, sorted(peeked.values()))
        _check(worker, is_living)
        is_checked = True
        in_vain = {queue for queue, name in peeked.items() if name not in ready}
        if is_slow:
            for queue in peeked:
                slow.suspect(queue)
    if limit > 0:
        limited = {want.queue for want in wants if is_limited(want) and want.queue not in in_vain}
        if limited:
            yield Step("fetch_lock", {"keys": [f"perdure {schema} {from_text(queue)}" for queue in limited]})
    for want in wants:
        room, count = 0, min(want.count, left)
        if count > 0 and want.queue not in in_vain:
            values = _values(worker, want, count)
            reading = slow.next(want.queue)
            if reading is not None:
                rows, offered, could_give = yield from _read(worker, want.queue, values, reading, observed)
            else:
                rows, offered, could_give = yield from _claim(worker, want.queue, values, slow)
            room = offered if rows or (want.is_strict and could_give) else 0
            is_checked = True
            if len(rows) < offered:
                in_vain.add(want.queue)
            claimed[want.queue] += rows
            left -= len(rows)
        rooms.append(room)
    if not is_checked:
        ((is_living, _, _),) = yield _peek(worker, [])
        _check(worker, is_living)
    jobs, unreadable = _in_order(claimed, worker)
    if unreadable:
        yield Step("set_aside", {"ids": unreadable, "worker": from_text(worker)})
    return Fetched(jobs=jobs, rooms=tuple(rooms))


def _peek(worker: WorkerId, names: list[str]) -> Step:
    return Step("fetch_lease", {"worker": from_text(worker), "queues": names, "count": str(len(names))})


def _claim(
    worker: WorkerId, queue: str, values: dict[str, object], slow: SlowClaims
) -> Script[tuple[list[Row], int, bool]]:
    """Claim from the beginning of the index; the jobs, the room offered, and whether a strict want could get any."""
    rows = yield Step("fetch", values)
    if rows:
        offered, could_give, is_slow = rows[0][ROOM], True, rows[0][IS_SLOW]
    else:
        ((offered, could_give, is_living, is_slow),) = yield Step("fetch_nothing", values)
        _check(worker, is_living)
    if is_slow:
        slow.suspect(queue)
    return rows, offered, could_give


def _read(
    worker: WorkerId, queue: str, values: dict[str, object], reading: Reading, observed: Observed
) -> Script[tuple[list[Row], int, bool]]:
    """Claim from ranges of the index; the same, and what was found in them."""
    rows = yield Step("fetch_ranges", {**values, "ranges": reading.text()})
    offered, is_living, is_open, could_give, is_fresh_done, is_retry_done, now, took, snapshot = rows[0][CLAIMED:]
    _check(worker, is_living)
    if rows[0][ID] is None:
        rows = []
    if is_open and offered > 0:
        jobs = [(row[LANE], row[PRIORITY], (row[RUN_AT], row[ID])) for row in rows]
        read = Read(jobs=jobs, are_done=(is_fresh_done, is_retry_done), now=now, took=took, snapshot=snapshot)
        observed.append((queue, reading, read))
    return rows, offered, could_give


def _in_order(claimed: dict[str, list[Row]], worker: WorkerId) -> tuple[list[Job], list[str]]:
    """The jobs queue by queue: priority, then run_at, then id; and the ids of those that cannot be read."""
    jobs: list[Job] = []
    unreadable: list[str] = []
    for queue, rows in claimed.items():
        rows.sort(key=_by_time)
        rows.sort(key=_by_priority, reverse=True)
        some, others = to_claimed(rows, queue, worker)
        jobs += some
        unreadable += others
    return jobs, unreadable


def is_limited(want: Want) -> bool:
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
