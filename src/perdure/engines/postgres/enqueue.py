"""Makes jobs durable, in one statement for any number of them; alone, together with others, or for a caller.

A single job is a plain insert. Jobs that differ only in their ids and arguments, as those of a bulk enqueue do, travel
as two arrays; all others as one JSON text, which every driver of a caller can pass on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from perdure.engines.postgres.rows import (
    are_ids,
    from_array,
    from_batch,
    from_bytes_array,
    from_duration,
    from_moment,
    from_number,
    from_optional_text,
    from_text,
    is_id,
)
from perdure.engines.postgres.verb import Script, Step, Verb
from perdure.errors import BadOption, EngineBusy
from perdure.model.job import JobId, NewJob
from perdure.model.state import Delivery

T = TypeVar("T")

_LARGEST = 5000
"""How many jobs one statement takes; larger batches are several statements in one transaction."""

_FEW = 50
"""Kinds of fewer jobs than this on average are not worth a statement each."""
_TURNS = 10


class Hint(msgspec.Struct, frozen=True):
    """A wake-up that goes with the jobs: through which channel, and from whom; no channel wakes nobody."""

    channel: str | None = None
    sender: str = ""
    was_owed: bool = False
    """Whether it is also for jobs that were made before."""


class JobRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job as enqueue.sql takes it."""

    place: int
    id: str
    task: str
    queue: str
    priority: int
    delivery: Delivery
    args: bytes
    delay: int | None = None
    run_at: int | None = None
    unique_key: str | None = None
    max_attempts: int | None = None
    retry: str | None = None
    timeout: int | None = None
    schedule: str | None = None
    tick_at: int | None = None


class _Standing(msgspec.Struct, frozen=True):
    """A job that was not made, as enqueue_standing.sql takes it."""

    place: int
    id: str
    task: str
    unique_key: str | None


def enqueue(jobs: Sequence[NewJob], hint: Hint) -> Verb[list[JobId]]:
    """The verb; what is answered is the id that stands for each job."""
    if len(jobs) == 1 and _is_plain(jobs[0]) and is_id(jobs[0].id):
        return _one(jobs[0], hint)
    kinds = _kinds(jobs)
    if kinds:
        # [INV-15] One statement, or one transaction: a batch is made whole or not at all.
        is_transaction = len(kinds) > 1 or len(jobs) > _LARGEST
        return Verb(
            lambda: _alike(jobs, kinds, hint), is_transaction=is_transaction, is_repeatable=True, plan="enqueue_alike"
        )
    rows = [to_row(place, job) for place, job in enumerate(jobs)]
    return Verb(
        lambda: script(rows, hint),
        # [INV-15] The same.
        is_transaction=len(rows) > _LARGEST or (len(rows) > 1 and any(row.unique_key is not None for row in rows)),
        is_repeatable=True,
        plan="enqueue",
    )


def _one(job: NewJob, hint: Hint) -> Verb[list[JobId]]:
    """The same for one job that is nothing special."""
    is_first = True

    def script() -> Script[list[JobId]]:
        nonlocal is_first
        if is_first:
            is_first = False
            yield Step("enqueue_one", {**_values(job, hint), "id": job.id, "args": job.args})
            return [job.id]
        # It was tried before, and may have been made then.
        return (yield from _alike([job], [[job]], hint))

    return Verb(script, is_repeatable=True, may_collide=True, plan="enqueue_one")


def _is_plain(job: NewJob) -> bool:
    return job.unique is None and job.schedule is None and job.tick_at is None


def _kinds(jobs: Sequence[NewJob]) -> list[list[NewJob]]:
    """The jobs by what they have in common; none when there is too little of that, or more to it than making them."""
    kinds: dict[tuple[object, ...], list[NewJob]] = {}
    for job in jobs:
        if not _is_plain(job):
            return []
        kind = (
            job.task,
            job.queue,
            job.priority,
            job.delivery,
            job.delay,
            job.run_at,
            job.max_attempts,
            job.retry,
            job.timeout,
        )
        kinds.setdefault(kind, []).append(job)
    is_worth_it = len(kinds) == 1 or len(kinds) <= len(jobs) // _FEW
    return list(kinds.values()) if is_worth_it and are_ids(job.id for job in jobs) else []


