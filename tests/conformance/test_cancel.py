"""cancel: ends waiting and ready jobs, asks for running ones, leaves ended ones alone."""

from __future__ import annotations

from tests.conformance.scene import SECOND, Scene, success

from perdure.model.job import JobId


def test_a_ready_job_ends_cancelled_with_the_reason(scene: Scene) -> None:
    job_id = scene.enqueue()
    scene.pass_time(SECOND)
    assert scene.store.cancel([job_id], "no longer wanted").wait() == ["cancelled"]
    job = scene.get(job_id)
    assert (job.state, job.reason, job.ended_at) == ("cancelled", "no longer wanted", scene.clock.now())
    assert job.is_cancelling is False


def test_a_waiting_job_ends_cancelled(scene: Scene) -> None:
    job_id = scene.enqueue(delay=SECOND)
    assert scene.store.cancel([job_id], "cancelled").wait() == ["cancelled"]
    assert scene.get(job_id).state == "cancelled"


def test_a_cancelled_job_is_never_claimed(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.cancel([scene.enqueue()], "cancelled").wait()
    assert scene.fetch(worker) == []


def test_a_running_job_is_asked_for_and_runs_on(scene: Scene) -> None:
    job = scene.running()
    assert scene.store.cancel([job.id], "no longer wanted").wait() == ["asked"]
    kept = scene.get(job.id)
    assert (kept.state, kept.is_cancelling, kept.worker) == ("running", True, job.worker)


def test_asking_twice_is_answered_alike_and_keeps_the_first_reason(scene: Scene) -> None:
    job = scene.running()
    scene.store.cancel([job.id], "first").wait()
    assert scene.store.cancel([job.id], "second").wait() == ["asked"]
    assert scene.get(job.id).reason == "first"


def test_ended_jobs_stay_as_they_are(scene: Scene) -> None:
    worker = scene.worker()
    job = scene.running(worker)
    scene.end(job, success(job))
    dead = scene.dead(worker)
    before = scene.store.get([job.id, dead]).wait()
    assert scene.store.cancel([job.id, dead], "cancelled").wait() == ["already ended", "already ended"]
    assert scene.store.get([job.id, dead]).wait() == before


def test_a_cancelled_job_is_already_cancelled(scene: Scene) -> None:
    job_id = scene.enqueue()
    scene.store.cancel([job_id], "first").wait()
    assert scene.store.cancel([job_id], "second").wait() == ["already cancelled"]
    assert scene.get(job_id).reason == "first"


def test_each_id_gets_its_own_answer_in_order(scene: Scene) -> None:
    running = scene.running()
    ready, nobody = scene.enqueue(), JobId("nobody")
    answers = scene.store.cancel([nobody, ready, running.id], "cancelled").wait()
    assert answers == ["not found", "cancelled", "asked"]
