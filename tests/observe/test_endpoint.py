"""The worker's own HTTP server: metrics and truthful health, also while the event loop is blocked."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure import App, Settings
from perdure.errors import BadSetting, EngineUnreachable, Refused
from perdure.observe.endpoint import Endpoint
from perdure.runtime.worker import Worker

PATIENCE = 60


def get(address: str, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Doubt:
    """What an endpoint is told by a worker, under the test's control."""

    def __init__(self) -> None:
        self.is_alive = True
        self.problems: list[str] = []
        self.render: Callable[[], tuple[bytes, str]] = lambda: (b"perdure_up 1\n", "text/plain; version=0.0.4")


@pytest.fixture
def doubt() -> Doubt:
    return Doubt()


@pytest.fixture
def endpoint(doubt: Doubt) -> Iterator[Endpoint]:
    made = Endpoint(
        "127.0.0.1",
        0,
        render=lambda: doubt.render(),
        is_alive=lambda: doubt.is_alive,
        problems=lambda: doubt.problems,
    )
    yield made
    made.close()


def test_metrics_are_served(endpoint: Endpoint) -> None:
    assert get(endpoint.address, "/metrics") == (200, "perdure_up 1\n")
    assert get(endpoint.address, "/metrics?format=text")[0] == 200
    assert get(endpoint.address, "/metrics", "HEAD") == (200, "")


def test_live_and_ready_say_what_is_so(endpoint: Endpoint, doubt: Doubt) -> None:
    assert get(endpoint.address, "/healthz/live")[0] == 200
    assert get(endpoint.address, "/healthz/ready")[0] == 200
    doubt.is_alive, doubt.problems = False, ["its lease is in doubt", "the fetcher cannot reach the store"]
    assert get(endpoint.address, "/healthz/live")[0] == 503
    assert get(endpoint.address, "/healthz/ready") == (
        503,
        "its lease is in doubt\nthe fetcher cannot reach the store\n",
    )


def test_what_is_not_there_is_not_found_and_nothing_is_changed_by_a_post(endpoint: Endpoint) -> None:
    assert get(endpoint.address, "/")[0] == 404
    assert get(endpoint.address, "/../etc/passwd")[0] == 404
    assert get(endpoint.address, "/metrics", "POST")[0] == 501


def test_a_failure_inside_is_an_answer_without_its_text(endpoint: Endpoint, doubt: Doubt) -> None:
    def broken() -> tuple[bytes, str]:
        raise RuntimeError("a secret")

    doubt.render = broken
    status, text = get(endpoint.address, "/metrics")
    assert status == 500
    assert "secret" not in text


def test_a_client_that_says_nothing_keeps_nobody_waiting(endpoint: Endpoint) -> None:
    host, port = endpoint.address.removeprefix("http://").split(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(20)]
    try:
        assert get(endpoint.address, "/healthz/live")[0] == 200
    finally:
        for one in silent:
            one.close()


def test_a_port_that_is_taken_is_refused_with_what_to_do(endpoint: Endpoint) -> None:
    port = int(endpoint.address.rsplit(":", 1)[1])
    with pytest.raises(Refused, match="cannot be served") as refused:
        Endpoint("127.0.0.1", port, render=lambda: (b"", ""), is_alive=lambda: True, problems=list)
    assert "port" in str(refused.value.hint)


@pytest.mark.parametrize("wrong", [{"metrics_port": 70_000}, {"metrics_port": -1}, {"otel_ratio": 2.0}])
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadSetting):
        Settings(**wrong)


@asynccontextmanager
async def at_work(app: App) -> AsyncIterator[tuple[Worker, str]]:
    """A worker that runs, and the address of its endpoint."""
    worker = app._observing.served(app.make_worker())
    running = asyncio.create_task(worker.run())
    address = app._observing.address
    assert address is not None
    try:
        yield worker, address
    finally:
        worker.stop()
        await running
        app._observing.close()
        app.close()


async def until(address: str, path: str, wanted: int) -> str:
    deadline = time.monotonic() + PATIENCE
    while True:
        status, text = await asyncio.to_thread(get, address, path)
        if status == wanted:
            return text
        assert time.monotonic() < deadline, (status, text)
        await asyncio.sleep(0.02)


def an_app(path: Path) -> App:
    return App(settings=Settings(url=f"sqlite:///{path}/jobs.db", metrics_port=0))


async def test_a_worker_serves_its_numbers_and_is_ready_once_it_is_registered(tmp_path: Path) -> None:
    app = an_app(tmp_path)

    @app.task(queue="mail")
    async def send() -> None: ...

    async with at_work(app) as (_, address):
        await until(address, "/healthz/ready", 200)
        await send.enqueue_async()
        wanted = 'perdure_attempts_total{outcome="succeeded",queue="mail",task="send"} 1.0'
        while wanted not in (text := await until(address, "/metrics", 200)):
            await asyncio.sleep(0.02)
        assert 'perdure_worker_slots{state="free"} 50.0' in text


async def test_a_worker_that_stops_is_not_ready_though_it_lives(tmp_path: Path) -> None:
    app = an_app(tmp_path)
    finish, has_begun = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        has_begun.set()
        await finish.wait()

    async with at_work(app) as (worker, address):
        await work.enqueue_async()
        await has_begun.wait()
        worker.stop()
        assert "it is stopping" in await until(address, "/healthz/ready", 503)
        await until(address, "/healthz/live", 200)
        finish.set()


async def test_a_worker_whose_store_is_gone_is_not_ready_until_it_is_back(tmp_path: Path) -> None:
    app = an_app(tmp_path)

    @app.task
    async def work() -> None: ...

    async with at_work(app) as (_, address):
        await until(address, "/healthz/ready", 200)
        real = app.store.promote

        def gone(limit: int) -> None:
            raise EngineUnreachable("The store is gone.")

        app.store.promote = gone  # type: ignore[method-assign, assignment]
        await work.enqueue_async()
        assert "the promoter cannot reach the store" in await until(address, "/healthz/ready", 503)
        app.store.promote = real  # type: ignore[method-assign]
        await until(address, "/healthz/ready", 200)


async def test_a_blocked_event_loop_is_not_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.observe.observing._TURN", 0.2)
    app = an_app(tmp_path)

    @app.task
    async def work() -> None: ...

    async with at_work(app) as (_, address):
        await until(address, "/healthz/ready", 200)
        answers: list[tuple[int, str]] = []
        asking = threading.Thread(
            target=lambda: answers.extend(get(address, f"/healthz/{path}") for path in ("live", "ready"))
        )
        asking.start()
        asking.join(PATIENCE)  # blocks the event loop, on purpose
        assert [status for status, _ in answers] == [503, 503]
        assert answers[1][1] == "the event loop does not turn\n"
        await until(address, "/healthz/live", 200)
