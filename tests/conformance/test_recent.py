"""recent: the last that ended, the newest dead, the next that are due; never more than asked for."""

from __future__ import annotations

from datetime import timedelta

from tests.conformance.scene import SECOND, Scene, ended, failure, success

from perdure.store.reads import MOST_RECENT


def test_jobs_that_ended_come_with_the_last_to_end_first(scene: Scene) -> None:
    worker = scene.worker()
    jobs = [scene.running(worker, task=f"task-{number}") for number in range(3)]
    for job in (jobs[1], jobs[2], jobs[0]):
        scene.pass_time(SECOND)
        assert scene.end(job, success(job))
    scene.pass_time(2 * SECOND)
    waiting = scene.enqueue(delay=SECOND)
    scene.store.cancel([waiting], "cancelled").wait()
    found = scene.store.recent("succeeded", 10).wait()
    assert [one.task for one in found[1:]] == ["task-0", "task-2", "task-1"]
    assert (found[0].state, found[0].attempt) == ("cancelled", 0)
    assert found[1].state == "succeeded"


def test_many_that_ended_together_come_before_those_that_ended_earlier(scene: Scene) -> None:
    worker = scene.worker()
    earlier = scene.running(worker, task="earlier")
    assert scene.end(earlier, success(earlier))
    scene.pass_time(SECOND)
    numbers = range(1, 151)
    for number in numbers:
        scene.enqueue(task=f"task-{number}")
    jobs = scene.fetch(worker, fresh=150, limit=150)
    assert all(scene.store.commit([ended(job, success(job)) for job in jobs]).wait())
    scene.store.cancel([scene.enqueue(task="cancelled")], "cancelled").wait()
    found = [one.task for one in scene.store.recent("succeeded", 1000).wait()]
    assert sorted(found[:-1]) == sorted(["cancelled", *(f"task-{number}" for number in numbers)])
    assert found[-1] == "earlier"
    assert len(scene.store.recent("succeeded", 20).wait()) == 20


def test_a_job_is_told_with_what_its_rates_need(scene: Scene) -> None:
    worker = scene.worker()
    job = scene.running(worker, task="sénd")
    assert scene.end(job, failure(job))
    (found,) = scene.store.recent("waiting", 10).wait()
    kept = scene.get(job.id)
    assert (found.task, found.queue, found.state, found.lane) == ("sénd", "mail", "waiting", "retry")
    assert (found.attempt, found.failures, found.reason) == (1, 1, "failed")
    assert (found.run_at, found.delay) == (kept.run_at, 10 * SECOND)
    assert (found.started_at, found.ended_at) == (kept.started_at, None)


def test_dead_jobs_come_newest_first(scene: Scene) -> None:
    worker = scene.worker()
    for number in range(3):
        scene.dead(worker, task=f"task-{number}")
        scene.pass_time(SECOND)
    found = scene.store.recent("dead", 2).wait()
    assert [one.task for one in found] == ["task-2", "task-1"]
    assert [(one.reason, one.failures) for one in found] == [("exhausted", 1)] * 2
    assert all(one.ended_at is not None for one in found)


def test_waiting_jobs_come_with_the_next_that_is_due_first(scene: Scene) -> None:
    for hours in (3, 1, 2):
        scene.enqueue(task=f"in-{hours}", delay=timedelta(hours=hours))
    assert [one.task for one in scene.store.recent("waiting", 2).wait()] == ["in-1", "in-2"]


def test_no_more_is_given_than_the_most_whatever_is_asked_for(scene: Scene) -> None:
    scene.store.enqueue([scene.new_job(delay=SECOND) for _ in range(MOST_RECENT + 1)]).wait()
    assert len(scene.store.recent("waiting", 10 * MOST_RECENT).wait()) == MOST_RECENT
    assert scene.store.recent("waiting", 0).wait() == []


def test_nothing_is_given_where_nothing_is(scene: Scene) -> None:
    for state in ("succeeded", "dead", "waiting"):
        assert scene.store.recent(state, 5).wait() == []
