"""The simulator's numbers are those of the real pipeline on the virtual clock, attempt by attempt, seed by seed."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.simulator.earnest import run_in_earnest, starts_per_second, steps

from perdure import Retry
from perdure.model.queue.fairness import Fairness
from perdure.simulator.result import Bucket
from perdure.simulator.run import run
from perdure.simulator.scenario import Batch, Scenario

S = timedelta(seconds=1)

OUTAGE = Scenario(
    policy=Retry.exponential("1s", cap="8s", max_attempts=5),
    rate=12,
    duration=12 * S,
    workers=2,
    slots=2,
    run_time=S / 4,
    outage=(3 * S, 8 * S),
    seed=7,
)
SCENARIOS = {
    "an outage": OUTAGE,
    "batches, priorities and luck": Scenario(
        policy=Retry.exponential("500ms", jitter="decorrelated", cap="10s", max_attempts=6),
        batches=(Batch(0 * S, 30), Batch(S, 20, 5), Batch(S, 20, -5), Batch(4 * S, 25)),
        workers=1,
        slots=3,
        run_time=S / 5,
        is_exponential=True,
        failure_rates=(0.6, 0.4, 0.2),
        seed=11,
    ),
    "a strict share and a small capacity": Scenario(
        policy=Retry.fixed("1s", max_attempts=4),
        rate=10,
        duration=6 * S,
        workers=1,
        slots=4,
        run_time=S / 10,
        capacity=6,
        fairness=Fairness(retry_share=0.3, is_strict=True),
        seed=3,
    ),
    "a retry queue": Scenario(
        policy=Retry.preset("standard"),
        rate=15,
        duration=8 * S,
        workers=2,
        slots=1,
        run_time=S / 10,
        failure_time=S / 2,
        failure_rates=(0.5,),
        outage=(2 * S, 4 * S),
        fairness=Fairness(retry_queue="simulated-retries"),
        retry_workers=2,
        retry_slots=1,
        seed=5,
    ),
    "a cap and jobs held in advance": Scenario(
        policy=Retry.exponential("1s", jitter="none", max_attempts=5),
        batches=(Batch(0 * S, 40), Batch(2 * S, 40)),
        workers=2,
        slots=2,
        prefetch=4,
        batch=3,
        run_time=S / 3,
        outage=(0 * S, 5 * S),
        fairness=Fairness(retry_share=0.5, max_retries_running=2),
        seed=2,
    ),
    "a limit on the queue": Scenario(
        policy=Retry.exponential("1s", max_attempts=4),
        rate=10,
        duration=6 * S,
        workers=2,
        slots=4,
        run_time=S / 2,
        failure_rates=(0.5,),
        fairness=Fairness(concurrency=5),
        seed=9,
    ),
    "attempts that take no time, and a life that ends": Scenario(
        policy=Retry.exponential("2s", jitter="equal", max_attempts=9, within="14s"),
        batches=(Batch(0 * S, 60),),
        workers=1,
        slots=2,
        run_time=0 * S,
        outage=(0 * S, 60 * S),
        seed=13,
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_attempt_starts_ends_and_waits_as_in_the_real_pipeline(name: str) -> None:
    scenario = SCENARIOS[name]
    simulated, earnest = run(scenario, is_traced=True), run_in_earnest(scenario)
    assert steps(simulated) == earnest.attempts
    assert simulated.succeeded == earnest.states["succeeded"]
    assert simulated.dead == earnest.states["dead"]
    assert simulated.jobs == earnest.states.total()


def test_fresh_and_retry_starts_per_second_are_those_of_the_real_pipeline() -> None:
    simulated, earnest = run(OUTAGE), run_in_earnest(OUTAGE)
    fresh, retry = starts_per_second(earnest.attempts)

    def counted(bucket: Bucket) -> tuple[int, int]:
        return fresh[bucket.at // S], retry[bucket.at // S]

    assert [(bucket.fresh_starts, bucket.retry_starts) for bucket in simulated.buckets] == [
        counted(bucket) for bucket in simulated.buckets
    ]
    assert (simulated.fresh_starts, simulated.retry_starts) == (fresh.total(), retry.total())
    assert retry.total() > 50


def test_another_seed_gives_other_delays() -> None:
    other = msgspec.structs.replace(OUTAGE, seed=8)
    assert steps(run(other, is_traced=True)) != steps(run(OUTAGE, is_traced=True))


POLICIES = st.builds(
    Retry.exponential,
    st.sampled_from(["0s", "10ms", "300ms", "2s"]),
    factor=st.sampled_from([1, 2, 4]),
    jitter=st.sampled_from(["none", "full", "equal", "decorrelated", 0.2]),
    max_attempts=st.integers(1, 5),
)
FAIRNESS = st.builds(
    Fairness,
    is_strict=st.booleans(),
    retry_queue=st.sampled_from([None, None, "simulated-retries"]),
    retry_share=st.sampled_from([0.1, 0.2, 0.5, 0.7]),
    max_retries_running=st.none() | st.integers(1, 3),
    concurrency=st.none() | st.integers(1, 4),
)
WHOLES = st.integers(1, 3)
SMALL = st.builds(
    Scenario,
    policy=POLICIES,
    batches=st.lists(
        st.builds(
            Batch, st.integers(0, 3000).map(lambda ms: ms * S / 1000), st.integers(1, 8), st.sampled_from([0, 0, 9])
        ),
        min_size=1,
        max_size=4,
    ).map(tuple),
    workers=WHOLES,
    slots=WHOLES,
    prefetch=st.integers(0, 3),
    batch=st.integers(1, 4),
    run_time=st.sampled_from([0 * S, S / 100, S / 2]),
    failure_time=st.none() | st.sampled_from([0 * S, S]),
    is_exponential=st.booleans(),
    failure_rates=st.sampled_from([(0.0,), (0.5,), (1.0, 0.3)]),
    outage=st.sampled_from([None, (0 * S, 2 * S), (S, 4 * S)]),
    capacity=st.none() | st.integers(1, 10),
    fairness=FAIRNESS,
    seed=st.integers(0, 2**32),
)


@settings(max_examples=examples(25))
@given(scenario=SMALL)
def test_small_scenarios_of_any_shape_agree(scenario: Scenario) -> None:
    simulated, earnest = run(scenario, is_traced=True), run_in_earnest(scenario)
    assert steps(simulated) == earnest.attempts
    assert (simulated.succeeded, simulated.dead) == (earnest.states["succeeded"], earnest.states["dead"])
