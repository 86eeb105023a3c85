"""Parses the text of a cron expression into its fields, with errors that point at the field.

expression := [second] minute hour day month weekday | nickname
field      := term, term, …           `?` instead of `*` in the two day fields
term       := (`*` | value | value-value)[/step] | special
special    := L | L-n | LW | nW       in the day field
            | weekdayL | weekday#n    in the weekday field
"""

from __future__ import annotations

import re
from typing import NoReturn

from perdure.errors import BadCron
from perdure.model.cron.field import (
    DAY,
    KINDS,
    SECOND,
    WEEKDAY,
    Field,
    FieldKind,
    LastDay,
    LastOfWeekday,
    LastWorkday,
    NearestWorkday,
    NthOfWeekday,
    Span,
    Term,
)
from perdure.text.plural import plural
from perdure.text.shown import shown

LONGEST_TEXT = 256

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@minutely": "* * * * *",
}

_ORDER = "An expression is `minute hour day month weekday`, or six fields with the second first."
_NUMBER = re.compile(r"[0-9]+")
_SPACE = re.compile(r"[ \t\r\n]+")
_STRANGE = re.compile(r"[^0-9A-Za-z*?,/#@ \t\r\n-]")


def words_of(text: str) -> list[str]:
    """The words of a rule's text, once its length and its characters are known to be sound."""
    if not isinstance(text, str):
        raise BadCron(f"A cron expression is a string, not {shown(text)}.", _ORDER)
    if len(text) > LONGEST_TEXT:
        raise BadCron(f"The cron expression {shown(text)} is longer than {LONGEST_TEXT} characters.")
    words = [word for word in _SPACE.split(text) if word]
    if not words:
        raise BadCron("The cron expression is empty.", _ORDER)
    return words


def parse_fields(text: str) -> tuple[Field, ...]:
    """The six fields of an expression; with five written the second is 0."""
    words = words_of(text)
    if words[0].startswith("@"):
        words = _expanded(words, text).split()
    if strange := _STRANGE.search(" ".join(words)):  # also digits of other scripts, which `int` would take
        raise BadCron(f"The cron expression {shown(text)} has the character {strange[0]!r}, which cron does not use.")
    if len(words) not in (5, 6):
        hint = f"{_ORDER} A field for the year is not supported." if len(words) == 7 else _ORDER
        raise BadCron(f"The cron expression {shown(text)} has {plural(len(words), 'field')}, not 5 or 6.", hint)
    kinds = KINDS if len(words) == 6 else KINDS[1:]
    fields = [
        _FieldParser(kind, word, f"The {kind.name} (field {place} of {len(words)}) of {shown(text)}").field()
        for place, (kind, word) in enumerate(zip(kinds, words, strict=True), 1)
    ]
    if len(words) == 5:
        fields.insert(0, Field(kind=SECOND, text="0", terms=(Span(0, 0),), is_open=False))
    return tuple(fields)


def _expanded(words: list[str], text: str) -> str:
    name = words[0].lower()
    if name == "@reboot":
        raise BadCron(
            "`@reboot` is refused: a schedule belongs to the store, and no worker's start is the start of it.",
            "Enqueue a job where the program starts.",
        )
    if name == "@every":
        raise BadCron(f"{shown(text)} is an interval, not a cron expression.", "Read it with `parse_rule`.")
    if name not in NICKNAMES:
        raise BadCron(f"There is no nickname {shown(words[0])}.", f"Known: {', '.join(NICKNAMES)}, @every 10s.")
    if len(words) > 1:
        raise BadCron(f"{shown(text)} has more after {name}, which is a whole expression by itself.")
    return NICKNAMES[name]


class _FieldParser:
    """Reads one field; `place` says in errors which one it is."""

    def __init__(self, kind: FieldKind, text: str, place: str) -> None:
        self._kind = kind
        self._text = text
        self._place = place

    def field(self) -> Field:
        is_blank = self._text == "?" and self._kind in (DAY, WEEKDAY)
        words = ["*"] if is_blank else self._text.split(",")
        return Field(
            kind=self._kind,
            text=self._text,
            terms=tuple(self._term(word) for word in words),
            is_open=is_blank or self._text.startswith("*"),
        )

    def _term(self, word: str) -> Term:
        if not word:
            self._fail("has an empty part between commas")
        if word == "?":
            self._fail("has `?`, which stands alone, in the day of the month or the weekday")
        special = None
        if self._kind is DAY:
            special = self._special_day(word.upper())
        elif self._kind is WEEKDAY:
            special = self._special_weekday(word.upper())
        return special or self._span(word)

    def _special_day(self, word: str) -> Term | None:
        if word == "L":
            return LastDay()
        if word == "LW":
            return LastWorkday()
        if word.startswith("L-"):
            return LastDay(self._bounded(word[2:], 1, 30, f"the number of days in `{word}`"))
        if word.endswith("W"):
            return NearestWorkday(self._bounded(word[:-1], 1, 31, f"the day in `{word}`"))
        return None

    def _special_weekday(self, word: str) -> Term | None:
        if word == "L":
            self._fail("has `L` without a weekday; the last Saturday of the month is `SATL`")
        if "#" in word:
            name, _, n = word.partition("#")
            return NthOfWeekday(self._value(name) % 7, self._bounded(n, 1, 5, f"the number after # in `{word}`"))
        if word.endswith("L"):
            return LastOfWeekday(self._value(word[:-1]) % 7)
        return None

    def _span(self, word: str) -> Span:
        whole, slash, step_text = word.partition("/")
        step = self._bounded(step_text, 1, self._kind.size, f"the step in `{word}`") if slash else 1
        if whole == "*":
            return Span(self._kind.low, self._kind.high, step)
        first_text, dash, last_text = whole.partition("-")
        first = self._value(first_text)
        if dash:
            return Span(first, self._value(last_text), step)
        if not slash:
            return Span(first, first)
        # A 7 that begins a step is the Sunday that begins the week: nothing would follow the one that ends it.
        return Span(first % 7 if self._kind is WEEKDAY else first, self._kind.high, step)

    def _value(self, word: str) -> int:
        named = self._kind.number_of(word)
        if named is not None:
            return named
        highest = 7 if self._kind is WEEKDAY else self._kind.high
        return self._bounded(word, self._kind.low, highest, "a value")

    def _bounded(self, word: str, low: int, high: int, what: str) -> int:
        if not word:
            self._fail(f"lacks {what}")
        if not _NUMBER.fullmatch(word):
            is_named = what == "a value" and self._kind.names
            self._fail(f"has {shown(word)} as {what}, which is no number{' and no name' if is_named else ''}")
        if not low <= int(word) <= high:
            self._fail(f"has {shown(int(word))} as {what}, which is not from {low} to {high}")
        return int(word)

    def _fail(self, what: str) -> NoReturn:
        raise BadCron(
            f"{self._place} {what}.", f"It takes {self._kind.takes}, `*`, lists, ranges and steps like `*/5`."
        )
