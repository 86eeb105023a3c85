"""Forecasts agree with what policies really do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from msgspec.structs import replace

from perdure.admin.forecast import MOST_WAITS, forecast
from perdure.model.decide import decide
from perdure.model.failure import Failure
from perdure.model.job import Job, JobId
from perdure.model.outcome import Raised
from perdure.model.policy.presets import PRESETS
from perdure.model.policy.resolve import AppPolicy, QueuePolicy, TaskPolicy, resolve
from perdure.model.policy.retry import Retry

S = timedelta(seconds=1)
START = datetime(2030, 1, 1, tzinfo=UTC)
DOWN = Raised(error=Failure(type="OSError", message="down", lineage=("OSError", "Exception", "BaseException")))


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


def test_within_ends_the_forecast_s_time() -> None:
    total = forecast(Retry.fixed("10s", jitter="none", max_attempts=50, within="35s")).total
    assert (total.least, total.expected, total.greatest) == (30 * S, 30 * S, 30 * S)


def test_a_long_wait_may_end_a_job_with_a_deadline_before_it_begins() -> None:
    total = forecast(Retry.fixed("10s", jitter="full", max_attempts=50, within="8s")).total
    assert (total.least, total.expected, total.greatest) == (0 * S, 5 * S, 8 * S)


POLICIES = [
    *(preset.policy for preset in PRESETS.values()),
    Retry.exponential("1s", cap="1m", jitter="equal", max_attempts=9, within="30s"),
    Retry.fixed("10s", jitter=0.5, max_attempts=6, within="33s"),
    Retry.linear("3s", max_attempts=8, within="20s"),
    Retry.delays(["5s", "1s", "40s"], jitter="full", max_attempts=5, within="12s"),
    Retry.exponential("1s", cap="1m", jitter="decorrelated", max_attempts=9),
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_how_long_a_job_is_really_tried_lies_in_what_is_forecast(policy: Retry) -> None:
    """Drawn by the real decision, with attempts that take no time."""
    total, random = forecast(policy).total, Random(4)
    job = Job(
        id=JobId("01900000-0000-7000-8000-000000000000"),
        task="work",
        queue="default",
        state="running",
        lane="fresh",
        args=b"{}",
        priority=0,
        run_at=START,
        attempt=1,
        failures=0,
        recoveries=0,
        delivery="at_least_once",
        created_at=START,
    )
    resolved = resolve(job, TaskPolicy(), QueuePolicy(), AppPolicy(retry=policy))
    times = []
    for _ in range(200):
        now, state = START, job
        while (outcome := decide(state, DOWN, resolved, now, random)).state != "dead":
            assert outcome.delay is not None
            now += outcome.delay
            state = replace(state, failures=outcome.failures, delay=outcome.delay, reason=outcome.reason)
        times.append(now - START)
        assert total.least <= times[-1] <= total.greatest
    if policy.within is None and policy.jitter != "decorrelated":
        mean = sum(times, timedelta(0)) / len(times)
        spread = max((total.greatest - total.least) / 10, timedelta(milliseconds=1))
        assert abs(mean - total.expected) < spread
