"""Records that cannot be read are set aside: named in the log once, skipped by every reader, and left as they are."""

from __future__ import annotations

import logging

import pytest
from msgspec import structs
from tests.conformance.scene import SECOND, Scene, death, failure, success
from tests.servers.damage import Damager

from perdure.model.job import JobId
from perdure.model.queue.settings import QueueSettings
from perdure.store.reads import JobFilter

BAD_DOCUMENTS = ["{", "[]", "null", '{"definition": {}}', "", "\\ud800"]


def later_overlap(scene: Scene, name: str) -> str:
    """The document of a schedule as a later version might write it."""
    import msgspec

    known = scene.get_schedule(name)
    text = msgspec.json.encode(structs.replace(known, named_at=None, is_busy=False)).decode()
    assert '"overlap":"queue"' in text
    return text.replace('"overlap":"queue"', '"overlap":"merge"')


@pytest.mark.leaves_damage
def test_a_schedule_of_a_later_version_hides_no_other_and_is_left_as_it_is(scene: Scene, damager: Damager) -> None:
    later = scene.schedule("later", overlap="queue")
    scene.schedule("plain")
    damager.document(later, later_overlap(scene, later))
    kept = damager.record("schedule", later)
    scene.pass_time(10 * SECOND)
    due = scene.store.due(10).wait()
    assert [each.name for each in due.schedules] == ["plain"]
    assert scene.fire() == [scene.clock.now()]
    assert [each.name for each in scene.store.schedules(limit=10).wait()] == ["plain"]
    assert [each.name for each in scene.store.schedules(limit=1).wait()] == ["plain"]
    assert [each.name for each in scene.store.schedules(limit=10, is_descending=True).wait()] == ["plain"]
    found = scene.store.get_schedules(["later", "plain", "none"]).wait()
    assert [each is None for each in found] == [True, False, True]
    problem = scene.store.examine("schedule", later).wait()
    assert problem is not None
    assert "merge" in problem
    assert scene.store.examine("schedule", "plain").wait() is None
    assert scene.store.examine("schedule", "none").wait() is None
    assert damager.record("schedule", later) == kept
    assert scene.store.remove_schedule(later).wait()


@pytest.mark.leaves_damage
@pytest.mark.parametrize("document", BAD_DOCUMENTS)
def test_a_schedule_that_cannot_be_read_keeps_no_scheduler_busy(scene: Scene, damager: Damager, document: str) -> None:
    scene.schedule("bad")
    scene.schedule("plain", cron="@every 60s")
    damager.document("bad", document)
    scene.pass_time(10 * SECOND)
    due = scene.store.due(10).wait()
    assert due.schedules == ()
    assert due.next_at is not None
    assert due.next_at > due.now, "what cannot be read is not waited for"


@pytest.mark.leaves_damage
def test_many_schedules_that_cannot_be_read_keep_no_place_from_others(scene: Scene, damager: Damager) -> None:
    for number in range(5):
        scene.schedule(f"bad-{number}")
        damager.document(f"bad-{number}", "{")
    scene.pass_time(SECOND)
    scene.schedule("plain")
    scene.pass_time(10 * SECOND)
    assert [each.name for each in scene.store.due(2).wait().schedules] == ["plain"]
    assert [each.name for each in scene.store.schedules(limit=1).wait()] == ["plain"]


@pytest.mark.leaves_damage
def test_a_job_that_cannot_be_read_is_taken_out_of_its_queue_once_and_costs_no_other_job(
    scene: Scene, damager: Damager, caplog: pytest.LogCaptureFixture
) -> None:
    worker = scene.worker()
    ids = [scene.enqueue(unique=str(number)) for number in range(5)]
    damager.unreadable_job(ids[1])
    with caplog.at_level(logging.WARNING, "perdure"):
        assert [job.id for job in scene.fetch(worker)] == [ids[0], *ids[2:]]
        assert scene.fetch(worker) == []
        assert scene.store.get([ids[1]]).wait() == [None]
    named = [record.getMessage() for record in caplog.records if ids[1] in record.getMessage()]
    assert len(named) == 1, "named once"
    assert scene.store.beat(worker, 30 * SECOND).wait().held == tuple((job_id, 1) for job_id in [ids[0], *ids[2:]])
    assert [queue.running for queue in scene.store.queues().wait()] == [4]
    assert scene.store.examine("job", ids[1]).wait()
    assert scene.enqueue(unique="1") != ids[1], "it holds its unique key no longer"


