"""What a simulation says about policies, lanes, limits and loads, and what it refuses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.speed.instructions import Instructions

from perdure import BadDuration, BadOption, BadPolicy, Retry, Simulation, simulate
from perdure.simulator.ready import READY, WORST_CASE
from perdure.simulator.run import run

S = timedelta(seconds=1)
TOGETHER: dict[str, Any] = {"run_time": 0, "slots": 1000, "seed": 1}


def starts(found: Simulation) -> dict[int, int]:
    return {bucket.at // S: bucket.attempts for bucket in found.buckets if bucket.attempts}


def test_without_jitter_all_jobs_come_back_in_the_same_second() -> None:
    policy = Retry.fixed("10s", jitter="none", max_attempts=3)
    found = simulate(policy, batches=[(0, 20)], outage=(0, "5s"), **TOGETHER)
    assert starts(found) == {0: 20, 10: 20}
    assert (found.succeeded, found.dead, found.attempts, found.failures) == (20, 0, 40, 20)
    assert found.drained_after == 10 * S


def test_jobs_that_run_out_of_attempts_die() -> None:
    policy = Retry.fixed("1s", jitter="none", max_attempts=3)
    found = simulate(policy, batches=[(0, 5)], outage=(0, "60s"), **TOGETHER)
    assert (found.succeeded, found.dead, found.attempts) == (0, 5, 15)
    assert found.ended_after == 2 * S


def test_within_and_never_rules_hold() -> None:
    within = Retry.fixed("10s", jitter="none", max_attempts=50, within="25s")
    assert simulate(within, batches=[(0, 1)], outage=(0, "99s"), **TOGETHER).attempts == 3
    never = Retry.fixed("1s").never(OSError)
    assert simulate(never, batches=[(0, 1)], outage=(0, "99s"), **TOGETHER).attempts == 1


def test_within_counts_from_each_jobs_own_arrival_and_spends_those_that_wait_too_long() -> None:
    policy = Retry.fixed("1s", jitter="none", max_attempts=9, within="2s")
    found = simulate(policy, batches=[(0, 1), ("10s", 1)], outage=(0, "99s"), **TOGETHER)
    assert found.attempts == 6
    late = simulate(policy, batches=[(0, 4)], slots=1, run_time="1s", seed=1)
    assert (late.succeeded, late.dead, late.attempts) == (3, 1, 3)


def test_jitter_spreads_the_jobs_and_a_seed_repeats_them() -> None:
    policy = Retry.exponential("8s", max_attempts=6)

    def peak(found: Simulation) -> int:
        return max(bucket.attempts for bucket in found.buckets if bucket.at)

    found = simulate(policy, batches=[(0, 500)], outage=(0, "6s"), **TOGETHER)
    bare = simulate(policy.replace(jitter="none"), batches=[(0, 500)], outage=(0, "6s"), **TOGETHER)
    assert peak(found) < peak(bare) == 500
    assert simulate(policy, batches=[(0, 500)], outage=(0, "6s"), **TOGETHER) == found


def test_priority_goes_before_run_at_and_run_at_before_id() -> None:
    found = simulate(batches=[(0, 1), ("1ms", 2), ("2ms", 1, 10)], slots=1, run_time="1s", trace=True)
    assert [step.job for step in found.trace] == [0, 3, 1, 2]


def test_retries_get_their_share_of_the_starts_and_fresh_jobs_the_rest() -> None:
    policy = Retry.fixed("100ms", jitter="none", max_attempts=50)
    found = simulate(policy, rate=200, duration="20s", slots=10, run_time="100ms", failure_rate=1.0, until="20s")
    busy = [bucket for bucket in found.buckets if bucket.at >= 2 * S]
    assert {bucket.attempts for bucket in busy} == {100}
    assert {bucket.retry_starts for bucket in busy} == {20}


def test_a_lane_that_is_empty_leaves_its_part_to_the_other_unless_the_share_is_strict() -> None:
    load: dict[str, Any] = {"batches": [(0, 100)], "slots": 10, "run_time": "1s"}
    assert simulate(**load).drained_after == 10 * S
    strict = simulate(**load, strict=True)
    assert strict.succeeded == 100
    assert strict.drained_after is not None
    assert strict.drained_after > 12 * S


def test_the_cap_bounds_the_retries_that_run_over_all_workers() -> None:
    load: dict[str, Any] = {"rate": 100, "duration": "10s", "workers": 3, "slots": 5, "outage": (0, "8s"), "seed": 3}
    assert simulate("standard", **load).peaks.retries_running > 4
    assert simulate("standard", **load, max_retries_running=4).peaks.retries_running == 4


def test_the_limit_on_the_queue_bounds_what_runs_over_all_workers() -> None:
    found = simulate(batches=[(0, 60)], workers=3, slots=5, run_time="1s", concurrency=4)
    assert max(bucket.running for bucket in found.buckets) == 4
    assert found.drained_after == 15 * S


def test_a_retry_queue_runs_retries_on_workers_of_its_own() -> None:
    found = simulate(
        Retry.fixed("1s", jitter="none"), batches=[(0, 30)], slots=3, failure_rate=[1.0, 0.0],
        retry_queue="later", retry_workers=2, retry_slots=1, trace=True,
    )  # fmt: skip
    assert {(step.queue, step.lane) for step in found.trace} == {("simulated", "fresh"), ("later", "retry")}
    assert found.peaks.retries_running == 2


def test_what_is_above_the_other_sides_capacity_fails() -> None:
    found = simulate("one-shot", batches=[(0, 100), ("5s", 30)], slots=1000, capacity=40)
    assert (found.succeeded, found.dead) == (70, 60)


def test_an_outage_may_hit_a_part_of_the_jobs_always_the_same_ones() -> None:
    load: dict[str, Any] = {"batches": [(0, 1000)], "outage": (0, "1h"), "outage_hits": 0.3, "seed": 5}
    found = simulate(Retry.fixed("1s", max_attempts=3), **load)
    assert 250 < found.dead < 350
    assert found.attempts == 1000 + 2 * found.dead


def test_a_job_has_the_same_luck_whatever_policy_it_is_tried_under() -> None:
    load: dict[str, Any] = {"batches": [(0, 300)], "failure_rate": 0.5, "run_times": "exponential", "trace": True}
    one, other = simulate("standard", slots=3, **load), simulate("fixed", slots=50, retry_share=0.7, **load)
    spent = {(step.job, step.attempt): (step.outcome, step.ended_at - step.started_at) for step in one.trace}
    both = [step for step in other.trace if (step.job, step.attempt) in spent]
    assert len(both) > 500
    assert all(spent[step.job, step.attempt] == (step.outcome, step.ended_at - step.started_at) for step in both)


def test_failure_rates_may_differ_from_attempt_to_attempt() -> None:
    found = simulate(Retry.fixed("1s", max_attempts=9), batches=[(0, 50)], failure_rate=[1, 1, 0])
    assert (found.attempts, found.failures, found.succeeded) == (150, 100, 50)


def test_backlogs_and_ages_are_those_at_the_end_of_each_second() -> None:
    found = simulate(batches=[(0, 10), ("2s", 1)], slots=1, run_time="1s")
    assert [bucket.fresh_backlog for bucket in found.buckets] == [9, 8, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0]
    assert [bucket.oldest_fresh // S for bucket in found.buckets] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 0, 0]
    assert found.fresh_waits.greatest == 9 * S
    assert found.peaks.fresh_backlog == 9
    assert found.fresh_clear_after == 9 * S


def test_spans_put_buckets_together_and_fill_the_gaps() -> None:
    policy = Retry.fixed("1h", jitter="none", max_attempts=2)
    found = simulate(policy, batches=[(0, 2)], outage=(0, "1s"), **TOGETHER)
    assert len(found.buckets) == 2
    spans = found.spans(600 * S)
    assert [span.attempts for span in spans] == [2, 0, 0, 0, 0, 0, 2]
    assert [span.retry_waiting for span in spans] == [2, 2, 2, 2, 2, 2, 0]
    with pytest.raises(BadOption, match="whole buckets"):
        found.spans(timedelta(milliseconds=1500))


def test_a_simulation_that_is_stopped_says_what_had_not_ended() -> None:
    found = simulate(batches=[(0, 10)], slots=1, run_time="1s", until="4s")
    assert (found.succeeded, found.unfinished, found.drained_after) == (3, 7, None)
    assert [bucket.at // S for bucket in found.buckets] == [0, 1, 2, 3]
    assert found.fresh_waits.greatest == 4 * S


@pytest.mark.parametrize("name", READY)
def test_ready_scenarios_stay_under_the_bound_and_drain(name: str) -> None:
    found = run(READY[name].scenario)
    assert found.is_within_bound
    assert found.drained_after is not None


def test_the_worst_case_is_bounded_by_jobs_at_once_and_jobs_times_retries_in_all() -> None:
    found = run(WORST_CASE.scenario)
    assert found.bound.at_once == found.jobs == 4800
    assert found.bound.in_all == 4800 * 3
    assert 1000 < found.peaks.retrying <= found.bound.at_once


@settings(max_examples=examples(60))
@given(
    limit=st.integers(1, 5),
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    share=st.floats(0, 1),
    slots=st.integers(1, 20),
    rate=st.sampled_from([0.0, 0.5, 1.0]),
    lanes=st.booleans(),
)
def test_every_job_ends_and_no_retry_exceeds_the_bound(
    limit: int, counts: list[int], share: float, slots: int, rate: float, lanes: bool
) -> None:
    found = simulate(
        Retry.exponential("1s", max_attempts=limit),
        batches=[(place, count) for place, count in enumerate(counts)],
        failure_rate=rate,
        retry_share=share,
        slots=slots,
        lanes=lanes,
    )
    assert found.is_within_bound
    assert found.succeeded + found.dead == found.jobs == sum(counts)
    assert found.attempts == found.succeeded + found.failures
    assert sum(bucket.attempts for bucket in found.buckets) == found.attempts
    assert sum(bucket.arrived for bucket in found.buckets) == found.jobs


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "No job arrives"),
        ({"rate": -1}, "rate is -1"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"batches": [(0, 0)]}, "number of jobs is 0"),
        ({"batches": [(0,)]}, "A batch is"),
        ({"batches": [(0, 1, 101)]}, "priority is 101"),
        ({"batches": "soon"}, "batches is"),
        ({"batches": [(0, 1)], "slots": 0}, "slots is 0"),
        ({"batches": [(0, 1)], "workers": True}, "workers is True"),
        ({"batches": [(0, 1)], "outage": ("5s", "2s")}, "ends before it begins"),
        ({"batches": [(0, 1)], "outage": "5s"}, "outage is"),
        ({"batches": [(0, 1)], "failure_rate": 1.5}, "failure_rate is 1.5"),
        ({"batches": [(0, 1)], "failure_rate": []}, "empty"),
        ({"batches": [(0, 1)], "outage_hits": 2}, "outage_hits is 2"),
        ({"batches": [(0, 1)], "capacity": 0}, "capacity is 0"),
        ({"batches": [(0, 1)], "run_times": "random"}, "run_times is"),
        ({"batches": [(0, 1)], "bucket": 0}, "bucket is 0"),
        ({"batches": [(0, 1)], "seed": "x"}, "seed is"),
        ({"batches": [(0, 1)], "retry_share": 2}, "retry_share is 2"),
        ({"rate": 1e9}, "may have 1,000,000 attempts"),
    ],
)
def test_what_cannot_be_simulated_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(BadOption, match=said):
        simulate("standard", **wrong)


def test_bad_policies_and_durations_are_refused_as_everywhere() -> None:
    with pytest.raises(BadPolicy):
        simulate("never heard of it", batches=[(0, 1)])
    with pytest.raises(BadDuration):
        simulate(batches=[("soon", 1)])


def test_an_endless_simulation_is_refused() -> None:
    with pytest.raises(BadOption, match="more than 5,000 attempts"):
        simulate(
            Retry.fixed(0, max_attempts="unlimited"), batches=[(0, 2)], outage=(0, "1s"), most_attempts=5000, **TOGETHER
        )


def test_too_many_lines_are_refused() -> None:
    with pytest.raises(BadOption, match="buckets"):
        simulate(batches=[(0, 1)], run_time="30d")


def test_an_attempt_costs_about_the_same_however_many_there_are() -> None:
    def cost(rate: int) -> float:
        with Instructions() as counted:
            found = simulate("standard", rate=rate, duration="15s", workers=4, slots=20, outage=("3s", "9s"), seed=1)
        assert found.attempts > 15 * rate
        return counted.count / found.attempts

    assert cost(60) < 1.5 * cost(6)
