"""A worker works, or it ends and gives its jobs back: nothing that a handler does leaves them running for ever."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest
from tests.chaos.crew import PATIENCE, Crew, until

APP = "tests.runtime.deadly"

DEATHS: dict[str, tuple[str, list[object]]] = {
    "SystemExit in the background": ("raise_in_background", ["SystemExit"]),
    "KeyboardInterrupt in the background": ("raise_in_background", ["KeyboardInterrupt"]),
    "loop.stop()": ("stop_loop", []),
    "all tasks cancelled": ("cancel_all", [False]),
    "all other tasks cancelled": ("cancel_all", [True]),
}


# Proves [INV-24].
@pytest.mark.crash
@pytest.mark.every_engine
@pytest.mark.parametrize("death", DEATHS)
def test_a_process_ends_with_its_event_loop_and_gives_its_jobs_back(crew: Crew, death: str) -> None:
    # A lease that outlasts the test: what is recovered was given back, and not found when the lease ran out.
    worker = crew.worker(APP, lease="10m", concurrency=2)
    bystander = crew.enqueue_named("wait_on_loop", 3600, priority=2)
    until(lambda: crew.seen("start", job=bystander), "the bystander runs")
    task, args = DEATHS[death]
    culprit = crew.enqueue_named(task, *args)
    assert worker.wait(PATIENCE) == 1
    assert crew.registered() == {}
    assert crew.output().count("This worker ends") == 1
    assert "Traceback" not in crew.output()
    second = crew.worker(APP, lease="10m", concurrency=2)
    until(lambda: len(crew.seen("start", job=bystander)) == 2, "the bystander runs again")
    until(lambda: crew.job(culprit).is_final, "the culprit ends")
    assert crew.job(bystander).failures <= 1
    assert second.poll() is None, "the culprit ended a second worker"


@pytest.mark.crash
def test_a_handler_that_returns_while_its_own_cancellation_is_pending_costs_nobody_anything(crew: Crew) -> None:
    worker = crew.worker(APP, concurrency=1)
    jobs = [crew.enqueue_named("cancel_itself") for _ in range(3)]
    until(crew.is_drained, "all jobs have ended")
    assert [crew.job(job_id).result for job_id in jobs] == [b'"returned"'] * 3
    assert crew.stop(worker) == [0]


STUBBORN = ("swallow_for_ever", "swallow_in_background", "block_loop", "never_return", "leave_exit_hanging")


@pytest.mark.crash
@pytest.mark.parametrize("task", STUBBORN)
@pytest.mark.parametrize("command", ["run_worker", "perdure worker", "perdure up"])
def test_a_process_ends_soon_after_its_grace_period_whatever_handlers_do(crew: Crew, command: str, task: str) -> None:
    worker = start(crew, command)
    job_id = crew.enqueue_named(task, *([3600] if task == "block_loop" else []))
    until(lambda: crew.seen("start", job=job_id), "the handler runs")
    if task in ("swallow_in_background", "leave_exit_hanging"):
        until(lambda: crew.job(job_id).is_final, "the handler has left something behind")
    began = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    worker.wait(PATIENCE)
    # 500 ms of grace and 5 s, and what a busy machine adds.
    assert time.monotonic() - began < 20
    assert crew.registered() == {}
    assert crew.client.stats().running == 0
    assert crew.job(job_id).failures == 0


def start(crew: Crew, command: str) -> subprocess.Popen[bytes]:
    """Start a worker in one of the ways in which a process belongs to it."""
    settings = {"grace": "500ms", "lease": "10m", "poll": "200ms"}
    if command == "run_worker":
        return crew.worker(APP, **settings)
    arguments = ["--port", "0"] if command == "perdure up" else []
    return crew.start("-m", *command.split(), f"{APP}:app", *arguments, **settings)


@pytest.mark.crash
@pytest.mark.every_engine
@pytest.mark.parametrize("task", ["block_loop", "block_loop_past_timeout"])
def test_a_loop_that_is_blocked_for_too_long_ends_the_process_and_only_the_culprit_is_counted(
    crew: Crew, task: str
) -> None:
    worker = crew.worker(APP, lease="10m", concurrency=2, max_block="1s")
    bystander = crew.enqueue_named("wait_on_loop", 3600)
    until(lambda: crew.seen("start", job=bystander), "the bystander runs")
    culprit = crew.enqueue_named(task, 3600)
    assert worker.wait(PATIENCE) == 1
    output = crew.output()
    assert output.count("has been blocked for") == 1
    assert f"'{task}', job {culprit}" in output
    assert "time.sleep(seconds)" in output, "the stack is shown"
    assert output.count("This worker ends") == 1
    assert crew.registered() == {}
    found = crew.job(culprit)
    assert (found.reason, found.failures) == ("lost", 1)
    assert crew.outcomes(culprit) == ["lost"]
    assert (crew.state(bystander), crew.job(bystander).failures) == ("ready", 0)


@pytest.mark.crash
def test_a_loop_that_is_blocked_for_a_while_is_reported_and_keeps_its_lease(crew: Crew) -> None:
    worker = crew.worker(APP, lease="1s", concurrency=2, max_block="4s")
    job_id = crew.enqueue_named("block_loop", 2.8)
    until(lambda: crew.job(job_id).is_final, "the job ends")
    assert (crew.state(job_id), crew.job(job_id).attempt) == ("succeeded", 1)
    assert crew.output().count("has been blocked for") == 1
    assert crew.stop(worker) == [0]


# Proves [INV-25].
@pytest.mark.crash
@pytest.mark.every_engine
def test_jobs_beside_one_that_holds_the_interpreter_longer_than_the_lease_lose_one_attempt_at_most(crew: Crew) -> None:
    worker = crew.worker(APP, lease="1s", concurrency=3)
    bystander = crew.enqueue_named("wait_on_loop", 5, max_attempts=2)
    until(lambda: crew.seen("start", job=bystander), "the bystander runs")
    culprit = crew.enqueue_named("hold_interpreter", 3)
    until(crew.is_drained, "all jobs have ended")
    assert crew.state(bystander) == "succeeded"
    assert crew.job(bystander).failures <= 1
    # Lost the first time, whatever noticed it first; then it ran in children, which its timeout killed.
    assert crew.outcomes(culprit)[0] == "lost"
    assert [event.pid for event in crew.seen("start", job=culprit)].count(worker.pid) == 1
    assert worker.poll() is None
    assert crew.stop(worker) == [0]
