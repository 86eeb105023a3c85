"""The jittered delay: within its bounds for every policy, every jitter and any number of failures."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speed.instructions import Instructions
from tests.unit.strategies import delays, policies

from perdure.model.policy.curve import LONGEST_DELAY
from perdure.model.policy.retry import Retry

ZERO = timedelta(0)
SECOND = timedelta(seconds=1)


class Least(Random):
    def random(self) -> float:
        return 0.0


class Greatest(Random):
    def random(self) -> float:
        return 1 - 2**-53


def extremes(policy: Retry, n: int, previous: timedelta | None = None) -> tuple[timedelta, timedelta]:
    return policy.delay(n, Least(), previous), policy.delay(n, Greatest(), previous)


def test_without_jitter_the_delay_is_the_ceiling() -> None:
    assert extremes(Retry.exponential("2s", jitter="none"), 3) == (8 * SECOND, 8 * SECOND)


def test_full_jitter_goes_from_zero_to_the_ceiling() -> None:
    assert extremes(Retry.exponential("2s", jitter="full"), 3) == (ZERO, 8 * SECOND)


def test_equal_jitter_goes_from_half_the_ceiling_to_the_ceiling() -> None:
    assert extremes(Retry.exponential("2s", jitter="equal"), 3) == (4 * SECOND, 8 * SECOND)


def test_proportional_jitter_goes_both_ways() -> None:
    assert extremes(Retry.fixed("10s", jitter=0.2), 1) == (8 * SECOND, 12 * SECOND)


def test_decorrelated_jitter_goes_from_base_to_three_times_the_previous() -> None:
    policy = Retry.exponential("2s", jitter="decorrelated")
    assert extremes(policy, 1) == (2 * SECOND, 6 * SECOND)
    assert extremes(policy, 2, 5 * SECOND) == (2 * SECOND, 15 * SECOND)
    assert extremes(policy, 9, ZERO) == (2 * SECOND, 2 * SECOND)


def test_decorrelated_jitter_is_capped_even_over_the_cap() -> None:
    policy = Retry.exponential("2s", cap="10s", jitter="decorrelated", jitter_over_cap=True)
    assert extremes(policy, 5, 9 * SECOND) == (2 * SECOND, 10 * SECOND)


def test_the_cap_bounds_the_jittered_delay() -> None:
    assert extremes(Retry.exponential("8s", cap="10s", jitter=0.2), 5) == (8 * SECOND, 10 * SECOND)


def test_jitter_goes_over_the_cap_where_the_policy_says_so() -> None:
    policy = Retry.exponential("8s", cap="10s", jitter=0.2, jitter_over_cap=True)
    assert extremes(policy, 5) == (8 * SECOND, 12 * SECOND)


def test_capped_delays_do_not_pile_up_at_the_cap() -> None:
    policy = Retry.exponential("8s", cap="10s", jitter=0.2)
    random = Random(1)
    drawn = [policy.delay(5, random) for _ in range(500)]
    assert sum(delay == 10 * SECOND for delay in drawn) <= 1


def test_full_jitter_is_spread_evenly() -> None:
    policy = Retry.fixed("10s", jitter="full")
    random = Random(2)
    drawn = [policy.delay(1, random).total_seconds() for _ in range(4000)]
    assert 4.7 < sum(drawn) / len(drawn) < 5.3
    assert sum(delay < 2.5 for delay in drawn) == pytest.approx(1000, abs=120)


@pytest.mark.parametrize("jitter", ["none", "full", "equal", "decorrelated", 0.5])
def test_a_zero_delay_jitters_to_zero(jitter: str | float) -> None:
    policy = Retry.delays(["5s", "0s"], jitter=jitter)
    assert extremes(policy, 2, 5 * SECOND) == (ZERO, ZERO)


def test_the_same_random_gives_the_same_delays() -> None:
    policy = Retry.exponential("2s")
    assert [policy.delay(n, Random(n)) for n in range(9)] == [policy.delay(n, Random(n)) for n in range(9)]


def test_a_broken_function_does_not_keep_the_job_from_going_on() -> None:
    policy = Retry.function(lambda n: 1 / 0)
    assert ZERO <= policy.delay(3, Random(1)) <= 2 * SECOND


@given(policies(), st.integers(-5, 10**6), delays | st.none(), st.integers())
def test_every_delay_is_within_its_bounds(policy: Retry, n: int, previous: timedelta | None, seed: int) -> None:
    ceiling = policy.ceiling(n)
    least, greatest = policy.bounds(n, previous)
    delay = policy.delay(n, Random(seed), previous)
    assert ZERO <= least <= delay <= greatest <= LONGEST_DELAY
    assert ZERO <= ceiling <= (policy.cap or LONGEST_DELAY)
    if policy.cap is not None and not policy.jitter_over_cap:
        assert delay <= policy.cap
    if n < 1:
        assert delay == ZERO
    if policy.jitter not in ("decorrelated",) and not isinstance(policy.jitter, float):
        assert delay <= ceiling


@given(policies(), st.integers(1, 10**6))
def test_growing_curves_never_shrink(policy: Retry, n: int) -> None:
    if not policy.text.startswith("delays"):
        assert policy.ceiling(n) <= policy.ceiling(n + 1)


@given(st.integers(1, 10**6), st.integers(1, 1_000), st.integers(1, 10**6))
def test_whole_factors_give_exact_ceilings(base: int, factor: int, n: int) -> None:
    policy = Retry.exponential(timedelta(microseconds=base), factor)
    year = LONGEST_DELAY // timedelta(microseconds=1)
    if n <= 60:
        expected = min(base * factor ** (n - 1), year)
        assert policy.ceiling(n) == timedelta(microseconds=expected)
    elif factor > 1:
        assert policy.ceiling(n) == LONGEST_DELAY


def test_the_millionth_ceiling_is_as_quick_as_the_first() -> None:
    """No loop over n, which would take millions of instructions."""
    policies_ = [Retry.exponential("1s", 1.0000001), Retry.exponential("1s"), Retry.linear("1s"), Retry.fixed(1)]
    with Instructions() as counted:
        for policy in policies_:
            policy.ceiling(10**6)
    assert 0 < counted.count < 10_000
