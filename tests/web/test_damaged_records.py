"""The API beside records that cannot be read: a clear problem for that record, and everything else as usual."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.conftest import Engine
from tests.conformance.scene import Scene
from tests.servers.damage import Damager
from tests.web.reach import Reach, expect

from perdure import App


@pytest.fixture
def damager(engine: Engine, app: App, tmp_path: Path) -> Iterator[Damager]:
    if engine.make_damager is None:
        pytest.skip("the store is private to whoever opened it")
    assert app.store is not None
    made = engine.make_damager(tmp_path)
    yield made
    made.close()


async def test_a_job_that_cannot_be_read_is_a_problem_of_its_own(reach: Reach, damager: Damager) -> None:
    ids = [await reach.enqueue(args=["x"]) for _ in range(3)]
    damager.unreadable_job(ids[1])
    problem = expect(await reach.ask("GET", f"jobs/{ids[1]}"), 409)
    assert (problem["code"], problem["error"]) == ("refused", "RecordDamaged")
    assert "cannot be read" in problem["detail"]
    assert {job["id"] for job in (await reach.get("jobs"))["jobs"]} == {ids[0], ids[2]}
    for path in ("queues", "workers", "stats", "schedules", "dead-letters"):
        assert (await reach.ask("GET", path)).status_code in (200, 404), path
    expect(await reach.ask("POST", f"jobs/{ids[1]}/cancel"), 409)


async def test_a_schedule_that_cannot_be_read_is_a_problem_of_its_own(
    reach: Reach, scene: Scene, damager: Damager
) -> None:
    for name in ("bad", "good"):
        scene.schedule(name)
    damager.document("bad", '{"overlap": "merge"}')
    problem = expect(await reach.ask("GET", "schedules/bad"), 409)
    assert problem["error"] == "RecordDamaged"
    assert [each["name"] for each in (await reach.get("schedules"))["schedules"]] == ["good"]
    await reach.get("jobs")


async def test_a_note_that_cannot_be_read_refuses_its_key_only(reach: Reach, damager: Damager) -> None:
    body = {"task": "send", "args": ["x"]}
    expect(await reach.ask("POST", "jobs", json=body, headers={"Idempotency-Key": "one"}), 201)
    stored = damager.record("note", "enqueue")
    for key in _keys(stored):
        damager.note("enqueue", key, "{")
    problem = expect(await reach.ask("POST", "jobs", json=body, headers={"Idempotency-Key": "one"}), 409)
    assert problem["error"] == "RecordDamaged"
    expect(await reach.ask("POST", "jobs", json=body, headers={"Idempotency-Key": "two"}), 201)


def _keys(stored: object) -> list[str]:
    """The keys of the notes that were found, as either kind of engine shows them."""
    if isinstance(stored, dict):
        return [name.decode().partition(":")[2] for name in stored]
    assert isinstance(stored, list)
    return [row[1] for row in stored]
