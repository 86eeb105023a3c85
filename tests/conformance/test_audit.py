"""audit and repair: what is wrong is found and mended, what is right or just moving is left as it is."""

from __future__ import annotations

import pytest
from tests.conformance.scene import SECOND, Scene, death, failure, success
from tests.servers.damage import GHOST, Damager

from perdure.model.queue.settings import QueueSettings
from perdure.store import Store
from perdure.store.audit import Fault
from perdure.store.reads import JobFilter


def audit(store: Store, limit: int = 3) -> list[Fault]:
    found: list[Fault] = []
    cursor = None
    while True:
        audited = store.audit(cursor, limit).wait()
        found += audited.faults
        cursor = audited.cursor
        if cursor is None:
            return found


def busy(scene: Scene) -> None:
    """A job in every state, and something of everything else."""
    worker = scene.worker()
    done = scene.running(worker, unique="done", args=b'"' + b"x" * 1000 + b'"')
    scene.end(done, success(done, result=b"1" * 1000))
    for sink in (None, "queue:graveyard"):
        dead = scene.running(worker)
        scene.end(dead, death(dead, sink=sink))
    scene.store.cancel([scene.enqueue()], "unwanted").wait()
    for reason in ("failed", "parked"):
        retried = scene.running(worker)
        scene.end(retried, failure(retried, reason=reason, attempt=reason))
    asked = scene.running(scene.worker("worker-2"))
    scene.store.cancel([asked.id], "unwanted").wait()
    scene.running(worker, delivery="at_most_once")
    scene.enqueue(unique="ready", priority=-3)
    scene.enqueue(delay=SECOND, queue="else")
    scene.store.pause("mail", "a reason", scene.clock.now() + SECOND).wait()
    scene.store.configure("mail", QueueSettings(concurrency=5)).wait()
    scene.schedule("queued", overlap="queue")
    scene.pass_time(10 * SECOND)
    scene.fire()
    scene.store.note("request", "a key", "a body", SECOND).wait()


@pytest.mark.parametrize("limit", [1, 4, 1000])
def test_a_store_in_which_all_is_well_has_no_faults(scene: Scene, limit: int) -> None:
    busy(scene)
    assert audit(scene.store, limit) == []


def test_an_empty_store_has_no_faults(store: Store) -> None:
    assert audit(store) == []


@pytest.mark.leaves_damage
def test_a_job_that_runs_for_no_worker_goes_back_into_its_queue_with_nothing_counted(
    scene: Scene, damager: Damager
) -> None:
    worker = scene.worker()
    job = scene.running(worker)
    damager.take_worker(job.id)
    (fault,) = [fault for fault in audit(scene.store) if fault.kind == "job"]
    assert (fault.name, fault.repair is not None) == (job.id, True)
    assert "no worker" in fault.problem
    assert scene.get(job.id).state == "running", "an audit changes nothing"
    assert scene.store.repair([fault]).wait() == [True]
    assert scene.store.repair([fault]).wait() == [False], "it is repaired already"
    ready = scene.get(job.id)
    assert (ready.state, ready.failures, ready.queue) == ("ready", 0, "mail")
    (again,) = scene.fetch(worker)
    assert again.id == job.id
    assert scene.end(again, success(again))


def test_a_job_that_runs_for_a_worker_that_is_gone_is_found_and_reaped(scene: Scene, damager: Damager) -> None:
    job = scene.running()
    damager.give_to_ghost(job.id)
    (fault,) = [fault for fault in audit(scene.store) if fault.kind == "job"]
    assert fault.name == job.id
    assert fault.repair is not None
    scene.store.repair([fault]).wait()
    (lost,) = scene.store.reap(10).wait().jobs
    assert (lost.id, lost.worker) == (job.id, GHOST)
    assert scene.end(lost, failure(lost, attempt="lost", reason="lost", state="ready", delay=0 * SECOND))
    assert audit(scene.store) == []


def test_a_job_that_has_moved_on_since_the_audit_is_left_as_it_is(scene: Scene, damager: Damager) -> None:
    worker = scene.worker()
    job = scene.running(worker)
    fault = Fault(kind="job", name=job.id, problem="it is running, and no worker has it", repair="x", detail="job")
    assert scene.store.repair([fault]).wait() == [False]
    assert scene.get(job.id) == job
    assert scene.end(job, success(job))
    assert scene.store.repair([fault]).wait() == [False]
    assert scene.get(job.id).state == "succeeded"


def test_a_fault_that_a_person_must_decide_about_is_not_repaired(scene: Scene) -> None:
    fault = Fault(kind="schedule", name="nightly", problem="it cannot be read")
    assert scene.store.repair([fault]).wait() == [False]
    assert scene.store.repair([]).wait() == []


@pytest.mark.leaves_damage
def test_what_cannot_be_read_is_found_on_every_page_size_and_never_repaired(scene: Scene, damager: Damager) -> None:
    ids = {scene.dead() for _ in range(3)}
    for job_id in ids:
        damager.unreadable_job(job_id)
    for limit in (1, 2, 100):
        found = audit(scene.store, limit)
        assert {fault.name for fault in found} == ids
        assert {fault.repair for fault in found} == {None}
    kept = [damager.record("job", job_id) for job_id in sorted(ids)]
    assert scene.store.repair(found).wait() == [False] * 3
    assert [damager.record("job", job_id) for job_id in sorted(ids)] == kept
    assert scene.store.count(JobFilter(state="dead")).wait() == 3
