"""The verbs of schedules: a document by name, changed only by who has seen its revision."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from perdure.engines.postgres.enqueue import to_row
from perdure.engines.postgres.rows import from_batch, from_moment, from_optional_text, from_text, to_moment, to_text
from perdure.engines.postgres.verb import Row, Script, Step, Verb
from perdure.engines.set_aside import each_readable, moment_or_none
from perdure.model.schedule.definition import Schedule
from perdure.store.schedules import Due, Firing
from perdure.system.clock import from_microseconds

_decode = msgspec.json.Decoder(Schedule).decode


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step as fire.sql takes it."""

    place: int
    name: str
    replaces: str
    needs_idle: bool
    revision: str | None = None
    next_at: int | None = None
    is_queued: bool = False
    document: str | None = None


def put_schedule(schedule: Schedule, replaces: str | None) -> Verb[bool]:
    values: dict[str, object] = {
        "name": from_text(schedule.name),
        "revision": schedule.revision,
        "replaces": replaces,
        "next_at": from_moment(schedule.next_at),
        "is_queued": bool(schedule.backlog),
        "document": _document(schedule),
    }
    return Verb(lambda: _has_row("put_schedule", values), is_repeatable=True)


def get_schedules(names: Sequence[str]) -> Verb[list[Schedule | None]]:
    return Verb(lambda: _get(names), is_repeatable=True)


def schedules(limit: int, after: str | None, is_descending: bool) -> Verb[list[Schedule]]:
    if is_descending:
        return Verb(lambda: _list("schedules_down", "below", from_optional_text(after), limit), is_repeatable=True)
    return Verb(lambda: _list("schedules", "above", from_text(after or ""), limit), is_repeatable=True)


def remove_schedule(name: str) -> Verb[bool]:
    return Verb(lambda: _has_row("remove_schedule", {"name": from_text(name)}))


def name_schedules(names: Sequence[str]) -> Verb[None]:
    return Verb(lambda: _name(names), is_repeatable=True)


def due(limit: int) -> Verb[Due]:
    return Verb(lambda: _due(limit), is_repeatable=True)


def fire(firings: Sequence[Firing]) -> Verb[list[bool]]:
    # [INV-21] A step that nobody knows the fate of may be taken again: its revision tells whether it was.
    return Verb(lambda: _fire(firings), is_repeatable=True)


def _has_row(statement: str, values: dict[str, object]) -> Script[bool]:
    return len((yield Step(statement, values))) == 1


def _get(names: Sequence[str]) -> Script[list[Schedule | None]]:
    rows = yield Step("get_schedules", {"names": [from_text(name) for name in names]})
    found = {schedule.name: schedule for schedule in each_readable("schedule", rows, _stored_name, _to_schedule)}
    return [found.get(name) for name in names]


def _list(statement: str, from_: str, after: str | None, limit: int) -> Script[list[Schedule]]:
    found: list[Schedule] = []
    while len(found) < limit:
        asked = limit - len(found)
        rows = yield Step(statement, {from_: after, "limit": asked})
        found += each_readable("schedule", rows, _stored_name, _to_schedule)
        if len(rows) < asked:
            break
        after = rows[-1][3]
    return found


def _name(names: Sequence[str]) -> Script[None]:
    yield Step("name_schedules", {"names": [from_text(name) for name in names]})


def _due(limit: int) -> Script[Due]:
    asked = max(0, limit)
    while True:
        rows = yield Step("due", {"limit": asked})
        now, next_at = rows[0][-2:]
        due = [row[:-2] for row in rows if row[0] is not None]
        found = each_readable("schedule", due, _stored_name, _to_schedule)
        # Those that cannot be read stay due; they must not take the places of others.
        if len(due) < asked or len(found) >= limit:
            break
        asked = len(due) + limit
    if due and not found:
        ((next_at,),) = yield Step("due_later")
    return Due(
        now=from_microseconds(now),
        schedules=tuple(found[: max(0, limit)]),
        next_at=moment_or_none(lambda: to_moment(next_at)),
    )


def _fire(firings: Sequence[Firing]) -> Script[list[bool]]:
    steps = [_step(place, firing) for place, firing in enumerate(firings)]
    jobs = [to_row(place, job) for place, firing in enumerate(firings) for job in firing.jobs]
    ((taken, before),) = yield Step("fire", {"steps": from_batch(steps), "jobs": from_batch(jobs)})
    places = {*taken, *before}
    return [place in places for place in range(len(firings))]


def _step(place: int, firing: Firing) -> _Step:
    after = firing.schedule
    name = from_text(firing.name)
    if after is None:
        return _Step(place=place, name=name, replaces=firing.replaces, needs_idle=firing.needs_idle)
    return _Step(
        place=place,
        name=name,
        replaces=firing.replaces,
        needs_idle=firing.needs_idle,
        revision=after.revision,
        next_at=from_moment(after.next_at),
        is_queued=bool(after.backlog),
        document=_document(after),
    )


def _document(schedule: Schedule) -> str:
    return msgspec.json.encode(msgspec.structs.replace(schedule, named_at=None, is_busy=False)).decode()


def _stored_name(row: Row) -> str:
    return to_text(row[3])


def _to_schedule(row: Row) -> Schedule:
    """The schedule of a row with the columns of fragments/schedule_columns.sql."""
    document, named_at, is_busy, name = row
    if from_text((found := _decode(document)).name) != name:
        raise ValueError(f"its document is of the schedule {found.name!r:.80}")
    return msgspec.structs.replace(found, named_at=to_moment(named_at), is_busy=is_busy)
