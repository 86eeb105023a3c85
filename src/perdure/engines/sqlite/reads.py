"""Everything that can be asked about jobs and workers without changing anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from perdure.engines.set_aside import each_readable, readable, to_name
from perdure.engines.sqlite.filter import filtered, filtered_in_order, parameters
from perdure.engines.sqlite.rows import Row, from_ids, read_rows, to_duration, to_failure, to_job, to_moment
from perdure.engines.sqlite.sql import statement
from perdure.model.job import Attempt, Job, JobId
from perdure.store.reads import MOST_RECENT, ErrorGroup, JobFilter, Recent, RecentState
from perdure.store.workers import WorkerInfo
from perdure.system.clock import from_microseconds

_RECENT = {"succeeded": "recent_succeeded", "dead": "recent_dead", "waiting": "recent_waiting"}
_HIGHEST_ID = "\U0010ffff"
_decode_queues = msgspec.json.Decoder(tuple[str, ...]).decode


def get(connection: sqlite3.Connection, now: int, ids: Sequence[JobId]) -> list[Job | None]:
    rows = read_rows(connection, statement("get"), {"ids": from_ids(ids)})
    found = {job.id: job for job in each_readable("job", rows, _first, to_job)}
    return [found.get(job_id) for job_id in ids]


def history(connection: sqlite3.Connection, now: int, job_id: JobId, limit: int) -> list[Attempt]:
    last = read_rows(connection, statement("history_last"), {"job_id": job_id})
    values = {"job_id": job_id, "limit": limit}
    newest_first = last + read_rows(connection, statement("history"), values)
    return each_readable("attempt", newest_first[: max(0, limit)][::-1], attempt_name, to_attempt)


def list_jobs(connection: sqlite3.Connection, now: int, where: JobFilter, limit: int, after: JobId | None) -> list[Job]:
    jobs: list[Job] = []
    below: str = _HIGHEST_ID if after is None else after
    while len(jobs) < limit:
        asked = limit - len(jobs)
        values = parameters(where, limit=asked, below=below)
        rows = read_rows(connection, filtered_in_order(connection, "list", where), values)
        jobs += each_readable("job", rows, _first, to_job)
        if len(rows) < asked or not isinstance(rows[-1][0], str):
            break
        below = rows[-1][0]
    return jobs


def count(connection: sqlite3.Connection, now: int, where: JobFilter) -> int:
    (found,) = connection.execute(filtered("count", where), parameters(where)).fetchone()
    return int(found)


def groups(connection: sqlite3.Connection, now: int, where: JobFilter, limit: int) -> list[ErrorGroup]:
    rows = read_rows(connection, filtered("groups", where), parameters(where, limit=max(0, limit)))
    return each_readable("job", rows, lambda row: row[5], _to_group)


def recent(connection: sqlite3.Connection, now: int, state: RecentState, limit: int) -> list[Recent]:
    rows = read_rows(connection, statement(_RECENT[state]), {"limit": max(0, min(limit, MOST_RECENT))})
    return each_readable("job", rows, lambda row: f"of task {row[0]}", _to_recent)


def workers(connection: sqlite3.Connection, now: int) -> list[WorkerInfo]:
    return each_readable("worker", read_rows(connection, statement("workers")), _first, _to_worker)


def store_now(connection: sqlite3.Connection, now: int) -> datetime:
    return from_microseconds(now)


def _first(row: Row) -> str:
    return to_name(row[0])


def attempt_name(row: Row) -> str:
    return f"{row[1]} of job {row[0]}"


def _to_group(row: Row) -> ErrorGroup:
    return ErrorGroup(
        fingerprint=row[0],
        task=row[1],
        count=row[2],
        first_at=from_microseconds(row[3]),
        last_at=from_microseconds(row[4]),
        sample_id=row[5],
        sample=readable("job", row[5], lambda: to_failure(row[6])),
    )


def _to_recent(row: Row) -> Recent:
    return Recent(
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


def _to_worker(row: Row) -> WorkerInfo:
    return WorkerInfo(
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


def to_attempt(row: Row) -> Attempt:
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
