"""Claims ready jobs for a worker: lane by lane, in order, under its lease and within the limits of its queues."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial

import msgspec

from perdure.engines.set_aside import UNREADABLE, readable
from perdure.engines.sqlite.request import NOT_ANSWERED, NotAnswered
from perdure.engines.sqlite.rows import ClaimedRow, read_rows, to_claimed_job, to_job
from perdure.engines.sqlite.sql import statement
from perdure.errors import LeaseLost
from perdure.model.job import Job, JobId, WorkerId
from perdure.model.queue.fairness import split
from perdure.store.jobs import Fetched, Want
from perdure.system.clock import from_microseconds

_decode_rowids = msgspec.json.Decoder(list[int]).decode
_decode_rows = msgspec.json.Decoder(list[ClaimedRow]).decode


class _Candidates(msgspec.Struct, frozen=True):
    """What a queue could give: rowids of ready jobs by lane, in order, as far as its cap on running retries allows."""

    fresh: list[int]
    retry: list[int]


def peek(
    connection: sqlite3.Connection, now: int, worker: WorkerId, wants: Sequence[Want], limit: int
) -> Fetched | NotAnswered:
    """Nothing, if nothing is ready; so that an idle worker's polls take no lock."""
    _check_lease(connection, worker)
    queues = msgspec.json.encode([want.queue for want in wants]).decode()
    if limit > 0 and connection.execute(statement("fetch_peek"), {"queues": queues}).fetchone()[0]:
        return NOT_ANSWERED
    return Fetched(jobs=[], rooms=(0,) * len(wants))


def fetch(connection: sqlite3.Connection, now: int, worker: WorkerId, wants: Sequence[Want], limit: int) -> Fetched:
    """Claim up to `limit` jobs, going through the wants in their order."""
    _check_lease(connection, worker)
    claimed: list[Job] = []
    is_in_order = len(wants) == 1
    rooms: list[int] = []
    short: set[str] = set()
    for want in wants:
        room = 0 if want.queue in short else room_of(connection, want, limit - len(claimed))
        chosen: list[int] = []
        if room > 0:
            found = _candidates(connection, now, want, room)
            fresh, retry = _choose(want, room, found)
            chosen = fresh + retry
            is_in_order = is_in_order and not (fresh and retry)
            if len(chosen) < room:
                short.add(want.queue)
            room = room if found.fresh or found.retry else 0
        # Claimed at once, so that a later want of the same queue neither chooses nor counts these again.
        if chosen:
            claimed += claim(connection, now, worker, chosen)
        rooms.append(room)
    if not is_in_order:
        order = {want.queue: position for position, want in reversed(list(enumerate(wants)))}
        claimed.sort(key=lambda job: (order[job.queue], -job.priority, job.run_at, job.id))
    return Fetched(jobs=claimed, rooms=tuple(rooms))


def claim(connection: sqlite3.Connection, now: int, worker: WorkerId, chosen: list[int]) -> list[Job]:
    values = {"rowids": msgspec.json.encode(chosen).decode(), "worker": worker, "now": now}
    connection.execute(statement("fetch"), values)
    started_at = from_microseconds(now)
    try:
        (found,) = connection.execute(statement("fetch_claimed"), values).fetchone()
        return [to_claimed_job(row, worker, started_at) for row in _decode_rows(found)]
    except (*UNREADABLE, sqlite3.OperationalError):
        # One of them cannot be read: the others are told from it one by one.
        return _claim_readable(connection, now, worker, chosen)


def _claim_readable(connection: sqlite3.Connection, now: int, worker: WorkerId, chosen: list[int]) -> list[Job]:
    jobs: list[Job] = []
    for rowid in chosen:
        (row,) = read_rows(connection, statement("fetch_one"), {"rowid": rowid})
        job = readable("job", row[0], partial(to_job, row))
        if job is None:
            connection.execute(statement("set_aside"), {"id": row[0], "worker": worker, "now": now})
        else:
            jobs.append(job)
    return jobs


def start(
    connection: sqlite3.Connection, now: int, worker: WorkerId, attempts: Sequence[tuple[JobId, int]]
) -> list[bool]:
    """Record that the worker is about to enter the handlers of these attempts."""
    if not holds_lease(connection, worker):
        return [False] * len(attempts)
    values = {"attempts": msgspec.json.encode(attempts).decode(), "worker": worker, "now": now}
    started = {job_id for (job_id,) in connection.execute(statement("start"), values).fetchall()}
    return [job_id in started for job_id, _ in attempts]


def _check_lease(connection: sqlite3.Connection, worker: WorkerId) -> None:
    if not holds_lease(connection, worker):
        raise LeaseLost(
            f"The lease of worker {worker} has run out, or it never registered.", "Register under a new id."
        )


def holds_lease(connection: sqlite3.Connection, worker: WorkerId) -> bool:
    return bool(connection.execute(statement("fetch_lease"), {"worker": worker}).fetchone()[0])


def room_of(connection: sqlite3.Connection, want: Want, left: int) -> int:
    """How many jobs the want may have: what it asks for, as far as the limits of the fetch and of its queue go."""
    room = min(want.count, left)
    if want.concurrency is not None and room > 0:
        # [INV-17] Counted under the write lock of the claim, so that the limit is exact over all workers.
        (running,) = connection.execute(statement("fetch_running"), {"queue": want.queue}).fetchone()
        room = min(room, want.concurrency - running)
    return max(0, room)


def _choose(want: Want, room: int, found: _Candidates) -> tuple[list[int], list[int]]:
    """The rowids that the want gets of its room, by lane."""
    fresh, retry, _ = split(room, want.retry_share, want.carry)
    if not want.is_strict:
        retry = max(min(retry, len(found.retry)), min(room - len(found.fresh), len(found.retry)))
        fresh = room - retry
    return found.fresh[:fresh], found.retry[:retry]


def _candidates(connection: sqlite3.Connection, now: int, want: Want, room: int) -> _Candidates:
    values = {"queue": want.queue, "room": room, "max_retries_running": want.max_retries_running, "now": now}
    row = connection.execute(statement("fetch_candidates"), values).fetchone()
    return _Candidates(fresh=_decode_rowids(row[0]), retry=_decode_rowids(row[1]))
