"""Rows to values and back; the only place that knows how the columns are written."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from perdure.engines.set_aside import checked_job
from perdure.model.failure import Failure
from perdure.model.job import Job, JobId, NewJob, WorkerId
from perdure.model.state import Delivery, Lane
from perdure.system.clock import from_microseconds, to_microseconds

Row = tuple[Any, ...]
_Rest = tuple[
    str | None,
    str | None,
    int | None,
    str | None,
    int | None,
    int | None,
    str | None,
    str | None,
    int | None,
    int | None,
    str | None,
    int | None,
]
ClaimedRow = tuple[JobId, str, str, Lane, str | list[str], int, int, int, int, int, Delivery, int, _Rest | None]
"""A row of fetch_claimed.sql."""

_MICROSECOND = timedelta(microseconds=1)
_decode_failure = msgspec.json.Decoder(Failure).decode
_encode = msgspec.json.encode


def to_job(row: Row) -> Job:
    """The job of a row with the columns of fragments/job_columns.sql; raises what says that it cannot be read."""
    return checked_job(_to_job(row))


def _to_job(row: Row) -> Job:
    return Job(
        id=row[0],
        task=row[1],
        queue=row[2],
        state=row[3],
        lane=row[4],
        args=to_json_text(row[5]),
        priority=row[6],
        run_at=from_microseconds(row[7]),
        attempt=row[8],
        failures=row[9],
        recoveries=row[10],
        delivery=row[11],
        created_at=from_microseconds(row[12]),
        origin=row[13],
        unique=row[14],
        max_attempts=row[15],
        retry=row[16],
        timeout=None if row[17] is None else to_duration(row[17]),
        delay=None if row[18] is None else to_duration(row[18]),
        reason=row[19],
        error=None if row[20] is None else to_failure(row[20]),
        result=None if row[21] is None else to_json_text(row[21]),
        worker=row[22],
        started_at=None if row[23] is None else from_microseconds(row[23]),
        ended_at=None if row[24] is None else from_microseconds(row[24]),
        replayed_at=None if row[25] is None else from_microseconds(row[25]),
        parked_at=None if row[26] is None else from_microseconds(row[26]),
        is_cancelling=row[27] == 1,
        schedule=row[28],
        tick_at=None if row[29] is None else from_microseconds(row[29]),
    )


def to_claimed_job(row: ClaimedRow, worker: WorkerId, started_at: datetime) -> Job:
    """The job of a row of fetch_claimed.sql, just claimed."""
    rest = row[12]
    job = Job(
        id=row[0],
        task=row[1],
        queue=row[2],
        state="running",
        lane=row[3],
        args=to_json_text(row[4]),
        priority=row[5],
        run_at=from_microseconds(row[6]),
        attempt=row[7],
        failures=row[8],
        recoveries=row[9],
        delivery=row[10],
        created_at=from_microseconds(row[11]),
        worker=worker,
        started_at=None if row[10] == "at_most_once" else started_at,
    )
    if rest is None:
        return job
    return msgspec.structs.replace(
        job,
        origin=rest[0],
        unique=rest[1],
        max_attempts=rest[2],
        retry=rest[3],
        timeout=to_duration(rest[4]),
        delay=to_duration(rest[5]),
        reason=rest[6],
        error=to_failure(rest[7]),
        replayed_at=to_moment(rest[8]),
        parked_at=to_moment(rest[9]),
        schedule=rest[10],
        tick_at=to_moment(rest[11]),
    )


def from_new_job(job: NewJob, now: int) -> Row:
    """The parameters of enqueue.sql."""
    run_at = _due(job, now)
    return (
        job.id,
        job.task,
        job.queue,
        "ready" if run_at <= now else "waiting",
        job.priority,
        run_at,
        job.delivery,
        now,
        job.unique,
        job.max_attempts,
        job.retry,
        from_duration(job.timeout),
        from_json_text(job.args),
        job.schedule,
        from_moment(job.tick_at),
    )


def from_alike(job: NewJob, now: int) -> Row:
    """The first parameters of enqueue_alike.sql: what jobs like this one share."""
    run_at = _due(job, now)
    state = "ready" if run_at <= now else "waiting"
    timeout = from_duration(job.timeout)
    how = (job.delivery, now, job.max_attempts, job.retry, timeout)
    return (job.task, job.queue, state, job.priority, run_at, *how)


def _due(job: NewJob, now: int) -> int:
    if job.delay is not None:
        return now + job.delay // _MICROSECOND
    return now if job.run_at is None else to_microseconds(job.run_at)


def from_json_text(text: bytes) -> str | bytes:
    """Opaque JSON text as it is stored: as text, which SQLite can put into its own JSON, or as it is."""
    # SQLite leaves open what its functions make of a NUL inside a text.
    if b"\0" not in text:
        try:
            return text.decode()
        except UnicodeDecodeError:
            pass
    return text


def to_json_text(value: str | bytes | list[str]) -> bytes:
    """The bytes that from_json_text was given; inside SQLite's own JSON a blob is [hex digits]."""
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else bytes.fromhex(value[0])


def to_moment(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)


def from_moment(value: datetime | None) -> int | None:
    return None if value is None else to_microseconds(value)


def to_duration(value: int | None) -> timedelta | None:
    return None if value is None else timedelta(microseconds=value)


def from_duration(value: timedelta | None) -> int | None:
    return None if value is None else value // _MICROSECOND


def to_failure(text: str | None) -> Failure | None:
    return None if text is None else _decode_failure(text)


def from_failure(failure: Failure | None) -> str | None:
    return None if failure is None else _encode(failure).decode()


def from_ids(ids: Sequence[JobId]) -> str:
    """Ids as the JSON array that a statement takes apart."""
    return _encode(ids).decode()


def read_rows(connection: sqlite3.Connection, statement: str, values: Any = ()) -> list[Row]:
    """The rows of a query; a text that is no UTF-8 comes as bytes, so that its record alone cannot be read."""
    try:
        return connection.execute(statement, values).fetchall()
    except sqlite3.OperationalError as error:
        if "decode" not in str(error).lower():
            raise
    connection.text_factory = _text_or_bytes
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.text_factory = str


def _text_or_bytes(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
