"""Forecasts agree with what policies really do."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from perdure.admin.forecast import MOST_WAITS, forecast
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
