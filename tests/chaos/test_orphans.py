"""The child processes of a worker that was killed run nothing any more."""

from __future__ import annotations

import os
import signal

import pytest
from tests.chaos.crew import Crew, children_of, is_alive, until


@pytest.mark.crash
def test_a_child_that_had_not_begun_when_its_worker_was_killed_runs_nothing(crew: Crew) -> None:
    worker = crew.worker(lease="1s", concurrency=2)
    until(lambda: worker.pid in crew.registered(), "the worker is there")
    guard = set(children_of(worker.pid))
    crew.enqueue("in_child")
    child = until(lambda: set(children_of(worker.pid)) - guard, "the worker starts a child", every=0.0).pop()
    os.kill(child, signal.SIGSTOP)
    assert crew.seen("start") == [], "the child was quicker than this test"
    # A job that ran after it shows that the worker has handed the call to its child.
    after = crew.enqueue("on_loop")
    until(lambda: crew.seen("end", job=after), "the worker goes on")
    crew.kill(worker)
    os.kill(child, signal.SIGCONT)
    until(lambda: not is_alive(child), "the child ends")
    assert [event.job for event in crew.seen("start")] == [after]


@pytest.mark.crash
def test_a_child_ends_soon_after_its_worker_was_killed(crew: Crew) -> None:
    worker = crew.worker(lease="1s")
    job_id = crew.enqueue("in_child", seconds=3600)
    child = until(lambda: crew.seen("start", job=job_id), "the child runs")[0].pid
    crew.kill(worker)
    until(lambda: not is_alive(child), "the child ends")
