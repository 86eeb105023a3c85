"""Whatever a handler does, its attempt ends by the rules, and the one worker of this module goes on working."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from tests.chaos.crew import Crew, until

from perdure import Job

KINDS = ("on_loop", "in_thread", "in_child")

RAISED = {
    "SystemExit": "SystemExit",
    "KeyboardInterrupt": "KeyboardInterrupt",
    "GeneratorExit": "GeneratorExit",
    "CancelledError": "asyncio.exceptions.CancelledError",
    "OwnBaseError": "tests.runtime.hostile.OwnBaseError",
    "MemoryError": "MemoryError",
    "RecursionError": "RecursionError",
    "UnprintableError": "tests.runtime.hostile.UnprintableError",
    "endless message": "ValueError",
    "unstorable message": "ValueError",
    "cyclic error": "ValueError",
}

UNSTORABLE = ("object", "set", "NaN", "coroutine", "endless result", "surrogate result", "deep result")

Worker = subprocess.Popen[bytes]


@pytest.fixture(scope="module")
def survivor(shared_crew: Crew) -> Iterator[Worker]:
    """The worker that must survive everything in this module."""
    worker = shared_crew.worker("tests.runtime.hostile", lease="10s", concurrency=4)
    yield worker
    assert shared_crew.stop(worker) == [0]


def run(crew: Crew, task: str, *args: object, **options: object) -> Job:
    """Enqueue a job and wait for its end."""
    job_id = crew.enqueue_named(task, *args, **options)
    until(lambda: crew.job(job_id).is_final, "the job ends")
    return crew.job(job_id)


def assert_goes_on(crew: Crew, survivor: Worker) -> None:
    """The worker is the same as ever and runs jobs of every kind."""
    assert survivor.poll() is None
    for kind in KINDS:
        assert run(crew, kind, "behaves").result == b'"well"'
    assert list(crew.registered()) == [survivor.pid]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("behaviour", RAISED)
def test_whatever_a_handler_raises_ends_its_attempt_only(
    shared_crew: Crew, survivor: Worker, behaviour: str, kind: str
) -> None:
    job = run(shared_crew, kind, behaviour)
    assert (job.state, job.reason, job.attempt) == ("dead", "exhausted", 1)
    assert job.error is not None
    assert job.error.type == RAISED[behaviour]
    assert len(job.error.message) < 5_000
    job.error.message.encode()
    assert "\x00" not in job.error.message
    assert_goes_on(shared_crew, survivor)


@pytest.mark.parametrize("kind", KINDS)
def test_stop_iteration_ends_its_attempt_only(shared_crew: Crew, survivor: Worker, kind: str) -> None:
    job = run(shared_crew, kind, "StopIteration")
    assert (job.state, job.reason) == ("dead", "exhausted")
    assert job.error is not None
    # Python itself turns it into a RuntimeError when it leaves a coroutine.
    assert job.error.type == ("RuntimeError" if kind == "on_loop" else "StopIteration")
    assert_goes_on(shared_crew, survivor)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("behaviour", UNSTORABLE)
def test_a_result_that_cannot_be_stored_costs_the_result_only(
    shared_crew: Crew, survivor: Worker, behaviour: str, kind: str
) -> None:
    job = run(shared_crew, kind, behaviour)
    assert (job.state, job.result) == ("succeeded", None)
    assert job.reason is not None
    assert job.reason.startswith("result not stored")
    assert_goes_on(shared_crew, survivor)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("behaviour", ["closes stdout", "changes directory"])
def test_a_handler_that_changes_its_process_costs_nobody_else(
    shared_crew: Crew, survivor: Worker, behaviour: str, kind: str
) -> None:
    assert run(shared_crew, kind, behaviour).state == "succeeded"
    assert_goes_on(shared_crew, survivor)


def test_a_handler_that_swallows_its_cancellation_ends_all_the_same(shared_crew: Crew, survivor: Worker) -> None:
    job = run(shared_crew, "swallow_cancellation", timeout="300ms")
    assert (job.state, job.reason, job.attempt) == ("dead", "timeout", 1)
    assert_goes_on(shared_crew, survivor)
