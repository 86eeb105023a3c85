"""Jitter: spreads a delay over a range, so that jobs that failed together do not come back together."""

from __future__ import annotations

import random as random_module
from datetime import timedelta
from typing import Literal

from perdure.errors import BadPolicy
from perdure.model.policy.curve import MICROSECOND
from perdure.text.shown import shown
from perdure.text.suggestion import did_you_mean

JitterName = Literal["none", "full", "equal", "decorrelated"]
Jitter = JitterName | float
"""A name, or p for d × U(1-p, 1+p)."""

_NAMES: tuple[JitterName, ...] = ("none", "full", "equal", "decorrelated")
_HINT = 'It is "none", "full", "equal", "decorrelated", or a number from 0 to 1: 0.15 spreads by ±15 %.'


def read_jitter(value: object) -> Jitter:
    """The jitter that `value` means; proportional by nothing is none."""
    for name in _NAMES:
        if value == name:
            return name
    if isinstance(value, bool) or not isinstance(value, int | float):
        question = did_you_mean(value, _NAMES)
        raise BadPolicy(
            f"jitter is {shown(value)}, which is no known jitter.", f"{question} {_HINT}" if question else _HINT
        )
    if not 0 <= value <= 1:
        raise BadPolicy(f"jitter is {shown(value)}, outside 0 to 1.", _HINT)
    return float(value) if value else "none"


def spread(
    jitter: Jitter, delay: timedelta, base: timedelta, previous: timedelta | None
) -> tuple[timedelta, timedelta]:
    """The least and the greatest that jitter makes of a delay; a zero delay stays zero."""
    if not delay or jitter == "none":
        return delay, delay
    if jitter == "full":
        return timedelta(0), delay
    if jitter == "equal":
        return delay / 2, delay
    if jitter == "decorrelated":
        return base, max(base, 3 * (base if previous is None else previous))
    assert isinstance(jitter, float)
    return delay * (1 - jitter), delay * (1 + jitter)


def pick(least: timedelta, greatest: timedelta, random: random_module.Random) -> timedelta:
    """A delay between the two, both included, in whole microseconds."""
    if greatest <= least:
        return least
    room = (greatest - least) // MICROSECOND
    return least + MICROSECOND * min(room, int((room + 1) * random.random()))
