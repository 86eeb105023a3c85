"""Whoever may enqueue over the API gets no signature and no credential for a host of their choice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.conftest import Engine
from tests.http.conftest import SECRET
from tests.http.target import Target
from tests.http.test_connections import ended, working
from tests.web.conftest import connected, make_app
from tests.web.reach import Reach, check_problem, expect

from perdure import App, Secret, Settings
from perdure.admin import schedules as service
from perdure.task import schedule_of
from perdure.web.app import create_app

KEY = "sk_live_51H8x"
SCHEDULE_ID = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest.fixture
def target() -> Iterator[Target]:
    opened = Target()
    yield opened
    opened.close()


@pytest.fixture
def app(target: Target, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[App]:
    """Has one signing secret and one credential bound to the target, and two signing secrets bound to nothing."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    if "engine" in request.fixturenames:
        url = request.getfixturevalue("engine").make_url(tmp_path)
    made = make_app(
        url,
        settings=Settings(
            http_allow=("127.0.0.1",), http_signing_secrets=(SECRET, f"unbound={SECRET}"), dead_letter=None
        ),
        secrets={
            "hook": Secret(SECRET, hosts=["127.0.0.1", "*.example.com"]),
            "stripe": Secret(KEY, hosts=["127.0.0.1"]),
        },
    )
    yield made
    made.close()


@pytest.fixture
async def reach(app: App) -> AsyncIterator[Reach]:
    async with connected(create_app(app, tokens=["enqueue:a-long-enough-token", "write:another-long-token"])) as client:
        client.headers["Authorization"] = "Bearer a-long-enough-token"
        yield Reach(client)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"sign": "hook"}, "not bound to the host evil.test"),
    ({"sign": True}, "bound to no host"),
    ({"sign": "unbound"}, "bound to no host"),
    ({"sign": "unbound", "is_remote": False}, "bound to no host"),
    ({"headers": {"Authorization": {"secret": "stripe", "prefix": "Bearer "}}}, "not bound to the host evil.test"),
    ({"headers": {"X": {"secret": "hook"}}}, "never sent"),
]


@pytest.mark.parametrize(("fields", "words"), REFUSED, ids=str)
async def test_a_job_with_a_secret_for_another_host_is_refused(reach: Reach, fields: dict[str, Any], words: str):
    kwargs = {"url": "https://evil.test/collect", **fields}
    for body in ({"task": "http", "kwargs": kwargs}, {"jobs": [{"task": "http", "kwargs": kwargs}]}):
        response = await reach.ask("POST", "jobs", json=body)
        assert response.status_code == 422
        assert words in check_problem(response)["detail"] + response.text
        assert KEY not in response.text
        assert SECRET not in response.text


@pytest.mark.parametrize(("fields", "words"), REFUSED, ids=str)
async def test_a_schedule_with_a_secret_for_another_host_is_refused(reach: Reach, fields: dict[str, Any], words: str):
    reach.client.headers["Authorization"] = "Bearer another-long-token"
    http = {"url": "https://evil.test/collect", **fields}
    as_task = {"name": "x", "cron": "@hourly", "task": "http", "kwargs": http}
    assert words in (await reach.ask("POST", "schedules", json=as_task)).text
    if "is_remote" not in fields:
        as_request = {"name": "x", "cron": "@hourly", "http": http}
        response = await reach.ask("POST", "schedules", json=as_request)
        assert response.status_code == 422
        assert words in response.text
    plain = {"name": "plain", "cron": "@hourly", "http": {"url": "https://evil.test/"}}
    expect(await reach.ask("POST", "schedules", json=plain), 201)
    response = await reach.ask("PATCH", "schedules/plain", json={"kwargs": http})
    assert response.status_code == 422
    assert words in response.text


async def test_a_schedule_cannot_be_led_to_another_host(app: App, reach: Reach):
    reach.client.headers["Authorization"] = "Bearer another-long-token"
    bound = app.http.post("https://api.example.com/hook", sign="hook")
    definition = schedule_of(
        SCHEDULE_ID, bound, cron="@hourly", tz="UTC", overlap="skip", missed="latest", recurring=True
    )
    await service.add_schedule(app.store, definition)
    response = await reach.ask("PATCH", f"jobs/{SCHEDULE_ID}", json={"api": "https://evil.test/"})
    assert response.status_code == 422
    assert "not bound to the host evil.test" in response.text
    shown = expect(await reach.ask("PATCH", f"jobs/{SCHEDULE_ID}", json={"api": "https://www.example.com/"}), 200)
    assert shown["api"] == "https://www.example.com/"
    evil = {"url": "https://evil.test/", "sign": "hook"}
    for change in ({"kwargs": evil}, {"http": evil}):
        response = await reach.ask("PATCH", f"schedules/{SCHEDULE_ID}", json=change)
        assert response.status_code == 422


async def test_a_job_with_secrets_for_its_host_is_sent_and_shows_names_only(
    engine: Engine, app: App, reach: Reach, target: Target
):
    kwargs = {
        "url": f"{target.url}/hook",
        "sign": "hook",
        "headers": {"Authorization": {"secret": "stripe", "prefix": "Bearer "}},
    }
    made = await reach.post("jobs", {"task": "http", "kwargs": kwargs}, 201)
    async with working(app, concurrency=1):
        assert await ended(app, made["id"]) == ["succeeded"]
    assert target.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert "webhook-signature" in target.seen[0].headers
    reach.client.headers["Authorization"] = "Bearer another-long-token"
    shown = json.dumps(await reach.get(f"jobs/{made['id']}")) + json.dumps(
        await reach.get(f"jobs/{made['id']}/history")
    )
    assert KEY not in shown


async def test_a_worker_refuses_what_a_server_without_the_secrets_accepted(
    engine: Engine, tmp_path: Path, app: App, target: Target
):
    if not app.store.capabilities.is_shared:
        pytest.skip("the store is private to whoever opened it")
    server = App(app.settings.url)
    try:
        async with connected(create_app(server, tokens=["enqueue:a-long-enough-token"])) as client:
            client.headers["Authorization"] = "Bearer a-long-enough-token"
            reach = Reach(client)
            ids = [
                (await reach.post("jobs", {"task": "http", "kwargs": {"url": target.url, "sign": sign}}, 201))["id"]
                for sign in (True, "unbound", "hook")
            ]
            evil = {"url": f"http://localhost:{target.port}/", "sign": "hook"}
            ids.append((await reach.post("jobs", {"task": "http", "kwargs": evil}, 201))["id"])
        async with working(app, concurrency=1):
            states = await ended(app, *ids)
        reasons = [app.client().get(job_id).reason for job_id in ids]
    finally:
        server.close()
    assert states == ["dead", "dead", "succeeded", "dead"]
    assert [reasons[place] for place in (0, 1, 3)] == ["unrecoverable"] * 3
    assert len(target.seen) == 1


async def test_what_the_api_enqueues_is_marked_and_what_code_enqueues_meanwhile_is_not(app: App, reach: Reach):
    await reach.post("jobs", {"task": "http", "kwargs": {"url": "https://a.example.com/", "sign": "hook"}}, 201)
    made = app.http.post("https://a.example.com/", sign="unbound")
    assert "is_remote" not in json.loads(made.args)["kwargs"]
