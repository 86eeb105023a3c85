"""Reads and writes durations: `"5m"`, `"1h30m"`, seconds or a timedelta in; the shortest exact text out."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from perdure.errors import BadDuration

Duration = str | float | timedelta

LONGEST = timedelta(days=36500)

_UNITS = {
    "us": timedelta(microseconds=1),
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_PART = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*(us|µs|ms|s|m|h|d|w)", re.ASCII)
_HINT = 'Write it like "500ms", "30s", "5m", "1h30m" or "7d", or give seconds as a number.'


def parse_duration(value: Duration, *, what: str = "duration") -> timedelta:
    """The duration that `value` means; never negative, never above a hundred years."""
    if isinstance(value, timedelta):
        found = value
    elif isinstance(value, bool):
        raise BadDuration(f"{what} is {value!r}, which is not a duration.", _HINT)
    elif isinstance(value, int | float):
        if not math.isfinite(value):
            raise BadDuration(f"{what} is {value!r}, which is not a duration.", _HINT)
        if abs(value) > LONGEST.total_seconds():
            raise BadDuration(f"{what} is {value!r} seconds, longer than a hundred years.", _HINT)
        found = timedelta(seconds=value)
    elif isinstance(value, str):
        found = _parse_text(value, what)
    else:
        raise BadDuration(f"{what} is a {type(value).__name__}, which is not a duration.", _HINT)
    if found < timedelta(0):
        raise BadDuration(f"{what} is {value!r}, and a duration cannot be negative.", _HINT)
    if found > LONGEST:
        raise BadDuration(f"{what} is {value!r}, longer than a hundred years.", _HINT)
    return found


def format_duration(value: timedelta) -> str:
    """The shortest exact text of a duration: `90s` is `1m30s`, half a second is `500ms`."""
    rest = value // timedelta(microseconds=1)
    if rest == 0:
        return "0s"
    sign, rest = ("-", -rest) if rest < 0 else ("", rest)
    parts = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, rest = divmod(rest, _UNITS[unit] // timedelta(microseconds=1))
        if count:
            parts.append(f"{count}{unit}")
    return sign + "".join(parts)


def _parse_text(text: str, what: str) -> timedelta:
    stripped = text.strip()
    if re.fullmatch(r"[0-9]{1,18}(?:\.[0-9]{1,9})?", stripped, re.ASCII):
        stripped += "s"
    total = timedelta(0)
    position = 0
    while position < len(stripped):
        part = _PART.match(stripped, position)
        if part is None:
            raise BadDuration(f"{what} is {text[:60]!r}, which cannot be read.", _HINT)
        try:
            total += float(part[1]) * _UNITS[part[2].replace("µ", "u")]
        except OverflowError:
            raise BadDuration(f"{what} is {text[:60]!r}, longer than a hundred years.", _HINT) from None
        position = part.end()
        while position < len(stripped) and stripped[position] == " ":
            position += 1
    if position == 0:
        raise BadDuration(f"{what} is empty.", _HINT)
    return total
