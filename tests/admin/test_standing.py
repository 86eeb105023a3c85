"""Why a job is where it is, said in a sentence that fits its state."""

from __future__ import annotations

from datetime import timedelta

from tests.admin.scene import Scene

from perdure.admin.job_explanation import standing
from perdure.client_sync import Client
from perdure.model.job import JobId


def say(scene: Scene, job_id: str) -> str:
    [job] = scene.store.get([JobId(job_id)]).wait()
    assert job is not None
    queue = next(queue for queue in scene.store.queues().wait() if queue.name == job.queue)
    return standing(job, queue, scene.store.workers().wait(), scene.clock.now())


def test_a_ready_job_without_worker_says_so(scene: Scene) -> None:
    assert "no living worker serves the queue 'default'" in say(scene, scene.enqueue())


def test_a_ready_job_in_a_paused_queue_says_why_it_is_paused(scene: Scene) -> None:
    job_id = scene.enqueue()
    scene.register()
    scene.store.pause("default", "upgrade").wait()
    assert "is paused (upgrade)" in say(scene, job_id)


def test_a_ready_job_with_a_living_worker_waits_for_a_slot(scene: Scene) -> None:
    job_id = scene.enqueue()
    scene.register()
    assert "free slot" in say(scene, job_id)


def test_a_failed_job_waits_for_its_retry(scene: Scene) -> None:
    job_id = scene.failing()
    assert say(scene, job_id) == "Attempt 1 failed; it waits for its retry."
    scene.clock.advance(timedelta(hours=1))
    assert "due now, but no living worker" in say(scene, job_id)


def test_a_delayed_job_was_enqueued_for_later(scene: Scene) -> None:
    assert "for later" in say(scene, scene.enqueue(delay=timedelta(hours=1)))


def test_a_running_job_names_its_worker_until_that_vanishes(scene: Scene) -> None:
    scene.enqueue()
    [job] = scene.run()
    assert "runs on somewhere, process 7" in say(scene, job.id)
    scene.store.cancel([job.id], "cancelled").wait()
    assert "asked to cancel" in say(scene, job.id)
    scene.clock.advance(timedelta(minutes=1))
    assert "worker vanished" in say(scene, job.id)


def test_ended_jobs_say_how_they_ended(scene: Scene) -> None:
    assert "failed as often as it may" in say(scene, scene.dead())
    assert "gave up" in say(scene, scene.dead(reason="unrecoverable"))
    assert "succeeded" in say(scene, scene.succeeded())
    discarded = scene.dead("gone")
    Client(scene.store).discard(discarded)
    assert "discarded" in say(scene, discarded)
