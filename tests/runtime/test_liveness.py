"""A worker works, or it ends and gives its jobs back: nothing that a handler does leaves them running for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from tests.chaos.crew import PATIENCE, Crew, children_of, is_alive, until

APP = "tests.runtime.deadly"
LONG = os.environ.get("PERDURE_HOSTILE") == "long"

DEATHS: dict[str, tuple[str, list[object]]] = {
    "SystemExit in the background": ("raise_in_background", ["SystemExit"]),
    "KeyboardInterrupt in the background": ("raise_in_background", ["KeyboardInterrupt"]),
    "loop.stop()": ("stop_loop", []),
    "all tasks cancelled": ("cancel_all", [False]),
    "all other tasks cancelled": ("cancel_all", [True]),
}


ON_EVERY_ENGINE = ("loop.stop()", "all tasks cancelled")
"""One death that the watchdog ends and one that the worker itself ends; the others go the same ways."""


# Proves [INV-24].
@pytest.mark.crash
@pytest.mark.parametrize(
    "death",
    [pytest.param(death, marks=[pytest.mark.every_engine] if death in ON_EVERY_ENGINE else []) for death in DEATHS],
)
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
@pytest.mark.every_engine
def test_a_handler_that_returns_while_its_own_cancellation_is_pending_costs_nobody_anything(crew: Crew) -> None:
    worker = crew.worker(APP, concurrency=1)
    jobs = [crew.enqueue_named("cancel_itself") for _ in range(3)]
    until(crew.is_drained, "all jobs have ended")
    assert [crew.job(job_id).result for job_id in jobs] == [b'"returned"'] * 3
    assert crew.stop(worker) == [0]
    assert "Traceback" not in crew.output()


@pytest.mark.crash
@pytest.mark.every_engine
def test_jobs_of_a_process_that_a_thread_ended_are_recovered(crew: Crew) -> None:
    worker = crew.worker(APP, lease="1s", concurrency=2)
    bystander = crew.enqueue_named("wait_on_loop", 0.5)
    culprit = crew.enqueue_named("exit_process", max_attempts=2)
    assert worker.wait(PATIENCE) == 7
    second = crew.worker(APP, lease="1s", concurrency=2)
    until(crew.is_drained, "all jobs have ended")
    assert crew.state(bystander) == "succeeded"
    assert (crew.state(culprit), crew.outcomes(culprit)) == ("dead", ["lost", "lost"])
    assert crew.stop(second) == [0]
    assert "Traceback" not in crew.output()


@pytest.mark.crash
def test_an_interrupt_from_a_thread_stops_the_worker_in_order(crew: Crew) -> None:
    worker = crew.worker(APP, lease="10m")
    job_id = crew.enqueue_named("interrupt_main")
    assert worker.wait(PATIENCE) == 0
    assert crew.registered() == {}
    assert crew.state(job_id) == "succeeded"
    assert "Traceback" not in crew.output()


LEFT_BEHIND = ("swallow_in_background", "leave_exit_hanging")
ENDLESS = ("swallow_for_ever", "never_return", "ignore_signals_in_child")
COMMANDS = ("run_worker", "perdure worker", "perdure up")


@pytest.mark.crash
@pytest.mark.parametrize("command", COMMANDS)
def test_a_process_ends_soon_after_its_grace_period_whatever_handlers_do(crew: Crew, command: str) -> None:
    end_in_time(crew, command, [*LEFT_BEHIND, *ENDLESS])


@pytest.mark.crash
@pytest.mark.every_engine
def test_a_process_with_a_blocked_loop_gives_all_jobs_back_and_ends_soon_after_its_grace_period(crew: Crew) -> None:
    end_in_time(crew, "run_worker", [*LEFT_BEHIND, *ENDLESS, "block_loop"])


@pytest.mark.crash
@pytest.mark.skipif(not LONG, reason="the tests above run them together")
@pytest.mark.parametrize("task", [*LEFT_BEHIND, *ENDLESS, "block_loop"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_process_ends_soon_after_its_grace_period_whatever_one_handler_does(
    crew: Crew, command: str, task: str
) -> None:
    end_in_time(crew, command, [task])


def end_in_time(crew: Crew, command: str, tasks: list[str]) -> None:
    """Run jobs of these tasks at once, stop their worker, and see it end with no job left or counted."""
    worker = start(crew, command)
    jobs = []
    for task in tasks:
        job_id = crew.enqueue_named(task, *([3600] if task == "block_loop" else []))
        until(lambda job_id=job_id: crew.seen("start", job=job_id), f"{task} runs")
        if task in LEFT_BEHIND:
            until(lambda job_id=job_id: crew.job(job_id).is_final, f"{task} has left something behind")
        jobs.append(job_id)
    began = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    worker.wait(PATIENCE)
    # 300 ms of grace and 5 s, and what a busy machine adds.
    assert time.monotonic() - began < 30
    assert crew.registered() == {}
    assert crew.client.stats().running == 0
    assert {crew.job(job_id).failures for job_id in jobs} == {0}
    for event in crew.seen("start"):
        until(lambda pid=event.pid: not is_alive(pid), "the child process has ended")
    assert "Traceback" not in crew.output()


def start(crew: Crew, command: str, **settings: object) -> subprocess.Popen[bytes]:
    """Start a worker in one of the ways in which a process belongs to it."""
    settings = {"grace": "300ms", "lease": "10m", "poll": "200ms", **settings}
    if command == "run_worker":
        return crew.worker(APP, **settings)
    arguments = ["--port", "0"] if command == "perdure up" else []
    return crew.start("-m", *command.split(), f"{APP}:app", *arguments, **settings)


@pytest.mark.crash
@pytest.mark.parametrize("task", ["backtrack", *(["backtrack_on_loop"] if LONG else [])])
def test_a_process_whose_interpreter_is_held_ends_after_its_grace_period(crew: Crew, task: str) -> None:
    worker = start(crew, "run_worker")
    guard = children_of(worker.pid)
    job_id = crew.enqueue_named(task)
    until(lambda: crew.seen("start", job=job_id), "the handler runs")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE) in (1, -signal.SIGKILL)
    for pid in guard:
        until(lambda pid=pid: not is_alive(pid), "the guard has ended")


@pytest.mark.crash
def test_the_second_signal_ends_a_blocked_process_before_its_grace_period_is_over(crew: Crew) -> None:
    worker = start(crew, "run_worker", grace="1h")
    job_id = crew.enqueue_named("block_loop", 3600)
    until(lambda: crew.seen("start", job=job_id), "the handler runs")
    worker.send_signal(signal.SIGINT)
    worker.send_signal(signal.SIGTERM)
    worker.wait(PATIENCE)
    assert crew.registered() == {}
    assert (crew.state(job_id), crew.job(job_id).failures) == ("ready", 0)


@pytest.mark.crash
@pytest.mark.every_engine
def test_a_loop_that_is_blocked_for_too_long_ends_the_process_and_only_the_culprit_is_counted(crew: Crew) -> None:
    worker = crew.worker(APP, lease="10m", concurrency=2, max_block="1s")
    bystander = crew.enqueue_named("wait_on_loop", 3600)
    until(lambda: crew.seen("start", job=bystander), "the bystander runs")
    culprit = crew.enqueue_named("block_loop", 3600)
    assert worker.wait(PATIENCE) == 1
    output = crew.output()
    assert output.count("has been blocked for") == 1
    assert f"'block_loop', job {culprit}" in output
    assert "time.sleep(seconds)" in output, "the stack is shown"
    assert output.count("This worker ends") == 1
    assert crew.registered() == {}
    job = crew.job(culprit)
    assert (job.reason, job.failures) == ("lost", 1)
    assert crew.outcomes(culprit) == ["lost"]
    assert (crew.state(bystander), crew.job(bystander).failures) == ("ready", 0)


@pytest.mark.crash
def test_a_process_whose_interpreter_is_held_for_too_long_is_ended(crew: Crew) -> None:
    worker = crew.worker(APP, lease="1s", concurrency=2, max_block="2s")
    job_id = crew.enqueue_named("backtrack")
    assert worker.wait(PATIENCE) == -signal.SIGKILL
    second = crew.worker(APP, lease="1s", concurrency=2)
    until(lambda: len(crew.seen("start", job=job_id)) == 2, "the job runs again, in a child process")
    assert crew.seen("start", job=job_id)[1].pid != second.pid
    assert crew.outcomes(job_id)[0] == "lost"
    # The system ends the child with its worker, though nothing in the child can run.
    child = crew.seen("start", job=job_id)[1].pid
    crew.kill(second)
    until(lambda: not is_alive(child), "the child has ended")


@pytest.mark.crash
def test_a_loop_that_is_blocked_for_a_while_is_reported_and_keeps_its_lease(crew: Crew) -> None:
    worker = crew.worker(APP, lease="1s", concurrency=2, max_block="4s")
    job_id = crew.enqueue_named("block_loop", 2.8)
    until(lambda: crew.job(job_id).is_final, "the job ends")
    assert (crew.state(job_id), crew.job(job_id).attempt) == ("succeeded", 1)
    assert crew.output().count("has been blocked for") == 1
    assert crew.stop(worker) == [0]


@pytest.mark.crash
@pytest.mark.every_engine
def test_a_handler_that_blocks_the_loop_past_its_timeout_is_broken_off_and_the_worker_goes_on(crew: Crew) -> None:
    worker = crew.worker(APP, lease="10m", concurrency=2)
    bystander = crew.enqueue_named("wait_on_loop", 1)
    until(lambda: crew.seen("start", job=bystander), "the bystander runs")
    job_id = crew.enqueue_named("block_loop_past_timeout", 3600, max_attempts=1)
    until(crew.is_drained, "both jobs have ended")
    assert (crew.state(job_id), crew.outcomes(job_id)) == ("dead", ["timeout"])
    assert crew.state(bystander) == "succeeded"
    assert crew.stop(worker) == [0]
    assert "Traceback" not in crew.output()


@pytest.mark.crash
def test_a_handler_that_blocks_the_loop_and_returns_past_its_timeout_has_timed_out(crew: Crew) -> None:
    worker = crew.worker(APP, lease="10m", concurrency=2)
    job_id = crew.enqueue_named("wait_then_block_loop", 1, max_attempts=1)
    until(crew.is_drained, "the job has ended")
    assert (crew.state(job_id), crew.outcomes(job_id)) == ("dead", ["timeout"])
    assert crew.stop(worker) == [0]


# Proves [INV-25].
@pytest.mark.crash
@pytest.mark.every_engine
@pytest.mark.parametrize("then", ["times out", "raises"])
def test_jobs_beside_one_that_holds_the_interpreter_longer_than_the_lease_lose_one_attempt_at_most(
    crew: Crew, then: str
) -> None:
    worker = crew.worker(APP, lease="1s", concurrency=3)
    bystander = crew.enqueue_named("wait_on_loop", 2, max_attempts=2)
    until(lambda: crew.seen("start", job=bystander), "the bystander runs")
    culprit = crew.enqueue_named("hold_interpreter", 1.5, then, max_attempts=2)
    until(crew.is_drained, "all jobs have ended")
    assert crew.state(bystander) == "succeeded"
    assert crew.job(bystander).failures <= 1
    # A suspect from its first attempt on, whatever noticed the end of that; so its second ran in a child process.
    assert crew.outcomes(culprit)[0] in ("lost", "failed" if then == "raises" else "lost")
    assert [event.pid for event in crew.seen("start", job=culprit)].count(worker.pid) == 1
    assert worker.poll() is None
    assert crew.stop(worker) == [0]
