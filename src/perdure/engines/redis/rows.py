"""What is kept beside jobs' records, to values and back: attempts, durations, failures, and hashes by name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from perdure.engines.redis.record import to_duration
from perdure.engines.set_aside import readable
from perdure.model.failure import Failure
from perdure.model.job import Attempt, AttemptOutcome, JobId, WorkerId
from perdure.system.clock import from_microseconds

Fields = dict[bytes, bytes]

_MICROSECOND = timedelta(microseconds=1)
_encode = msgspec.json.encode


class AttemptRecord(msgspec.Struct, frozen=True, array_like=True):
    """What the history keeps of an attempt that did not succeed, but the delay that followed."""

    attempt: int
    outcome: AttemptOutcome
    reason: str | None
    error: Failure | None
    worker: str
    started_at: int
    ended_at: int


_decode_record = msgspec.json.Decoder(AttemptRecord).decode


def to_fields(flat: Sequence[bytes]) -> Fields:
    """What HGETALL gives, by name."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


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
        delay=to_duration(delay),
    )


def to_count(field: bytes, value: bytes) -> int:
    """What a counter says; 0 where it holds no number."""
    return readable("counter", field, lambda: int(value)) or 0


def from_duration(value: timedelta) -> int:
    return value // _MICROSECOND


def from_failure(failure: Failure | None) -> bytes | None:
    return None if failure is None else _encode(failure)


def from_record(record: AttemptRecord) -> bytes:
    return _encode(record)
