"""Reads what a policy is built of: its durations, its factor and the names of errors."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from datetime import timedelta

from perdure.errors import BadDuration, BadPolicy
from perdure.model.failure import clean, type_name
from perdure.model.policy.curve import LONGEST_DELAY
from perdure.text.duration import Duration, parse_duration
from perdure.text.shown import shown
from perdure.text.suggestion import near_names

ErrorName = type[BaseException] | str
"""An exception class, or its name as records spell it: `TimeoutError`, `myapp.errors.RateLimited`."""

_HIGHEST_FACTOR = 1_000_000
_MOST_DELAYS = 1_000
_NAME_LIMIT = 250

_BUILTINS = {
    name: kind.__name__
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
}
"""The built-in exceptions, by every name they have."""

_SLIP = 0.85
"""How alike a name and a built-in exception must be for a slip of the pen: one wrong letter in seven."""


def read_duration(what: str, value: Duration) -> timedelta:
    """A duration of the policy, any length."""
    try:
        return parse_duration(value, what=what)
    except BadDuration as bad:
        raise BadPolicy(bad.message, bad.hint) from bad


def read_delay(what: str, value: Duration) -> timedelta:
    """A delay of the policy, at most LONGEST_DELAY."""
    found = read_duration(what, value)
    if found > LONGEST_DELAY:
        raise BadPolicy(f"{what} is {shown(value)}, and no delay of a policy is longer than 365 days.")
    return found


def read_delays(waits: object) -> tuple[timedelta, ...]:
    """The delays of a list, which has at least one."""
    if isinstance(waits, str | bytes) or not isinstance(waits, Sequence):
        raise BadPolicy(f"delays needs a list of delays, not {shown(waits)}.", 'Such as ["1s", "5s", "1m"].')
    if not 1 <= len(waits) <= _MOST_DELAYS:
        raise BadPolicy(f"delays has {len(waits):,} delays, and it needs 1 to {_MOST_DELAYS:,}.")
    return tuple(read_delay(f"delays[{place}]", wait) for place, wait in enumerate(waits))


def refuse_zero(what: str, value: timedelta) -> timedelta:
    """The value, unless it is the 0 of somebody who means "unset"."""
    if not value:
        raise BadPolicy(f"{what} is 0.", f"0 does not mean unset: leave {what} out to have none.")
    return value


def read_truth(what: str, value: object) -> bool:
    """An option that is on or off."""
    if not isinstance(value, bool):
        raise BadPolicy(f"{what} is {shown(value)}, and it is True or False.")
    return value


def read_factor(value: object) -> float:
    """The factor of an exponential curve; an int where it is whole, so that its powers are exact."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= _HIGHEST_FACTOR:
        raise BadPolicy(f"factor is {shown(value)}, and it is a number from 1 to {_HIGHEST_FACTOR:,}.")
    return int(value) if value == int(value) else float(value)


def error_names(errors: Iterable[object]) -> list[str]:
    """The names of exceptions given as classes, names or tuples of them."""
    names: list[str] = []
    for error in errors:
        if isinstance(error, tuple):
            names.extend(error_names(error))
        elif isinstance(error, type) and issubclass(error, BaseException):
            names.append(type_name(error))
        elif isinstance(error, str):
            names.append(_checked_name(error))
        else:
            raise BadPolicy(f"{shown(error)} is no exception class and no name of one.")
    return names


def near_exceptions(name: str) -> list[str]:
    """The built-in exceptions that a name without a module may be meant for; none where it is one, or like none."""
    bare = name.removeprefix("builtins.")
    if "." in bare or bare in _BUILTINS:
        return []
    return near_names(bare, _BUILTINS, likeness=_SLIP)


def _checked_name(name: str) -> str:
    bare = name.removeprefix("builtins.")
    if bare in _BUILTINS:
        # Records name the class itself: IOError is another name of OSError.
        return _BUILTINS[bare]
    if not bare or len(bare) > _NAME_LIMIT or clean(bare, _NAME_LIMIT) != bare:
        raise BadPolicy(
            f"{shown(name)} is not the name of an exception.",
            "Names are written as records show them: TimeoutError, myapp.errors.RateLimited.",
        )
    return bare
