"""queues, pause and resume: what each queue holds, and its switch."""

from __future__ import annotations

from tests.conformance.scene import SECOND, Scene, failure, success

from perdure.store.reads import QueueInfo


def test_an_empty_store_has_no_queues(scene: Scene) -> None:
    assert scene.store.queues().wait() == []


def test_every_state_is_counted(scene: Scene) -> None:
    worker = scene.worker()
    job = scene.running(worker)
    scene.end(job, success(job))
    scene.dead(worker)
    retried = scene.running(worker)
    scene.end(retried, failure(retried))
    scene.running(worker)
    scene.store.cancel([scene.enqueue()], "cancelled").wait()
    scene.store.enqueue([scene.new_job(delay=SECOND), scene.new_job(), scene.new_job()]).wait()
    (found,) = scene.store.queues().wait()
    assert (found.waiting, found.ready, found.running) == (2, 2, 1)
    assert (found.succeeded, found.dead, found.cancelled) == (1, 1, 1)
    assert found.retrying == 1


def test_retrying_counts_waiting_and_ready_retries_only(scene: Scene) -> None:
    worker = scene.worker()
    for state in ("waiting", "ready", "running"):
        job = scene.running(worker)
        scene.end(job, failure(job, state="ready", delay=0 * SECOND))
        if state != "ready":
            (job,) = scene.fetch(worker)
        if state == "waiting":
            scene.end(job, failure(job))
        if state == "ready":
            scene.fetch(worker)
    (found,) = scene.store.queues().wait()
    assert (found.waiting, found.ready, found.running, found.retrying) == (1, 0, 2, 1)


def test_the_oldest_ready_job_dates_the_queue(scene: Scene) -> None:
    now = scene.clock.now()
    scene.enqueue(run_at=now - 5 * SECOND)
    scene.enqueue(run_at=now - 9 * SECOND, priority=-5)
    scene.enqueue(delay=SECOND)
    (found,) = scene.store.queues().wait()
    assert found.oldest_ready_at == now - 9 * SECOND


def test_a_queue_without_ready_jobs_has_no_oldest(scene: Scene) -> None:
    scene.enqueue(delay=SECOND)
    (found,) = scene.store.queues().wait()
    assert found.oldest_ready_at is None


def test_queues_come_by_name_those_with_only_a_switch_included(scene: Scene) -> None:
    for queue in ("b", "c", "a"):
        scene.enqueue(queue=queue)
    scene.store.pause("ab", None).wait()
    assert [found.name for found in scene.store.queues().wait()] == ["a", "ab", "b", "c"]


def test_a_pause_is_shown_with_its_time_and_reason(scene: Scene) -> None:
    assert scene.store.pause("mail", "deploy").wait() is True
    wanted = QueueInfo(name="mail", is_paused=True, paused_at=scene.clock.now(), pause_reason="deploy")
    assert scene.store.queues().wait() == [wanted]


def test_pausing_twice_changes_nothing(scene: Scene) -> None:
    scene.store.pause("mail", "first").wait()
    before = scene.store.queues().wait()
    scene.pass_time(SECOND)
    assert scene.store.pause("mail", "second").wait() is False
    assert scene.store.queues().wait() == before


def test_a_resumed_queue_is_fetched_from_again(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue()
    scene.store.pause("mail", None).wait()
    assert scene.fetch(worker) == []
    assert scene.store.resume("mail").wait() is True
    assert len(scene.fetch(worker)) == 1
    assert scene.store.resume("mail").wait() is False


def test_running_jobs_of_a_paused_queue_can_end(scene: Scene) -> None:
    job = scene.running()
    scene.store.pause("mail", None).wait()
    assert scene.end(job, success(job))
