"""Looks for the jobs of a JobFilter, a few hundred in one script, from whatever line of them is the shortest.

What can be compared byte by byte is compared by the server. A part of an error is looked for here, because only here is
letter case known in every script.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from perdure.engines.redis.record import to_failure
from perdure.engines.redis.verb import Argument, Call, Verb, optional
from perdure.engines.set_aside import readable
from perdure.store.reads import JobFilter
from perdure.system.clock import to_microseconds

FEW = 2000
"""So many jobs are sorted sooner than they are found among all others."""
LOOK_AT = 500
"""How many jobs one script looks at; counting takes less, so it looks at more."""
COUNT_AT = 2000

Shape = Literal["whole", "brief", "count"]
Direction = Literal["up", "down"]
Source = list[bytes] | Literal["jobs", "dead", "cancelled"]
Match = list[Any]
"""A job's id, its error, and: record, args, result, or in brief task, fingerprint, ended_at."""


class Search:
    """A way through matching jobs in the order of their ids, which can be gone on with page by page."""

    def __init__(self, where: JobFilter, shape: Literal["whole", "brief"], direction: Direction, after: str) -> None:
        self._where = where
        self._shape: Shape = shape
        self._direction = direction
        self._source: Source | None = None
        self._at = after.encode()
        self.is_over = False

    def page(self, limit: int) -> Verb[list[Match]]:
        """The next matches, up to the limit; fewer only when there are no more."""
        found: list[Match] = []
        if self._source is None:
            self._source = yield from _source(self._where)
        while len(found) < limit and not self.is_over:
            call = _call(self._where, self._shape, limit - len(found), self._ahead(LOOK_AT))
            last, _, matches = yield call
            found += [match for match in matches if self._has_error(match)]
            self._go_on(last)
        return found

    def _ahead(self, number: int) -> tuple[Argument, ...]:
        """What scan.lua is to look at next."""
        if isinstance(self._source, list):
            return ("ids", *self._rest(self._source)[:number])
        return (str(self._source), self._direction, self._at, number)

    def _rest(self, ids: list[bytes]) -> list[bytes]:
        ordered = sorted(set(ids), reverse=self._direction == "down")
        if not self._at:
            return ordered
        return [one for one in ordered if (one > self._at if self._direction == "up" else one < self._at)]

    def _go_on(self, last: bytes) -> None:
        if isinstance(self._source, list):
            seen = self._rest(self._source)[:LOOK_AT]
            self._at = last or (seen[-1] if seen else self._at)
            self.is_over = not self._rest(self._source)
        else:
            self._at, self.is_over = last or self._at, not last

    def _has_error(self, match: Match) -> bool:
        return self._where.error is None or _error_has(match[1], self._where.error)


def count_matching(where: JobFilter) -> Verb[int]:
    """How many jobs match."""
    if where.error is not None:
        search, found = Search(where, "brief", "up", ""), 0
        while not search.is_over:
            found += len((yield from search.page(LOOK_AT)))
        return found
    source = yield from _source(where)
    number: int = 0
    some: int
    if isinstance(source, list):
        ids = sorted(set(source))
        for first in range(0, len(ids), COUNT_AT):
            _, some, _ = yield _call(where, "count", COUNT_AT, ("ids", *ids[first : first + COUNT_AT]))
            number += some
        return number
    at = b""
    while True:
        at, some, _ = yield _call(where, "count", COUNT_AT, (source, "up", at, COUNT_AT))
        number += some
        if not at:
            return number


def is_state_alone(where: JobFilter) -> bool:
    """Whether the filter asks for nothing but a state, or for nothing at all."""
    return where == JobFilter(state=where.state)


def _source(where: JobFilter) -> Verb[Source]:
    if where.ids is not None:
        return [job_id.encode() for job_id in where.ids]
    match where.state:
        case "dead" | "cancelled":
            return where.state
        case None:
            return "jobs"
        case _:
            ids: list[bytes] | None = yield Call("few", (where.state, FEW))
            return "jobs" if ids is None else ids


def _call(where: JobFilter, shape: Shape, limit: int, ahead: Sequence[Argument]) -> Call:
    before = None if where.before is None else to_microseconds(where.before)
    after = None if where.after is None else to_microseconds(where.after)
    asked = (
        where.state,
        where.task,
        where.queue,
        where.reason,
        where.group,
        before,
        after,
        where.schedule,
        where.forward,
    )
    return Call("scan", (shape, limit, *(optional(value) for value in asked), *ahead))


def _error_has(text: bytes | None, part: str) -> bool:
    """Whether a stored error's type or message contains the part, letter case ignored in any script."""
    failure = readable("job", "with an error", lambda: to_failure(text))
    if failure is None:
        return False
    wanted = part.casefold()
    return wanted in failure.type.casefold() or wanted in failure.message.casefold()


def dead_among(where: JobFilter) -> JobFilter | None:
    """The filter narrowed to dead jobs; None when it asks for another state."""
    if where.state not in (None, "dead"):
        return None
    return JobFilter(**{**{name: getattr(where, name) for name in where.__struct_fields__}, "state": "dead"})
