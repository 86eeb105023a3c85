"""Reads and writes durations: `"5m"`, `"1h30m"`, seconds or a timedelta in; the shortest exact text out."""

from __future__ import annotations

import re
from datetime import timedelta

from perdure.errors import BadDuration

Duration = str | float | timedelta

LONGEST = timedelta(days=36500)

_MICROSECOND = timedelta(microseconds=1)

_UNITS = {
    "us": _MICROSECOND,
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_SIZES = tuple((unit, _UNITS[unit] // _MICROSECOND) for unit in ("d", "h", "m", "s", "ms", "us"))
_SCALES = {unit: size // _MICROSECOND for unit, size in _UNITS.items()}
_BILLION = 10**9
_MICRO_SIGNS = "µμ"  # the sign and the Greek letter look alike, and both are typed
_PART = re.compile(rf"([0-9]{{1,18}})(?:\.([0-9]{{1,9}}))?\s*(us|[{_MICRO_SIGNS}]s|ms|s|m|h|d|w)\s*", re.ASCII)
_BARE = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?", re.ASCII)
_LONGEST_TEXT = 200
_HINT = 'Write it like "500ms", "30s", "5m", "1h30m" or "7d", or give seconds as a number.'


def parse_duration(value: Duration, *, what: str = "duration") -> timedelta:
    """The duration that `value` means; never negative, never above a hundred years."""
    if isinstance(value, timedelta):
        found = value
    elif isinstance(value, bool):
        raise BadDuration(f"{what} is {value!r}, which is not a duration.", _HINT)
    elif isinstance(value, int | float):
        found = _from_seconds(value, what)
    elif isinstance(value, str):
        found = _parse_text(value, what)
    else:
        raise BadDuration(f"{what} is a {type(value).__name__}, which is not a duration.", _HINT)
    if found < timedelta(0):
        raise BadDuration(f"{what} is {value!r}, and a duration cannot be negative.", _HINT)
    if found > LONGEST:
        raise BadDuration(f"{what} is {str(value)[:60]!r}, longer than a hundred years.", _HINT)
    return found


def format_duration(value: timedelta) -> str:
    """The shortest exact text of a duration: `90s` is `1m30s`, half a second is `500ms`."""
    rest = value // _MICROSECOND
    if rest == 0:
        return "0s"
    sign, rest = ("-", -rest) if rest < 0 else ("", rest)
    parts = []
    for unit, size in _SIZES:
        if rest >= size:
            count, rest = divmod(rest, size)
            parts.append(f"{count}{unit}")
    return sign + "".join(parts)


def _from_seconds(value: float, what: str) -> timedelta:
    if value != value:
        raise BadDuration(f"{what} is {value!r}, which is not a duration.", _HINT)
    # Compared before it is printed or converted: a whole number may have more digits than either allows.
    if value > LONGEST.total_seconds():
        raise BadDuration(f"{what} is longer than a hundred years.", _HINT)
    if value < 0:
        raise BadDuration(f"{what} is below zero, and a duration cannot be negative.", _HINT)
    return timedelta(seconds=value)


def _parse_text(text: str, what: str) -> timedelta:
    stripped = text.strip()
    if not stripped:
        raise BadDuration(f"{what} is empty.", _HINT)
    if len(stripped) > _LONGEST_TEXT:
        raise BadDuration(f"{what} is {text[:60]!r}…, far too long a text.", _HINT)
    if stripped.startswith("-"):
        raise BadDuration(f"{what} is {text[:60]!r}, and a duration cannot be negative.", _HINT)
    if _BARE.fullmatch(stripped):
        stripped += "s"
    total = 0  # in billionths of a microsecond, so that nine decimals of any unit are whole
    position = 0
    while position < len(stripped):
        part = _PART.match(stripped, position)
        if part is None:
            raise BadDuration(f"{what} is {text[:60]!r}, which cannot be read.", _HINT)
        total += _billionths(*part.groups())
        position = part.end()
    if total > LONGEST // _MICROSECOND * _BILLION:
        raise BadDuration(f"{what} is {text[:60]!r}, longer than a hundred years.", _HINT)
    whole, rest = divmod(total, _BILLION)
    # Halves go to the even neighbour, as `round` has it.
    is_up = 2 * rest > _BILLION or (2 * rest == _BILLION and whole % 2 == 1)
    return (whole + is_up) * _MICROSECOND


def _billionths(whole: str, decimals: str | None, unit: str) -> int:
    """Exact, so that what a person writes to the microsecond is kept to the microsecond."""
    scale = _SCALES["us" if unit[0] in _MICRO_SIGNS else unit]
    return int(whole + (decimals or "").ljust(9, "0")) * scale
