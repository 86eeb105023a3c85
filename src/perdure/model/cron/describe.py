"""Says a cron expression in plain English: `at 12:30 on the last Friday of each month`."""

from __future__ import annotations

from itertools import product
from typing import assert_never

from perdure.model.cron.field import (
    MONTHS,
    WEEKDAYS,
    Field,
    LastDay,
    LastOfWeekday,
    LastWorkday,
    NearestWorkday,
    NthOfWeekday,
    Span,
    Term,
    span_values,
)
from perdure.model.cron.parser import parse_fields, words_of

_MOST_TIMES = 4
"""So many times of the day are told one by one."""

_ORDINALS = ("first", "second", "third", "fourth", "fifth")


def describe(text: str) -> str:
    """What the expression means, as a phrase that can follow `it ticks`."""
    second, minute, hour, day, month, weekday = parse_fields(text)
    times = _times(second, minute, hour, has_seconds=len(words_of(text)) == 6)
    clock = times or _clock(second, minute, hour)
    date = _date(day, month, weekday)
    if times and not date.startswith("on "):
        date = f"every day {date}".rstrip()
    return f"{clock} {date}".rstrip()


def _times(second: Field, minute: Field, hour: Field, *, has_seconds: bool) -> str | None:
    """`at 03:00 and 15:00`, when the times of a day are few."""
    if hour.is_open or len(hour.values) * len(minute.values) * len(second.values) > _MOST_TIMES:
        return None
    form = "{:02}:{:02}:{:02}" if has_seconds else "{:02}:{:02}"
    return "at " + _joined([form.format(*time) for time in product(hour.values, minute.values, second.values)])


def _clock(second: Field, minute: Field, hour: Field) -> str:
    """`every 10 minutes of hours 9 to 17`: the smallest unit first, and then the larger ones that narrow it down."""
    fields = [second, minute, hour]
    if second.values == (0,):
        fields.remove(second)
        if minute.values == (0,) and _rhythm(hour):
            fields.remove(minute)
    rhythm = _rhythm(fields[0])
    text = rhythm or f"at {_numbers(fields[0])}"
    is_every = rhythm is not None
    for field in fields[1:]:
        if not field.is_any:
            text += f" of {_numbers(field)}"
        elif not is_every:
            text += f" of every {field.kind.name}"
        is_every = is_every or field.is_any
    return text


def _rhythm(field: Field) -> str | None:
    """`every 10 minutes`, if the steps go evenly into the whole; None if it is nothing so regular."""
    kind, term = field.kind, field.terms[0]
    if field.is_any:
        return f"every {kind.name}"
    if len(field.terms) > 1 or not isinstance(term, Span):
        return None
    is_even = (term.first, term.last) == (kind.low, kind.high) and kind.size % term.step == 0
    return f"every {term.step} {kind.name}s" if is_even and term.step < kind.size else None


def _numbers(field: Field) -> str:
    """`minute 5`, `minutes 5, 10 and 20 to 30`, `every 7th minute`."""
    name = field.kind.name
    spans = [term for term in field.terms if isinstance(term, Span)]
    steps = [_steps(span, field) for span in spans if _has_steps(span)]
    plain = [_plain(span) for span in spans if not _has_steps(span)]
    is_one = len(plain) == 1 and all(span.first == span.last for span in spans if not _has_steps(span))
    told = [f"{name if is_one else name + 's'} {_joined(plain)}"] if plain else []
    return " and ".join(told + steps)


def _has_steps(span: Span) -> bool:
    return span.step > 1 and span.first != span.last


def _plain(span: Span) -> str:
    return str(span.first) if span.first == span.last else f"{span.first} to {span.last}"


def _steps(span: Span, field: Field) -> str:
    kind = field.kind
    text = f"every {_nth(span.step)} {'day' if kind.high == 31 else kind.name}"
    if (span.first, span.last) == (kind.low, kind.high):
        return text
    return f"{text} from {span.first} {'on' if span.last == kind.high else f'to {span.last}'}"


def _date(day: Field, month: Field, weekday: Field) -> str:
    """`on day 1 of each month or on Monday`; empty if it is every day."""
    months = "" if month.is_any else _names(month, MONTHS, "and")
    of_months = f"of {months}" if months else "of each month"
    days = f"on {_joined([_day(term, day) for term in day.terms])} {of_months}"
    weekdays = _names(weekday, WEEKDAYS, "and")
    if any(not isinstance(term, Span) for term in weekday.terms):
        weekdays += f" {of_months}"
    elif months:
        weekdays += f" in {months}"
    is_both = day.is_open or weekday.is_open
    if (day.is_any and weekday.is_any) or (not is_both and (day.is_any or weekday.is_any)):
        return f"in {months}" if months else ""
    if day.is_any:
        return f"on {weekdays}"
    if weekday.is_any:
        return days
    return f"{days}, only if it is {_names(weekday, WEEKDAYS, 'or')}" if is_both else f"{days} or on {weekdays}"


def _day(term: Term, field: Field) -> str:
    match term:
        case Span():
            if _has_steps(term):
                return _steps(term, field)
            return f"{'day' if term.first == term.last else 'days'} {_plain(term)}"
        case LastDay():
            return f"the {_nth(term.before)} day before the last" if term.before else "the last day"
        case LastWorkday():
            return "the last working day"
        case NearestWorkday():
            return f"the working day nearest to day {term.day}"
        case LastOfWeekday() | NthOfWeekday():
            return _weekday(term)
        case _:
            assert_never(term)


def _weekday(term: LastOfWeekday | NthOfWeekday) -> str:
    which = "last" if isinstance(term, LastOfWeekday) else _ORDINALS[term.n - 1]
    return f"the {which} {WEEKDAYS[term.weekday]}"


def _names(field: Field, names: tuple[str, ...], conjunction: str) -> str:
    """Months or weekdays by name; those picked in steps one by one."""
    told: list[str] = []
    for term in field.terms:
        if isinstance(term, LastOfWeekday | NthOfWeekday):
            told.append(_weekday(term))
        elif isinstance(term, Span) and term.step > 1:
            told += [names[value - field.kind.low] for value in span_values(field.kind, term)]
        elif isinstance(term, Span):
            ends = [names[(value - field.kind.low) % field.kind.size] for value in (term.first, term.last)]
            told.append(ends[0] if term.first == term.last else f"{ends[0]} to {ends[1]}")
    return _joined(told, conjunction)


def _nth(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _joined(parts: list[str], conjunction: str = "and") -> str:
    unique = list(dict.fromkeys(parts))
    return unique[0] if len(unique) == 1 else f"{', '.join(unique[:-1])} {conjunction} {unique[-1]}"
