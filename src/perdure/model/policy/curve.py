"""The curves of delays: how long to wait after the n-th failure, before jitter, as plain data."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import assert_never

import msgspec

from perdure.errors import BadDuration, BadPolicy
from perdure.model.policy.limit import DEFAULT_LIMIT
from perdure.text.duration import Duration, parse_duration

LONGEST_DELAY = timedelta(days=365)
"""No delay is longer; a curve without a cap saturates here."""

MICROSECOND = timedelta(microseconds=1)

_SATURATION_BITS = 64
"""Growth by 2^64 lifts even one microsecond far above LONGEST_DELAY, which has 45 bits."""

_HIGHEST_N = 10**9


class Fixed(msgspec.Struct, frozen=True):
    """The same delay every time; zero means at once."""

    every: timedelta


class Linear(msgspec.Struct, frozen=True):
    """n × step."""

    step: timedelta


class Exponential(msgspec.Struct, frozen=True):
    """base × factor^(n-1)."""

    base: timedelta
    factor: float


class Delays(msgspec.Struct, frozen=True):
    """The delays one by one; the last repeats."""

    waits: tuple[timedelta, ...]


class Function(msgspec.Struct, frozen=True):
    """A Python function from n to a duration; lives in the code of a task, cannot be stored."""

    call: Callable[[int], Duration]


Curve = Fixed | Linear | Exponential | Delays | Function


def wait_after(curve: Curve, n: int, bound: timedelta) -> timedelta:
    """The curve's delay after the n-th failure, between zero and `bound`; zero for n < 1."""
    if n < 1:
        return timedelta(0)
    match curve:
        case Fixed():
            return min(curve.every, bound)
        case Linear():
            return MICROSECOND * min(n * (curve.step // MICROSECOND), bound // MICROSECOND)
        case Exponential():
            return _exponential(curve, n, bound)
        case Delays():
            return min(curve.waits[min(n, len(curve.waits)) - 1], bound)
        case Function():
            return min(_called(curve, n), bound)
        case _:
            assert_never(curve)


def usual_limit(curve: Curve) -> int:
    """The max_attempts of a policy that names none: four, or as many as it takes to use every delay of a list."""
    return max(DEFAULT_LIMIT, len(curve.waits) + 1) if isinstance(curve, Delays) else DEFAULT_LIMIT


def _exponential(curve: Exponential, n: int, bound: timedelta) -> timedelta:
    """Exact where the factor is whole; saturates by its logarithm first, so that no power can overflow."""
    base = curve.base // MICROSECOND
    exponent = min(n, _HIGHEST_N) - 1
    if base == 0:
        return timedelta(0)
    if exponent * math.log2(curve.factor) > _SATURATION_BITS:
        return bound
    # A whole factor is kept as an int, so this power is exact; it has at most 64 bits.
    grown = base * curve.factor**exponent
    return MICROSECOND * min(round(grown), bound // MICROSECOND)


def _called(curve: Function, n: int) -> timedelta:
    try:
        found = curve.call(n)
        if isinstance(found, timedelta):
            return max(timedelta(0), min(found, LONGEST_DELAY))
        return parse_duration(found)
    except BadDuration as bad:
        raise BadPolicy(f"The policy's function gave no delay for n={n}: {bad.message}", bad.hint) from bad
    except Exception as error:
        raise BadPolicy(f"The policy's function raised {type(error).__name__} for n={n}.") from error
