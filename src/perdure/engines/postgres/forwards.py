"""The forwarding of dead jobs: who tries it, what came of it, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from perdure.engines.postgres.filter import parameters
from perdure.engines.postgres.rows import (
    from_batch,
    from_duration,
    from_ids,
    from_optional_text,
    from_text,
    is_id,
    to_moment,
    to_optional_text,
    to_text,
)
from perdure.engines.postgres.verb import Row, Script, Step, Verb
from perdure.engines.set_aside import each_readable, moment_or_none
from perdure.model.forward import Forward, ForwardState, Tried
from perdure.model.job import JobId
from perdure.store.forwards import DueForwards
from perdure.store.reads import JobFilter


class _Row(msgspec.Struct, frozen=True):
    """A try as forwarded.sql takes it."""

    place: int
    job_id: str
    attempt: int
    number: int
    sink: str | None
    state: ForwardState
    delay: int | None
    error: str | None


def forward(queues: Sequence[str], limit: int, lease: timedelta) -> Verb[DueForwards]:
    # A claim whose reply was lost runs out by itself; another look takes what is due besides.
    return Verb(lambda: _forward(queues, limit, lease), is_repeatable=True)


def forwarded(tried: Sequence[Tried]) -> Verb[list[bool]]:
    return Verb(lambda: _forwarded(tried), is_repeatable=True)


def forward_now(where: JobFilter) -> Verb[int]:
    return Verb(lambda: _forward_now(where), is_repeatable=True)


def forwards(ids: Sequence[JobId]) -> Verb[dict[JobId, Forward]]:
    return Verb(lambda: _forwards(ids), is_repeatable=True)


def forward_counts() -> Verb[dict[ForwardState, int]]:
    return Verb(_counts, is_repeatable=True)


def _forward(queues: Sequence[str], limit: int, lease: timedelta) -> Script[DueForwards]:
    names = [from_text(queue) for queue in queues]
    values = {"queues": names, "limit": max(0, limit), "lease": from_duration(lease)}
    due = yield Step("forward_next", {"queues": names})
    # Idle polls only read.
    if not due or not due[0][1]:
        return DueForwards(forwards=(), next_at=moment_or_none(lambda: to_moment(due[0][0] if due else None)))
    rows = yield Step("forward", values)
    due = yield Step("forward_next", {"queues": names})
    found = read(rows)
    return DueForwards(forwards=tuple(found), next_at=moment_or_none(lambda: to_moment(due[0][0] if due else None)))


def _forwarded(tried: Sequence[Tried]) -> Script[list[bool]]:
    answers = [False] * len(tried)
    places = [place for place, one in enumerate(tried) if is_id(one.job_id)]
    # One statement changes a row once: of several tries of one job the later ones come in statements of their own.
    while places:
        firsts: dict[str, int] = {}
        for place in places:
            firsts.setdefault(tried[place].job_id, place)
        rows = [_row(place, tried[place]) for place in sorted(firsts.values(), key=lambda place: tried[place].job_id)]
        for (place,) in (yield Step("forwarded", {"tried": from_batch(rows)})):
            answers[place] = True
        places = [place for place in places if place not in firsts.values()]
    return answers


def _forward_now(where: JobFilter) -> Script[int]:
    ((count,),) = yield Step("forward_now", parameters(where))
    return int(count)


def _forwards(ids: Sequence[JobId]) -> Script[dict[JobId, Forward]]:
    rows = yield Step("forwards", {"ids": from_ids(ids)})
    found = read(rows)
    return {one.job_id: one for one in found}


def _counts() -> Script[dict[ForwardState, int]]:
    rows = yield Step("forward_counts")
    return {state: int(count) for state, count in rows}


def read(rows: Sequence[Row]) -> list[Forward]:
    """The forwards of rows, without those that cannot be read."""
    return each_readable("forward", rows, lambda row: row[0], _to_forward)


def _row(place: int, one: Tried) -> _Row:
    return _Row(
        place=place,
        job_id=one.job_id,
        attempt=one.attempt,
        number=one.number,
        sink=from_optional_text(one.sink),
        state=one.state,
        delay=from_duration(one.delay),
        error=from_optional_text(one.error),
    )


def _to_forward(row: Row) -> Forward:
    return Forward(
        job_id=row[0],
        attempt=row[1],
        queue=to_text(row[2]),
        sink=to_optional_text(row[3]),
        state=row[4],
        tries=row[5],
        next_at=to_moment(row[6]),
        tried_at=to_moment(row[7]),
        forwarded_at=to_moment(row[8]),
        error=to_optional_text(row[9]),
    )
