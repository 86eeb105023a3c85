"""promote: waiting jobs that are due become ready, and the next due time comes back."""

from __future__ import annotations

from datetime import timedelta

from tests.conformance.scene import SECOND, Scene


# Proves [INV-16].
def test_a_job_becomes_ready_exactly_when_it_is_due(scene: Scene) -> None:
    job_id = scene.enqueue(delay=10 * SECOND)
    scene.pass_time(10 * SECOND - timedelta(microseconds=1))
    assert scene.store.promote(10).wait().count == 0
    assert scene.get(job_id).state == "waiting"
    scene.pass_time(timedelta(microseconds=1))
    assert scene.store.promote(10).wait().count == 1
    assert scene.get(job_id).state == "ready"


def test_the_run_at_of_a_promoted_job_stays(scene: Scene) -> None:
    job_id = scene.enqueue(delay=10 * SECOND)
    due = scene.clock.now() + 10 * SECOND
    scene.pass_time(60 * SECOND)
    scene.store.promote(10).wait()
    assert scene.get(job_id).run_at == due


def test_the_longest_due_come_first_up_to_the_limit(scene: Scene) -> None:
    ids = [scene.enqueue(delay=delay * SECOND) for delay in (3, 1, 2, 4)]
    scene.pass_time(60 * SECOND)
    promoted = scene.store.promote(2).wait()
    assert promoted.count == 2
    assert [scene.get(job_id).state for job_id in ids] == ["waiting", "ready", "ready", "waiting"]


def test_the_next_due_time_is_told(scene: Scene) -> None:
    now = scene.clock.now()
    scene.enqueue(delay=30 * SECOND)
    scene.enqueue(delay=20 * SECOND)
    assert scene.store.promote(10).wait().next_run_at == now + 20 * SECOND
    scene.pass_time(25 * SECOND)
    assert scene.store.promote(10).wait().next_run_at == now + 30 * SECOND


def test_with_nothing_waiting_there_is_no_next_due_time(scene: Scene) -> None:
    scene.enqueue()
    promoted = scene.store.promote(10).wait()
    assert (promoted.count, promoted.next_run_at) == (0, None)


def test_what_the_limit_left_over_is_due_in_the_past(scene: Scene) -> None:
    scene.enqueue(delay=SECOND)
    due = scene.clock.now() + 2 * SECOND
    scene.enqueue(delay=2 * SECOND)
    scene.pass_time(60 * SECOND)
    promoted = scene.store.promote(1).wait()
    assert (promoted.count, promoted.next_run_at) == (1, due)


def test_only_waiting_jobs_are_promoted(scene: Scene) -> None:
    job = scene.running()
    cancelled = scene.enqueue(delay=SECOND)
    scene.store.cancel([cancelled], "cancelled").wait()
    scene.pass_time(SECOND)
    assert scene.store.promote(10).wait().count == 0
    assert scene.get(job.id).state == "running"
    assert scene.get(cancelled).state == "cancelled"
