"""A worker that is told to stop finishes what it can, gives back the rest, and leaves nothing running behind."""

from __future__ import annotations

import signal
import time

import pytest
from tests.chaos.crew import Crew, until

KINDS = ("on_loop", "in_thread", "in_child")
SOON = 120.0
"""How many seconds may pass for what should take none; far less than the handlers here would take."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_signal_lets_running_attempts_finish_and_gives_back_the_rest(
    crew: Crew, kind: str, number: signal.Signals
) -> None:
    worker = crew.hoarder(slots=2, grace="60s")
    jobs = [crew.enqueue(kind, seconds=2.0) for _ in range(10)]
    until(lambda: crew.client.stats().running > 6, "it has more than it can run")
    running = until(lambda: _started(crew, jobs), "its slots are busy")
    worker.send_signal(number)
    assert worker.wait(300) == 0
    ended = _started(crew, jobs)
    assert running <= ended
    assert len(ended) <= 4, "it went on with what it had in its buffer"
    assert {crew.state(job_id) for job_id in ended} == {"succeeded"}
    assert {crew.state(job_id) for job_id in set(jobs) - ended} == {"ready"}
    assert {crew.job(job_id).failures for job_id in jobs} == {0}
    assert crew.registered() == {}


@pytest.mark.parametrize("kind", KINDS)
def test_what_outlasts_the_grace_period_is_given_back_with_nothing_counted(crew: Crew, kind: str) -> None:
    worker = crew.worker(grace="500ms")
    job_id = crew.enqueue(kind, "slow once", seconds=3600)
    until(lambda: crew.seen("start", job=job_id), "the handler runs")
    began = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(SOON) == 0
    assert time.monotonic() - began < SOON
    assert (crew.job(job_id).state, crew.job(job_id).failures) == ("ready", 0)
    assert crew.outcomes(job_id) == ["released"]
    crew.worker()
    until(crew.is_drained, "another worker finishes it")
    assert (crew.job(job_id).state, crew.job(job_id).failures) == ("succeeded", 0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_signal_gives_everything_back_at_once(crew: Crew, kind: str) -> None:
    worker = crew.worker(grace="1h", concurrency=1)
    job_id = crew.enqueue(kind, seconds=3600, priority=1)
    other = crew.enqueue(kind)
    until(lambda: crew.seen("start", job=job_id), "the handler runs")
    # Two signals of one number may melt into one; of two numbers both are heard.
    worker.send_signal(signal.SIGTERM)
    worker.send_signal(signal.SIGINT)
    assert worker.wait(SOON) == 0
    assert [crew.state(each) for each in (job_id, other)] == ["ready", "ready"]
    assert [crew.job(each).failures for each in (job_id, other)] == [0, 0]
    assert crew.outcomes(job_id) == ["released"]
    assert crew.registered() == {}


def test_an_at_most_once_job_that_ran_when_its_worker_stopped_never_starts_again(crew: Crew) -> None:
    worker = crew.worker(grace="100ms", concurrency=1)
    job_id = crew.enqueue("on_loop", seconds=3600, delivery="at_most_once")
    until(lambda: crew.seen("start", job=job_id), "the handler runs")
    waiting = crew.enqueue("on_loop", delivery="at_most_once")
    assert crew.stop(worker) == [0]
    assert (crew.job(job_id).state, crew.job(job_id).reason) == ("dead", "outcome unknown")
    crew.worker()
    until(crew.is_drained, "the job that had not begun runs now")
    assert crew.state(waiting) == "succeeded"
    assert len(crew.seen("start", job=job_id)) == 1


def test_a_worker_ends_though_a_handler_left_a_thread_behind(crew: Crew) -> None:
    worker = crew.start("-m", "perdure", "worker", "tests.runtime.hostile:app")
    job_id = crew.enqueue_named("leave_thread")
    until(lambda: crew.state(job_id) == "succeeded", "the job ends")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(SOON) == 0
    assert crew.registered() == {}


def _started(crew: Crew, jobs: list[str]) -> set[str]:
    return {event.job for event in crew.seen("start")} & set(jobs)
