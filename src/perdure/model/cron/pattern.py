"""Finds the wall-clock times that a cron expression matches, by jumping from field to field, knowing no zones.

The calendar repeats a month's shape after 40 years at most, and an expression that no shape can match is refused when
it is parsed; so a search looks at the matching months of 40 years in the worst case, and at one or two as a rule.
"""

from __future__ import annotations

from datetime import date, datetime

import msgspec

from perdure.model.cron.days import SHORTEST, DayMasks

FIRST_YEAR = 1900
LAST_YEAR = 2999
"""There are no ticks before and after these years."""

_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """What an expression matches, as bits: bit 5 of `hours` is set when it matches at five o'clock."""

    seconds: int
    minutes: int
    hours: int
    months: int
    days: DayMasks

    def first_from(self, wall: datetime) -> datetime | None:
        """The first match at or after a wall-clock time; both are whole seconds without a zone."""
        day = self._day_from(wall.year, wall.month, wall.day)
        if day == wall.date():
            clock = self._clock_from(wall.hour, wall.minute, wall.second)
            if clock is not None:
                return _at(wall, day, *clock)
            day = self._day_from(wall.year, wall.month, wall.day + 1)
        if day is None:
            return None
        return _at(wall, day, _lowest(self.hours), _lowest(self.minutes), _lowest(self.seconds))

    def last_before(self, wall: datetime) -> datetime | None:
        """The last match before a wall-clock time; both are whole seconds without a zone."""
        day = self._day_to(wall.year, wall.month, wall.day)
        if day == wall.date():
            clock = self._clock_before(wall.hour, wall.minute, wall.second)
            if clock is not None:
                return _at(wall, day, *clock)
            day = self._day_to(wall.year, wall.month, wall.day - 1)
        if day is None:
            return None
        return _at(wall, day, _highest(self.hours), _highest(self.minutes), _highest(self.seconds))

    def _clock_from(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1 and (found := self.seconds >> second):
                return hour, minute, second + _lowest(found)
            if found := self.minutes >> minute + 1:
                return hour, minute + 1 + _lowest(found), _lowest(self.seconds)
        if found := self.hours >> hour + 1:
            return hour + 1 + _lowest(found), _lowest(self.minutes), _lowest(self.seconds)
        return None

    def _clock_before(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1 and (found := _below(self.seconds, second)):
                return hour, minute, _highest(found)
            if found := _below(self.minutes, minute):
                return hour, _highest(found), _highest(self.seconds)
        if found := _below(self.hours, hour):
            return _highest(found), _highest(self.minutes), _highest(self.seconds)
        return None

    def _day_from(self, year: int, month: int, day: int) -> date | None:
        """The first matching day from this one on; the day may be one past the month's end."""
        if year < FIRST_YEAR:
            year, month, day = FIRST_YEAR, 1, 1
        while year <= LAST_YEAR:
            if self.months >> month & 1 and (found := days_of(self.days, year, month) >> day):
                return date(year, month, day + _lowest(found))
            day = 1
            if later := self.months >> month + 1:
                month += 1 + _lowest(later)
            else:
                year, month = year + 1, _lowest(self.months)
        return None

    def _day_to(self, year: int, month: int, day: int) -> date | None:
        """The last matching day up to this one; the day may be 0, before the month's start."""
        if year > LAST_YEAR:
            year, month, day = LAST_YEAR, 12, 31
        while year >= FIRST_YEAR:
            if self.months >> month & 1 and (found := _below(days_of(self.days, year, month), day + 1)):
                return date(year, month, _highest(found))
            day = 31
            if earlier := _below(self.months, month):
                month = _highest(earlier)
            else:
                year, month = year - 1, _highest(self.months)
        return None


def days_of(days: DayMasks, year: int, month: int) -> int:
    """The matching days of one month of one year."""
    is_leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    first = date(year, month, 1).isoweekday() % 7
    return days[_LENGTHS[month] + is_leap - SHORTEST][first]


def _at(wall: datetime, day: date, hour: int, minute: int, second: int) -> datetime:
    return wall.replace(day.year, day.month, day.day, hour, minute, second)


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _highest(mask: int) -> int:
    return mask.bit_length() - 1


def _below(mask: int, bound: int) -> int:
    return mask & (1 << bound) - 1
