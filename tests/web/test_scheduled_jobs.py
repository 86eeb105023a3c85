"""One id for a job with a schedule: every operation on jobs takes it, before, during, between and after its runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec import structs
from tests.conformance.conftest import Engine
from tests.conformance.scene import Scene, death, failure, success
from tests.web.reach import Reach, expect

from perdure import App
from perdure.model.job import Job

RECURRING = {"schedule": "0 0 3 1 1 *", "api": "https://example.com/hook", "isRecurring": True, "maxRetryCount": 1}
ONE_SHOT = {**RECURRING, "isRecurring": False}
KINDS = pytest.mark.parametrize("body", [RECURRING, ONE_SHOT], ids=["recurring", "one-shot"])


async def make(reach: Reach, body: dict[str, Any]) -> str:
    made = await reach.post("jobs", body, 201)
    return str(made["id"])


async def patch(reach: Reach, job_id: str, body: dict[str, Any], status: int = 200) -> Any:
    return expect(await reach.ask("PATCH", f"jobs/{job_id}", json=body), status)


async def listed(reach: Reach, query: str = "") -> list[str]:
    return [job["id"] for job in (await reach.get(f"jobs{query}"))["jobs"]]


def take(scene: Scene) -> Job:
    """The run that is ready now, as a worker claims it."""
    (job,) = scene.fetch(scene.worker(), queue="default")
    return job


def fail(scene: Scene) -> Job:
    """A run fails and waits for its retry."""
    job = take(scene)
    assert scene.end(job, failure(job, delay=timedelta(hours=1)))
    return job


def die(scene: Scene) -> Job:
    job = take(scene)
    assert scene.end(job, death(job))
    return job


@KINDS
async def test_before_its_first_run_every_operation_takes_the_id(
    engine: Engine, reach: Reach, body: dict[str, Any]
) -> None:
    job_id = await make(reach, body)
    shown = await reach.get(f"jobs/{job_id}?why=true")
    assert (shown["id"], shown["status"], shown["schedule"]) == (job_id, "active", body["schedule"])
    assert (shown["is_recurring"], shown["last_run_id"]) == (body["isRecurring"], None)
    assert shown["why"] == "It waits for the next time of its schedule."
    schedule = await reach.get(f"jobs/{job_id}/schedule")
    assert schedule["next_execution_time"] == shown["next_execution_time"]
    assert (await reach.get(f"jobs/{job_id}/history")) == {"attempts": []}
    assert await listed(reach) == [job_id]
    assert await listed(reach, "?state=waiting&task=http") == [job_id]
    assert await listed(reach, "?state=running") == []
    [entry] = (await reach.get("jobs"))["jobs"]
    assert (entry["state"], entry["reason"], entry["schedule"]) == ("waiting", "scheduled", job_id)
    assert entry["run_at"] == shown["next_execution_time"]
    assert (await patch(reach, job_id, {"maxRetryCount": 2}))["max_retry_count"] == 2
    assert (await reach.post(f"jobs/{job_id}/retry"))["state"] == "ready"
    assert (await reach.get(f"jobs/{job_id}"))["status"] == "active"
    assert (await reach.post(f"jobs/{job_id}/cancel")) == {"id": job_id, "answer": "cancelled"}


async def test_the_only_run_of_a_one_shot_job_has_its_id(engine: Engine, reach: Reach, scene: Scene) -> None:
    job_id = await make(reach, ONE_SHOT)
    await reach.post(f"jobs/{job_id}/retry")
    assert await listed(reach) == [job_id], "one job, listed once"
    assert fail(scene).id == job_id
    assert await listed(reach) == [job_id]
    assert await listed(reach, f"?schedule={job_id}") == [job_id]
    [row] = (await reach.get(f"jobs/{job_id}/history"))["attempts"]
    assert (row["job_id"], row["run_id"], row["status"]) == (job_id, job_id, "FAILED")


async def test_a_one_shot_job_keeps_its_schedule_until_its_last_attempt_has_ended(
    engine: Engine, reach: Reach, scene: Scene
) -> None:
    job_id = await make(reach, ONE_SHOT)
    await reach.post(f"jobs/{job_id}/retry")
    run = fail(scene)
    shown = await reach.get(f"jobs/{job_id}")
    assert (shown["status"], shown["schedule"], shown["is_recurring"]) == ("active", ONE_SHOT["schedule"], False)
    assert datetime.fromisoformat(shown["next_execution_time"]) == scene.get(run.id).run_at
    assert (shown["last_status"], shown["last_run_id"]) == ("FAILED", job_id)
    schedule = await reach.get(f"jobs/{job_id}/schedule")
    assert (schedule["schedule"], schedule["is_recurring"], schedule["next_tick"]) == (
        ONE_SHOT["schedule"],
        False,
        None,
    )
    assert schedule["next_execution_time"] == shown["next_execution_time"]
    await reach.get(f"schedules/{job_id}")
    await reach.post(f"jobs/{job_id}/retry")
    running = take(scene)
    during = await reach.get(f"jobs/{job_id}")
    assert (during["status"], during["schedule"], during["is_recurring"]) == ("active", ONE_SHOT["schedule"], False)
    assert during["next_execution_time"] is not None
    assert scene.end(running, death(running))
    await assert_ended(reach, job_id, "FAILED")
    assert (await reach.post(f"jobs/{job_id}/retry")) == {"id": job_id, "state": "ready"}
    again = await reach.get(f"jobs/{job_id}")
    assert (again["status"], again["schedule"], again["is_recurring"]) == ("active", ONE_SHOT["schedule"], False)
    assert (await reach.get(f"jobs/{job_id}/schedule"))["schedule"] == ONE_SHOT["schedule"]
    job = take(scene)
    assert scene.end(job, success(job))
    await assert_ended(reach, job_id, "SUCCESS")
    await reach.post(f"jobs/{job_id}/retry", None, 409)
    assert (await reach.post(f"jobs/{job_id}/cancel", None, 409))["error"] == "WrongState"


async def assert_ended(reach: Reach, job_id: str, last: str) -> None:
    shown = await reach.get(f"jobs/{job_id}")
    assert (shown["status"], shown["schedule"], shown["is_recurring"]) == ("ended", None, None)
    assert (shown["next_execution_time"], shown["last_status"]) == (None, last)
    await reach.get(f"jobs/{job_id}/schedule", 404)
    await reach.get(f"schedules/{job_id}", 404)
    assert (await reach.get("schedules"))["schedules"] == []
    await patch(reach, job_id, {"maxRetryCount": 2}, 409)
    expect(await reach.ask("DELETE", f"jobs/{job_id}"), 409)


async def test_a_change_of_a_one_shot_job_holds_for_its_next_retry(engine: Engine, reach: Reach, scene: Scene) -> None:
    job_id = await make(reach, ONE_SHOT)
    await reach.post(f"jobs/{job_id}/retry")
    run = fail(scene)
    wanted = {"api": "https://example.com/" + "x" * 3000, "maxRetryCount": 7, "type": "AT_MOST_ONCE"}
    changed = await patch(reach, job_id, wanted)
    assert (changed["api"], changed["max_retry_count"], changed["type"]) == tuple(wanted.values())
    job = scene.get(run.id)
    assert (job.max_attempts, job.delivery, job.state) == (8, "at_most_once", "waiting")
    assert wanted["api"].encode() in job.args
    shorter = await patch(reach, job_id, {"api": "https://example.com/short", "type": "AT_LEAST_ONCE"})
    job = scene.get(run.id)
    assert b"/short" in job.args
    assert (job.delivery, shorter["type"]) == ("at_least_once", "AT_LEAST_ONCE")
    moved = await patch(reach, job_id, {"schedule": "0 0 4 2 2 *"})
    due = datetime.fromisoformat(moved["next_execution_time"])
    assert (moved["schedule"], due.month, due.day, due.hour) == ("0 0 4 2 2 *", 2, 2, 4)
    assert scene.get(run.id).run_at == due
    await patch(reach, job_id, {"isPaused": True}, 409)
    await reach.post(f"schedules/{job_id}/pause", None, 409)
    expect(await reach.ask("PATCH", f"schedules/{job_id}", json={"priority": 5}), 409)
    await patch(reach, job_id, {"isPaused": False})
    assert (await reach.get(f"jobs/{job_id}"))["status"] == "active"
    assert (await patch(reach, job_id, {"delay": "2h"}))["id"] == job_id, "what every waiting job can be changed in"
    await reach.post(f"jobs/{job_id}/retry")
    take(scene)
    assert (await patch(reach, job_id, {"api": "https://example.com"}, 409))["error"] == "WrongState"


async def test_a_one_shot_job_that_becomes_recurring_goes_on(engine: Engine, reach: Reach, scene: Scene) -> None:
    job_id = await make(reach, ONE_SHOT)
    await reach.post(f"jobs/{job_id}/retry")
    fail(scene)
    changed = await patch(reach, job_id, {"isRecurring": True, "schedule": "@every 1h"})
    assert (changed["is_recurring"], changed["status"]) == (True, "active")
    await reach.post(f"jobs/{job_id}/retry")
    die(scene)
    shown = await reach.get(f"jobs/{job_id}")
    assert (shown["status"], shown["schedule"], shown["last_status"]) == ("active", "@every 1h", "FAILED")
    assert await listed(reach) == [job_id]


async def test_a_recurring_job_is_its_current_run_and_waits_between_runs(
    engine: Engine, reach: Reach, scene: Scene
) -> None:
    job_id = await make(reach, RECURRING)
    await reach.post(f"jobs/{job_id}/retry")
    run = fail(scene)
    assert run.id != job_id
    assert run.schedule == job_id
    assert await listed(reach) == [run.id, job_id]
    assert await listed(reach, f"?schedule={job_id}") == [run.id], "the filter is about what a schedule made"
    shown = await reach.get(f"jobs/{job_id}")
    assert (shown["status"], shown["last_run_id"]) == ("active", run.id)
    assert datetime.fromisoformat(shown["next_execution_time"]) == scene.get(run.id).run_at
    entry = (await reach.get("jobs"))["jobs"][1]
    assert (entry["state"], entry["attempt"], entry["failures"]) == ("waiting", 1, 1)
    await reach.post(f"jobs/{job_id}/retry")
    assert die(scene).id == run.id
    shown = await reach.get(f"jobs/{job_id}")
    assert (shown["status"], shown["schedule"], shown["last_status"]) == ("active", RECURRING["schedule"], "FAILED")
    assert (await reach.get("jobs"))["jobs"][1]["reason"] == "scheduled", "it waits for its next time"
    assert (await reach.post(f"jobs/{job_id}/retry"))["state"] == "ready", "the dead run"
    again = take(scene)
    assert again.id == run.id
    assert scene.end(again, success(again))
    refused = await reach.post(f"jobs/{job_id}/retry", None, 409)
    assert "succeeded" in refused["detail"]
    assert job_id in refused["detail"]
    await reach.post(f"schedules/{job_id}/run", None, 201)
    second = fail(scene)
    rows = (await reach.get(f"jobs/{job_id}/history"))["attempts"]
    assert [(row["run_id"], row["retry_count"]) for row in rows] == [
        (second.id, 0),
        (run.id, 2),
        (run.id, 1),
        (run.id, 0),
    ], "newest first"
    assert {row["job_id"] for row in rows} == {job_id}
    assert len((await reach.get(f"jobs/{job_id}/history?limit=2"))["attempts"]) == 2


@KINDS
async def test_a_cancelled_job_does_not_run_and_a_retry_brings_it_back(
    engine: Engine, reach: Reach, scene: Scene, body: dict[str, Any]
) -> None:
    job_id = await make(reach, {**body, "schedule": "@every 1s"})
    assert (await reach.post(f"jobs/{job_id}/cancel"))["answer"] == "cancelled"
    assert (await reach.post(f"jobs/{job_id}/cancel"))["answer"] == "already cancelled"
    await assert_ended(reach, job_id, "CANCELLED")
    assert job_id in await listed(reach, "?state=cancelled")
    assert scene.get_schedule(job_id).next_tick_at is None
    assert scene.fetch(scene.worker(), queue="default") == []
    await reach.post(f"jobs/{job_id}/retry")
    shown = await reach.get(f"jobs/{job_id}")
    assert (shown["status"], shown["schedule"]) == ("active", "@every 1s")
    assert shown["is_recurring"] is body["isRecurring"]
    run = take(scene)
    assert (run.schedule, run.id == job_id) == (job_id, not body["isRecurring"])


@KINDS
async def test_cancelling_while_a_run_is_unfinished_cancels_the_run(
    engine: Engine, reach: Reach, scene: Scene, body: dict[str, Any]
) -> None:
    job_id = await make(reach, body)
    await reach.post(f"jobs/{job_id}/retry")
    fail(scene)
    assert (await reach.post(f"jobs/{job_id}/cancel"))["answer"] == "cancelled"
    await assert_ended(reach, job_id, "CANCELLED")
    await reach.post(f"jobs/{job_id}/retry")
    run = take(scene)
    assert (await reach.post(f"jobs/{job_id}/cancel"))["answer"] == "asked"
    assert scene.get(run.id).is_cancelling
    cancelled = structs.replace(success(run), verb="cancel", state="cancelled", attempt="cancelled", result=None)
    assert scene.end(run, cancelled)
    await assert_ended(reach, job_id, "CANCELLED")


async def test_a_cancelled_recurring_job_goes_on_although_its_last_run_succeeded(
    engine: Engine, reach: Reach, scene: Scene
) -> None:
    job_id = await make(reach, RECURRING)
    await reach.post(f"jobs/{job_id}/retry")
    run = take(scene)
    assert scene.end(run, success(run))
    await reach.post(f"jobs/{job_id}/cancel")
    await assert_ended(reach, job_id, "SUCCESS")
    assert (await reach.post(f"jobs/{job_id}/retry")) == {"id": job_id, "state": "waiting"}
    shown = await reach.get(f"jobs/{job_id}")
    assert (shown["status"], shown["schedule"]) == ("active", RECURRING["schedule"])
    assert datetime.fromisoformat(shown["next_execution_time"]).month == 1


@KINDS
async def test_a_paused_job_waits_and_is_listed(engine: Engine, reach: Reach, body: dict[str, Any]) -> None:
    job_id = await make(reach, body)
    assert (await patch(reach, job_id, {"isPaused": True}))["status"] == "paused"
    [entry] = (await reach.get("jobs"))["jobs"]
    assert (entry["id"], entry["state"], entry["reason"]) == (job_id, "waiting", "paused")
    assert (await reach.get(f"jobs/{job_id}/schedule"))["is_paused"] is True
    assert (await reach.post(f"jobs/{job_id}/cancel"))["answer"] == "cancelled"


async def test_pages_have_jobs_and_scheduled_jobs_in_one_order(engine: Engine, reach: Reach) -> None:
    ids = []
    for place in range(9):
        ids.append(await (reach.enqueue() if place % 3 else make(reach, RECURRING)))
    await reach.post("schedules", {"name": "cleanup", "cron": "@daily", "task": "report.daily"}, 201)
    found: list[str] = []
    path = "jobs?limit=2"
    while path:
        page = await reach.get(path)
        found += [job["id"] for job in page["jobs"]]
        path = page["next_cursor"] and f"jobs?limit=2&cursor={page['next_cursor']}"
    assert found == ids[::-1]
    assert await listed(reach, "?task=send") == [job_id for job_id in ids[::-1] if ids.index(job_id) % 3]


async def test_the_client_knows_a_scheduled_job(engine: Engine, app: App, reach: Reach, scene: Scene) -> None:
    recurring, one_shot = await make(reach, RECURRING), await make(reach, ONE_SHOT)
    async with app.client_async() as client:
        before = await client.get(recurring)
        assert (before.id, before.state, before.attempt, before.schedule) == (recurring, "waiting", 0, recurring)
        assert [job.id for job in await client.list()] == [one_shot, recurring]
        assert await client.count() == 2
        assert await client.history(recurring) == []
        await client.retry(recurring)
        run = fail(scene)
        during = await client.get(recurring)
        assert (during.id, during.state, during.failures) == (recurring, "waiting", 1)
        assert [attempt.job_id for attempt in await client.history(recurring)] == [run.id]
        assert await client.cancel(recurring) == "cancelled"
        assert (await client.get(recurring)).state == "cancelled"
        await client.retry(one_shot)
        die(scene)
        assert (await client.get(one_shot)).state == "dead"
        assert (await client.replay(one_shot)).count == 1
        assert (await client.get(one_shot)).state == "ready"


async def test_a_dead_run_is_replayed_by_the_id_of_its_recurring_job(
    engine: Engine, reach: Reach, scene: Scene
) -> None:
    job_id = await make(reach, RECURRING)
    await reach.post(f"jobs/{job_id}/retry")
    run = die(scene)
    assert (await reach.post("replays", {"ids": [job_id]}, 201))["count"] == 1
    assert scene.get(run.id).state in ("ready", "waiting")


async def test_an_id_in_capitals_is_the_same_id(reach: Reach) -> None:
    job_id = await make(reach, ONE_SHOT)
    assert (await reach.get(f"jobs/{job_id.upper()}"))["id"] == job_id
    assert (await reach.post(f"jobs/{job_id.upper()}/retry"))["id"] == job_id
    assert (await reach.post(f"jobs/{job_id.upper()}/cancel"))["id"] == job_id


async def test_a_run_that_a_person_put_back_is_the_unfinished_one(engine: Engine, reach: Reach, scene: Scene) -> None:
    job_id = await make(reach, RECURRING)
    await reach.post(f"jobs/{job_id}/retry")
    first = die(scene)
    await reach.post(f"schedules/{job_id}/run", None, 201)
    second = take(scene)
    assert scene.end(second, success(second))
    await reach.post(f"jobs/{first.id}/retry")
    assert (await reach.get(f"jobs/{job_id}"))["last_run_id"] == first.id
    assert (await reach.post(f"jobs/{job_id}/cancel"))["answer"] == "cancelled"
    assert scene.get(first.id).state == "cancelled"
