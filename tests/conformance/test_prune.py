"""prune: old succeeded and cancelled jobs go, with their history; dead and live ones never do."""

from __future__ import annotations

from datetime import timedelta

from tests.conformance.scene import SECOND, Scene, ended, failure, success

from perdure.model.job import JobId
from perdure.store.reads import JobFilter

DAY = timedelta(days=1)


def test_old_succeeded_and_cancelled_jobs_are_deleted(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, success(job))
    cancelled = scene.enqueue()
    scene.store.cancel([cancelled], "cancelled").wait()
    scene.pass_time(DAY)
    assert scene.store.prune(DAY, 10).wait() == 2
    assert scene.store.get([job.id, cancelled]).wait() == [None, None]


def test_jobs_that_ended_lately_stay(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, success(job))
    scene.pass_time(DAY - timedelta(microseconds=1))
    assert scene.store.prune(DAY, 10).wait() == 0
    assert scene.get(job.id).state == "succeeded"


# Proves [INV-14].
def test_dead_and_live_jobs_are_never_deleted(scene: Scene) -> None:
    dead = scene.dead()
    running = scene.running().id
    waiting = scene.enqueue(delay=1000 * DAY)
    ready = scene.enqueue()
    scene.pass_time(1000 * DAY)
    assert scene.store.prune(timedelta(0), 100).wait() == 0
    states = [job and job.state for job in scene.store.get([dead, running, waiting, ready]).wait()]
    assert states == ["dead", "running", "waiting", "ready"]


def test_the_oldest_go_first_up_to_the_limit(scene: Scene) -> None:
    ids = []
    for _ in range(5):
        ids.append(scene.enqueue())
        scene.store.cancel([ids[-1]], "cancelled").wait()
        scene.pass_time(SECOND)
    assert scene.store.prune(timedelta(0), 3).wait() == 3
    assert [job is None for job in scene.store.get(ids).wait()] == [True, True, True, False, False]


def test_jobs_that_ended_together_go_up_to_the_limit_and_the_others_later(scene: Scene) -> None:
    first = succeed_together(scene, 250)
    scene.pass_time(SECOND)
    second = succeed_together(scene, 120)
    assert scene.store.prune(timedelta(0), 130).wait() == 130
    assert scene.store.count(JobFilter(state="succeeded")).wait() == 240
    assert left_of(scene, second) == 120
    assert scene.store.prune(SECOND, 1000).wait() == 120
    assert (left_of(scene, first), left_of(scene, second)) == (0, 120)
    assert scene.store.prune(timedelta(0), 119).wait() == 119
    assert [scene.store.prune(timedelta(0), 100).wait() for _ in range(2)] == [1, 0]
    assert scene.store.count(JobFilter()).wait() == 0


def succeed_together(scene: Scene, number: int) -> list[JobId]:
    ids = [scene.enqueue() for _ in range(number)]
    jobs = scene.fetch(scene.worker(), fresh=number, limit=number)
    assert all(scene.store.commit([ended(job, success(job)) for job in jobs]).wait())
    return ids


def left_of(scene: Scene, ids: list[JobId]) -> int:
    return sum(job is not None for job in scene.store.get(ids).wait())


def test_the_history_goes_with_the_job(scene: Scene) -> None:
    worker = scene.worker()
    first = scene.running(worker)
    scene.end(first, failure(first, state="ready", delay=0 * SECOND))
    (job,) = scene.fetch(worker)
    scene.end(job, success(job))
    assert len(scene.store.history(job.id, 10).wait()) == 2
    scene.store.prune(timedelta(0), 10).wait()
    assert scene.store.history(job.id, 10).wait() == []
    scene.store.enqueue([scene.new_job(id=job.id)]).wait()
    assert scene.store.history(job.id, 10).wait() == []