@pytest.mark.leaves_damage
def test_a_job_that_cannot_be_read_is_in_no_list_and_hides_no_other(scene: Scene, damager: Damager) -> None:
    ids = [scene.dead() for _ in range(4)]
    for number in (0, 3):
        damager.unreadable_job(ids[number])
    kept = [damager.record("job", job_id) for job_id in ids]
    readable = [ids[2], ids[1]]
    assert [job.id for job in scene.store.list(JobFilter(), limit=10).wait()] == readable
    assert [job.id for job in scene.store.list(JobFilter(state="dead"), limit=10).wait()] == readable
    assert [job.id for job in scene.store.list(JobFilter(), limit=2).wait()] == readable, "a page is full"
    assert [job.id for job in scene.store.list(JobFilter(), limit=1).wait()] == readable[:1]
    assert [job.id for job in scene.store.list(JobFilter(error="broke"), limit=10).wait()][-1] == ids[1]
    assert sum(group.count for group in scene.store.groups(JobFilter(state="dead"), 10).wait()) >= 2
    assert len(scene.store.recent("dead", 10).wait()) >= 2
    assert scene.store.count(JobFilter(state="dead")).wait() == 4
    assert [queue.dead for queue in scene.store.queues().wait()] == [4]
    assert scene.store.prune(0 * SECOND, 10).wait() == 0
    assert [damager.record("job", job_id) for job_id in ids] == kept


@pytest.mark.leaves_damage
def test_a_running_job_that_cannot_be_read_is_not_reaped_over_and_over(scene: Scene, damager: Damager) -> None:
    worker = scene.worker()
    scene.enqueue()
    scene.enqueue()
    one, other = scene.fetch(worker)
    damager.unreadable_job(one.id)
    scene.pass_time(60 * SECOND)
    reaped = scene.store.reap(10).wait()
    assert [job.id for job in reaped.jobs] == [other.id]
    assert scene.end(other, failure(other, attempt="lost", reason="lost"))
    assert scene.store.reap(10).wait().jobs == ()
    assert [queue.running for queue in scene.store.queues().wait()] == [0]


@pytest.mark.leaves_damage
def test_a_job_that_was_set_aside_is_put_back_when_it_can_be_read_again(scene: Scene, damager: Damager) -> None:
    worker = scene.worker()
    job_id = scene.enqueue(priority=7)
    damager.unreadable_job(job_id)
    assert scene.fetch(worker) == []
    assert faults(scene) == [("job", job_id, None)]
    damager.readable_job(job_id)
    (fault,) = all_faults(scene)
    assert fault.repair is not None
    assert scene.store.repair([fault]).wait() == [True]
    (job,) = scene.fetch(worker)
    assert (job.id, job.attempt, job.priority) == (job_id, 1, 7), "no attempt was counted"
    assert scene.end(job, success(job))
    assert all_faults(scene) == []


