"""/dead-letters and /replays: understood, dismissed and brought back over HTTP, the same on every engine."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.conformance.conftest import Engine
from tests.conformance.scene import Scene, an_error, death
from tests.web.reach import Reach

from perdure import App


def some_dead(scene: Scene, count: int = 3) -> list[str]:
    worker = scene.worker()
    return [scene.dead(worker, an_error(f"no answer from {number}")) for number in range(count)]


async def test_dead_jobs_are_listed_newest_first_and_grouped(engine: Engine, reach: Reach, scene: Scene) -> None:
    ids = some_dead(scene)
    await reach.enqueue()
    page = await reach.get("dead-letters?limit=2")
    assert [job["id"] for job in page["jobs"]] == [ids[2], ids[1]]
    rest = await reach.get("dead-letters", params={"cursor": page["next_cursor"], "limit": 2})
    assert ([job["id"] for job in rest["jobs"]], rest["next_cursor"]) == ([ids[0]], None)
    (group,) = (await reach.get("dead-letters/groups"))["groups"]
    assert (group["task"], group["count"], group["sample"]["type"]) == ("send", 3, "ValueError")
    assert (await reach.get("dead-letters/groups?task=nothing"))["groups"] == []


async def test_a_dry_run_counts_and_changes_nothing(engine: Engine, reach: Reach, scene: Scene) -> None:
    some_dead(scene)
    counted = await reach.post("replays", {"task": "send", "canary": 2, "dryRun": True})
    assert (counted["count"], counted["matching"], counted["is_dry_run"], counted["id"]) == (2, 3, True, None)
    discarded = await reach.post("dead-letters/discard", {"all": True, "dry_run": True})
    assert discarded == {"count": 3, "is_dry_run": True}
    assert len((await reach.get("dead-letters"))["jobs"]) == 3
    assert (await reach.get("replays"))["replays"] == []


async def test_dead_jobs_are_put_back_and_the_replay_is_listed(engine: Engine, reach: Reach, scene: Scene) -> None:
    ids = some_dead(scene)
    first = await reach.post("replays", {"all": True, "canary": 1}, 201)
    assert (first["count"], first["matching"], first["request"]) == (1, 3, {"all": True, "canary": 1})
    assert (await reach.get(f"jobs/{ids[0]}"))["state"] == "ready"
    second = await reach.post("replays", {"error": "no answer", "rate": "1/m"}, 201)
    assert second["count"] == 2
    assert (await reach.get(f"jobs/{ids[2]}"))["state"] == "waiting"
    listed = (await reach.get("replays"))["replays"]
    assert listed == [second, first]
    assert [each["id"] for each in (await reach.get("replays?limit=1"))["replays"]] == [second["id"]]


async def test_dead_jobs_are_put_back_by_their_ids(engine: Engine, reach: Reach, scene: Scene) -> None:
    ids = some_dead(scene)
    assert (await reach.post("replays", {"ids": [ids[1].upper()]}, 201))["count"] == 1
    assert (await reach.get(f"jobs/{ids[1]}"))["state"] == "ready"
    assert (await reach.post("replays", {"ids": ids}, 409))["error"] == "WrongState"
    missing = "00000000-0000-7000-8000-000000000000"
    assert (await reach.post("replays", {"ids": [missing]}, 404))["error"] == "JobNotFound"


async def test_dismissed_jobs_end_cancelled(engine: Engine, reach: Reach, scene: Scene) -> None:
    ids = some_dead(scene)
    assert await reach.post("dead-letters/discard", {"ids": ids[:2]}) == {"count": 2, "is_dry_run": False}
    job = await reach.get(f"jobs/{ids[0]}")
    assert (job["state"], job["reason"]) == ("cancelled", "discarded")


@pytest.mark.parametrize("path", ["replays", "dead-letters/discard"])
@pytest.mark.parametrize(
    "body", [{}, {"all": False}, {"dry_run": True}, {"ids": []}, {"ids": ["x"]}, {"state": "ready"}]
)
async def test_all_dead_jobs_are_meant_only_when_that_is_said(
    reach: Reach, scene: Scene, path: str, body: dict
) -> None:
    some_dead(scene, 1)
    await reach.post(path, body, 422)
    assert len((await reach.get("dead-letters"))["jobs"]) == 1


@pytest.mark.parametrize("rate", ["fast", "0/s", 0, -1, "1/y", "0.000001/d", 1e-9, True, [], "1" * 41])
async def test_a_rate_that_is_none_is_refused(reach: Reach, scene: Scene, rate: object) -> None:
    some_dead(scene, 1)
    await reach.post("replays", {"all": True, "rate": rate}, 422)
    assert len((await reach.get("dead-letters"))["jobs"]) == 1


async def test_a_replay_repeated_with_its_key_is_done_once(engine: Engine, reach: Reach, scene: Scene) -> None:
    some_dead(scene)
    headers = {"Idempotency-Key": "once"}
    first = await reach.post("replays", {"all": True}, 201, headers=headers)
    again = await reach.ask("POST", "replays", json={"all": True}, headers=headers)
    assert (again.status_code, again.json()) == (201, first)
    assert again.headers["idempotency-replayed"] == "true"
    assert len((await reach.get("replays"))["replays"]) == 1
    problem = await reach.post("replays", {"all": True, "canary": 1}, 422, headers=headers)
    assert problem["code"] == "key-reused"


async def test_of_replays_with_one_key_at_once_one_is_done_and_the_others_are_told_to_wait(
    engine: Engine, reach: Reach, scene: Scene
) -> None:
    some_dead(scene)
    asked = [reach.ask("POST", "replays", json={"all": True}, headers={"Idempotency-Key": "once"}) for _ in range(6)]
    answers = await asyncio.gather(*asked)
    done = {response.text for response in answers if response.status_code == 201}
    waiting = [response for response in answers if response.status_code != 201]
    assert len(done) == 1
    assert all((each.status_code, each.json()["code"]) == (409, "in-progress") for each in waiting)
    assert all(each.headers["retry-after"] for each in waiting)


async def test_a_replay_that_was_refused_may_be_asked_for_again_with_its_key(reach: Reach, scene: Scene) -> None:
    (job_id,) = some_dead(scene, 1)
    headers = {"Idempotency-Key": "once"}
    await reach.post(f"jobs/{job_id}/retry")
    await reach.post("replays", {"ids": [job_id]}, 409, headers=headers)
    (job,) = scene.fetch(scene.worker())
    assert scene.end(job, death(job))
    assert (await reach.post("replays", {"ids": [job_id]}, 201, headers=headers))["count"] == 1


async def test_a_replay_that_a_crash_broke_off_can_be_taken_up_again(
    app: App, reach: Reach, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_dead(scene)
    headers = {"Idempotency-Key": "once"}
    with monkeypatch.context() as broken:
        broken.setattr(app.store, "replay", None)
        await reach.post("replays", {"all": True}, 500, headers=headers)
    await reach.post("replays", {"all": True}, 409, headers=headers)
    monkeypatch.setattr("perdure.admin.idempotency.PATIENCE", timedelta(0))
    assert (await reach.post("replays", {"all": True}, 201, headers=headers))["count"] == 3
