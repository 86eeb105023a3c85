"""The fields of a cron expression as data: what each may hold, and the terms that were written in it."""

from __future__ import annotations

import msgspec

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


class FieldKind(msgspec.Struct, frozen=True, kw_only=True):
    """One of the six places of an expression: its name, its values from `low` to `high`, and what else it takes."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    takes: str

    @property
    def size(self) -> int:
        """How many different values there are."""
        return self.high - self.low + 1

    def number_of(self, name: str) -> int | None:
        """The value that a name such as `JAN` or `mon` stands for."""
        return self.low + self.names.index(name.upper()) if name.upper() in self.names else None


SECOND = FieldKind(name="second", low=0, high=59, takes="0 to 59")
MINUTE = FieldKind(name="minute", low=0, high=59, takes="0 to 59")
HOUR = FieldKind(name="hour", low=0, high=23, takes="0 to 23")
DAY = FieldKind(name="day of the month", low=1, high=31, takes="1 to 31, `L`, `L-3`, `LW`, `15W`, `?`")
MONTH = FieldKind(
    name="month", low=1, high=12, names=tuple(name[:3].upper() for name in MONTHS), takes="1 to 12, `JAN` to `DEC`"
)
WEEKDAY = FieldKind(
    name="weekday",
    low=0,
    high=6,
    names=tuple(name[:3].upper() for name in WEEKDAYS),
    takes="0 to 7 with 0 and 7 for Sunday, `SUN` to `SAT`, `FRIL`, `FRI#2`, `?`",
)
KINDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


class Span(msgspec.Struct, frozen=True):
    """Every step-th value from first to last, both included; past the highest value it goes on with the lowest."""

    first: int
    last: int
    step: int = 1


class LastDay(msgspec.Struct, frozen=True):
    """`L`: the last day of the month; `L-3`: three days before it."""

    before: int = 0


class LastWorkday(msgspec.Struct, frozen=True):
    """`LW`: the last day of the month that is a Monday to Friday."""


class NearestWorkday(msgspec.Struct, frozen=True):
    """`15W`: the Monday to Friday that is nearest to the day, in the same month."""

    day: int


class LastOfWeekday(msgspec.Struct, frozen=True):
    """`FRIL`: the last Friday of the month."""

    weekday: int


class NthOfWeekday(msgspec.Struct, frozen=True):
    """`FRI#2`: the second Friday of the month."""

    weekday: int
    n: int


Special = LastDay | LastWorkday | NearestWorkday | LastOfWeekday | NthOfWeekday
Term = Span | Special


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field as it was written: its terms, and whether it begins with `*` or is `?`, which cron's rules ask for."""

    kind: FieldKind
    text: str
    terms: tuple[Term, ...]
    is_open: bool

    @property
    def is_any(self) -> bool:
        """Whether it leaves nothing out."""
        return self.mask == _span_mask(self.kind, Span(self.kind.low, self.kind.high))

    @property
    def mask(self) -> int:
        """The plain values as bits: bit 5 is set when the value 5 is among them."""
        mask = 0
        for term in self.terms:
            if isinstance(term, Span):
                mask |= _span_mask(self.kind, term)
        return mask

    @property
    def values(self) -> tuple[int, ...]:
        """The plain values, in order."""
        return _values_of(self.mask)


def span_values(kind: FieldKind, span: Span) -> tuple[int, ...]:
    """The values of one span, in order."""
    return _values_of(_span_mask(kind, span))


def _values_of(mask: int) -> tuple[int, ...]:
    """The numbers of the bits that are set, in order."""
    return tuple(value for value in range(mask.bit_length()) if mask >> value & 1)


def _span_mask(kind: FieldKind, span: Span) -> int:
    last = span.last if span.first <= span.last else span.last + kind.size
    mask = 0
    for value in range(span.first, last + 1, span.step):
        mask |= 1 << kind.low + (value - kind.low) % kind.size
    return mask
