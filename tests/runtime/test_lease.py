"""A handler that blocks its worker does not cost the worker its lease: nobody else runs what it holds."""

from __future__ import annotations

import pytest
from tests.chaos.crew import Crew, until


@pytest.mark.crash
@pytest.mark.parametrize(
    ("task", "lease", "seconds"),
    [
        # Twice the lease: only a keeper that does not need the event loop can renew it meanwhile.
        ("block_loop", 4.0, 8.0),
        # Longer than a third of the lease, so that a beat comes late, but not so late that the lease is over.
        ("hold_interpreter", 12.0, 5.0),
    ],
)
def test_a_worker_whose_handler_blocks_it_keeps_its_lease(crew: Crew, task: str, lease: float, seconds: float) -> None:
    blocked = crew.worker("tests.runtime.hostile", lease=f"{lease}s", concurrency=2)
    until(lambda: blocked.pid in crew.registered(), "the worker is there")
    worker_id = crew.registered()[blocked.pid]
    job_id = crew.enqueue_named(task, seconds)
    until(lambda: crew.seen("start", job=job_id), "the handler blocks")
    other = crew.worker("tests.runtime.hostile", lease=f"{lease}s")
    until(lambda: crew.job(job_id).is_final, "the job ends")
    job = crew.job(job_id)
    assert (job.state, job.attempt) == ("succeeded", 1)
    assert [event.pid for event in crew.seen("start", job=job_id)] == [blocked.pid]
    assert crew.registered()[blocked.pid] == worker_id
    until(lambda: other.pid in crew.registered(), "the other worker is there")
    assert crew.stop(blocked, other) == [0, 0]
