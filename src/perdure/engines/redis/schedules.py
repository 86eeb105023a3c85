"""The verbs of schedules: a document by name, changed only by who has seen its revision."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from perdure.engines.redis.enqueue import JOB_WIDTH, KIND_WIDTH, to_arguments
from perdure.engines.redis.record import to_moment
from perdure.engines.redis.verb import Argument, Call, Verb, optional
from perdure.engines.set_aside import each_readable, moment_or_none, readable
from perdure.model.schedule.definition import Schedule
from perdure.store.schedules import Due, Firing
from perdure.system.clock import from_microseconds, to_microseconds

MOST = 1000
"""The most schedules that one script shows or changes."""

_decode = msgspec.json.Decoder(Schedule).decode


def put_schedule(schedule: Schedule, replaces: str | None) -> Verb[bool]:
    kept = yield Call(
        "put_schedule", (schedule.name.encode(), optional(replaces), *_arguments(schedule)), is_write=True
    )
    return bool(kept)


def get_schedules(names: Sequence[str]) -> Verb[list[Schedule | None]]:
    found: list[Schedule | None] = []
    for first in range(0, len(names), MOST):
        page = [name.encode() for name in names[first : first + MOST]]
        answer = yield Call("get_schedules", page)
        found += [
            None if one[0] is None else readable("schedule", one[3], partial(_to_schedule, one)) for one in answer
        ]
    return found


def schedules(limit: int, after: str | None, is_descending: bool) -> Verb[list[Schedule]]:
    found: list[Schedule] = []
    while len(found) < limit:
        asked = min(limit - len(found), MOST)
        page = yield Call("schedules", ((after or "").encode(), asked, b"1" if is_descending else b""))
        found += each_readable("schedule", page, _name, _to_schedule)
        if len(page) < asked:
            break
        after = page[-1][3].decode()
    return found


def remove_schedule(name: str) -> Verb[bool]:
    removed = yield Call("remove_schedule", (name.encode(),), is_write=True, is_repeatable=False)
    return bool(removed)


def name_schedules(names: Sequence[str]) -> Verb[None]:
    for first in range(0, len(names), MOST):
        yield Call("name_schedules", [name.encode() for name in names[first : first + MOST]], is_write=True)


def due(limit: int) -> Verb[Due]:
    asked = wanted = max(0, min(limit, MOST))
    while True:
        now, next_at, later, found = yield Call("due", (asked,))
        readables = each_readable("schedule", found, _name, _to_schedule)
        # Those that cannot be read stay due; they must not take the places of others.
        if len(found) < asked or len(readables) >= wanted:
            break
        asked = len(found) + wanted
    if len(readables) < len(found) and not readables:
        next_at = later
    return Due(
        now=from_microseconds(int(now)),
        schedules=tuple(readables[:wanted]),
        next_at=moment_or_none(lambda: to_moment(next_at)),
    )


def fire(firings: Sequence[Firing]) -> Verb[list[bool]]:
    answers: list[bool] = []
    for first in range(0, len(firings), MOST):
        page = firings[first : first + MOST]
        kinds, made = to_arguments([job for firing in page for job in firing.jobs])
        steps: list[Argument] = []
        at = 0
        for firing in page:
            width = len(firing.jobs) * JOB_WIDTH
            steps += (*_step(firing), *made[at : at + width])
            at += width
        arguments = (len(kinds) // KIND_WIDTH, *kinds, *steps)
        # [INV-21] A step that nobody knows the fate of may be taken again: its revision tells whether it was.
        taken = yield Call("fire", arguments, is_write=True)
        answers += map(bool, taken)
    return answers


def _step(firing: Firing) -> list[Argument]:
    after = (b"", b"", b"", b"") if firing.schedule is None else _arguments(firing.schedule)
    step: list[Argument] = [firing.name.encode(), firing.replaces, b"1" if firing.needs_idle else b"", *after]
    step.append(len(firing.jobs))
    return step


def _arguments(schedule: Schedule) -> tuple[Argument, ...]:
    """Revision, next tick, whether there is a backlog, and the document."""
    kept = msgspec.structs.replace(schedule, named_at=None, is_busy=False)
    next_at: Argument = b"" if schedule.next_at is None else to_microseconds(schedule.next_at)
    return (schedule.revision, next_at, b"1" if schedule.backlog else b"", msgspec.json.encode(kept))


def _name(answer: Sequence[Any]) -> bytes:
    name: bytes = answer[3]
    return name


def _to_schedule(answer: Sequence[Any]) -> Schedule:
    """The schedule of what fragments/show_schedule.lua shows; raises what says that it cannot be read."""
    document, named_at, is_busy, name = answer
    if document is None:
        raise ValueError("it has no document")
    if (found := _decode(document)).name.encode() != name:
        raise ValueError(f"its document is of the schedule {found.name!r:.80}")
    return msgspec.structs.replace(found, named_at=to_moment(named_at), is_busy=is_busy == 1)