@pytest.mark.leaves_damage
def test_a_worker_a_setting_and_an_attempt_that_cannot_be_read_hide_no_other(scene: Scene, damager: Damager) -> None:
    for name in ("one", "two"):
        scene.worker(name)
    scene.store.configure("mail", QueueSettings(concurrency=3, retry_share=0.5)).wait()
    scene.store.configure("bulk", QueueSettings(concurrency=7)).wait()
    job = scene.running(scene.worker("one"))
    assert scene.end(job, failure(job, state="ready", delay=0 * SECOND))
    damager.unreadable_worker("two")
    damager.unreadable_setting("mail")
    damager.unreadable_attempt(job.id)
    kept = [damager.record(*what) for what in (("worker", "two"), ("setting", "mail"), ("attempt", job.id))]
    assert [worker.id for worker in scene.store.workers().wait()] == ["one"]
    said = scene.store.settings().wait()
    assert said["bulk"] == QueueSettings(concurrency=7)
    assert said["mail"] == QueueSettings(retry_share=0.5)
    assert {queue.name for queue in scene.store.queues().wait()} == {"mail", "bulk"}
    assert scene.store.history(job.id, 10).wait() == []
    assert scene.get(job.id).state == "ready"
    found = {(kind, what) for kind, _, what in faults(scene)}
    assert found == {("worker", None), ("setting", None), ("attempt", None)}
    assert [damager.record(*what) for what in (("worker", "two"), ("setting", "mail"), ("attempt", job.id))] == kept
    assert scene.store.beat(scene.worker("two"), 30 * SECOND).wait().held == ()


def test_a_retry_policy_that_cannot_be_read_is_named_and_the_job_runs_all_the_same(scene: Scene) -> None:
    bad, _ = scene.enqueue(retry="sometimes("), scene.enqueue(retry="exponential(2s, later=5)")
    (fault,) = all_faults(scene)
    assert (fault.kind, fault.name, fault.repair) == ("policy", bad, None)
    assert len(scene.fetch(scene.worker())) == 2


@pytest.mark.leaves_damage
def test_no_value_of_a_jobs_record_stops_a_verb_or_costs_another_job(scene: Scene, damager: Damager) -> None:
    for field, value in damager.ways:
        worker = scene.worker()
        bad, good = scene.enqueue(), scene.enqueue()
        late = scene.enqueue(delay=SECOND)
        for job_id in (bad, late):
            damager.spoil(job_id, field, value)
        scene.pass_time(SECOND)
        where = f"{field} = {value!r}"
        scene.store.promote(100).wait()
        claimed = {job.id: job for job in scene.fetch(worker)}
        assert good in claimed, where
        assert scene.end(claimed[good], success(claimed[good])), where
        use_reads(scene, bad)
        assert not {bad, late} & {job.id for job in scene.fetch(worker)}, f"{where}: handed out again"
        for job_id in (bad, late):
            if job_id in claimed:
                scene.end(claimed[job_id], death(claimed[job_id]))
        scene.store.cancel([bad, late], "unwanted").wait()
        scene.store.retry([bad, late]).wait()
        for job in scene.fetch(worker):
            scene.end(job, success(job))
        scene.store.prune(0 * SECOND, 100).wait()
    scene.pass_time(60 * SECOND)
    scene.store.reap(100).wait()


def use_reads(scene: Scene, job_id: JobId) -> None:
    """Everything that reads jobs."""
    store = scene.store
    store.get([job_id]).wait()
    store.history(job_id, 10).wait()
    store.queues().wait()
    for state in (None, "ready", "waiting", "dead", "running"):
        where = JobFilter(state=state)
        store.list(where, limit=10).wait()
        store.list(JobFilter(state=state, error="x"), limit=10).wait()
        store.count(where).wait()
    store.groups(JobFilter(), 10).wait()
    for state in ("succeeded", "dead", "waiting"):
        store.recent(state, 10).wait()
    store.forward(["mail"], 10, SECOND).wait()
    store.workers().wait()
    all_faults(scene)


def all_faults(scene: Scene) -> list:
    found, cursor = [], None
    while True:
        audited = scene.store.audit(cursor, 2).wait()
        found += audited.faults
        cursor = audited.cursor
        if cursor is None:
            return found


def faults(scene: Scene) -> list[tuple[str, str, str | None]]:
    return [(fault.kind, fault.name, fault.repair) for fault in all_faults(scene)]
