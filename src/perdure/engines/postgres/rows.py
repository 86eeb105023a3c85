"""Rows to values and back; the only place that knows how the columns are written.

PostgreSQL's texts cannot hold a NUL, Python's can: in names and reasons a NUL is written as backslash and 0, a
backslash as two. Batches travel as one JSON text, in which bytes are base64.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from perdure.engines.postgres.verb import Row
from perdure.engines.set_aside import UNREADABLE, checked_job, set_aside
from perdure.model.failure import Failure
from perdure.model.job import Job, JobId, WorkerId
from perdure.system.clock import from_microseconds, to_microseconds

_MICROSECOND = timedelta(microseconds=1)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_IDS = re.compile(f"{_ID.pattern}(?:,{_ID.pattern})*", re.ASCII)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_decode_failure = msgspec.json.Decoder(Failure).decode
_encode = msgspec.json.encode
ID, ARGS, RUN_AT, CREATED_AT, PRIORITY = 0, 1, 2, 3, 4
"""Where these columns stand in the row of a claim; what comes after created_at is the same for most jobs of a task."""
LANE = 6
CLAIMED = 24
"""How many columns a claim gives of a job."""


def to_job(row: Row) -> Job:
    """The job of a row with the columns of fragments/job_columns.sql."""
    queue, state, worker, is_cancelling, result, ended_at = row[CLAIMED:]
    job = replace(
        _claimed(row, to_text(queue), to_worker(worker)),
        state=state,
        args=bytes(row[ARGS]),
        is_cancelling=is_cancelling,
        result=None if result is None else bytes(result),
        ended_at=to_moment(ended_at),
    )
    return checked_job(job)


def to_claimed(rows: Sequence[Row], queue: str, worker: WorkerId) -> tuple[list[Job], list[str]]:
    """The jobs of rows with the columns of fragments/claimed_columns.sql, and the ids of those that cannot be read."""
    try:
        return _all_claimed(rows, queue, worker), []
    except UNREADABLE:
        jobs: list[Job] = []
        unreadable: list[str] = []
        for row in rows:
            try:
                jobs += _all_claimed([row], queue, worker)
            except UNREADABLE as error:
                set_aside("job", row[ID], error)
                unreadable.append(row[ID])
        return jobs, unreadable


def _all_claimed(rows: Sequence[Row], queue: str, worker: WorkerId) -> list[Job]:
    # What is the same for many is read once.
    alike: dict[Row, Job] = {}
    jobs = []
    for row in rows:
        job_id, args, run_at, created_at = row[:PRIORITY]
        rest = row[PRIORITY:CLAIMED]
        like = alike.get(rest)
        if like is None:
            like = alike[rest] = checked_job(_claimed(row, queue, worker))
        jobs.append(
            replace(
                like,
                id=job_id,
                args=bytes(args),
                run_at=from_microseconds(run_at),
                created_at=from_microseconds(created_at),
            )
        )
    return jobs


def _claimed(row: Row, queue: str, worker: WorkerId) -> Job:
    """A job as a claim gives it, but its args."""
    return Job(
        id=row[ID],
        task=to_text(row[5]),
        queue=queue,
        state="running",
        lane=row[6],
        args=b"",
        priority=row[PRIORITY],
        run_at=from_microseconds(row[RUN_AT]),
        attempt=row[7],
        failures=row[8],
        recoveries=row[9],
        delivery=row[10],
        created_at=from_microseconds(row[CREATED_AT]),
        worker=worker,
        started_at=to_moment(row[11]),
        origin=to_optional_text(row[12]),
        unique=to_optional_text(row[13]),
        max_attempts=row[14],
        retry=to_optional_text(row[15]),
        timeout=to_duration(row[16]),
        delay=to_duration(row[17]),
        reason=to_optional_text(row[18]),
        error=to_failure(row[19]),
        replayed_at=to_moment(row[20]),
        parked_at=to_moment(row[21]),
        schedule=to_optional_text(row[22]),
        tick_at=to_moment(row[23]),
    )


def from_text(text: str) -> str:
    """A text as it is stored."""
    if "\\" in text or "\0" in text:
        return text.replace("\\", "\\\\").replace("\0", "\\0")
    return text


def to_text(text: str) -> str:
    """The text that from_text was given."""
    if "\\" in text:
        return _ESCAPED.sub(lambda found: "\0" if found[1] == "0" else found[1], text)
    return text


def from_optional_text(text: str | None) -> str | None:
    return None if text is None else from_text(text)


def to_optional_text(text: str | None) -> str | None:
    return None if text is None else to_text(text)


def to_worker(text: str | None) -> Any:
    return None if text is None else to_text(text)


def from_batch(rows: Sequence[msgspec.Struct]) -> str:
    """Rows as the one parameter that a statement takes apart."""
    return _encode(rows).decode()


def from_ids(ids: Sequence[JobId]) -> list[str]:
    """Those ids that can be a job's at all."""
    return [job_id for job_id in ids if _ID.fullmatch(job_id)]


def from_number(value: int | None) -> str | None:
    """A number as a text: then it has the type that the statement gives it, however large it is."""
    return None if value is None else str(value)


def from_array(texts: Iterable[str]) -> str:
    """Ids or numbers as an array is written; for parameters that are arrays from the start."""
    return f"{{{','.join(texts)}}}"


def from_bytes_array(values: Iterable[bytes | None]) -> str:
    """The same for bytes."""
    return from_array(["NULL" if value is None else f'"\\\\x{value.hex()}"' for value in values])


def are_ids(texts: Iterable[str]) -> bool:
    """Whether these can all be ids of jobs."""
    return _IDS.fullmatch(",".join(texts)) is not None


def is_id(text: str) -> bool:
    """Whether this can be the id of a job."""
    return _ID.fullmatch(text) is not None


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


def words_of(failure: Failure | None) -> str | None:
    """A failure's type and message as they are searched, letter case ignored in any script."""
    return None if failure is None else folded(f"{failure.type}\x01{failure.message}")


def folded(text: str) -> str:
    """A text as searches compare it."""
    return text.casefold().replace("\0", "\x01")
