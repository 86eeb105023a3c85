"""unpark: a worker that knows a task claims its parked jobs before they are due."""

from __future__ import annotations

from typing import Any

from tests.conformance.scene import SECOND, Scene, a_want, failure, success

from perdure.model.change import Change
from perdure.model.job import Job, WorkerId


def parked(scene: Scene, worker: WorkerId, **changes: Any) -> Job:
    """A job that a worker has given back because it does not know its task."""
    lane = changes.pop("lane", "fresh")
    job = scene.running(worker, **changes)
    given_back = failure(job, attempt="parked", reason="parked", failures=job.failures, lane=lane, delay=60 * SECOND)
    assert scene.end(job, given_back)
    return scene.get(job.id)


def unpark(scene: Scene, worker: WorkerId, *tasks: str, queue: str = "mail", limit: int = 10, **want: Any) -> list[str]:
    jobs = scene.store.unpark(worker, [a_want(queue, **want)], tasks or ("send",), limit).wait()
    return [job.id for job in jobs]


def test_a_parked_job_is_claimed_before_it_is_due_by_a_worker_that_knows_its_task(scene: Scene) -> None:
    job = parked(scene, scene.worker(), args=b'"' + b"x" * 1000 + b'"')
    other = scene.worker("worker-2")
    (claimed,) = scene.store.unpark(other, [a_want()], ["send"], 10).wait()
    assert (claimed.id, claimed.state, claimed.worker) == (job.id, "running", other)
    assert (claimed.attempt, claimed.failures, claimed.args) == (job.attempt + 1, 0, job.args)
    assert claimed.started_at is not None
    assert scene.get(job.id).state == "running"
    assert scene.end(claimed, success(claimed))


def test_other_tasks_and_other_queues_are_left_alone(scene: Scene) -> None:
    worker = scene.worker()
    job = parked(scene, worker, task="12:a:b")
    assert unpark(scene, worker, "send", "12:a", "12:a:b:c") == []
    assert unpark(scene, worker, "12:a:b", queue="else") == []
    assert unpark(scene, worker, "send", "12:a:b") == [job.id]


def test_jobs_that_wait_for_another_reason_are_left_alone(scene: Scene) -> None:
    worker = scene.worker()
    retried = scene.running(worker)
    scene.end(retried, failure(retried))
    scene.enqueue(delay=SECOND)
    assert unpark(scene, worker) == []


def test_no_more_are_claimed_than_asked_for_and_none_twice(scene: Scene) -> None:
    worker = scene.worker()
    ids = {parked(scene, worker).id for _ in range(5)}
    first = unpark(scene, worker, limit=3)
    assert len(first) == 3
    assert {*first, *unpark(scene, worker)} == ids
    assert unpark(scene, worker) == []


def test_a_paused_queue_gives_nothing(scene: Scene) -> None:
    worker = scene.worker()
    job = parked(scene, worker)
    scene.store.pause("mail", None).wait()
    assert unpark(scene, worker) == []
    scene.store.resume("mail").wait()
    assert unpark(scene, worker) == [job.id]


def test_the_limits_of_a_queue_hold(scene: Scene) -> None:
    worker = scene.worker()
    for _ in range(3):
        parked(scene, worker)
    assert len(unpark(scene, worker, concurrency=2)) == 2
    assert unpark(scene, worker, concurrency=2) == []


def test_the_cap_on_running_retries_holds(scene: Scene) -> None:
    worker = scene.worker()
    for lane in ("retry", "retry", "fresh"):
        parked(scene, worker, lane=lane)
    assert len(unpark(scene, worker, max_retries_running=1)) == 2
    assert unpark(scene, worker, max_retries_running=1) == []
    assert len(unpark(scene, worker, max_retries_running=2)) == 1


def test_a_worker_that_was_struck_off_gets_nothing(scene: Scene) -> None:
    worker = scene.worker()
    parked(scene, worker)
    scene.pass_time(31 * SECOND)
    assert scene.store.reap(10).wait().workers == (worker,)
    assert unpark(scene, worker) == []
    assert unpark(scene, WorkerId("nobody")) == []


def test_a_parked_job_that_was_promoted_changed_retried_or_cancelled_is_not_claimed_where_it_was(scene: Scene) -> None:
    worker = scene.worker()
    promoted = parked(scene, worker)
    scene.pass_time(60 * SECOND)
    worker = scene.worker()
    assert scene.store.promote(10).wait().count == 1
    assert unpark(scene, worker) == []
    moved, retried, cancelled = (parked(scene, worker, queue="q") for _ in range(3))
    scene.store.change([moved.id], Change(queue="else")).wait()
    scene.store.retry([retried.id]).wait()
    scene.store.cancel([cancelled.id], "unwanted").wait()
    assert unpark(scene, worker, queue="q") == []
    assert unpark(scene, worker, queue="else") == [moved.id]
    assert scene.get(promoted.id).state == "ready"


def test_an_at_most_once_job_has_not_started_when_it_is_claimed(scene: Scene) -> None:
    worker = scene.worker()
    parked(scene, worker, delivery="at_most_once")
    (claimed,) = scene.store.unpark(worker, [a_want()], ["send"], 10).wait()
    assert claimed.started_at is None
    assert scene.get(claimed.id).started_at is None