def _alike(jobs: Sequence[NewJob], kinds: Sequence[Sequence[NewJob]], hint: Hint) -> Script[list[JobId]]:
    """Make the jobs kind by kind."""
    for kind in kinds:
        values = _values(kind[0], hint)
        for part in _parts(kind):
            ids = from_array([job.id for job in part])
            yield Step("enqueue_alike", {**values, "ids": ids, "args": from_bytes_array([job.args for job in part])})
    return [job.id for job in jobs]


def _values(job: NewJob, hint: Hint) -> dict[str, object]:
    """What jobs that are alike have in common, as the statements take it."""
    return {
        "task": from_text(job.task),
        "queue": from_text(job.queue),
        "priority": str(job.priority),
        "delivery": job.delivery,
        "delay": from_number(from_duration(job.delay)),
        "run_at": from_number(from_moment(job.run_at)),
        "max_attempts": from_number(job.max_attempts),
        "retry": from_optional_text(job.retry),
        "timeout": from_number(from_duration(job.timeout)),
        "channel": hint.channel,
        "sender": hint.sender,
    }


def enqueue_within(jobs: Sequence[NewJob], hint: Hint) -> Script[list[JobId]]:
    """The same as a script for a caller's connection."""
    return script([to_row(place, job) for place, job in enumerate(jobs)], hint)


def script(rows: Sequence[JobRow], hint: Hint) -> Script[list[JobId]]:
    """Make the jobs, and where a unique key is taken find who has it, until an id stands for each job."""
    ids = [JobId(row.id) for row in rows]
    left = list(rows)
    for _ in range(_TURNS):
        made: set[str] = set()
        for part in _parts(left):
            values = {"jobs": from_batch(part), "channel": hint.channel, "sender": hint.sender}
            (answer,) = yield Step("enqueue", values)
            made.update(answer[0])
        missing = _not_made(left, made)
        if not missing:
            return ids
        found = yield Step("enqueue_standing", {"jobs": from_batch(missing)})
        standing = {place: job_id for place, job_id in found if job_id is not None}
        for place, job_id in standing.items():
            ids[place] = JobId(_text(job_id))
        # Whoever had the key of those that are left has ended meanwhile: it is free again.
        left = [row for row in missing_rows(rows, missing) if row.place not in standing]
        if not left:
            return ids
    raise EngineBusy("A unique key was taken and freed again and again.", "The same call may be tried again.")


def missing_rows(rows: Sequence[JobRow], missing: Sequence[_Standing]) -> Iterator[JobRow]:
    """The whole rows of those that were not made."""
    return (rows[one.place] for one in missing)


def _not_made(rows: Sequence[JobRow], made: set[str]) -> list[_Standing]:
    """The jobs with a unique key that the statement did not make; of an id twice the first is the one made."""
    missing = []
    for row in rows:
        if row.unique_key is None:
            continue
        if row.id in made:
            made.discard(row.id)
        else:
            missing.append(_Standing(row.place, row.id, row.task, row.unique_key))
    return missing


def _parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(rows), _LARGEST):
        yield rows[start : start + _LARGEST]


def to_row(place: int, job: NewJob) -> JobRow:
    """A job as the statements take it."""
    if not is_id(job.id):
        raise BadOption(f"The job's id {job.id[:50]!r} is no UUID.", "Let Perdure make the ids.")
    return JobRow(
        place=place,
        id=job.id,
        task=from_text(job.task),
        queue=from_text(job.queue),
        priority=job.priority,
        delay=from_duration(job.delay),
        run_at=from_moment(job.run_at),
        delivery=job.delivery,
        unique_key=from_optional_text(job.unique),
        max_attempts=job.max_attempts,
        retry=from_optional_text(job.retry),
        timeout=from_duration(job.timeout),
        args=job.args,
        schedule=from_optional_text(job.schedule),
        tick_at=from_moment(job.tick_at),
    )


def _text(value: str | bytes) -> str:
    """A text from a caller's connection, which may hand texts out as bytes."""
    return value.decode() if isinstance(value, bytes) else value
