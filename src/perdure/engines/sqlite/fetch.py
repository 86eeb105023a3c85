"""Claims ready jobs for a worker: lane by lane, in order, under its lease and within the cap on running retries."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from perdure.engines.sqlite.request import NOT_ANSWERED, NotAnswered
from perdure.engines.sqlite.rows import Row, to_job
from perdure.engines.sqlite.sql import statement
from perdure.errors import LeaseLost
from perdure.model.job import Job, WorkerId
from perdure.store.jobs import Want

_decode_rowids = msgspec.json.Decoder(list[int]).decode
_decode_rows = msgspec.json.Decoder(list[Row]).decode


class _Candidates(msgspec.Struct, frozen=True):
    """What a queue could give: rowids of ready jobs by lane, in order, as far as its cap on running retries allows."""

    fresh: list[int]
    retry: list[int]


def peek(
    connection: sqlite3.Connection, now: int, worker: WorkerId, wants: Sequence[Want], limit: int
) -> list[Job] | NotAnswered:
    """Nothing, if nothing is ready; so that an idle worker's polls take no lock."""
    _check_lease(connection, now, worker)
    queues = msgspec.json.encode([want.queue for want in wants]).decode()
    if limit > 0 and connection.execute(statement("fetch_peek"), {"queues": queues}).fetchone()[0]:
        return NOT_ANSWERED
    return []


def fetch(connection: sqlite3.Connection, now: int, worker: WorkerId, wants: Sequence[Want], limit: int) -> list[Job]:
    """Claim up to `limit` jobs, going through the wants in their order."""
    _check_lease(connection, now, worker)
    chosen: list[int] = []
    for want in wants:
        if (room := limit - len(chosen)) <= 0:
            break
        chosen += _choose(connection, want, room)
    if not chosen:
        return []
    values = {"rowids": msgspec.json.encode(chosen).decode(), "worker": worker, "now": now}
    connection.execute(statement("fetch"), values)
    (found,) = connection.execute(statement("fetch_claimed"), values).fetchone()
    claimed = [to_job(row) for row in _decode_rows(found)]
    order = {want.queue: position for position, want in reversed(list(enumerate(wants)))}
    return sorted(claimed, key=lambda job: (order[job.queue], -job.priority, job.run_at, job.id))


def _check_lease(connection: sqlite3.Connection, now: int, worker: WorkerId) -> None:
    if not connection.execute(statement("fetch_lease"), {"worker": worker, "now": now}).fetchone()[0]:
        raise LeaseLost(
            f"The lease of worker {worker} has run out, or it never registered.", "Register under a new id."
        )


def _choose(connection: sqlite3.Connection, want: Want, room: int) -> list[int]:
    """The rowids that the want gets: its share of each lane, and unless it is strict what the other lane left over."""
    fresh, retry = _fit(want, room)
    if fresh + retry <= 0:
        return []
    if want.is_strict:
        found = _candidates(connection, want, fresh, retry)
        return found.fresh + found.retry
    whole = fresh + retry
    found = _candidates(connection, want, whole, whole)
    retry = max(min(retry, len(found.retry)), min(whole - len(found.fresh), len(found.retry)))
    return found.fresh[: whole - retry] + found.retry[:retry]


def _fit(want: Want, room: int) -> tuple[int, int]:
    """How many fresh and retry jobs to ask for, both lanes cut alike when there is less room than wanted."""
    fresh, retry = max(0, want.fresh), max(0, want.retry)
    wanted = fresh + retry
    if wanted <= room:
        return fresh, retry
    retry = (2 * room * retry + wanted) // (2 * wanted)
    return room - retry, retry


def _candidates(connection: sqlite3.Connection, want: Want, fresh: int, retry: int) -> _Candidates:
    values = {
        "queue": want.queue,
        "fresh": fresh,
        "retry": retry,
        "max_retries_running": want.max_retries_running,
    }
    row = connection.execute(statement("fetch_candidates"), values).fetchone()
    return _Candidates(fresh=_decode_rowids(row[0]), retry=_decode_rowids(row[1]))
