"""A job's record: its fields in one text, in the order of fragments/record.lua, ended by a byte that no text has."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from perdure.engines.set_aside import UNREADABLE, one_of, set_aside
from perdure.model.failure import Failure
from perdure.model.job import Job, JobId, WorkerId
from perdure.model.state import DELIVERIES, STATES
from perdure.system.clock import from_microseconds

END = b"\xff"
"""No text in UTF-8 has this byte."""
WITHIN = 200
"""The longest args and results that a record has room for: it is written anew with each step."""

_decode_failure = msgspec.json.Decoder(Failure).decode
_CLAIMED = 4
"""How many fields a claim changes; they come first."""
_KINDS = 1000
"""How many kinds of jobs are remembered."""


class Record(msgspec.Struct, frozen=True):
    """A record taken apart; what is not there is empty."""

    state: bytes
    attempt: bytes
    worker: bytes
    started_at: bytes
    is_cancelling: bytes
    reason: bytes
    failures: bytes
    recoveries: bytes
    attempt_ended_at: bytes
    token: bytes
    delay: bytes
    parked_at: bytes
    fingerprint: bytes
    result: bytes
    ended_at: bytes
    lane: bytes
    queue: bytes
    unique: bytes
    schedule: bytes
    task: bytes
    priority: bytes
    run_at: bytes
    origin: bytes
    replayed_at: bytes
    created_at: bytes
    max_attempts: bytes
    retry: bytes
    delivery: bytes
    timeout: bytes
    tick_at: bytes
    args: bytes


# Where the fields stand in which jobs of a kind differ, counted from the first that a claim leaves alone; then those
# that say nothing about a job that runs.
_DELAY, _RUN_AT, _CREATED_AT = (
    Record.__struct_fields__.index(name) - _CLAIMED for name in ("delay", "run_at", "created_at")
)
_PAST = tuple(
    Record.__struct_fields__.index(name) - _CLAIMED for name in ("attempt_ended_at", "token", "fingerprint", "ended_at")
)


class Claimed(NamedTuple):
    """What a fetch claimed."""

    jobs: list[Job]
    unreadable: list[tuple[bytes, bytes]]
    """Id and record, as it was before the claim, of each job that cannot be read."""


def within_or_beside(value: bytes) -> tuple[bytes, bytes]:
    """Args or a result as a field of the record, or as what is kept beside it; the other is empty."""
    if len(value) <= WITHIN and END not in value:
        return b"=" + value, b""
    return b"", b"=" + value


def to_record(text: bytes) -> Record:
    return Record(*text.split(END)[:-1])


def to_job(job_id: bytes, text: bytes, args: bytes | None, error: bytes | None, result: bytes | None = None) -> Job:
    """The job of a record and what is kept beside it."""
    found = to_record(text)
    return Job(
        id=JobId(job_id.decode()),
        task=found.task.decode(),
        queue=found.queue.decode(),
        state=one_of(found.state.decode(), STATES, "its state"),
        lane="retry" if found.lane else "fresh",
        args=found.args[1:] if found.args else args or b"",
        priority=int(found.priority),
        run_at=from_microseconds(int(found.run_at)),
        attempt=int(found.attempt),
        failures=int(found.failures),
        recoveries=int(found.recoveries),
        delivery=one_of(found.delivery.decode() or "at_least_once", DELIVERIES, "its delivery"),
        created_at=from_microseconds(int(found.created_at)),
        origin=to_text(found.origin),
        unique=to_text(found.unique),
        max_attempts=int(found.max_attempts) if found.max_attempts else None,
        retry=to_text(found.retry),
        timeout=to_duration(found.timeout),
        delay=to_duration(found.delay),
        reason=to_text(found.reason),
        error=to_failure(error),
        result=found.result[1:] if found.result else result,
        worker=WorkerId(found.worker.decode()) if found.worker else None,
        started_at=to_moment(found.started_at),
        ended_at=to_moment(found.ended_at),
        replayed_at=to_moment(found.replayed_at),
        parked_at=to_moment(found.parked_at),
        is_cancelling=bool(found.is_cancelling),
        schedule=to_text(found.schedule),
        tick_at=to_moment(found.tick_at),
    )


def to_claimed(
    ids: Sequence[bytes],
    records: Sequence[bytes | None],
    args: Sequence[bytes],
    errors: Sequence[bytes],
    worker: WorkerId,
    now: bytes,
) -> Claimed:
    """The jobs that a fetch claimed, running: of each its id, and its record as it was before."""
    failures = dict(zip(errors[::2], errors[1::2], strict=True))
    beside = dict(zip(args[::2], args[1::2], strict=True))
    started_at = from_microseconds(int(now))
    pairs = list(zip(ids, records, strict=True))
    try:
        return Claimed(_all_claimed(pairs, beside, failures, worker, started_at), [])
    except UNREADABLE:
        found = Claimed([], [])
        for job_id, text in pairs:
            try:
                found.jobs.extend(_all_claimed([(job_id, text)], beside, failures, worker, started_at))
            except UNREADABLE as error:
                set_aside("job", job_id, error)
                found.unreadable.append((job_id, text or b""))
        return found


def _all_claimed(
    pairs: Sequence[tuple[bytes, bytes | None]],
    beside: dict[bytes, bytes],
    failures: dict[bytes, bytes],
    worker: WorkerId,
    started_at: datetime,
) -> list[Job]:
    # Jobs that were enqueued together differ in id, args and attempt only: the rest is read once.
    alike: dict[bytes, Job] = {}
    jobs: list[Job] = []
    for job_id, text in pairs:
        if text is None:
            continue
        _, attempt, _, _, rest = text.split(END, _CLAIMED)
        rest, within, _ = rest.rsplit(END, 2)
        like = alike.get(rest)
        if like is None:
            like = alike[rest] = _claimed(rest, worker, started_at)
        job = replace(
            like,
            id=JobId(job_id.decode()),
            args=within[1:] if within else beside[job_id],
            attempt=int(attempt) + 1,
        )
        jobs.append(replace(job, error=_decode_failure(failures[job_id])) if job_id in failures else job)
    return jobs


def _claimed(rest: bytes, worker: WorkerId, started_at: datetime) -> Job:
    """A job just claimed, but its id, args, attempt and error: from what its record has between claim and args."""
    fields = rest.split(END)
    delay, run_at, created_at = fields[_DELAY], fields[_RUN_AT], fields[_CREATED_AT]
    fields[_DELAY], fields[_RUN_AT], fields[_CREATED_AT] = b"", b"0", b"0"
    for place in _PAST:
        fields[place] = b""
    kind = _kind(tuple(fields))
    return replace(
        kind,
        worker=worker,
        started_at=None if kind.delivery == "at_most_once" else started_at,
        delay=to_duration(delay),
        run_at=from_microseconds(int(run_at)),
        created_at=from_microseconds(int(created_at)),
    )


@functools.lru_cache(_KINDS)
def _kind(fields: tuple[bytes, ...]) -> Job:
    """What the running jobs of a kind have in common."""
    return to_job(b"", END.join((b"running", b"0", b"", b"", *fields, b"", b"")), None, None)


def to_text(value: bytes) -> str | None:
    """A text that may be absent: '' for none, else '=' and it."""
    return value[1:].decode() if value else None


def to_moment(value: bytes | None) -> datetime | None:
    return from_microseconds(int(value)) if value else None


def to_duration(value: bytes | None) -> timedelta | None:
    return timedelta(microseconds=int(value)) if value else None


def to_failure(text: bytes | None) -> Failure | None:
    return None if text is None else _decode_failure(text)
