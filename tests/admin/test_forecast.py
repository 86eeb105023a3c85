"""Forecasts and simulations agree with what policies really do."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from perdure.admin.forecast import MOST_WAITS, forecast
from perdure.admin.simulate import simulate
from perdure.errors import BadOption
from perdure.model.presets import PRESETS
from perdure.model.retry import Retry

S = timedelta(seconds=1)


def test_the_waits_are_the_ceilings_up_to_the_limit() -> None:
    found = forecast(Retry.preset("quadrupling"))
    assert [wait.ceiling for wait in found.waits] == [1 * S, 4 * S, 16 * S]
    assert (found.total.least, found.total.greatest) == (21 * S, 21 * S)
    assert found.is_complete


def test_full_jitter_expects_half_of_each_ceiling() -> None:
    found = forecast(Retry.preset("standard"))
    assert (found.total.least, found.total.expected, found.total.greatest) == (0 * S, 1.75 * S, 3.5 * S)


def test_one_attempt_has_no_waits() -> None:
    found = forecast(Retry.preset("one-shot"))
    assert found.waits == ()
    assert found.total.greatest == 0 * S


def test_waits_that_within_forbids_are_left_out() -> None:
    found = forecast(Retry.fixed("10s", jitter="none", max_attempts=50, within="35s"))
    assert len(found.waits) == 3


def test_an_unlimited_policy_is_forecast_as_far_as_is_useful() -> None:
    found = forecast(Retry.fixed("1s", max_attempts="unlimited"))
    assert len(found.waits) == MOST_WAITS
    assert not found.is_complete


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_delay_drawn_lies_in_the_band_that_is_shown(name: str) -> None:
    policy, random = PRESETS[name].policy, Random(4)
    for wait in forecast(policy).waits:
        for _ in range(50):
            assert wait.delay.least <= policy.delay(wait.failure, random) <= wait.delay.greatest


def test_decorrelated_chains_stay_in_the_band_that_is_shown() -> None:
    policy, random = Retry.exponential("1s", cap="1m", jitter="decorrelated", max_attempts=9), Random(4)
    for _ in range(50):
        previous = None
        for wait in forecast(policy).waits:
            previous = policy.delay(wait.failure, random, previous)
            assert wait.delay.least <= previous <= wait.delay.greatest


def test_without_jitter_all_jobs_come_back_in_the_same_second() -> None:
    run = simulate(Retry.fixed("10s", jitter="none", max_attempts=3), jobs=20, fail_for=5 * S, random=Random(1))
    assert run.per_second == {0: 20, 10: 20}
    assert (run.succeeded, run.dead, run.attempts, run.peak) == (20, 0, 40, 20)
    assert run.last_ended == 10 * S


def test_jobs_that_run_out_of_attempts_die() -> None:
    run = simulate(Retry.fixed("1s", jitter="none", max_attempts=3), jobs=5, fail_for=60 * S, random=Random(1))
    assert (run.succeeded, run.dead, run.attempts) == (0, 5, 15)
    assert run.last_ended == 2 * S


def test_a_simulation_obeys_within_and_never_rules() -> None:
    within = Retry.fixed("10s", jitter="none", max_attempts=50, within="25s")
    assert simulate(within, jobs=1, fail_for=99 * S, random=Random(1)).attempts == 3
    never = Retry.fixed("1s").never(OSError)
    assert simulate(never, jobs=1, fail_for=99 * S, random=Random(1)).attempts == 1


def test_jitter_spreads_the_jobs_and_a_seed_repeats_them() -> None:
    policy = Retry.exponential("8s", max_attempts=6)
    run = simulate(policy, jobs=500, fail_for=6 * S, random=Random(3))
    bare = simulate(policy.replace(jitter="none"), jobs=500, fail_for=6 * S, random=Random(3))
    assert run.peak < bare.peak == 500
    assert simulate(policy, jobs=500, fail_for=6 * S, random=Random(3)) == run


def test_attempts_are_summed_into_spans() -> None:
    run = simulate(Retry.fixed("10s", jitter="none", max_attempts=3), jobs=2, fail_for=15 * S, random=Random(1))
    assert run.bucketed(15, 2) == [4, 2]


def test_an_endless_simulation_is_refused() -> None:
    with pytest.raises(BadOption, match="more than"):
        simulate(Retry.fixed(0, max_attempts="unlimited"), jobs=2, fail_for=1 * S, random=Random(1))
