"""The days that a cron expression picks in a month, worked out once for each shape that a month can have.

A month's shape is its length and the weekday of its first day. There are 28 shapes, so the days of every month there
will ever be fit in 28 numbers, in which bit 15 is set when the 15th is picked.
"""

from __future__ import annotations

from typing import assert_never

from perdure.errors import BadCron
from perdure.model.cron.field import (
    Field,
    LastDay,
    LastOfWeekday,
    LastWorkday,
    NearestWorkday,
    NthOfWeekday,
    Span,
    Special,
)
from perdure.text.shown import shown

SHORTEST = 28
"""The fewest days of a month."""

DayMasks = tuple[tuple[int, ...], ...]
"""The picked days by the month's length less 28, then by the weekday of its first day, 0 for Sunday."""

_LENGTHS = (28, 29, 30, 31)
_LENGTHS_OF_MONTH = ((), (31,), (28, 29), (31,), (30,), (31,), (30,), (31,), (31,), (30,), (31,), (30,), (31,))
_SATURDAY = 6
_WEEKS = sum(1 << 7 * week for week in range(5))
"""Times this, seven bits are repeated for all weeks of a month."""


def day_masks(text: str, day: Field, month: Field, weekday: Field) -> DayMasks:
    """The days that the two day fields pick; refused when no year has one of them in the months given.

    Where both fields are restricted a day has to match either; where one begins with `*`, both, as in Vixie's cron.
    """
    is_both = day.is_open or weekday.is_open
    days, week = day.mask, weekday.mask

    def picked(length: int, first: int) -> int:
        by_day = days | _specials(day, length, first)
        by_weekday = _weekly(week, first) | _specials(weekday, length, first)
        return (by_day & by_weekday if is_both else by_day | by_weekday) & (2 << length) - 2

    masks = tuple(tuple(picked(length, first) for first in range(7)) for length in _LENGTHS)
    lengths = {length for value in month.values for length in _LENGTHS_OF_MONTH[value]}
    if not any(mask for length in lengths for mask in masks[length - SHORTEST]):
        _refuse(text, day, month, weekday)
    return masks


def _weekly(week: int, first: int) -> int:
    """The days of 31 that fall on the weekdays given as bits, when the first day of the month is `first`."""
    turned = (week >> first | week << 7 - first) & 0b1111111
    return turned * _WEEKS << 1


def _specials(field: Field, length: int, first: int) -> int:
    mask = 0
    for term in field.terms:
        if not isinstance(term, Span):
            mask |= _special(term, length, first)
    return mask


def _special(term: Special, length: int, first: int) -> int:
    match term:
        case LastDay():
            return 1 << length - term.before if term.before < length else 0
        case LastWorkday():
            return 1 << _nearest_workday(length, length, first)
        case NearestWorkday():
            return 1 << _nearest_workday(term.day, length, first) if term.day <= length else 0
        case LastOfWeekday():
            return 1 << length - (first + length - 1 - term.weekday) % 7
        case NthOfWeekday():
            nth = 1 + (term.weekday - first) % 7 + 7 * (term.n - 1)
            return 1 << nth if nth <= length else 0
        case _:
            assert_never(term)


def _nearest_workday(day: int, length: int, first: int) -> int:
    """The Monday to Friday nearest to a day, never in another month."""
    weekday = (first + day - 1) % 7
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


def _refuse(text: str, day: Field, month: Field, weekday: Field) -> None:
    """Dates that no year has are mistakes, told now and not by a schedule that never ticks."""
    where = f"The {day.kind.name} {shown(day.text)} of {shown(text)}"
    when = "" if month.is_any else f" in the {month.kind.name} {shown(month.text)}"
    if weekday.is_any:
        raise BadCron(f"{where} never comes{when}.", "Choose a day that exists.")
    raise BadCron(
        f"{where} never meets the {weekday.kind.name} {shown(weekday.text)}{when}.",
        "As one of the two begins with `*`, both have to match.",
    )
