"""Fields of the server's hashes to values and back; the only place that knows how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec

from perdure.clock import from_microseconds
from perdure.model.failure import Failure
from perdure.model.job import Attempt, AttemptOutcome, Job, JobId, WorkerId

Fields = dict[bytes, bytes]

_MICROSECOND = timedelta(microseconds=1)
_decode_failure = msgspec.json.Decoder(Failure).decode
_encode = msgspec.json.encode


class Record(msgspec.Struct, frozen=True, array_like=True):
    """What the history keeps of an attempt that did not succeed, but the delay that followed."""

    attempt: int
    outcome: AttemptOutcome
    reason: str | None
    error: Failure | None
    worker: str
    started_at: int
    ended_at: int


_decode_record = msgspec.json.Decoder(Record).decode


def to_fields(flat: Sequence[bytes]) -> Fields:
    """What HGETALL gives, by name."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def to_job(job_id: bytes, flat: Sequence[bytes]) -> Job:
    """The job of a hash; a field that is not there has its usual value."""
    fields = to_fields(flat)
    found = fields.get
    error = found(b"error")
    worker = _text(found(b"worker"))
    return Job(
        id=JobId(job_id.decode()),
        task=fields[b"task"].decode(),
        queue=fields[b"queue"].decode(),
        state=cast("Any", fields[b"state"].decode()),
        lane="fresh" if found(b"lane") is None else "retry",
        args=fields[b"args"],
        priority=int(found(b"priority", 0)),
        run_at=from_microseconds(int(fields[b"run_at"])),
        attempt=int(found(b"attempt", 0)),
        failures=int(found(b"failures", 0)),
        recoveries=int(found(b"recoveries", 0)),
        delivery=cast("Any", found(b"delivery", b"at_least_once").decode()),
        created_at=from_microseconds(int(fields[b"created_at"])),
        origin=_text(found(b"origin")),
        unique=_text(found(b"unique")),
        max_attempts=_number(found(b"max_attempts")),
        retry=_text(found(b"retry")),
        timeout=to_duration(found(b"timeout")),
        delay=to_duration(found(b"delay")),
        reason=_text(found(b"reason")),
        error=to_failure(error),
        result=found(b"result"),
        worker=None if worker is None else WorkerId(worker),
        started_at=to_moment(found(b"started_at")),
        ended_at=to_moment(found(b"ended_at")),
        replayed_at=to_moment(found(b"replayed_at")),
        parked_at=to_moment(found(b"parked_at")),
        is_cancelling=found(b"is_cancelling") is not None,
        schedule=_text(found(b"schedule")),
        tick_at=to_moment(found(b"tick_at")),
    )


def to_jobs(pairs: Sequence[Any]) -> list[Job]:
    """The jobs of a script's answer: id, fields, id, fields…"""
    return [to_job(job_id, flat) for job_id, flat in zip(pairs[::2], pairs[1::2], strict=True)]


def to_attempt(job_id: JobId, record: bytes) -> Attempt:
    """The attempt of a record as commit.lua keeps it: `token|delay|record`."""
    _, delay, kept = record.split(b"|", 2)
    found = _decode_record(kept)
    return Attempt(
        job_id=job_id,
        attempt=found.attempt,
        outcome=found.outcome,
        reason=found.reason,
        error=found.error,
        worker=WorkerId(found.worker),
        started_at=from_microseconds(found.started_at),
        ended_at=from_microseconds(found.ended_at),
        delay=to_duration(delay or None),
    )


def to_moment(value: bytes | None) -> datetime | None:
    return None if value is None else from_microseconds(int(value))


def to_duration(value: bytes | None) -> timedelta | None:
    return None if value is None else timedelta(microseconds=int(value))


def from_duration(value: timedelta) -> int:
    return value // _MICROSECOND


def to_failure(text: bytes | None) -> Failure | None:
    return None if text is None else _decode_failure(text)


def from_failure(failure: Failure | None) -> bytes | None:
    return None if failure is None else _encode(failure)


def from_record(record: Record) -> bytes:
    return _encode(record)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _number(value: bytes | None) -> int | None:
    return None if value is None else int(value)
