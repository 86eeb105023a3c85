"""What the tests of cron draw: expressions, each with a second, slow reading of what they match."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from hypothesis import assume
from hypothesis import strategies as st

LENGTHS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class DrawnField(NamedTuple):
    text: str
    values: frozenset[int]

    @property
    def is_open(self) -> bool:
        return self.text.startswith("*")


class Drawn(NamedTuple):
    """An expression as it is written and, field by field, what it matches."""

    fields: tuple[DrawnField, ...]

    @property
    def text(self) -> str:
        return " ".join(field.text for field in self.fields)

    @property
    def is_interval(self) -> bool:
        return self.fields[-4].is_open

    def matches(self, wall: datetime) -> bool:
        """Asked of one wall-clock time, without any search."""
        *second, minute, hour, day, month, weekday = self.fields
        if wall.minute not in minute.values or wall.hour not in hour.values or wall.month not in month.values:
            return False
        if wall.second not in (second[0].values if second else {0}):
            return False
        by_day, by_weekday = wall.day in day.values, wall.isoweekday() % 7 in weekday.values
        return by_day and by_weekday if day.is_open or weekday.is_open else by_day or by_weekday


@st.composite
def terms(draw: st.DrawFn, low: int, high: int, *, wraps: bool) -> DrawnField:
    """One term without a star: a value, a range or a step."""
    whole = list(range(low, high + 1))
    first = draw(st.sampled_from(whole))
    form = draw(st.sampled_from(["value", "value", "range", "range/step", "value/step"]))
    step = draw(st.integers(1, high - low + 1)) if form.endswith("step") else 1
    ending = f"/{step}" if form.endswith("step") else ""
    if form.startswith("value"):
        found = whole[first - low :: step] if ending else [first]
        return DrawnField(f"{first}{ending}", frozenset(found))
    last = draw(st.sampled_from(whole if wraps else whole[first - low :]))
    found = [*whole[first - low :], *whole] if last < first else whole[first - low :]
    found = found[: (last - first) % len(whole) + 1]
    return DrawnField(f"{first}-{last}{ending}", frozenset(found[::step]))


@st.composite
def fields(draw: st.DrawFn, low: int, high: int, *, wraps: bool = True) -> DrawnField:
    """A field with up to three terms, or a star with or without a step."""
    whole = range(low, high + 1)
    if draw(st.booleans()):
        step = draw(st.none() | st.integers(1, high - low + 1))
        return DrawnField("*", frozenset(whole)) if step is None else DrawnField(f"*/{step}", frozenset(whole[::step]))
    parts = draw(st.lists(terms(low, high, wraps=wraps), min_size=1, max_size=3))
    return DrawnField(",".join(part.text for part in parts), frozenset().union(*(part.values for part in parts)))


@st.composite
def expressions(draw: st.DrawFn, *, seconds: bool, wraps: bool = True) -> Drawn:
    """Expressions of plain values that match some date; half of them leave all days open."""
    clock = [(0, 59)] * (2 if seconds else 1) + [(0, 23)]
    parts = [draw(fields(low, high, wraps=wraps)) for low, high in clock]
    if draw(st.booleans()):
        parts += [DrawnField("*", frozenset(range(1, 32))), DrawnField("*", frozenset(range(1, 13)))]
        parts += [DrawnField("*", frozenset(range(7)))]
    else:
        day, month, weekday = (draw(fields(low, high, wraps=wraps)) for low, high in ((1, 31), (1, 12), (0, 6)))
        has_day = min(day.values) <= max(LENGTHS[value] for value in month.values)
        assume(has_day or not (day.is_open or weekday.is_open))
        parts += [day, month, weekday]
    return Drawn(tuple(parts))


def read_expression(text: str) -> Drawn:
    """A second reading of an expression of numbers, stars, ranges and steps, independent of the parser under test."""
    words = text.split()
    limits = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6))[-len(words) :]
    return Drawn(tuple(_read_field(word, *limit) for word, limit in zip(words, limits, strict=True)))


def _read_field(word: str, low: int, high: int) -> DrawnField:
    values: set[int] = set()
    for part in word.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            reached = list(range(low, high + 1))
        elif dash and int(last) < int(first):
            reached = [*range(int(first), high + 1), *range(low, int(last) + 1)]
        else:
            reached = list(range(int(first), (int(last) if dash else high if slash else int(first)) + 1))
        values.update(reached[:: int(step or 1)])
    return DrawnField(word, frozenset(values))
