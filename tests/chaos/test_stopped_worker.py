"""A worker that was stopped for longer than its lease is heard no more about what it held, and begins anew."""

from __future__ import annotations

import signal

import pytest
from tests.chaos.checker import check
from tests.chaos.crew import Crew, until


@pytest.mark.crash
@pytest.mark.parametrize("kind", ["on_loop", "in_thread", "in_child"])
def test_a_worker_that_sleeps_past_its_lease_changes_nothing_when_it_wakes(crew: Crew, kind: str) -> None:
    sleeper = crew.hoarder(slots=4, lease="1s")
    jobs = [crew.enqueue(kind, "slow once", seconds=1.5) for _ in range(12)]
    until(lambda: crew.client.stats().running > 8, "it has more than it can run")
    # On a slow machine one may have ended, and the next begun, before the fourth was seen.
    until(lambda: len([event for event in crew.seen("start") if event.job in jobs]) >= 4, "its slots are busy")
    first_id = crew.registered()[sleeper.pid]
    crew.freeze(sleeper)

    other = crew.worker(lease="1s")
    until(crew.is_drained, "the other worker finishes everything")
    before = {job_id: crew.job(job_id) for job_id in jobs}
    assert {job.state for job in before.values()} == {"succeeded"}
    assert any(job.attempt > 1 for job in before.values()), "nothing was taken over"

    sleeper.send_signal(signal.SIGCONT)
    until(lambda: crew.registered().get(sleeper.pid, first_id) != first_id, "it registers anew")
    assert crew.stop(other) == [0]
    again = crew.enqueue("on_loop")
    until(crew.is_drained, "it goes on working")
    assert [event.pid for event in crew.seen("start", job=again)] == [sleeper.pid]
    assert {job_id: crew.job(job_id) for job_id in jobs} == before
    assert crew.stop(sleeper) == [0]
    assert check(crew.events(), crew.jobs(), {job_id: crew.client.history(job_id) for job_id in jobs}).problems() == {}


@pytest.mark.crash
@pytest.mark.every_engine
def test_a_late_commit_does_not_end_the_attempt_of_another_worker(crew: Crew) -> None:
    sleeper = crew.worker(lease="1s", concurrency=4)
    jobs = [crew.enqueue("on_loop", "slower and slower", seconds=1.5) for _ in range(4)]
    until(lambda: len(crew.seen("start")) == 4, "its slots are busy")
    first_id = crew.registered()[sleeper.pid]
    crew.freeze(sleeper)
    crew.worker(lease="1s")
    until(lambda: len(crew.seen("start", attempt=2)) == 4, "another worker runs the second attempts")

    # Its handlers have slept long enough: they return as soon as it wakes, and it has four outcomes to commit.
    sleeper.send_signal(signal.SIGCONT)
    until(lambda: crew.registered().get(sleeper.pid, first_id) != first_id, "it registers anew")
    until(crew.is_drained, "the second attempts end")
    ends = {event.job: event.wall for event in crew.seen("end", attempt=2)}
    for job in crew.jobs():
        assert (job.state, job.attempt) == ("succeeded", 2)
        assert job.ended_at is not None
        assert job.ended_at.timestamp() > ends.get(job.id, float("inf")), "it was ended by the wrong attempt"
    assert check(crew.events(), crew.jobs(), {job_id: crew.client.history(job_id) for job_id in jobs}).problems() == {}
