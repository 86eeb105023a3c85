"""/jobs: made, listed, looked at, cancelled and retried over HTTP, the same on every engine."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from tests.conformance.conftest import Engine
from tests.conformance.scene import SECOND, Scene, failure
from tests.web.conftest import connected, make_app
from tests.web.reach import Reach, expect

from perdure import App
from perdure.web.app import Api, create_app


async def test_a_job_is_made_and_shown_as_it_was_asked_for(engine: Engine, reach: Reach) -> None:
    body = {
        "task": "send",
        "args": ["a@b.c"],
        "kwargs": {"body": "Grüße 🎉"},
        "queue": "other",
        "run_at": "2040-05-01T12:00:00+02:00",
        "priority": -7,
        "unique": "order-7",
        "max_retries": 2,
        "retry": "exponential(2s, cap=10m)",
        "delivery": "at_most_once",
        "timeout": "1m30s",
    }
    made = await reach.ask("POST", "jobs", json=body)
    assert expect(made, 201)["is_new"] is True
    job = await reach.get(made.headers["location"])
    assert job["id"] == made.json()["id"]
    assert job["args"] == {"args": ["a@b.c"], "kwargs": {"body": "Grüße 🎉"}}
    assert (job["state"], job["queue"], job["run_at"]) == ("waiting", "other", "2040-05-01T10:00:00Z")
    assert (job["priority"], job["unique"], job["max_attempts"], job["timeout"]) == (-7, "order-7", 3, 90.0)
    assert (job["delivery"], job["attempt"], job.get("why")) == ("at_most_once", 0, None)


async def test_camel_case_names_are_taken_and_snake_case_ones_given(engine: Engine, reach: Reach) -> None:
    made = await reach.post(
        "jobs", {"task": "send", "args": ["x"], "maxAttempts": 3.0, "runAt": "2040-01-01T00:00:00Z"}, 201
    )
    job = await reach.get(f"jobs/{made['id']}")
    assert (job["max_attempts"], job["run_at"]) == (3, "2040-01-01T00:00:00Z")


async def test_names_inside_of_arguments_are_left_as_they_are(reach: Reach) -> None:
    job_id = await reach.enqueue(args=[{"maxAttempts": 1.0, "run_at": 2}])
    assert (await reach.get(f"jobs/{job_id}"))["args"] == {"args": [{"maxAttempts": 1.0, "run_at": 2}]}


async def test_a_batch_is_made_in_order_and_whole(engine: Engine, reach: Reach) -> None:
    jobs = [{"task": "send", "args": [str(number)]} for number in range(50)]
    made = (await reach.post("jobs", {"jobs": jobs}, 201))["jobs"]
    assert [each["is_new"] for each in made] == [True] * 50
    shown = [await reach.get(f"jobs/{each['id']}") for each in made[::10]]
    assert [job["args"]["args"] for job in shown] == [["0"], ["10"], ["20"], ["30"], ["40"]]


async def test_one_bad_job_keeps_a_whole_batch_out_and_is_pointed_at(reach: Reach) -> None:
    jobs = [{"task": "send", "args": ["a"]}, {"task": "send", "args": ["a"], "priority": 101}]
    problem = await reach.post("jobs", {"jobs": jobs}, 422)
    assert problem["errors"][0]["pointer"] == "/jobs/1/priority"
    jobs = [{"task": "send", "args": ["a"]}, {"task": "send", "args": []}]
    problem = await reach.post("jobs", {"jobs": jobs}, 422)
    assert (problem["errors"][0]["pointer"], problem["error"]) == ("/jobs/1", "BadArguments")
    assert (await reach.get("jobs"))["jobs"] == []


async def test_a_live_job_with_the_same_unique_key_stands_for_a_new_one(engine: Engine, reach: Reach) -> None:
    first = await reach.enqueue(unique="key")
    again = await reach.post("jobs", {"task": "send", "args": ["a"], "unique": "key"}, 200)
    assert again == {"id": first, "is_new": False}


async def test_a_task_that_the_app_does_not_have_is_refused_with_the_one_that_was_meant(reach: Reach) -> None:
    problem = await reach.post("jobs", {"task": "sent"}, 422)
    assert "Did you mean 'send'?" in problem["detail"]
    assert problem["errors"][0]["pointer"] == "/task"


async def test_a_server_without_tasks_takes_jobs_of_any_task(tmp_path) -> None:
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    async with connected(create_app(app)) as client:
        made = expect(await client.post("/api/v1/jobs", json={"task": "elsewhere:task", "kwargs": {"n": 1}}), 201)
        assert expect(await client.get(f"/api/v1/jobs/{made['id']}"), 200)["task"] == "elsewhere:task"
    app.close()


async def test_pages_show_every_job_once_newest_first_while_more_are_made(engine: Engine, reach: Reach) -> None:
    ids = [await reach.enqueue() for _ in range(7)]
    seen: list[str] = []
    path = "jobs?limit=3&task=send"
    while path:
        response = await reach.ask("GET", path)
        page = expect(response, 200)
        seen += [job["id"] for job in page["jobs"]]
        await reach.enqueue()
        assert ("link" in response.headers) == (page["next_cursor"] is not None)
        path = response.headers["link"].partition(">")[0][1:] if page["next_cursor"] else ""
        if path:
            assert response.headers["link"].endswith('; rel="next"')
            assert page["next_cursor"] in path
    assert seen == ids[::-1]


@pytest.mark.parametrize("cursor", ["x", "%00", "AQ", "AAAAAAAAAAAAAAAAAAAAAAA", "a" * 90, "%F0%9F%8E%89", "=", "A==="])
async def test_a_cursor_that_the_api_never_gave_is_refused(reach: Reach, cursor: str) -> None:
    problem = await reach.get(f"jobs?cursor={cursor}", 422)
    assert problem["errors"][0]["parameter"] == "cursor"


async def test_every_filter_filters(engine: Engine, reach: Reach, scene: Scene) -> None:
    dead = scene.dead()
    await reach.enqueue(delay="1h")
    await reach.post("jobs", {"task": "report.daily"}, 201)
    group = (await reach.get("dead-letters/groups"))["groups"][0]["fingerprint"]
    for query in ["state=dead", "error=IT+BROKE", f"group={group}", "reason=exhausted"]:
        assert [job["id"] for job in (await reach.get(f"jobs?{query}"))["jobs"]] == [dead], query
    counted = {
        query: len((await reach.get(f"jobs?{query}"))["jobs"]) for query in ["task=send", "queue=mail", "before=1h"]
    }
    assert counted == {"task=send": 2, "queue=mail": 2, "before=1h": 0}
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    assert len((await reach.get(f"jobs?before={now}"))["jobs"]) == 3


async def test_history_tells_each_attempt_and_keeps_to_its_limit(engine: Engine, reach: Reach, scene: Scene) -> None:
    worker = scene.worker()
    job = scene.running(worker)
    for _ in range(3):
        scene.end(job, failure(job, state="ready", delay=0 * SECOND))
        (job,) = scene.fetch(worker)
    attempts = (await reach.get(f"jobs/{job.id}/history"))["attempts"]
    assert [(each["attempt"], each["outcome"]) for each in attempts] == [
        (1, "failed"),
        (2, "failed"),
        (3, "failed"),
        (4, "running"),
    ]
    assert attempts[0]["error"]["type"] == "ValueError"
    assert [each["attempt"] for each in (await reach.get(f"jobs/{job.id}/history?limit=2"))["attempts"]] == [3, 4]


async def test_a_job_is_cancelled_by_delete_and_by_cancel(engine: Engine, reach: Reach, scene: Scene) -> None:
    first, second = await reach.enqueue(delay=3600), await reach.enqueue(delay=3600)
    assert expect(await reach.ask("DELETE", f"jobs/{first}"), 200) == {"id": first, "answer": "cancelled"}
    assert await reach.post(f"jobs/{second.upper()}/cancel") == {"id": second, "answer": "cancelled"}
    assert await reach.post(f"jobs/{second}/cancel", {}) == {"id": second, "answer": "already cancelled"}
    running = scene.running()
    assert (await reach.post(f"jobs/{running.id}/cancel"))["answer"] == "asked"
    assert (await reach.get(f"jobs/{running.id}"))["is_cancelling"] is True
    dead = scene.dead(scene.worker("worker-2"))
    assert (await reach.post(f"jobs/{dead}/cancel", status=409))["error"] == "WrongState"


async def test_a_job_is_made_ready_by_retry(engine: Engine, reach: Reach, scene: Scene) -> None:
    waiting = await reach.enqueue(delay="1h")
    assert await reach.post(f"jobs/{waiting}/retry") == {"id": waiting, "state": "ready"}
    assert (await reach.post(f"jobs/{waiting}/retry", status=409))["error"] == "WrongState"


async def test_a_job_says_why_it_is_where_it_is(engine: Engine, reach: Reach) -> None:
    job_id = await reach.enqueue()
    shown = await reach.get(f"jobs/{job_id}?why=true")
    assert shown["why"] == "It could run now, but no living worker serves the queue 'mail'."


@pytest.mark.parametrize("path", ["", "/history", "/cancel", "/retry"])
@pytest.mark.parametrize("job_id", ["00000000-0000-7000-8000-000000000000", "nonsense", "%00"])
async def test_a_job_that_does_not_exist_is_not_found(reach: Reach, path: str, job_id: str) -> None:
    method = "POST" if path in ("/cancel", "/retry") else "GET"
    response = await reach.ask(method, f"jobs/{job_id}{path}")
    assert (response.status_code, response.json()["error"]) == (404, "JobNotFound")


async def test_a_request_repeated_with_its_key_is_done_once(engine: Engine, api: Api, reach: Reach) -> None:
    """Proves [INV-20]."""
    body = {"jobs": [{"task": "send", "args": [str(number)]} for number in range(3)]}
    headers = {"Idempotency-Key": "order-7"}
    answers = await asyncio.gather(*(reach.ask("POST", "jobs", json=body, headers=headers) for _ in range(8)))
    assert {response.text for response in answers} == {answers[0].text}
    assert {response.status_code for response in answers} == {201}
    assert sum("idempotency-replayed" not in response.headers for response in answers) == 1
    assert len((await reach.get("jobs"))["jobs"]) == 3


async def test_a_key_is_known_by_another_server_of_the_same_store(engine: Engine, app: App, reach: Reach) -> None:
    """Proves [INV-20]."""
    if not app.store.capabilities.is_shared:
        pytest.skip("the store is private to whoever opened it")
    headers = {"Idempotency-Key": "order-7"}
    body = {"task": "send", "kwargs": {"to": "a@b.c"}, "maxRetries": 2}
    first = await reach.ask("POST", "jobs", json=body, headers=headers)
    other = make_app(app.settings.url)
    async with connected(create_app(other)) as client:
        same = {"max_retries": 2, "kwargs": {"to": "a@b.c"}, "task": "send"}
        again = await client.post("/api/v1/jobs", json=same, headers=headers)
        assert (again.status_code, again.json()) == (201, first.json())
        assert again.headers["idempotency-replayed"] == "true"
    other.close()
    assert len((await reach.get("jobs"))["jobs"]) == 1


async def test_a_key_that_was_used_for_another_request_is_refused(engine: Engine, reach: Reach) -> None:
    """Proves [INV-20]."""
    headers = {"Idempotency-Key": "order-7"}
    await reach.post("jobs", {"task": "send", "args": ["a"]}, 201, headers=headers)
    problem = await reach.post("jobs", {"task": "send", "args": ["b"]}, 422, headers=headers)
    assert (problem["code"], problem["error"]) == ("key-reused", "KeyReused")
    assert len((await reach.get("jobs"))["jobs"]) == 1


async def test_the_answer_to_a_repeated_request_stays_when_the_unique_key_is_free_again(
    reach: Reach, scene: Scene
) -> None:
    first = await reach.enqueue(unique="key", delay="1h")
    headers = {"Idempotency-Key": "order-7"}
    body = {"task": "send", "args": ["a"], "unique": "key"}
    assert await reach.post("jobs", body, 200, headers=headers) == {"id": first, "is_new": False}
    await reach.post(f"jobs/{first}/cancel")
    assert await reach.post("jobs", body, 200, headers=headers) == {"id": first, "is_new": False}
    assert len((await reach.get("jobs"))["jobs"]) == 1


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 201, "é"])
async def test_a_key_that_cannot_be_one_is_refused(reach: Reach, key: str) -> None:
    headers = {"Idempotency-Key": key.encode()}
    problem = await reach.post("jobs", {"task": "send", "args": ["a"]}, 422, headers=headers)
    assert problem["errors"][0]["header"] == "Idempotency-Key"
