"""The forwarding of dead jobs: who tries it, what came of it, and how far it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from perdure.engines.set_aside import each_readable, moment_or_none, one_of, to_name
from perdure.engines.sqlite.filter import filtered, parameters
from perdure.engines.sqlite.request import NOT_ANSWERED, NotAnswered
from perdure.engines.sqlite.rows import Row, from_duration, from_ids, read_rows, to_moment
from perdure.engines.sqlite.sql import statement
from perdure.model.forward import FORWARD_STATES, Forward, ForwardState, Tried
from perdure.model.job import JobId
from perdure.store.forwards import DueForwards
from perdure.store.reads import JobFilter

_encode = msgspec.json.encode
_ALL = 2**62


def peek_forward(connection: sqlite3.Connection, now: int, queues: Sequence[str]) -> DueForwards | NotAnswered:
    """Nothing claimed, if nothing is due."""
    next_at = _next_at(connection, queues)
    if next_at is not None and next_at <= now:
        return NOT_ANSWERED
    return DueForwards(forwards=(), next_at=moment_or_none(lambda: to_moment(next_at)))


def forward(
    connection: sqlite3.Connection, now: int, queues: Sequence[str], limit: int, lease: timedelta
) -> DueForwards:
    values = {"queues": _names(queues), "limit": max(0, limit), "now": now, "until": now + (from_duration(lease) or 0)}
    rows = connection.execute(statement("forward"), values).fetchall()
    return DueForwards(
        forwards=tuple(each_readable("forward", rows, lambda row: to_name(row[0]), _to_forward)),
        next_at=moment_or_none(lambda: to_moment(_next_at(connection, queues))),
    )


def forwarded(connection: sqlite3.Connection, now: int, tried: Sequence[Tried]) -> list[bool]:
    return [connection.execute(statement("forwarded"), _values(one, now)).rowcount == 1 for one in tried]


def forward_now(connection: sqlite3.Connection, now: int, where: JobFilter) -> int:
    page = connection.execute(filtered("replay_next", where), parameters(where, above="", limit=_ALL)).fetchall()
    return sum(
        connection.execute(statement("forward_now"), {"id": job_id, "now": now}).rowcount == 1 for (job_id,) in page
    )


def forwards(connection: sqlite3.Connection, now: int, ids: Sequence[JobId]) -> dict[JobId, Forward]:
    rows = connection.execute(statement("forwards"), {"ids": from_ids(ids)}).fetchall()
    found = each_readable("forward", rows, lambda row: to_name(row[0]), _to_forward)
    return {one.job_id: one for one in found}


def all_forwards(connection: sqlite3.Connection) -> list[Forward]:
    """Every forward that can be read."""
    rows = read_rows(connection, statement("audit_forwards"))
    return each_readable("forward", rows, lambda row: to_name(row[0]), _to_forward)


def forward_counts(connection: sqlite3.Connection, now: int) -> dict[ForwardState, int]:
    return dict(connection.execute(statement("forward_counts")).fetchall())


def forget(connection: sqlite3.Connection, job_id: JobId) -> None:
    """End the forwarding of a job that is not dead any more."""
    connection.execute(statement("forward_forget"), {"id": job_id})


def _next_at(connection: sqlite3.Connection, queues: Sequence[str]) -> int | None:
    row = connection.execute(statement("forward_next"), {"queues": _names(queues)}).fetchone()
    return None if row is None else int(row[0])


def _names(queues: Sequence[str]) -> str:
    return _encode(queues).decode()


def _values(one: Tried, now: int) -> dict[str, Any]:
    return {
        "job_id": one.job_id,
        "attempt": one.attempt,
        "number": one.number,
        "sink": one.sink,
        "state": one.state,
        "next_at": now + (from_duration(one.delay) or 0) if one.state == "failing" else None,
        "error": one.error,
        "now": now,
    }


def _to_forward(row: Row) -> Forward:
    return Forward(
        job_id=row[0],
        attempt=row[1],
        queue=row[2],
        sink=row[3],
        state=one_of(row[4], FORWARD_STATES, "its state"),
        tries=row[5],
        next_at=to_moment(row[6]),
        tried_at=to_moment(row[7]),
        forwarded_at=to_moment(row[8]),
        error=row[9],
    )
