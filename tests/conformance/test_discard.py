"""discard: matching dead jobs are dismissed: cancelled, reason `discarded`."""

from __future__ import annotations

from datetime import timedelta

from tests.conformance.scene import SECOND, Scene

from perdure.store.reads import JobFilter


def test_a_dismissed_job_ends_cancelled(scene: Scene) -> None:
    job_id = scene.dead()
    scene.pass_time(SECOND)
    assert scene.store.discard(JobFilter(), 10).wait() == 1
    job = scene.get(job_id)
    assert (job.state, job.reason, job.ended_at) == ("cancelled", "discarded", scene.clock.now())


def test_its_error_and_history_are_kept(scene: Scene) -> None:
    job_id = scene.dead()
    scene.store.discard(JobFilter(), 10).wait()
    assert scene.get(job_id).error is not None
    assert len(scene.store.history(job_id, 10).wait()) == 1


def test_the_oldest_are_dismissed_first_up_to_the_limit(scene: Scene) -> None:
    worker = scene.worker()
    ids = [scene.dead(worker) for _ in range(4)]
    assert scene.store.discard(JobFilter(), 3).wait() == 3
    assert [scene.get(job_id).state for job_id in ids] == ["cancelled"] * 3 + ["dead"]


def test_only_dead_jobs_are_dismissed(scene: Scene) -> None:
    job = scene.running()
    ready = scene.enqueue()
    assert scene.store.discard(JobFilter(), 10).wait() == 0
    assert scene.store.discard(JobFilter(state="ready"), 10).wait() == 0
    assert (scene.get(job.id).state, scene.get(ready).state) == ("running", "ready")


def test_a_dismissed_job_is_pruned_and_can_be_retried_before(scene: Scene) -> None:
    worker = scene.worker()
    gone, back = scene.dead(worker), scene.dead(worker)
    scene.store.discard(JobFilter(), 10).wait()
    assert scene.store.retry([back]).wait() == ["replayed"]
    assert scene.store.prune(timedelta(0), 10).wait() == 1
    assert scene.store.get([gone]).wait() == [None]
