"""PATCH of a job: what has not started is changed, and everything else is left as it is and said so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.conftest import Engine
from tests.conformance.scene import Scene, death, success
from tests.web.reach import Reach, expect

UNKNOWN = "00000000-0000-7000-8000-000000000000"
CLASSIC = {"schedule": "@every 1h", "api": "https://example.com/hook"}


async def patch(reach: Reach, job_id: str, body: Any, status: int = 200) -> Any:
    return expect(await reach.ask("PATCH", f"jobs/{job_id}", json=body), status)


async def test_a_job_is_changed_in_what_is_named_and_shown(engine: Engine, reach: Reach) -> None:
    job_id = await reach.enqueue(delay="1h", maxAttempts=3)
    before = await reach.get(f"jobs/{job_id}")
    body = {"runAt": "2040-05-01T12:00:00+02:00", "priority": 50, "queue": "other", "maxRetries": 8}
    changed = await patch(reach, job_id.upper(), body)
    named = {"run_at": "2040-05-01T10:00:00Z", "priority": 50, "queue": "other", "max_attempts": 9}
    assert changed == {**before, **named}
    assert await reach.get(f"jobs/{job_id}") == changed
    assert (await patch(reach, job_id, {"max_attempts": None}))["max_attempts"] is None


async def test_a_job_is_made_due_and_put_off(engine: Engine, reach: Reach) -> None:
    job_id = await reach.enqueue(delay="1h")
    assert (await patch(reach, job_id, {"delay": 0}))["state"] == "ready"
    assert (await patch(reach, job_id, {"delay": "10m"}))["state"] == "waiting"


@pytest.mark.parametrize("state", ["running", "succeeded", "dead", "cancelled"])
async def test_what_runs_or_has_ended_is_refused(engine: Engine, reach: Reach, scene: Scene, state: str) -> None:
    if state == "cancelled":
        job_id = await reach.enqueue()
        await reach.post(f"jobs/{job_id}/cancel")
    else:
        job = scene.running()
        job_id = job.id
        if state != "running":
            scene.end(job, success(job) if state == "succeeded" else death(job))
    before = await reach.get(f"jobs/{job_id}")
    problem = await patch(reach, job_id, {"priority": 5}, 409)
    assert (problem["code"], problem["error"]) == ("refused", "WrongState")
    assert f"is {state}" in problem["detail"]
    assert "waiting and ready" in problem["detail"]
    assert await reach.get(f"jobs/{job_id}") == before


async def test_a_change_that_names_nothing_shows_the_job(reach: Reach) -> None:
    job_id = await reach.enqueue()
    assert await patch(reach, job_id, {}) == await reach.get(f"jobs/{job_id}")
    made = await reach.post("jobs", CLASSIC, 201)
    assert await patch(reach, made["id"], {}) == await reach.get(f"jobs/{made['id']}")
    await patch(reach, UNKNOWN, {}, 404)


@pytest.mark.parametrize("job_id", [UNKNOWN, "nonsense", "%00"])
async def test_a_job_that_does_not_exist_is_not_found(reach: Reach, job_id: str) -> None:
    assert (await patch(reach, job_id, {"priority": 5}, 404))["error"] == "JobNotFound"


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"priority": 101}, "/priority"),
        ({"priority": None}, "/priority"),
        ({"queue": "a b"}, "/queue"),
        ({"delay": "soon"}, ""),
        ({"delay": -1}, "/delay"),
        ({"delay": 1, "run_at": "2040-01-01T00:00:00Z"}, ""),
        ({"run_at": "2040-01-01T00:00:00"}, "/run_at"),
        ({"run_at": "9999-12-31T23:59:59Z"}, ""),
        ({"max_attempts": 0}, "/max_attempts"),
        ({"max_attempts": 3, "max_retries": None}, ""),
        ({"args": []}, "/args"),
        ({"state": "ready"}, "/state"),
    ],
)
async def test_a_fault_says_where_it_is_and_changes_nothing(reach: Reach, wrong: dict[str, Any], pointer: str) -> None:
    job_id = await reach.enqueue()
    before = await reach.get(f"jobs/{job_id}")
    problem = await patch(reach, job_id, wrong, 422)
    assert problem["errors"][0]["pointer"] == pointer
    assert await reach.get(f"jobs/{job_id}") == before


async def test_a_job_with_a_schedule_has_other_fields_and_its_runs_have_these(reach: Reach) -> None:
    made = await reach.post("jobs", CLASSIC, 201)
    problem = await patch(reach, made["id"], {"priority": 5}, 409)
    assert "was made with a schedule" in problem["detail"]
    run = (await reach.post(f"schedules/{made['id']}/run", status=201))["id"]
    assert (await patch(reach, run, {"priority": 5}))["priority"] == 5
    await patch(reach, run, {"isPaused": True}, 409)
