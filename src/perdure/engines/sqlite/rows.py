"""Rows to values and back; the only place that knows how the columns are written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from perdure.clock import from_microseconds, to_microseconds
from perdure.model.failure import Failure
from perdure.model.job import Job, JobId, NewJob

Row = tuple[Any, ...]

_MICROSECOND = timedelta(microseconds=1)
_decode_failure = msgspec.json.Decoder(Failure).decode
_encode = msgspec.json.encode


def to_job(row: Row) -> Job:
    """The job of a row with the columns of fragments/job_columns.sql."""
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


def from_new_job(job: NewJob, now: int) -> Row:
    """The parameters of enqueue.sql."""
    run_at = now
    if job.delay is not None:
        run_at = now + job.delay // _MICROSECOND
    elif job.run_at is not None:
        run_at = to_microseconds(job.run_at)
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
