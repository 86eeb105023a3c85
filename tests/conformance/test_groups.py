"""groups: dead jobs that failed alike."""

from __future__ import annotations

from tests.conformance.scene import SECOND, Scene, an_error, death

from perdure.store.reads import JobFilter


def test_jobs_that_failed_alike_are_one_group(scene: Scene) -> None:
    worker = scene.worker()
    first_at = scene.clock.now()
    scene.dead(worker, error=an_error("user 17 is gone"))
    scene.pass_time(SECOND)
    newest = scene.dead(worker, error=an_error("user 18 is gone"))
    (group,) = scene.store.groups(JobFilter(), 10).wait()
    assert (group.task, group.count) == ("send", 2)
    assert (group.first_at, group.last_at) == (first_at, scene.clock.now())
    assert (group.sample_id, group.sample) == (newest, an_error("user 18 is gone"))
    assert group.fingerprint == an_error("user 99 is gone").fingerprint("send")


def test_the_largest_group_comes_first_up_to_the_limit(scene: Scene) -> None:
    worker = scene.worker()
    for message in ("a", "b", "b", "b", "c", "c"):
        scene.dead(worker, error=an_error(message))
    counts = [group.count for group in scene.store.groups(JobFilter(), 2).wait()]
    assert counts == [3, 2]


def test_tasks_are_grouped_apart(scene: Scene) -> None:
    worker = scene.worker()
    scene.dead(worker, task="send")
    scene.dead(worker, task="bill")
    assert sorted(group.task for group in scene.store.groups(JobFilter(), 10).wait()) == ["bill", "send"]


def test_jobs_that_died_without_an_error_are_grouped_by_reason(scene: Scene) -> None:
    worker = scene.worker()
    for reason in ("outcome unknown", "outcome unknown", "unknown task"):
        job = scene.running(worker)
        scene.end(job, death(job, error=None, reason=reason))
    assert [(group.count, group.sample) for group in scene.store.groups(JobFilter(), 10).wait()] == [
        (2, None),
        (1, None),
    ]


def test_only_matching_dead_jobs_are_counted(scene: Scene) -> None:
    worker = scene.worker()
    scene.dead(worker, queue="mail")
    scene.dead(worker, queue="money")
    gone = scene.dead(worker, queue="mail")
    scene.store.discard(JobFilter(ids=(gone,)), 1).wait()
    (group,) = scene.store.groups(JobFilter(queue="mail"), 10).wait()
    assert group.count == 1


def test_a_replayed_job_leaves_its_group(scene: Scene) -> None:
    job_id = scene.dead()
    scene.store.retry([job_id]).wait()
    assert scene.store.groups(JobFilter(), 10).wait() == []
    assert scene.store.count(JobFilter(group=an_error().fingerprint("send"))).wait() == 0
