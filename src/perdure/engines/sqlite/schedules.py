"""The verbs of schedules: a document by name, changed only by who has seen its revision."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec

from perdure.engines.set_aside import each_readable, moment_or_none
from perdure.engines.sqlite.enqueue import enqueue
from perdure.engines.sqlite.request import NOT_ANSWERED, NotAnswered
from perdure.engines.sqlite.rows import Row, from_moment, read_rows, to_moment
from perdure.engines.sqlite.sql import statement
from perdure.model.schedule.definition import Schedule
from perdure.store.schedules import Due, Firing
from perdure.system.clock import from_microseconds

_decode = msgspec.json.Decoder(Schedule).decode
_encode = msgspec.json.encode


def put_schedule(connection: sqlite3.Connection, now: int, schedule: Schedule, replaces: str | None) -> bool:
    values = {**_values(schedule), "replaces": replaces}
    return connection.execute(statement("put_schedule"), values).rowcount == 1


def get_schedules(connection: sqlite3.Connection, now: int, names: Sequence[str]) -> list[Schedule | None]:
    rows = read_rows(connection, statement("get_schedules"), {"names": _encode(names).decode()})
    found = {schedule.name: schedule for schedule in each_readable("schedule", rows, _name, _to_schedule)}
    return [found.get(name) for name in names]


def schedules(
    connection: sqlite3.Connection, now: int, limit: int, after: str | None, is_descending: bool
) -> list[Schedule]:
    name = "schedules_down" if is_descending else "schedules"
    found: list[Schedule] = []
    while len(found) < limit:
        asked = limit - len(found)
        rows = read_rows(connection, statement(name), {"above": after or "", "below": after, "limit": asked})
        found += each_readable("schedule", rows, _name, _to_schedule)
        if len(rows) < asked:
            break
        after = _name(rows[-1])
    return found


def remove_schedule(connection: sqlite3.Connection, now: int, name: str) -> bool:
    return connection.execute(statement("remove_schedule"), {"name": name}).rowcount == 1


def name_schedules(connection: sqlite3.Connection, now: int, names: Sequence[str]) -> None:
    connection.execute(statement("name_schedules"), {"names": _encode(names).decode(), "now": now})


def due(connection: sqlite3.Connection, now: int, limit: int) -> Due:
    (next_at,) = connection.execute(statement("due_next")).fetchone()
    found: list[Schedule] = []
    asked = max(0, limit)
    while True:
        rows = read_rows(connection, statement("due"), {"now": now, "limit": asked})
        rows += read_rows(connection, statement("due_queued"), {"now": now, "limit": asked - len(rows)})
        found = each_readable("schedule", rows, _name, _to_schedule)
        # Those that cannot be read stay due; they must not take the places of others.
        if len(rows) < asked or len(found) >= limit:
            break
        asked = len(rows) + limit
    if rows and not found:
        (next_at,) = connection.execute(statement("due_later"), {"now": now}).fetchone()
    return Due(
        now=from_microseconds(now),
        schedules=tuple(found[: max(0, limit)]),
        next_at=moment_or_none(lambda: to_moment(next_at)),
    )


def peek_fire(connection: sqlite3.Connection, now: int, firings: Sequence[Firing]) -> list[bool] | NotAnswered:
    """What the steps come to, if others have changed all of the schedules; so that late schedulers take no lock."""
    found = [_revision(connection, firing.name) for firing in firings]
    if any(revision == firing.replaces for revision, firing in zip(found, firings, strict=True)):
        return NOT_ANSWERED
    return [_is_taken(revision, firing) for revision, firing in zip(found, firings, strict=True)]


def fire(connection: sqlite3.Connection, now: int, firings: Sequence[Firing]) -> list[bool]:
    return [_fire(connection, now, firing) for firing in firings]


def _fire(connection: sqlite3.Connection, now: int, firing: Firing) -> bool:
    values: dict[str, Any] = {"name": firing.name, "replaces": firing.replaces, "needs_idle": int(firing.needs_idle)}
    if firing.schedule is None:
        changed = connection.execute(statement("fire_last"), values).rowcount
    else:
        changed = connection.execute(statement("fire"), {**values, **_values(firing.schedule)}).rowcount
    if changed == 0:
        return _is_taken(_revision(connection, firing.name), firing)
    enqueue(connection.cursor(), now, firing.jobs)
    return True


def _revision(connection: sqlite3.Connection, name: str) -> str | None:
    found = connection.execute(statement("fire_revision"), {"name": name}).fetchone()
    return None if found is None else str(found[0])


def _is_taken(revision: str | None, firing: Firing) -> bool:
    """Whether this very step was taken before, and its reply lost."""
    return firing.schedule is not None and revision == firing.schedule.revision


def _values(schedule: Schedule) -> dict[str, Any]:
    kept = msgspec.structs.replace(schedule, named_at=None, is_busy=False)
    return {
        "name": schedule.name,
        "revision": schedule.revision,
        "next_at": from_moment(schedule.next_at),
        "is_queued": int(bool(schedule.backlog)),
        "document": _encode(kept).decode(),
    }


def _name(row: Row) -> str:
    name: str = row[3]
    return name


def _to_schedule(row: Row) -> Schedule:
    """The schedule of a row with the columns of fragments/schedule_columns.sql."""
    document, named_at, is_busy, name = row
    if (found := _decode(document)).name != name:
        raise ValueError(f"its document is of the schedule {found.name!r:.80}")
    return msgspec.structs.replace(found, named_at=to_moment(named_at), is_busy=is_busy == 1)
