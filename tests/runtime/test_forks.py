"""Handlers that fork: the copy ends with the handler, and no other job and no worker is touched by it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.crew import Crew, is_alive, until

from perdure import Job


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes.txt"


@pytest.fixture
def crew(shared_crew: Crew) -> Crew:
    return shared_crew


@pytest.fixture(scope="module")
def worker(shared_crew: Crew) -> Iterator[int]:
    """One worker of the app whose handlers fork, for all tests; it must end well."""
    process = shared_crew.worker("tests.runtime.forking", lease="30s", grace="5s")
    yield process.pid
    assert shared_crew.stop(process) == [0]
    assert "Traceback" not in shared_crew.output()


def ended(crew: Crew, job_id: str) -> Job:
    until(lambda: crew.state(job_id) in ("succeeded", "dead"), "the job ends")
    return crew.job(job_id)


def result(crew: Crew, job_id: str) -> object:
    job = ended(crew, job_id)
    assert job.state == "succeeded", crew.client.history(job_id)
    return None if job.result is None else json.loads(job.result)


def pids(notes: Path, what: str) -> list[int]:
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [int(line.rsplit(" ", 1)[1]) for line in lines if line.rsplit(" ", 1)[0] == what]


TASKS = ["on_loop", "on_loop_later", "in_pool_thread", "in_thread", "in_child", "in_child_async"]


@pytest.mark.every_engine
def test_a_copy_ends_with_its_handler_and_the_worker_goes_on(crew: Crew, worker: int, notes: Path) -> None:
    ways = ["returns", "raises", "exits"]
    jobs = [crew.enqueue_named(task, str(notes), how) for task in TASKS for how in ways]
    jobs.append(crew.enqueue_named("on_loop", str(notes), "awaits"))
    jobs.append(crew.enqueue_named("on_loop", str(notes), "waits"))
    assert [result(crew, job_id) for job_id in jobs] == ["done"] * len(jobs)
    # No copy went on with anything after its handler: each job has one attempt, and each copy is gone.
    assert len(pids(notes, "original")) == len(jobs)
    until(lambda: len(pids(notes, "copy")) == len(jobs), "every copy has run")
    copies = pids(notes, "copy")
    until(lambda: not any(is_alive(pid) for pid in copies), "every copy is gone")
    assert set(pids(notes, "after await")) == {worker}
    assert result(crew, crew.enqueue_named("plain", str(notes))) == "plain"
    assert pids(notes, "plain") == [worker]


@pytest.mark.every_engine
def test_the_answer_of_a_copy_is_never_taken_for_that_of_another_job(crew: Crew, worker: int, notes: Path) -> None:
    jobs = []
    for _ in range(4):
        jobs.append(("in_child", crew.enqueue_named("in_child", str(notes))))
        jobs.append(("always_raises", crew.enqueue_named("always_raises", str(notes))))
    for task, job_id in jobs:
        job = ended(crew, job_id)
        assert job.state == ("succeeded" if task == "in_child" else "dead")
        assert (job.result is None) == (task == "always_raises")
    assert (len(pids(notes, "original")), len(pids(notes, "raises"))) == (4, 4)


def test_a_child_that_sends_what_it_must_not_costs_its_own_job_only(crew: Crew, worker: int, notes: Path) -> None:
    forged = crew.enqueue_named("answers_forged", str(notes))
    job = ended(crew, forged)
    assert (job.state, job.failures) == ("dead", 1)
    (attempt,) = crew.client.history(forged)
    assert attempt.error is not None
    assert "no answer" in attempt.error.message
    assert ended(crew, crew.enqueue_named("always_raises", str(notes))).state == "dead"
    assert result(crew, crew.enqueue_named("in_child", str(notes))) == "done"


@pytest.mark.every_engine
def test_a_killed_child_is_noticed_while_a_grandchild_holds_its_socket(crew: Crew, worker: int, notes: Path) -> None:
    job_id = crew.enqueue_named("leaves_grandchild", str(notes))
    job = ended(crew, job_id)
    (grandchild,) = pids(notes, "grandchild")
    try:
        assert is_alive(grandchild)
        assert (job.state, job.failures) == ("dead", 1)
        (attempt,) = crew.client.history(job_id)
        assert attempt.error is not None
        assert "was ended by SIGKILL" in attempt.error.message
    finally:
        os.kill(grandchild, signal.SIGKILL)


def test_processes_of_multiprocessing_do_their_work(crew: Crew, worker: int, notes: Path) -> None:
    assert result(crew, crew.enqueue_named("uses_pool", str(notes))) == 1024


def test_a_signal_to_a_copy_is_not_the_workers(crew: Crew, worker: int, notes: Path) -> None:
    assert result(crew, crew.enqueue_named("ends_its_copy", str(notes))) == f"signal {int(signal.SIGTERM)}"
    assert result(crew, crew.enqueue_named("plain", str(notes))) == "plain"
    assert worker in crew.registered()


def test_a_program_that_a_child_starts_can_be_terminated(crew: Crew, worker: int, notes: Path) -> None:
    assert result(crew, crew.enqueue_named("terminates_program", str(notes))) == -signal.SIGTERM


@pytest.mark.parametrize(("how", "code"), [("returns", 0), ("raises", 1), ("exits", 3)])
def test_a_copy_ends_with_the_code_that_python_would_give_it(
    crew: Crew, worker: int, notes: Path, how: str, code: int
) -> None:
    assert result(crew, crew.enqueue_named("exit_code", str(notes), how)) == code
