"""change: waiting and ready jobs get another time, priority, queue or limit; what has started is left as it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from msgspec import structs
from tests.conformance.scene import SECOND, Scene, death, failure, success
from tests.conformance.test_wakeups import Listener

from perdure.model.change import Change
from perdure.model.job import Job, JobId
from perdure.store import Store
from perdure.store.reads import JobFilter
from perdure.system.clock import Clock

HOUR = timedelta(hours=1)


@pytest.fixture
def listener(scene: Scene) -> Iterator[Listener]:
    made = Listener(scene.store)
    yield made
    made.stop()


def change(scene: Scene, job_id: JobId, **changes: object) -> str:
    (answer,) = scene.store.change([job_id], Change(**changes)).wait()
    return answer


def changed(scene: Scene, job_id: JobId, **changes: object) -> Job:
    """The job afterwards, which differs in nothing but what is expected to."""
    before = scene.get(job_id)
    assert change(scene, job_id, **changes) == "changed"
    after = scene.get(job_id)
    named = {*changes, *(["run_at", "state"] if {"run_at", "delay"} & set(changes) else []), "queue", "origin"}
    same = {name: getattr(before, name) for name in named if name not in ("delay",)}
    assert structs.replace(after, **same) == before
    return after


def test_a_waiting_job_gets_another_time(scene: Scene) -> None:
    job_id = scene.enqueue(delay=SECOND)
    due = scene.clock.now() + HOUR
    job = changed(scene, job_id, run_at=due)
    assert (job.state, job.run_at) == ("waiting", due)
    scene.pass_time(HOUR - SECOND)
    assert scene.store.promote(10).wait().count == 0
    scene.pass_time(SECOND)
    assert scene.store.promote(10).wait().count == 1


def test_a_waiting_job_gets_other_arguments_and_another_delivery(scene: Scene) -> None:
    job_id = scene.enqueue(delay=SECOND, args=b'{"args":[1]}')
    for args in (b'{"args":["' + b"x" * 5000 + b'"]}', b'{"args":[2]}', b'{"args":["' + b"y" * 5000 + b'"]}'):
        assert changed(scene, job_id, args=args).args == args
    assert changed(scene, job_id, delivery="at_most_once").delivery == "at_most_once"
    assert changed(scene, job_id, delivery="at_least_once", args=b"{}").delivery == "at_least_once"
    scene.pass_time(SECOND)
    scene.store.promote(10).wait()
    (job,) = scene.fetch(scene.worker())
    assert (job.args, job.delivery) == (b"{}", "at_least_once")
    assert change(scene, job_id, args=b"[]") == "wrong state"
    assert scene.get(job_id).args == b"{}"


def test_a_delay_counts_from_the_change_by_the_stores_clock(scene: Scene) -> None:
    job_id = scene.enqueue(delay=HOUR)
    scene.pass_time(10 * SECOND)
    assert changed(scene, job_id, delay=5 * SECOND).run_at == scene.clock.now() + 5 * SECOND


def test_a_job_whose_time_has_come_is_ready_at_once(scene: Scene) -> None:
    worker = scene.worker()
    ids = [scene.enqueue(delay=HOUR) for _ in range(2)]
    assert changed(scene, ids[0], delay=0 * SECOND).state == "ready"
    past = scene.clock.now() - HOUR
    assert (changed(scene, ids[1], run_at=past).state, scene.get(ids[1]).run_at) == ("ready", past)
    assert [job.id for job in scene.fetch(worker)] == [ids[1], ids[0]]


# Proves [INV-16].
def test_a_ready_job_that_is_put_off_is_not_claimed_before_its_time(scene: Scene) -> None:
    worker = scene.worker(lease=2 * HOUR)
    job_id = scene.enqueue()
    assert changed(scene, job_id, delay=HOUR).state == "waiting"
    assert scene.fetch(worker) == []
    scene.pass_time(HOUR)
    assert scene.store.promote(10).wait().count == 1
    assert [job.id for job in scene.fetch(worker)] == [job_id]


def test_the_next_due_time_is_known_after_a_change(scene: Scene) -> None:
    early, late = scene.enqueue(delay=SECOND), scene.enqueue(delay=HOUR)
    change(scene, early, delay=2 * HOUR)
    assert scene.store.promote(10).wait().next_run_at == scene.get(late).run_at
    change(scene, late, delay=5 * SECOND)
    assert scene.store.promote(10).wait().next_run_at == scene.clock.now() + 5 * SECOND


def test_priority_decides_who_is_claimed_first_after_the_change(scene: Scene) -> None:
    worker = scene.worker()
    first, second, third = (scene.enqueue(priority=number) for number in (0, 5, -5))
    assert changed(scene, third, priority=100).priority == 100
    assert changed(scene, second, priority=0).priority == 0
    assert [job.id for job in scene.fetch(worker)] == [third, first, second]


def test_the_priority_of_a_waiting_job_holds_when_it_is_ready(scene: Scene) -> None:
    worker = scene.worker()
    late, early = scene.enqueue(delay=2 * SECOND), scene.enqueue(delay=SECOND)
    job = changed(scene, late, priority=1)
    assert job.state == "waiting"
    scene.pass_time(2 * SECOND)
    scene.store.promote(10).wait()
    assert [job.id for job in scene.fetch(worker)] == [late, early]


def test_time_and_priority_change_together(scene: Scene) -> None:
    job = changed(scene, scene.enqueue(), delay=HOUR, priority=-7, max_attempts=9)
    assert (job.state, job.run_at, job.priority) == ("waiting", scene.clock.now() + HOUR, -7)
    assert job.max_attempts == 9


@pytest.mark.parametrize("delay", [0 * SECOND, HOUR])
def test_a_job_moves_to_another_queue_and_is_counted_there(scene: Scene, delay: timedelta) -> None:
    job_id = scene.enqueue(delay=delay)
    job = changed(scene, job_id, queue="letters")
    assert (job.queue, job.origin) == ("letters", None)
    (queue,) = scene.store.queues().wait()
    assert queue.name == "letters"
    scene.pass_time(delay)
    scene.store.promote(10).wait()
    worker = scene.worker()
    assert scene.fetch(worker) == []
    assert [found.id for found in scene.fetch(worker, queue="letters")] == [job_id]


def test_a_job_in_a_retry_queue_belongs_to_where_it_is_moved(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, failure(job, queue="mail-retries"))
    kept = changed(scene, job.id, queue="mail-retries")
    assert (kept.queue, kept.origin) == ("mail-retries", "mail"), "it is there already"
    moved = changed(scene, job.id, queue="letters")
    assert (moved.queue, moved.origin, moved.lane) == ("letters", None, "retry")


def test_a_limit_is_given_and_taken_back(scene: Scene) -> None:
    job_id = scene.enqueue(max_attempts=3)
    assert changed(scene, job_id, priority=1).max_attempts == 3
    assert changed(scene, job_id, max_attempts=7).max_attempts == 7
    assert changed(scene, job_id, max_attempts=None).max_attempts is None


def test_a_job_that_waits_for_its_retry_keeps_what_it_has_behind_it(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, failure(job, delay=HOUR))
    kept = changed(scene, job.id, delay=0 * SECOND, priority=3)
    assert (kept.state, kept.lane, kept.failures, kept.attempt) == ("ready", "retry", 1, 1)
    (again,) = scene.fetch(scene.worker())
    assert (again.id, again.attempt, again.priority) == (job.id, 2, 3)


def test_a_change_that_names_nothing_changes_nothing(scene: Scene) -> None:
    for delay in (0 * SECOND, HOUR):
        changed(scene, scene.enqueue(delay=delay))


def test_a_change_to_what_is_so_already_is_a_change(scene: Scene) -> None:
    job_id = scene.enqueue(priority=4, delay=HOUR)
    before = scene.get(job_id)
    same = {"priority": 4, "run_at": before.run_at, "queue": "mail", "max_attempts": None}
    assert change(scene, job_id, **same) == "changed"
    assert scene.get(job_id) == before


# Proves [INV-23].
@pytest.mark.parametrize("state", ["running", "succeeded", "dead", "cancelled"])
def test_what_has_started_or_ended_is_left_as_it_is(scene: Scene, state: str) -> None:
    job = scene.running()
    if state in ("succeeded", "dead"):
        scene.end(job, success(job) if state == "succeeded" else death(job))
    elif state == "cancelled":
        job_id = scene.enqueue()
        scene.store.cancel([job_id], "cancelled").wait()
        job = scene.get(job_id)
    before = scene.get(job.id)
    assert before.state == state
    assert change(scene, job.id, priority=9, delay=HOUR, queue="letters", max_attempts=1) == "wrong state"
    assert scene.get(job.id) == before


def test_each_of_several_is_answered_in_order(scene: Scene) -> None:
    running = scene.running()
    one, two = scene.enqueue(), scene.enqueue(delay=HOUR)
    ids = [two, JobId("nobody"), running.id, one, two, scene.new_id()]
    answers = scene.store.change(ids, Change(priority=2)).wait()
    assert answers == ["changed", "not found", "wrong state", "changed", "changed", "not found"]
    assert [scene.get(job_id).priority for job_id in (one, two)] == [2, 2]
    assert scene.store.change([], Change(priority=2)).wait() == []


def test_the_unique_key_is_kept_over_a_change(scene: Scene) -> None:
    job_id = scene.enqueue(unique="7")
    change(scene, job_id, queue="letters", delay=HOUR)
    assert scene.enqueue(unique="7") == job_id


def test_a_schedule_is_busy_with_a_job_that_was_put_off(scene: Scene) -> None:
    scene.schedule()
    scene.pass_time(10 * SECOND)
    (tick,) = scene.fire()
    (job,) = [job for job in scene.store.list(JobFilter(), limit=10).wait() if job.tick_at == tick]
    change(scene, job.id, delay=HOUR)
    scene.pass_time(10 * SECOND)
    assert scene.fire() == []


def test_a_change_is_heard(scene: Scene, listener: Listener) -> None:
    job_id = scene.enqueue(delay=HOUR)
    assert listener.hears(lambda: change(scene, job_id, delay=0 * SECOND))
    assert listener.hears(lambda: change(scene, job_id, delay=SECOND))


def test_a_change_elsewhere_is_heard(scene: Scene, listener: Listener, open_again: Callable[[Clock], Store]) -> None:
    job_id = scene.enqueue(delay=2 * HOUR)
    other = open_again(scene.clock)
    assert listener.hears(lambda: other.change([job_id], Change(delay=HOUR)).wait())
    assert listener.hears(lambda: other.change([job_id], Change(delay=0 * SECOND)).wait())


# Proves [INV-23].
def test_of_a_change_and_a_claim_at_the_same_moment_one_comes_first(scene: Scene) -> None:
    """Whoever claims a job has it as it was changed, or the change is told that it came too late."""
    worker = scene.worker(lease=HOUR)
    ids = [scene.enqueue() for _ in range(120)]
    claimed: dict[JobId, Job] = {}
    answers: dict[JobId, str] = {}
    both = threading.Barrier(2)

    def claim() -> None:
        both.wait(30)
        while jobs := scene.fetch(worker, limit=5):
            claimed.update((job.id, job) for job in jobs)

    def move() -> None:
        both.wait(30)
        for number, job_id in enumerate(reversed(ids)):
            answers[job_id] = change(scene, job_id, **({"priority": 9} if number % 2 else {"delay": HOUR}))

    threads = [threading.Thread(target=what) for what in (claim, move)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    # What was locked for the moment by a change may have been passed over.
    claimed.update((job.id, job) for job in scene.fetch(worker, limit=1000, fresh=1000))
    assert set(answers.values()) <= {"changed", "wrong state"}
    for number, job_id in enumerate(reversed(ids)):
        is_changed = answers[job_id] == "changed"
        if number % 2:
            assert claimed[job_id].priority == (9 if is_changed else 0)
        else:
            assert (job_id in claimed) is not is_changed
            assert scene.get(job_id).state == ("waiting" if is_changed else "running")
