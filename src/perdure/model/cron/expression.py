"""A cron expression: the ticks that it names in a time zone, also on the days when the clocks change.

Two kinds of expressions meet a change of the clocks in two ways. The hour field decides:

- a **daily time** has fixed hours (`0 3 * * *`, `0 9-17 * * *`). Each wall-clock time that it names ticks once. One
  that is missing, because the clock was put forward, ticks at the first instant after the gap; several that are missing
  in one gap make one tick there. One that comes twice, because the clock was put back, ticks the first time only.
- an **interval** has an hour field that begins with `*` (`*/10 * * * *`, `0 */2 * * *`). It ticks whenever the wall
  clock shows a matching time: twice for a time that comes twice, not at all for one that is missing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

from perdure.model.cron.days import day_masks
from perdure.model.cron.describe import describe
from perdure.model.cron.parser import parse_fields, words_of
from perdure.model.cron.pattern import FIRST_YEAR, LAST_YEAR, Pattern
from perdure.model.cron.wall_clock import aware, change_around, instant_of

_SECOND = timedelta(seconds=1)
_EARLIEST = datetime(FIRST_YEAR - 1, 1, 1, tzinfo=UTC)
_LATEST = datetime(LAST_YEAR + 2, 1, 1, tzinfo=UTC)


class Cron(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed expression, made by `parse`; equal to another if they are written alike.

    `next` and `previous` of `Cron` and `Every` take the same names, so that one call serves both:
    `rule.next(after, zone=zone, anchor=anchor)`. A cron expression makes no use of the anchor.
    """

    text: str
    pattern: Pattern
    is_interval: bool

    @classmethod
    def parse(cls, text: str) -> Cron:
        """The expression that a text spells: five fields, six with the second first, or a nickname such as `@daily`."""
        fields = parse_fields(text)
        second, minute, hour, day, month, weekday = fields
        pattern = Pattern(
            seconds=second.mask,
            minutes=minute.mask,
            hours=hour.mask,
            months=month.mask,
            days=day_masks(text, day, month, weekday),
        )
        return cls(text=" ".join(words_of(text)), pattern=pattern, is_interval=hour.is_open)

    def next(self, after: datetime, zone: tzinfo, anchor: datetime | None = None) -> datetime | None:
        """The first tick strictly after an instant, in UTC; None past the year 2999, where ticks end."""
        wall, is_second_pass = _read(max(aware(after), _EARLIEST), zone)
        if self.is_interval:
            return _next_shown(self.pattern, wall, is_second_pass, zone)
        if is_second_pass and (change := change_around(wall, zone)):
            found = self.pattern.first_from(change.end)
        else:
            found = self.pattern.first_from(wall + _SECOND)
        return None if found is None else _once(found, zone)

    def previous(self, before: datetime, zone: tzinfo, anchor: datetime | None = None) -> datetime | None:
        """The last tick strictly before an instant, in UTC; None before the year 1900, where ticks begin."""
        instant = min(aware(before), _LATEST)
        wall, is_second_pass = _read(instant, zone)
        if self.is_interval:
            return _previous_shown(self.pattern, wall, bool(instant.microsecond), is_second_pass, zone)
        bound = wall + _SECOND if instant.microsecond else wall
        if is_second_pass and (change := change_around(wall, zone)):
            bound = change.end
        found = self.pattern.last_before(bound)
        # Times that a gap swallowed tick at its end, which may be the very instant that a tick is wanted before.
        if found is not None and _once(found, zone) >= instant and (gap := change_around(found, zone)):
            found = self.pattern.last_before(gap.start)
        return None if found is None else _once(found, zone)

    def describe(self) -> str:
        """The expression in plain English, such as `at 03:00 every day`."""
        return describe(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Cron.parse({self.text!r})"


def _read(instant: datetime, zone: tzinfo) -> tuple[datetime, bool]:
    """What the wall clock shows, in whole seconds, and whether it shows it for the second time."""
    local = instant.astimezone(zone)
    return local.replace(tzinfo=None, microsecond=0, fold=0), local.fold == 1


def _once(wall: datetime, zone: tzinfo) -> datetime:
    """The one tick of a wall-clock time: at the end of the gap it is missing in, else when it is first shown."""
    change = change_around(wall, zone)
    return change.at if change is not None and change.is_gap else instant_of(wall, zone)


def _next_shown(pattern: Pattern, wall: datetime, is_second_pass: bool, zone: tzinfo) -> datetime | None:
    """The first instant at which the clock shows a match, after it shows `wall` for the first or second time."""
    change = change_around(wall, zone)
    found = pattern.first_from(wall + _SECOND)
    if change is not None and not change.is_gap:
        if not is_second_pass:
            if found is not None and found < change.end:
                return _minus(found, change.before)
            found = pattern.first_from(change.start)
        if found is not None and found < change.end:
            return _minus(found, change.after)
    while found is not None and (gap := change_around(found, zone)) is not None and gap.is_gap:
        found = pattern.first_from(gap.end)
    return None if found is None else instant_of(found, zone)


def _previous_shown(
    pattern: Pattern, wall: datetime, is_past: bool, is_second_pass: bool, zone: tzinfo
) -> datetime | None:
    """The last instant at which the clock shows a match before it shows `wall`, or at that if `is_past`."""
    change = change_around(wall, zone)
    found = pattern.last_before(wall + _SECOND if is_past else wall)
    if change is not None and not change.is_gap:
        if is_second_pass:
            if found is not None and found >= change.start:
                return _minus(found, change.after)
            found = pattern.last_before(change.end)
        if found is not None and found >= change.start:
            return _minus(found, change.before)
    while found is not None and (change := change_around(found, zone)) is not None:
        if not change.is_gap:
            return _minus(found, change.after)
        found = pattern.last_before(change.start)
    return None if found is None else instant_of(found, zone)


def _minus(wall: datetime, offset: timedelta) -> datetime:
    return (wall - offset).replace(tzinfo=UTC)
