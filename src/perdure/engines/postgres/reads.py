"""Everything that can be asked about jobs and workers without changing anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

import msgspec

from perdure.engines.postgres.filter import parameters
from perdure.engines.postgres.rows import (
    from_ids,
    is_id,
    to_duration,
    to_failure,
    to_job,
    to_moment,
    to_optional_text,
    to_text,
    to_worker,
)
from perdure.engines.postgres.verb import Row, Script, Step, Verb
from perdure.engines.set_aside import each_readable, readable
from perdure.model.job import Attempt, Job, JobId, WorkerId
from perdure.store.reads import MOST_RECENT, ErrorGroup, JobFilter, Recent, RecentState
from perdure.store.workers import WorkerInfo
from perdure.system.clock import from_microseconds

T = TypeVar("T")
_RECENT = {"succeeded": "recent_succeeded", "dead": "recent_dead", "waiting": "recent_waiting"}
_decode_queues = msgspec.json.Decoder(tuple[str, ...]).decode


def get(ids: Sequence[JobId]) -> Verb[list[Job | None]]:
    def read(rows: list[Row]) -> list[Job | None]:
        found = {job.id: job for job in each_readable("job", rows, _first, to_job)}
        return [found.get(job_id) for job_id in ids]

    return _read("get", {"ids": from_ids(ids)}, read)


def history(job_id: JobId, limit: int) -> Verb[list[Attempt]]:
    values = {"job_id": job_id if is_id(job_id) else None, "limit": max(0, limit)}
    return _read("history", values, lambda rows: each_readable("attempt", rows[::-1], attempt_name, to_attempt))


def list_jobs(where: JobFilter, limit: int, after: JobId | None) -> Verb[list[Job]]:
    below = None if after is None else (from_ids([after]) or ["00000000-0000-0000-0000-000000000000"])[0]
    return Verb(lambda: _list(where, limit, below), is_repeatable=True)


def _list(where: JobFilter, limit: int, below: str | None) -> Script[list[Job]]:
    jobs: list[Job] = []
    while len(jobs) < limit:
        asked = limit - len(jobs)
        rows = yield Step("list", parameters(where, limit=asked, below=below))
        jobs += each_readable("job", rows, _first, to_job)
        if len(rows) < asked:
            break
        below = rows[-1][0]
    return jobs


def count(where: JobFilter) -> Verb[int]:
    return _read("count", parameters(where), lambda rows: int(rows[0][0]))


def groups(where: JobFilter, limit: int) -> Verb[list[ErrorGroup]]:
    return _read("groups", parameters(where, limit=max(0, limit)), _to_groups)


def recent(state: RecentState, limit: int) -> Verb[list[Recent]]:
    values = {"limit": max(0, min(limit, MOST_RECENT))}
    return _read(
        _RECENT[state], values, lambda rows: each_readable("job", rows, lambda row: f"of task {row[0]}", _to_recent)
    )


def workers() -> Verb[list[WorkerInfo]]:
    return _read("workers", {}, lambda rows: each_readable("worker", rows, _first, _to_worker_info))


def store_now() -> Verb[datetime]:
    return _read("now", {}, lambda rows: from_microseconds(rows[0][0]))


def _read(statement: str, values: dict[str, Any], read: Callable[[list[Row]], T]) -> Verb[T]:
    def script() -> Script[T]:
        return read((yield Step(statement, values)))

    return Verb(script, is_repeatable=True)


def _first(row: Row) -> str:
    return str(row[0])


def attempt_name(row: Row) -> str:
    return f"{row[1]} of job {row[0]}"


def _to_groups(rows: list[Row]) -> list[ErrorGroup]:
    return each_readable("job", rows, lambda row: row[5], _to_group)


def _to_group(row: Row) -> ErrorGroup:
    return ErrorGroup(
        fingerprint=row[0],
        task=to_text(row[1]),
        count=row[2],
        first_at=from_microseconds(row[3]),
        last_at=from_microseconds(row[4]),
        sample_id=row[5],
        sample=readable("job", row[5], lambda: to_failure(row[6])),
    )


def _to_recent(row: Row) -> Recent:
    return Recent(
        task=to_text(row[0]),
        queue=to_text(row[1]),
        state=cast("Any", row[2]),
        lane=cast("Any", row[3]),
        attempt=row[4],
        failures=row[5],
        run_at=from_microseconds(row[6]),
        reason=to_optional_text(row[7]),
        delay=to_duration(row[8]),
        started_at=to_moment(row[9]),
        ended_at=to_moment(row[10]),
    )


def _to_worker_info(row: Row) -> WorkerInfo:
    return WorkerInfo(
        id=WorkerId(to_text(row[0])),
        host=to_text(row[1]),
        pid=row[2],
        queues=_decode_queues(row[3]),
        concurrency=row[4],
        version=to_text(row[5]),
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
        reason=to_optional_text(row[3]),
        error=to_failure(row[4]),
        worker=to_worker(row[5]),
        started_at=to_moment(row[6]),
        ended_at=to_moment(row[7]),
        delay=to_duration(row[8]),
    )
