"""/queues, /workers, /stats, /policies, health and the front page."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest
from tests.conformance.conftest import Engine
from tests.conformance.scene import SECOND, Scene, death
from tests.web.reach import Reach, expect

from perdure.model.forward import Tried
from perdure.web.app import Api


async def test_a_queue_is_paused_shown_and_resumed(engine: Engine, reach: Reach) -> None:
    await reach.enqueue()
    assert await reach.post("queues/mail/pause", {"reason": "provider is down"}) == {
        "queue": "mail",
        "is_paused": True,
        "is_changed": True,
    }
    queue = await reach.get("queues/mail")
    assert (queue["ready"], queue["is_paused"], queue["pause_reason"]) == (1, True, "provider is down")
    assert (await reach.get("queues"))["queues"][0]["name"] == "mail"
    assert (await reach.post("queues/mail/pause"))["is_changed"] is False
    assert (await reach.post("queues/mail/resume"))["is_changed"] is True
    assert (await reach.get("queues/mail"))["is_paused"] is False


@pytest.mark.parametrize("name", ["nope", "%00", "a%20b", "x" * 129, "%F0%9F%8E%89"])
async def test_a_queue_that_nobody_has_used_is_not_found(reach: Reach, name: str) -> None:
    await reach.get(f"queues/{name}", 404)


@pytest.mark.parametrize("name", ["%00", "a%20b", "x" * 129, "%F0%9F%8E%89"])
async def test_a_name_that_no_queue_can_have_is_refused_as_a_switch(reach: Reach, name: str) -> None:
    await reach.post(f"queues/{name}/pause", status=422)
    await reach.post(f"queues/{name}/resume", status=422)


async def test_numbers_and_workers_are_those_of_the_store(engine: Engine, reach: Reach, scene: Scene) -> None:
    scene.running()
    await reach.enqueue(delay="1h")
    stats = await reach.get("stats")
    assert (stats["states"]["running"], stats["states"]["waiting"], stats["workers"]) == (1, 1, 1)
    (worker,) = (await reach.get("workers"))["workers"]
    assert (worker["id"], worker["running"], worker["is_alive"]) == ("worker-1", 1, True)


async def test_policies_are_listed_forecast_and_explained(engine: Engine, reach: Reach) -> None:
    policies = await reach.get("policies")
    presets = {preset["name"]: preset for preset in policies["presets"]}
    assert presets["immediate"]["aliases"] == ["none"]
    assert (presets["harbor"]["caps_jobs"], presets["harbor"]["origin"]) == (True, "TaskHarbor")
    assert presets["standard"]["total"] == {"least": 0.0, "expected": 1.75, "greatest": 3.5}
    assert [(task["task"], task["max_attempts"]) for task in policies["tasks"]] == [("report.daily", 7), ("send", 1)]
    shown = await reach.get("policies/forecast", params={"policy": "delays([1s, 5s], max_attempts=4)", "limit": 2})
    assert [wait["ceiling"] for wait in shown["waits"]] == [1.0, 5.0]
    explained = await reach.get("policies/explain?task=report.daily")
    assert (explained["limit"], explained["subject"]) == (7, "task report.daily")
    job_id = await reach.enqueue(task="report.daily", args=[], max_attempts=9)
    of_job = await reach.get(f"policies/explain?job={job_id}")
    assert (of_job["limit"], of_job["forward"]) == (9, None)
    assert [(limit["name"], limit["max_attempts"], limit["is_effective"]) for limit in of_job["limits"]] == [
        ("max_attempts of the job", 9, True),
        ("max_attempts of the task", 7, False),
        ("policy of the app", 4, False),
    ]
    assert all(limit["reason"] for limit in of_job["limits"])
    assert {"name": "dead_letter", "value": "none: dead jobs stay", "origin": "unset"} in of_job["values"]


async def test_a_dead_job_is_explained_with_how_far_its_forwarding_is(
    engine: Engine, reach: Reach, scene: Scene
) -> None:
    job = scene.running()
    scene.end(job, death(job, sink="queue:graveyard"))
    before = (await reach.get(f"policies/explain?job={job.id}"))["forward"]
    assert (before["state"], before["tries"], before["sink"]) == ("pending", 0, "queue:graveyard")
    (forward,) = scene.store.forward(["mail"], 1, SECOND).wait().forwards
    refusal = Tried(
        job_id=job.id, attempt=1, number=forward.tries, sink="queue:graveyard", error="shut", delay=60 * SECOND
    )
    assert scene.store.forwarded([refusal]).wait() == [True]
    after = (await reach.get(f"policies/explain?job={job.id}"))["forward"]
    assert (after["state"], after["tries"], after["error"]) == ("failing", 1, "shut")
    assert datetime.fromisoformat(after["next_at"]) > datetime.fromisoformat(after["tried_at"])


@pytest.mark.parametrize(
    ("body", "limit", "origin"),
    [
        ({"max_attempts": 5}, 1, "task"),
        ({"max_retries": 4}, 1, "task"),
        ({"max_attempts": "unlimited"}, 1, "task"),
        ({"max_attempts": 5, "retry": "never_retry()"}, 1, "job"),
        ({"max_attempts": 20, "retry": "fixed(1s, max_attempts=10, caps_jobs=true)"}, 10, "job"),
        ({"max_attempts": 5, "retry": "harbor"}, 5, "job"),
        ({"max_attempts": 100, "retry": "harbor"}, 25, "job"),
        ({"retry": "none"}, 4, "job"),
    ],
)
async def test_the_limit_of_a_job_made_by_request_is_bounded_by_its_policy(
    reach: Reach, body: dict[str, Any], limit: int, origin: str
) -> None:
    job_id = await reach.enqueue(**body)
    explained = await reach.get(f"policies/explain?job={job_id}")
    assert explained["limit"] == limit
    assert {"name": "max_attempts", "value": str(limit), "origin": origin} in explained["values"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("policies/explain", 422),
        ("policies/explain?task=nope", 422),
        ("policies/explain?task=send&job=01890a5d-ac96-774b-bcce-b302099a8057", 422),
        ("policies/explain?job=01890a5d-ac96-774b-bcce-b302099a8057", 404),
        ("policies/forecast", 422),
        ("policies/forecast?policy=nonsense", 422),
        ("policies/forecast?policy=exponential(1s,max_attempts=unlimited)", 200),
    ],
)
async def test_questions_about_policies_that_have_no_answer_say_so(reach: Reach, path: str, status: int) -> None:
    await reach.get(path, status)


async def test_a_simulation_gives_the_same_numbers_for_the_same_seed(reach: Reach) -> None:
    body = {"policy": "exponential(1s, cap=20s, max_attempts=40)", "jobs": 100, "failFor": 60, "seed": 3}
    first = await reach.post("policies/simulate", body)
    assert first == await reach.post("policies/simulate", body)
    assert first["with_jitter"]["succeeded"] == 100
    assert first["without_jitter"]["peak_per_second"] == 100


async def test_a_simulation_bounds_the_limit_that_jobs_ask_for(reach: Reach) -> None:
    body = {"policy": "fixed(1s, max_attempts=10, caps_jobs=true)", "jobs": 3, "fail_for": "1h", "max_attempts": 20}
    assert (await reach.post("policies/simulate", body))["with_jitter"]["attempts"] == 30
    body["maxAttempts"] = body.pop("max_attempts")
    assert (await reach.post("policies/simulate", body | {"maxAttempts": 5}))["with_jitter"]["attempts"] == 15
    await reach.post("policies/simulate", body | {"maxAttempts": 0}, 422)


async def test_a_misspelt_policy_in_a_request_is_answered_with_the_nearest(reach: Reach) -> None:
    problem = await reach.post("jobs", {"task": "send", "args": ["x"], "retry": "standard(max_atempts=3)"}, 422)
    assert "Did you mean max_attempts?" in str(problem)


async def test_a_simulation_that_would_take_too_long_is_refused(reach: Reach) -> None:
    body = {"policy": "fixed(1ms, max_attempts=unlimited)", "jobs": 10_000, "fail_for": "1h"}
    assert "attempts" in (await reach.post("policies/simulate", body, 422))["detail"]


async def test_only_one_simulation_runs_at_a_time(reach: Reach) -> None:
    body = {"policy": "exponential(1s, cap=20s, max_attempts=12)", "jobs": 2000}
    answers = await asyncio.gather(*(reach.ask("POST", "policies/simulate", json=body) for _ in range(4)))
    statuses = sorted(response.status_code for response in answers)
    assert statuses == [200, 429, 429, 429]
    assert all(each.headers["retry-after"] for each in answers if each.status_code == 429)


async def test_a_server_whose_engine_answers_is_ready(engine: Engine, reach: Reach) -> None:
    ready = await reach.get("/healthz/ready")
    assert ready["status"] == "ready"
    assert (await reach.get("/healthz/live"))["status"] == "live"


async def test_a_stopping_server_is_live_but_not_ready(reach: Reach, api: Api) -> None:
    api.context.drain()
    problem = await reach.get("/healthz/ready", 503)
    assert (problem["code"], problem["detail"]) == ("not-ready", "The server is stopping.")
    await reach.get("/healthz/live")


async def test_the_front_page_shows_the_numbers_and_escapes_names(reach: Reach, scene: Scene) -> None:
    scene.enqueue(queue="<script>alert(1)</script>")
    page = await reach.ask("GET", "/")
    assert page.headers["content-type"].startswith("text/html")
    assert "<script" not in page.text
    assert "&lt;script&gt;" in page.text
    assert "script-src" not in page.headers["content-security-policy"]
    assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")


async def test_head_has_the_headers_of_get_and_no_body(reach: Reach) -> None:
    await reach.enqueue()
    for path in ["/api/v1/queues", "/openapi.json", "/", "/api/v1/events", "/healthz/live"]:
        head = await reach.ask("HEAD", path)
        assert (head.status_code, head.content) == (200, b""), path
    got = await reach.ask("GET", "/openapi.json")
    head = await reach.ask("HEAD", "/openapi.json")
    assert head.headers["content-length"] == got.headers["content-length"]


async def test_options_names_the_methods_of_a_path_and_opens_nothing_to_other_sites(reach: Reach) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    options = await reach.ask("OPTIONS", "jobs", headers=asked)
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
    assert [name for name in options.headers if name.startswith("access-control")] == []


async def test_the_api_can_be_mounted_anywhere(api: Api) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount
    from tests.web.conftest import connected

    async with connected(Starlette(routes=[Mount("/deep/jobs", app=api)])) as client:
        made = await client.post("/deep/jobs/api/v1/jobs", json={"task": "send", "args": ["a"]})
        assert made.headers["location"] == f"/deep/jobs/api/v1/jobs/{made.json()['id']}"
        assert expect(await client.get(made.headers["location"]), 200)["task"] == "send"
        await client.post("/deep/jobs/api/v1/jobs", json={"task": "send", "args": ["a"]})
        page = await client.get("/deep/jobs/api/v1/jobs?limit=1")
        assert page.headers["link"].startswith("</deep/jobs/api/v1/jobs?limit=1&cursor=")
        assert expect(await client.get("/deep/jobs/openapi.json"), 200)["servers"] == [{"url": "/deep/jobs"}]
        assert (await client.get("/deep/jobs/healthz/live", headers={"Host": "10.0.0.7"})).status_code == 200
