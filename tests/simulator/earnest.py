"""The same scenario in earnest: the real pipeline on the virtual clock, with handlers that meet the simulated fate."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import NamedTuple

from perdure import App, current_job
from perdure.simulator.fate import Fate
from perdure.simulator.result import Simulation, Step
from perdure.simulator.scenario import MICROSECOND, Scenario
from perdure.system.clock import VirtualClock

START = VirtualClock().now()
SECOND = timedelta(seconds=1)


class Ran(NamedTuple):
    """One attempt as the pipeline ran it."""

    job: int
    attempt: int
    started_at: timedelta
    ended_at: timedelta
    outcome: str
    delay: timedelta | None


class Earnest(NamedTuple):
    """What the pipeline did."""

    attempts: list[Ran]
    states: Counter[str]
    queues: Counter[str]


def run_in_earnest(scenario: Scenario) -> Earnest:
    """Run the scenario's jobs on an in-memory store with as many workers and slots as it says."""
    app = App("sqlite://", retry=scenario.policy)
    fairness = scenario.fairness
    app.queue(
        "simulated",
        retry_share=fairness.retry_share,
        strict=fairness.is_strict,
        retry_queue=fairness.retry_queue,
        max_retries_running=fairness.max_retries_running,
        concurrency=fairness.concurrency,
    )
    fate = Fate(scenario)

    @app.task(queue="simulated", name="simulated")
    async def work(number: int) -> None:
        attempt = current_job().attempt
        fails = fate.fails(number, attempt, (t.now - START) // MICROSECOND)
        if takes := fate.takes(number, attempt, fails):
            await t.sleep(takes * MICROSECOND)
        if fails:
            raise ConnectionError("the other side is not there")

    with app.testing(seed=scenario.seed) as t:
        for _ in range(scenario.workers):
            t.worker(["simulated"], slots=scenario.slots, prefetch=scenario.prefetch, batch=scenario.batch)
        for _ in range(scenario.retry_workers if fairness.retry_queue else 0):
            assert fairness.retry_queue is not None
            t.worker(
                [fairness.retry_queue], slots=scenario.retry_slots, prefetch=scenario.prefetch, batch=scenario.batch
            )
        # Enqueued ahead and due one by one: so they are there at their moment, neither before nor after.
        jobs = [
            work.options(run_at=START + at * MICROSECOND, priority=priority).bind(number)
            for number, (at, priority) in enumerate(scenario.arrivals())
        ]
        ids = app.enqueue_many(jobs)
        t.advance("30d")
        attempts = [
            Ran(
                number,
                record.attempt,
                record.started_at - START,
                record.ended_at - START,
                record.outcome,
                record.delay,
            )
            for number, job_id in enumerate(ids)
            for record in t.history(job_id)
            if record.started_at is not None and record.ended_at is not None
        ]
        found = t.jobs()
        return Earnest(attempts, Counter(job.state for job in found), Counter(job.queue for job in found))


def steps(simulation: Simulation) -> list[Ran]:
    """The attempts of a traced simulation, job by job, in the same form."""
    return sorted(
        (
            Ran(step.job, step.attempt, step.started_at, step.ended_at, step.outcome, step.delay)
            for step in simulation.trace
        ),
        key=lambda ran: (ran.job, ran.attempt),
    )


def starts_per_second(attempts: list[Ran] | list[Step]) -> tuple[Counter[int], Counter[int]]:
    """How many first attempts and how many later ones start in each second."""
    fresh = Counter(ran.started_at // SECOND for ran in attempts if ran.attempt == 1)
    return fresh, Counter(ran.started_at // SECOND for ran in attempts if ran.attempt > 1)
