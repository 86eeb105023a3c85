"""An attempt that runs past its timeout ends there, in every kind, and its slot is free again."""

from __future__ import annotations

from tests.chaos.crew import Crew, is_alive, until


def test_an_async_handler_is_cancelled_at_its_timeout(crew: Crew) -> None:
    crew.worker("tests.runtime.hostile", concurrency=1)
    job_id = crew.enqueue_named("sleep_on_loop", 3600, timeout="300ms")
    after = crew.enqueue_named("on_loop", "behaves")
    until(crew.is_drained, "both jobs end")
    assert (crew.job(job_id).state, crew.job(job_id).reason) == ("dead", "timeout")
    assert crew.outcomes(job_id) == ["timeout"]
    assert crew.seen("cancelled", job=job_id)
    assert crew.state(after) == "succeeded"


def test_a_handler_in_a_thread_gives_its_slot_back_at_its_timeout(crew: Crew) -> None:
    crew.worker("tests.runtime.hostile", concurrency=1)
    job_id = crew.enqueue_named("sleep_in_thread", 3600, timeout="300ms")
    after = crew.enqueue_named("in_thread", "behaves")
    until(crew.is_drained, "both jobs end")
    assert (crew.job(job_id).state, crew.job(job_id).reason) == ("dead", "timeout")
    assert crew.outcomes(job_id) == ["timeout"]
    assert crew.state(after) == "succeeded"


def test_a_handler_in_a_thread_that_runs_python_code_is_ended_at_its_timeout(crew: Crew) -> None:
    crew.worker("tests.runtime.hostile", concurrency=1)
    job_id = crew.enqueue_named("spin_in_thread", 3600, timeout="300ms")
    until(crew.is_drained, "the job ends")
    assert crew.outcomes(job_id) == ["timeout"]
    until(lambda: crew.seen("cancelled", job=job_id), "the thread is interrupted")


def test_a_child_process_is_killed_at_its_timeout(crew: Crew) -> None:
    worker = crew.worker("tests.runtime.hostile", concurrency=1)
    # Shorter than a child takes to start: the timeout counts from the moment when the handler is entered.
    job_id = crew.enqueue_named("sleep_in_child", 3600, timeout="200ms")
    until(lambda: crew.job(job_id).is_final, "the job ends")
    child = crew.seen("start", job=job_id)[0].pid
    assert child != worker.pid
    assert (crew.job(job_id).state, crew.job(job_id).reason) == ("dead", "timeout")
    until(lambda: not is_alive(child), "the child is gone")
    after = crew.enqueue_named("in_child", "behaves")
    until(crew.is_drained, "the next job ends")
    assert crew.state(after) == "succeeded"
