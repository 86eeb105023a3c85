"""At-most-once jobs of a killed worker: only those whose handlers may have been entered end with an unknown outcome."""

from __future__ import annotations

import pytest
from tests.chaos.checker import check
from tests.chaos.crew import Crew, until


# Proves [INV-5].
@pytest.mark.crash
@pytest.mark.every_engine
@pytest.mark.parametrize("kind", ["on_loop", "in_child"])
def test_jobs_that_a_killed_worker_held_in_its_buffer_run_in_the_next_one(crew: Crew, kind: str) -> None:
    victim = crew.hoarder(slots=2, lease="1s")
    entered = [crew.enqueue(kind, "slow once", seconds=600, delivery="at_most_once") for _ in range(2)]
    until(lambda: len([event for event in crew.seen("start") if event.job in entered]) == 2, "its slots are busy")
    waiting = [crew.enqueue(kind, delivery="at_most_once") for _ in range(8)]
    until(lambda: crew.client.stats().running > len(entered), "it holds more jobs than it runs")
    crew.kill(victim)

    crew.worker(lease="1s")
    until(crew.is_drained, "the next worker finishes everything")
    for job_id in entered:
        assert (crew.state(job_id), crew.job(job_id).reason) == ("dead", "outcome unknown")
    assert {crew.state(job_id) for job_id in waiting} == {"succeeded"}
    assert any(crew.job(job_id).attempt > 1 for job_id in waiting), "nothing was given back"
    starts = [event.job for event in crew.seen("start")]
    assert [job_id for job_id in (*entered, *waiting) if starts.count(job_id) != 1] == []
    history = {job_id: crew.client.history(job_id) for job_id in (*entered, *waiting)}
    assert check(crew.events(), crew.jobs(), history).problems() == {}
