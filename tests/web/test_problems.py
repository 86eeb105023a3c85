"""Failures of the server: told as problems, logged with their id, and over when their cause is over."""

from __future__ import annotations

import errno
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.servers.redis import RedisServer
from tests.web.conftest import connected, make_app
from tests.web.reach import Reach, check_problem

from perdure import App
from perdure.errors import EngineFull
from perdure.web.app import create_app
from perdure.web.guard import HEADERS
from perdure.web.problems import TITLES


async def test_a_path_that_is_not_there_and_a_method_that_is_not_taken_are_problems(reach: Reach) -> None:
    for path in ("/nope", "/api/v1", "/api/v1/jobs/", "/api/v2/jobs", "/api/v1/queues/a/b/c", "/%00"):
        assert (await reach.ask("GET", path)).status_code == 404, path
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "NONSENSE"):
        response = await reach.ask(method, "jobs")
        assert response.status_code == 405, method
        assert "GET" in response.headers["allow"]


async def test_a_fault_of_our_own_is_logged_under_an_id_and_tells_nothing_else(
    app: App, reach: Reach, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: object) -> None:
        raise KeyError("a secret of the insides")

    monkeypatch.setattr(app.store, "queues", broken)
    with caplog.at_level(logging.ERROR, "perdure.web"):
        problem = await reach.get("queues", 500)
    assert "secret" not in str(problem)
    (record,) = caplog.records
    assert problem["request_id"] in record.getMessage()
    assert record.exc_info is not None


async def test_every_answer_has_the_headers_that_keep_browsers_safe(reach: Reach) -> None:
    for path in ("/api/v1/stats", "/nope", "/healthz/live", "/openapi.json", "/"):
        response = await reach.ask("GET", path)
        for name in HEADERS:
            assert name in response.headers, path
        assert response.headers["cache-control"] == "no-store"


def test_every_problem_has_a_title_and_a_status() -> None:
    for code, (status, title) in TITLES.items():
        assert 400 <= status < 600
        assert title
        assert code == code.lower()


async def test_an_engine_that_is_full_is_a_problem_of_the_server(
    app: App, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise EngineFull("No room at postgresql://user:password@db.example/app.", "Make room.")

    monkeypatch.setattr(app.store, "enqueue", full)
    response = await reach.ask("POST", "jobs", json={"task": "send", "args": ["a"]})
    assert (response.status_code, response.headers["retry-after"]) == (503, "30")
    assert "password" not in response.text


@pytest.fixture
async def nowhere(tmp_path: Path) -> AsyncIterator[tuple[Reach, Path]]:
    """An API whose store cannot be opened yet: its directory does not exist."""
    app = make_app(f"sqlite:///{tmp_path}/later/jobs.db")
    async with connected(create_app(app)) as client:
        yield Reach(client), tmp_path / "later"
    app.close()


async def test_a_server_whose_engine_is_not_there_says_so_and_recovers_by_itself(nowhere: tuple[Reach, Path]) -> None:
    reach, directory = nowhere
    for path in ("jobs", "stats", "queues/mail", "workers"):
        response = await reach.ask("GET", path)
        assert (response.status_code, response.json()["error"]) == (503, "EngineUnusable")
        assert response.headers["retry-after"]
    problem = await reach.get("/healthz/ready", 503)
    assert str(directory) not in str(problem), "whoever may ask this may be anybody"
    await reach.get("/healthz/live")
    assert (await reach.ask("GET", "/")).status_code == 200
    directory.mkdir()
    await reach.enqueue()
    await reach.get("/healthz/ready")


async def test_a_wrong_url_is_a_problem_of_the_server_and_not_of_who_asks(tmp_path: Path) -> None:
    async with connected(create_app(App("nonsense://somewhere"))) as client:
        assert check_problem(await client.get("/api/v1/stats"))["status"] == 503


async def test_an_engine_that_dies_is_told_and_found_again_when_it_is_back() -> None:
    with closing(RedisServer(appendonly="yes", appendfsync="always")) as server:
        app = make_app(server.url)
        async with connected(create_app(app)) as client:
            reach = Reach(client)
            job_id = await reach.enqueue()
            server.kill()
            response = await reach.ask("GET", f"jobs/{job_id}")
            assert (response.status_code, response.json()["code"]) == (503, "engine-unavailable")
            assert response.headers["retry-after"]
            await reach.get("/healthz/ready", 503)
            server.start()
            await reach.get("/healthz/ready")
            await reach.enqueue()
        app.close()


@pytest.mark.parametrize(
    "shortage", [OSError(errno.EMFILE, "Too many open files"), MemoryError()], ids=["descriptors", "memory"]
)
async def test_a_server_that_ran_out_of_resources_asks_to_be_asked_again(
    reach: Reach, monkeypatch: pytest.MonkeyPatch, shortage: Exception
) -> None:
    def read_zone(name: str) -> None:
        raise shortage

    monkeypatch.setattr("perdure.web.rest.schedules.read_zone", read_zone)
    body = {"task": "send", "cron": "0 9 * * *", "tz": "Europe/Berlin"}
    response = await reach.ask("POST", "schedules", json={"name": "daily", **body})
    assert (response.status_code, response.json()["code"]) == (503, "not-ready")
    assert response.headers["retry-after"] == "1"


async def test_a_store_that_was_migrated_under_a_running_server_is_not_ready(
    app: App, reach: Reach, tmp_path: Path
) -> None:
    await reach.get("/healthz/ready")
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection, connection:
        connection.execute("INSERT INTO perdure_schema VALUES (99, 0)")
    problem = await reach.get("/healthz/ready", 503)
    assert problem["detail"].startswith("The store has schema version 99")


async def test_a_store_of_a_newer_perdure_is_not_ready(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    made = make_app(url)
    made.store.now().wait()
    made.close()
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection, connection:
        connection.execute("INSERT INTO perdure_schema VALUES (99, 0)")
    app = make_app(url)
    async with connected(create_app(app)) as client:
        problem = check_problem(await client.get("/healthz/ready"))
        assert "SchemaTooNew" in problem["detail"]
        assert check_problem(await client.get("/api/v1/stats"))["error"] == "SchemaTooNew"
    app.close()
