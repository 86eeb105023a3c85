"""wakeups: hints after what makes jobs ready, due or unwanted; from others too, where the engine can tell."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.conformance.scene import SECOND, Scene, failure

from perdure.store import Store
from perdure.system.clock import Clock

PATIENCE = 60.0


class Listener:
    """A subscriber that can be waited for."""

    def __init__(self, store: Store) -> None:
        self._heard = threading.Event()
        self.stop = store.wakeups.subscribe(self._heard.set)

    def hears(self, what: Callable[[], Any]) -> bool:
        self._heard.clear()
        what()
        return self._heard.wait(PATIENCE)


@pytest.fixture
def listener(scene: Scene) -> Iterator[Listener]:
    made = Listener(scene.store)
    yield made
    made.stop()


def test_an_enqueue_is_heard(scene: Scene, listener: Listener) -> None:
    assert listener.hears(lambda: scene.enqueue())


def test_a_delayed_job_is_heard_so_that_the_next_due_time_is_known(scene: Scene, listener: Listener) -> None:
    assert listener.hears(lambda: scene.enqueue(delay=SECOND))


def test_a_retry_that_follows_an_attempt_is_heard(scene: Scene, listener: Listener) -> None:
    job = scene.running()
    assert listener.hears(lambda: scene.end(job, failure(job)))


def test_a_promote_is_heard(scene: Scene, listener: Listener) -> None:
    scene.enqueue(delay=SECOND)
    scene.pass_time(SECOND)
    assert listener.hears(lambda: scene.store.promote(1).wait())


def test_a_replay_is_heard(scene: Scene, listener: Listener) -> None:
    job_id = scene.dead()
    assert listener.hears(lambda: scene.store.retry([job_id]).wait())


def test_a_request_to_cancel_is_heard(scene: Scene, listener: Listener) -> None:
    job = scene.running()
    assert listener.hears(lambda: scene.store.cancel([job.id], "cancelled").wait())


def test_a_resume_is_heard(scene: Scene, listener: Listener) -> None:
    scene.store.pause("mail", None).wait()
    assert listener.hears(lambda: scene.store.resume("mail").wait())


def test_every_enqueue_is_heard_however_fast_they_come(scene: Scene, listener: Listener) -> None:
    for _ in range(20):
        assert listener.hears(lambda: scene.enqueue())


def test_every_subscriber_hears_and_one_that_breaks_harms_nobody(scene: Scene) -> None:
    def broken() -> None:
        raise RuntimeError

    stops = [scene.store.wakeups.subscribe(broken)]
    listeners = [Listener(scene.store) for _ in range(2)]
    for listener in listeners:
        assert listener.hears(lambda: scene.enqueue())
    for stop in [*stops, *(listener.stop for listener in listeners)]:
        stop()


def test_who_stopped_listening_hears_nothing(scene: Scene) -> None:
    heard: list[str] = []
    stop = scene.store.wakeups.subscribe(lambda: heard.append("stopped"))
    stop()
    other = Listener(scene.store)
    assert other.hears(lambda: scene.enqueue())
    # What was on its way before is no matter; from now on there is nothing more.
    heard.clear()
    assert other.hears(lambda: scene.enqueue())
    other.stop()
    assert heard == []


def test_an_enqueue_elsewhere_is_heard(scene: Scene, listener: Listener, open_again: Callable[[Clock], Store]) -> None:
    other = open_again(scene.clock)
    assert listener.hears(lambda: other.enqueue([scene.new_job()]).wait())
    assert listener.hears(lambda: other.enqueue([scene.new_job(delay=SECOND)]).wait())


def test_a_request_to_cancel_from_elsewhere_is_heard(
    scene: Scene, listener: Listener, open_again: Callable[[Clock], Store]
) -> None:
    job = scene.running()
    other = open_again(scene.clock)
    assert listener.hears(lambda: other.cancel([job.id], "cancelled").wait())


def test_a_job_committed_by_a_caller_is_heard(scene: Scene, listener: Listener, connection: Any) -> None:
    scene.store.enqueue_within(connection, [scene.new_job()])
    assert listener.hears(connection.commit)
