"""queues, pause, resume, configure and settings: what each queue holds, its switch, and what operators set."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tests.conformance.scene import SECOND, Scene, failure, success

from perdure.model.queue.settings import QueueSettings
from perdure.store import Store
from perdure.store.reads import QueueInfo
from perdure.system.clock import Clock

MICROSECOND = timedelta(microseconds=1)


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


# Proves [INV-13].
def test_a_pause_ends_by_itself_at_the_given_moment(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue()
    until = scene.clock.now() + 10 * SECOND
    assert scene.store.pause("mail", "upgrade", until).wait() is True
    scene.pass_time(10 * SECOND - MICROSECOND)
    assert scene.fetch(worker) == []
    (paused,) = scene.store.queues().wait()
    assert (paused.is_paused, paused.paused_until, paused.pause_reason) == (True, until, "upgrade")
    scene.pass_time(MICROSECOND)
    (found,) = scene.store.queues().wait()
    assert (found.is_paused, found.paused_at, found.paused_until, found.pause_reason) == (False, None, None, None)
    assert len(scene.fetch(worker)) == 1


def test_a_pause_that_has_ended_is_no_pause_for_any_verb(scene: Scene) -> None:
    scene.store.pause("mail", "first", scene.clock.now() + SECOND).wait()
    scene.pass_time(SECOND)
    assert scene.store.queues().wait() == []
    assert scene.store.resume("mail").wait() is False
    scene.store.pause("mail", "first", scene.clock.now() + SECOND).wait()
    scene.pass_time(SECOND)
    assert scene.store.pause("mail", None).wait() is True
    wanted = QueueInfo(name="mail", is_paused=True, paused_at=scene.clock.now())
    assert scene.store.queues().wait() == [wanted]


def test_another_end_of_a_pause_takes_the_place_of_the_first(scene: Scene) -> None:
    began = scene.clock.now()
    scene.store.pause("mail", "first", began + 10 * SECOND).wait()
    scene.pass_time(SECOND)
    assert scene.store.pause("mail", None, began + 20 * SECOND).wait() is True
    assert scene.store.pause("mail", "other", began + 20 * SECOND).wait() is False
    wanted = QueueInfo(
        name="mail", is_paused=True, paused_at=began, paused_until=began + 20 * SECOND, pause_reason="first"
    )
    assert scene.store.queues().wait() == [wanted]
    assert scene.store.pause("mail", "for good").wait() is True
    (found,) = scene.store.queues().wait()
    assert (found.paused_until, found.pause_reason) == (None, "for good")


def test_settings_are_kept_and_told_value_by_value(scene: Scene) -> None:
    store = scene.store
    assert store.settings().wait() == {}
    first = QueueSettings(concurrency=5, max_retries_running="none", retry_share=0.1)
    assert store.configure("mail", first).wait() == first
    second = store.configure("mail", QueueSettings(is_strict=False, retry_share=1 / 3), ["is_strict", "retry_share"])
    wanted = QueueSettings(concurrency=5, max_retries_running="none", retry_share=1 / 3, is_strict=False)
    assert second.wait() == wanted
    assert store.settings().wait() == {"mail": wanted}
    assert store.queues().wait() == [QueueInfo(name="mail", settings=wanted)]


def test_a_setting_that_is_taken_back_is_unset_and_not_none(scene: Scene) -> None:
    scene.store.configure("mail", QueueSettings(concurrency="none", max_retries_running=3)).wait()
    left = scene.store.configure("mail", QueueSettings(), ["concurrency"]).wait()
    assert left == QueueSettings(max_retries_running=3)
    assert scene.store.configure("mail", QueueSettings()).wait() == QueueSettings()
    assert scene.store.settings().wait() == {}
    assert scene.store.queues().wait() == []


def test_settings_of_queues_whatever_their_names_are_kept_apart(scene: Scene) -> None:
    names = ["mail", "mail:concurrency", "concurrency:mail", "", "\\0", "строка"]
    for number, name in enumerate(names, 1):
        scene.store.configure(name, QueueSettings(concurrency=number)).wait()
    said = {name: QueueSettings(concurrency=number) for number, name in enumerate(names, 1)}
    assert scene.store.settings().wait() == said


def test_settings_are_seen_by_others(scene: Scene, open_again: Callable[[Clock], Store]) -> None:
    scene.store.configure("mail", QueueSettings(concurrency=5)).wait()
    assert open_again(scene.clock).settings().wait() == {"mail": QueueSettings(concurrency=5)}


def test_a_queue_with_settings_is_not_paused(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue()
    scene.store.configure("mail", QueueSettings(concurrency=5)).wait()
    assert len(scene.fetch(worker)) == 1
