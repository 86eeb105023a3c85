"""What a retry policy will do: every delay with its jitter band, and the time until the end."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from perdure.model.policy.retry import Retry

MOST_WAITS = 10_000
_NOTHING = timedelta(0)


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A duration that jitter leaves open."""

    least: timedelta
    expected: timedelta
    greatest: timedelta


_NO_TIME = Span(least=_NOTHING, expected=_NOTHING, greatest=_NOTHING)


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """The wait after one failure; times that attempts take themselves are not in it."""

    failure: int
    """After the n-th failure."""
    ceiling: timedelta
    delay: Span
    total: Span
    """All waits so far, this one included."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """The waits of a job that fails every time."""

    policy: Retry
    waits: tuple[Wait, ...]
    is_complete: bool
    """Whether `waits` reaches the limit; of very long policies only the first waits are worked out."""

    total: Span
    """How long the policy keeps trying: from the first failure to the last attempt, or as far as the waits reach.

    Without the time that attempts take themselves.
    """


def forecast(policy: Retry, most: int = MOST_WAITS) -> Forecast:
    """The waits between the attempts of a job that fails every time, up to the policy's limits, at most so many."""
    waits: list[Wait] = []
    last = total = _NO_TIME
    soonest: timedelta | None = None
    count = min(policy.max_retries, most)
    is_over = False
    for failure in range(1, count + 1):
        last = _delay(policy, failure, last if waits else None)
        if policy.within is not None:
            soonest = _sooner(soonest, total, last, policy.within)
        total = _sum(total, last)
        if policy.within is not None and total.least > policy.within:
            is_over = True
            break
        waits.append(Wait(failure=failure, ceiling=policy.ceiling(failure), delay=last, total=total))
    return Forecast(
        policy=policy,
        waits=tuple(waits),
        is_complete=is_over or count == policy.max_retries,
        total=_total(policy, waits, soonest),
    )


def _total(policy: Retry, waits: list[Wait], soonest: timedelta | None) -> Span:
    total = waits[-1].total if waits else _NO_TIME
    if policy.within is None:
        return total
    in_time = [wait.total.expected for wait in waits if wait.total.expected <= policy.within]
    return Span(
        least=total.least if soonest is None else min(soonest, total.least),
        expected=in_time[-1] if in_time else _NOTHING,
        greatest=min(total.greatest, policy.within),
    )


def _sooner(soonest: timedelta | None, before: Span, wait: Span, within: timedelta) -> timedelta | None:
    """The least time after which `within` may end the job, with this wait looked at too.

    A wait that would end too late is not begun, so a long one ends the job sooner than short ones would.
    """
    last_chance = within - wait.greatest
    if last_chance >= before.greatest:
        return soonest
    late = max(before.least, last_chance)
    return late if soonest is None else min(soonest, late)


def _delay(policy: Retry, failure: int, previous: Span | None) -> Span:
    if previous is None:
        least, greatest = policy.bounds(failure)
        return Span(least=least, expected=(least + greatest) / 2, greatest=greatest)
    # Decorrelated jitter goes by the delay before: each line of the band follows its own past.
    least, _ = policy.bounds(failure, previous.least)
    _, greatest = policy.bounds(failure, previous.greatest)
    low, high = policy.bounds(failure, previous.expected)
    return Span(least=least, expected=(low + high) / 2, greatest=greatest)


def _sum(one: Span, other: Span) -> Span:
    return Span(
        least=one.least + other.least,
        expected=one.expected + other.expected,
        greatest=one.greatest + other.greatest,
    )
