"""Cancelling a job that is running ends it, in every kind, long before it would have ended by itself."""

from __future__ import annotations

import pytest
from tests.chaos.crew import Crew, is_alive, until


@pytest.mark.parametrize("task", ["sleep_on_loop", "sleep_in_thread", "spin_in_thread", "sleep_in_child"])
def test_a_running_job_ends_cancelled_when_it_is_asked_to(crew: Crew, task: str) -> None:
    worker = crew.worker("tests.runtime.hostile", concurrency=1)
    job_id = crew.enqueue_named(task, 3600)
    start = until(lambda: crew.seen("start", job=job_id), "the job runs")[0]
    crew.client.cancel(job_id)
    until(lambda: crew.state(job_id) != "running", "the job ends")
    assert crew.state(job_id) == "cancelled"
    assert crew.outcomes(job_id) == ["cancelled"]
    if start.pid != worker.pid:
        until(lambda: not is_alive(start.pid), "the child is gone")
    after = crew.enqueue_named("on_loop", "behaves")
    until(crew.is_drained, "the slot is free again")
    assert crew.state(after) == "succeeded"
