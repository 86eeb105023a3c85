"""The verbs of schedules: a document by name, changed only by who has seen its revision."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from perdure.clock import from_microseconds
from perdure.engines.postgres.enqueue import to_row
from perdure.engines.postgres.rows import from_batch, from_moment, from_optional_text, from_text, to_moment
from perdure.engines.postgres.verb import Row, Script, Step, Verb
from perdure.model.schedule import Schedule
from perdure.store.schedules import Due, Firing

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
    values: dict[str, object] = {"limit": max(0, limit)}
    if is_descending:
        values["below"] = from_optional_text(after)
        return Verb(lambda: _list("schedules_down", values), is_repeatable=True)
    values["above"] = from_text(after or "")
    return Verb(lambda: _list("schedules", values), is_repeatable=True)


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
    found = {schedule.name: schedule for schedule in map(_to_schedule, rows)}
    return [found.get(name) for name in names]


def _list(statement: str, values: dict[str, object]) -> Script[list[Schedule]]:
    return [_to_schedule(row) for row in (yield Step(statement, values))]


def _name(names: Sequence[str]) -> Script[None]:
    yield Step("name_schedules", {"names": [from_text(name) for name in names]})


def _due(limit: int) -> Script[Due]:
    rows = yield Step("due", {"limit": max(0, limit)})
    now, next_at = rows[0][-2:]
    found = tuple(_to_schedule(row[:-2]) for row in rows if row[0] is not None)
    return Due(now=from_microseconds(now), schedules=found, next_at=to_moment(next_at))


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


def _to_schedule(row: Row) -> Schedule:
    """The schedule of a row with the columns of fragments/schedule_columns.sql."""
    document, named_at, is_busy = row
    return msgspec.structs.replace(_decode(document), named_at=to_moment(named_at), is_busy=is_busy)
