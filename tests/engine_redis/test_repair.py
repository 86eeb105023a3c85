"""What can go wrong with the lines and counters of a Redis store is found, and repaired from what the records say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis
from tests.conformance.scene import SECOND, Scene, death, failure, success
from tests.conformance.test_audit import audit, busy
from tests.servers.redis_books import audit as books
from tests.servers.redis_books import keys_of

from perdure.store.audit import Fault


def repaired(scene: Scene) -> list[Fault]:
    """Repair as the command line does: jobs first, then the counters that are still wrong."""
    found = audit(scene.store, 1000)
    jobs = [fault for fault in found if fault.kind != "counter"]
    scene.store.repair(jobs).wait()
    counters = [fault for fault in audit(scene.store, 1000) if fault.kind == "counter"]
    assert all(scene.store.repair(counters).wait())
    return found


LINES = ["waiting", "dead", "cancelled", "jobs", "ready:fresh:mail", "ready:retry:mail", "parked:mail"]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("limit", [1, 1000])
def test_jobs_of_a_line_that_was_deleted_are_found_and_put_back(
    scene: Scene, client: redis.Redis, tag: str, line: str, limit: int
) -> None:
    busy(scene)
    if line == "ready:retry:mail":
        scene.store.promote(10).wait()
    members = client.zcard(f"{tag}:{line}")
    assert members > 0
    client.delete(f"{tag}:{line}")
    found = audit(scene.store, limit)
    assert {fault.kind for fault in found} <= {"job", "counter"}
    assert sum(fault.kind == "job" for fault in found) >= members
    repaired(scene)
    assert client.zcard(f"{tag}:{line}") == members
    assert audit(scene.store, limit) == []


def test_a_running_job_that_its_worker_is_not_known_to_hold_is_given_to_it_again(
    scene: Scene, client: redis.Redis, tag: str
) -> None:
    job = scene.running()
    client.delete(f"{tag}:running:{job.worker}")
    (fault,) = repaired(scene)
    assert "not among the jobs of its worker" in fault.problem
    assert scene.store.beat(job.worker, 30 * SECOND).wait().held == (job.fence,)
    assert scene.end(job, success(job))


def test_jobs_of_workers_that_nobody_knows_any_more_are_reaped_after_a_repair(
    scene: Scene, client: redis.Redis, tag: str
) -> None:
    job = scene.running()
    client.delete(f"{tag}:workers", f"{tag}:registered", f"{tag}:vanished", f"{tag}:worker:{job.worker}")
    assert scene.store.reap(10).wait().jobs == ()
    repaired(scene)
    (lost,) = scene.store.reap(10).wait().jobs
    assert lost.id == job.id
    assert scene.end(lost, failure(lost, attempt="lost", reason="lost"))


@pytest.mark.parametrize("value", ["99", "0", "-3", "many", None])
@pytest.mark.parametrize("limit", [1, 1000])
def test_a_wrong_counter_is_counted_anew(
    scene: Scene, client: redis.Redis, tag: str, value: str | None, limit: int
) -> None:
    busy(scene)
    for field in ("ready:fresh:mail", "running:fresh:mail", "dead:retry:mail"):
        if value is None:
            client.hdel(f"{tag}:counts", field)
        else:
            client.hset(f"{tag}:counts", field, value)
    client.hset(f"{tag}:forward_counts", "pending", value or "5")
    found = audit(scene.store, limit)
    assert {fault.kind for fault in found} == {"counter"}
    assert all(scene.store.repair(found).wait())
    assert audit(scene.store, limit) == []
    assert books(client, tag) == []


def test_a_counter_that_changed_since_the_audit_is_left_as_it_is(scene: Scene, client: redis.Redis, tag: str) -> None:
    scene.enqueue()
    client.hset(f"{tag}:counts", "ready:fresh:mail", 7)
    (fault,) = audit(scene.store, 1000)
    scene.enqueue()
    assert scene.store.repair([fault]).wait() == [False]
    assert client.hget(f"{tag}:counts", "ready:fresh:mail") == b"8"
    repaired(scene)
    assert client.hget(f"{tag}:counts", "ready:fresh:mail") == b"2"


def test_counters_of_jobs_that_move_while_they_are_counted_are_not_called_wrong(scene: Scene) -> None:
    worker = scene.worker()
    for _ in range(6):
        scene.enqueue()
    found: list[Fault] = []
    cursor = None
    while True:
        audited = scene.store.audit(cursor, 2).wait()
        found += audited.faults
        cursor = audited.cursor
        for job in scene.fetch(worker, limit=1):
            scene.end(job, death(job))
        if cursor is None:
            break
    assert found == []


def test_a_key_of_another_type_is_named_and_nothing_else_is_looked_at(
    scene: Scene, client: redis.Redis, tag: str
) -> None:
    scene.enqueue()
    client.set(f"{tag}:vanished", "something else")
    (fault,) = audit(scene.store)
    assert (fault.kind, fault.name, fault.repair) == ("key", "vanished", None)
    client.delete(f"{tag}:vanished")
    assert audit(scene.store) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda client, tag, job_id: client.hset(f"{tag}:records", job_id, "ready\xff"),
        lambda client, tag, job_id: client.hset(f"{tag}:records", job_id, b"\x00\xfe garbage"),
        lambda client, tag, job_id: client.hset(f"{tag}:records", job_id, client.hget(f"{tag}:records", job_id)[:-20]),
        lambda client, tag, job_id: client.hset(
            f"{tag}:records", job_id, b"resting\xff" + client.hget(f"{tag}:records", job_id).partition(b"\xff")[2]
        ),
        lambda client, tag, job_id: client.hset(f"{tag}:records", job_id, ""),
    ],
    ids=["cut short", "garbage", "without its end", "a later state", "empty"],
)
def test_a_record_without_its_fields_stays_byte_for_byte_and_stops_no_verb(
    scene: Scene, client: redis.Redis, tag: str, damage: Callable[[redis.Redis, str, str], object]
) -> None:
    worker = scene.worker()
    bad, good, late = scene.enqueue(), scene.enqueue(), scene.enqueue(delay=SECOND)
    for job_id in (bad, late):
        damage(client, tag, job_id)
    kept = [client.hget(f"{tag}:records", job_id) for job_id in (bad, late)]
    scene.pass_time(SECOND)
    scene.store.promote(10).wait()
    (job,) = scene.fetch(worker)
    assert job.id == good
    assert scene.fetch(worker) == []
    assert scene.store.cancel([bad], "unwanted").wait() == ["not found"]
    assert scene.store.retry([bad]).wait() == ["not found"]
    assert scene.end(job, success(job))
    assert scene.store.prune(0 * SECOND, 10).wait() == 1
    assert {fault.name for fault in audit(scene.store) if fault.kind == "job"} == {bad, late}
    repaired_now = scene.store.repair([fault for fault in audit(scene.store) if fault.kind == "job"]).wait()
    assert not any(repaired_now)
    assert [client.hget(f"{tag}:records", job_id) for job_id in (bad, late)] == kept
    client.delete(*keys_of(client, tag))
