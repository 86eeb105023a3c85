"""`perdure doctor` names records that cannot be read, and `--repair` mends jobs and counters, as a dry run at first."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.admin.scene import Scene
from tests.cli.conftest import Runner
from tests.conformance.scene import Scene as StoreScene
from tests.conformance.scene import success
from tests.servers import redis
from tests.servers.damage import RedisDamager

from perdure.cli import faults
from perdure.engines.opener import open_store
from perdure.system.clock import SystemClock


def damage(scene: Scene, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(scene.url.removeprefix("sqlite:///"))) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        assert connection.execute(statement, values).rowcount == 1
        connection.commit()


def state_of(scene: Scene, job_id: str) -> str:
    with closing(sqlite3.connect(scene.url.removeprefix("sqlite:///"))) as connection:
        return connection.execute("SELECT state FROM perdure_jobs WHERE id = ?", (job_id,)).fetchone()[0]


def records(perdure: Runner, *args: str) -> tuple[int, dict[str, Any]]:
    result = perdure("doctor", "--json", *args)
    assert result.exit_code in (faults.OK, faults.FAILED), result.output
    return result.exit_code, json.loads(result.stdout)["records"]


def test_a_store_in_which_all_is_well_has_no_faults(scene: Scene, perdure: Runner) -> None:
    scene.enqueue()
    code, found = records(perdure)
    assert (code, found) == (faults.OK, {"faults": [], "repaired": [], "is_whole": True})
    assert "every job is where its record says" in perdure("doctor").stdout


def test_a_record_that_cannot_be_read_is_named_with_what_to_do_and_left_as_it_is(scene: Scene, perdure: Runner) -> None:
    job_id = scene.enqueue()
    damage(scene, "UPDATE perdure_jobs SET error = '{' WHERE id = ?", job_id)
    code, found = records(perdure)
    assert code == faults.FAILED
    [fault] = found["faults"]
    assert (fault["kind"], fault["name"], fault["repair"]) == ("job", job_id, None)
    assert "cannot be read" in fault["problem"]
    assert "upgrade" in fault["remedy"]
    shown = perdure("doctor")
    assert shown.exit_code == faults.FAILED
    assert job_id in shown.stdout.replace("\n", "")
    assert records(perdure, "--repair", "--yes")[0] == faults.FAILED, "nobody but a person can mend it"
    assert state_of(scene, job_id) == "ready"


def test_a_damaged_job_is_told_from_one_that_does_not_exist(scene: Scene, perdure: Runner) -> None:
    job_id, other = scene.enqueue(), scene.enqueue()
    damage(scene, "UPDATE perdure_jobs SET error = '{' WHERE id = ?", job_id)
    shown = perdure("jobs", "show", job_id)
    assert shown.exit_code == faults.REFUSED
    assert "cannot be read" in shown.stderr
    assert "Traceback" not in shown.output
    listed = perdure("jobs", "ls")
    assert listed.exit_code == 0
    assert other in listed.stdout
    assert perdure("stats").exit_code == 0


def test_a_damaged_schedule_is_told_from_one_that_does_not_exist_and_can_be_removed(
    scene: Scene, perdure: Runner
) -> None:
    assert perdure("schedules", "add", "nightly", "send", "--cron", "@daily").exit_code == 0
    damage(scene, "UPDATE perdure_schedules SET document = '{' WHERE name = 'nightly'")
    for command in (["show", "nightly"], ["pause", "nightly"], ["add", "nightly", "send", "--cron", "@hourly"]):
        shown = perdure("schedules", *command)
        assert shown.exit_code == faults.REFUSED, command
        assert "cannot be read" in shown.stderr
    assert perdure("schedules", "ls").exit_code == 0
    code, found = records(perdure)
    assert (code, [fault["kind"] for fault in found["faults"]]) == (faults.FAILED, ["schedule"])
    assert perdure("schedules", "rm", "nightly", "--yes").exit_code == 0
    assert records(perdure)[0] == faults.OK


def test_repair_is_a_dry_run_unless_told_otherwise(scene: Scene, perdure: Runner) -> None:
    scene.enqueue()
    (job,) = scene.run()
    damage(scene, "UPDATE perdure_jobs SET worker = NULL WHERE id = ?", job.id)
    code, found = records(perdure, "--repair")
    assert (code, found["repaired"]) == (faults.FAILED, [])
    [fault] = found["faults"]
    assert (fault["name"], fault["repair"]) == (job.id, "put it back into its queue")
    assert "--repair --yes" in perdure("doctor", "--repair").stdout.replace("\n", " ")
    assert state_of(scene, job.id) == "running", "nothing was changed"
    _, found = records(perdure, "--repair", "--yes")
    assert found["faults"] == []
    assert [fault["name"] for fault in found["repaired"]] == [job.id]
    assert state_of(scene, job.id) == "ready"


def test_jobs_of_a_worker_that_is_gone_are_put_back(scene: Scene, perdure: Runner) -> None:
    scene.enqueue()
    (job,) = scene.run()
    damage(scene, "UPDATE perdure_jobs SET worker = 'ghost' WHERE id = ?", job.id)
    _, found = records(perdure, "--repair", "--yes")
    assert [fault["name"] for fault in found["repaired"]] == [job.id]
    assert state_of(scene, job.id) in ("ready", "waiting"), "decided as for any job of a vanished worker"


def test_yes_alone_is_refused(scene: Scene, perdure: Runner) -> None:
    result = perdure("doctor", "--yes")
    assert result.exit_code == 2
    assert "--repair" in result.stderr


@pytest.fixture
def on_redis(tmp_path: Path) -> Iterator[tuple[StoreScene, RedisDamager, Runner]]:
    url = redis.make_url(tmp_path)
    damager = RedisDamager(tmp_path)
    with closing(open_store(url, clock=SystemClock())) as store:
        yield StoreScene(store, SystemClock()), damager, Runner(url, tmp_path)
    damager.close()


def test_jobs_in_no_queue_and_wrong_counters_are_repaired_on_redis(
    on_redis: tuple[StoreScene, RedisDamager, Runner],
) -> None:
    scene, damager, perdure = on_redis
    worker = scene.worker(lease=timedelta(hours=1))
    ids = [scene.enqueue() for _ in range(3)]
    damager.client.delete(damager.key("ready:fresh:mail"))
    damager.client.hset(damager.key("counts"), "ready:fresh:mail", 77)
    code, found = records(perdure, "--repair")
    assert code == faults.FAILED
    assert {fault["kind"] for fault in found["faults"]} == {"job", "counter"}
    assert scene.fetch(worker) == []
    code, found = records(perdure, "--repair", "--yes")
    assert found["faults"] == []
    assert len(found["repaired"]) == 4
    jobs = scene.fetch(worker)
    assert [job.id for job in jobs] == ids
    assert all(scene.end(job, success(job)) for job in jobs)
    assert redis.find_damage(perdure.directory) == []


def test_a_key_of_another_type_is_named_on_redis(on_redis: tuple[StoreScene, RedisDamager, Runner]) -> None:
    scene, damager, perdure = on_redis
    scene.enqueue()
    damager.client.set(damager.key("workers"), "something else")
    result = perdure("doctor")
    assert result.exit_code == faults.FAILED
    assert "Traceback" not in result.output
    assert "key workers" in result.stdout.replace("\n", " ")
    damager.client.delete(damager.key("workers"))
