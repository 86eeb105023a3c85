"""Everything that can be asked about jobs and workers without changing anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from perdure.clock import from_microseconds
from perdure.engines.sqlite.filter import filtered, filtered_in_order, parameters
from perdure.engines.sqlite.rows import Row, from_ids, to_duration, to_failure, to_job, to_moment
from perdure.engines.sqlite.sql import statement
from perdure.model.job import Attempt, Job, JobId
from perdure.store.reads import MOST_RECENT, ErrorGroup, JobFilter, Recent, RecentState
from perdure.store.workers import WorkerInfo

_RECENT = {"succeeded": "recent_succeeded", "dead": "recent_dead", "waiting": "recent_waiting"}
_HIGHEST_ID = "\U0010ffff"
_decode_queues = msgspec.json.Decoder(tuple[str, ...]).decode


def get(connection: sqlite3.Connection, now: int, ids: Sequence[JobId]) -> list[Job | None]:
    rows = connection.execute(statement("get"), {"ids": from_ids(ids)}).fetchall()
    found = {row[0]: to_job(row) for row in rows}
    return [found.get(job_id) for job_id in ids]


def history(connection: sqlite3.Connection, now: int, job_id: JobId, limit: int) -> list[Attempt]:
    last = connection.execute(statement("history_last"), {"job_id": job_id}).fetchall()
    values = {"job_id": job_id, "limit": limit}
    newest_first = last + connection.execute(statement("history"), values).fetchall()
    return [_to_attempt(row) for row in reversed(newest_first[: max(0, limit)])]


def list_jobs(connection: sqlite3.Connection, now: int, where: JobFilter, limit: int, after: JobId | None) -> list[Job]:
    values = parameters(where, limit=max(0, limit), below=_HIGHEST_ID if after is None else after)
    return [to_job(row) for row in connection.execute(filtered_in_order(connection, "list", where), values).fetchall()]


def count(connection: sqlite3.Connection, now: int, where: JobFilter) -> int:
    (found,) = connection.execute(filtered("count", where), parameters(where)).fetchone()
    return int(found)


def groups(connection: sqlite3.Connection, now: int, where: JobFilter, limit: int) -> list[ErrorGroup]:
    rows = connection.execute(filtered("groups", where), parameters(where, limit=max(0, limit))).fetchall()
    return [
        ErrorGroup(
            fingerprint=row[0],
            task=row[1],
            count=row[2],
            first_at=from_microseconds(row[3]),
            last_at=from_microseconds(row[4]),
            sample_id=row[5],
            sample=to_failure(row[6]),
        )
        for row in rows
    ]


def recent(connection: sqlite3.Connection, now: int, state: RecentState, limit: int) -> list[Recent]:
    rows = connection.execute(statement(_RECENT[state]), {"limit": max(0, min(limit, MOST_RECENT))}).fetchall()
    return [
        Recent(
            task=row[0],
            queue=row[1],
            state=row[2],
            lane=row[3],
            attempt=row[4],
            failures=row[5],
            run_at=from_microseconds(row[6]),
            reason=row[7],
            delay=to_duration(row[8]),
            started_at=to_moment(row[9]),
            ended_at=to_moment(row[10]),
        )
        for row in rows
    ]


def workers(connection: sqlite3.Connection, now: int) -> list[WorkerInfo]:
    return [
        WorkerInfo(
            id=row[0],
            host=row[1],
            pid=row[2],
            queues=_decode_queues(row[3]),
            concurrency=row[4],
            version=row[5],
            started_at=from_microseconds(row[6]),
            beat_at=from_microseconds(row[7]),
            lease_until=from_microseconds(row[8]),
            running=row[9],
        )
        for row in connection.execute(statement("workers")).fetchall()
    ]


def store_now(connection: sqlite3.Connection, now: int) -> datetime:
    return from_microseconds(now)


def _to_attempt(row: Row) -> Attempt:
    return Attempt(
        job_id=row[0],
        attempt=row[1],
        outcome=cast("Any", row[2]),
        reason=row[3],
        error=to_failure(row[4]),
        worker=row[5],
        started_at=to_moment(row[6]),
        ended_at=to_moment(row[7]),
        delay=to_duration(row[8]),
    )
