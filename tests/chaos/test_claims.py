"""Workers that share a store never hold the same attempt."""

from __future__ import annotations

import pytest
from tests.chaos.checker import check
from tests.chaos.crew import Crew, until

JOBS = 800


@pytest.mark.crash
@pytest.mark.every_engine
def test_two_workers_never_start_the_same_attempt(crew: Crew) -> None:
    workers = [crew.worker(lease="30s", concurrency=16) for _ in range(2)]
    until(lambda: len(crew.registered()) == 2, "both workers are there")
    producer = crew.produce("job", JOBS, "batches", seed=3)
    assert producer.wait(300) == 0
    until(crew.is_drained, "every job has ended")
    assert crew.stop(*workers) == [0, 0]
    starts = [(event.job, event.attempt) for event in crew.seen("start")]
    assert len(starts) == len(set(starts))
    assert all(crew.seen("start", pid=worker.pid) for worker in workers), "one worker did it all"
    verdict = check(crew.events(), crew.jobs())
    assert verdict.problems() == {}
    assert (verdict.accepted, verdict.cut_short, verdict.overlaps) == (JOBS, 0, 0)
