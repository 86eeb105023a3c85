"""Connections are kept, shared and let go without ever costing a job more than they must."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.http import target as behaviours
from tests.http.target import Exchange, Target

from perdure import App, Settings


@contextlib.asynccontextmanager
async def working(app: App, **options: int) -> AsyncIterator[None]:
    """A worker of the app on this event loop."""
    worker = app.make_worker(**options)
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def ended(app: App, *ids: str) -> list[str]:
    """The states of the jobs, once all have ended."""
    async with asyncio.timeout(60):
        while True:
            jobs = [await app.client_async().get(job_id) for job_id in ids]
            if all(job.is_final for job in jobs):
                return [job.state for job in jobs]
            await asyncio.sleep(0.02)


def open_sockets() -> int:
    count = 0
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
    return count


@pytest.fixture
def second(app: App) -> Iterator[Target]:
    opened = Target()
    yield opened
    opened.close()


def test_requests_to_one_place_share_a_connection_and_other_places_do_not(app: App, target: Target, second: Target):
    with app.testing() as t:
        for url in (target.url, second.url, target.url, second.url):
            app.http.post(url).enqueue()
        t.drain()
    assert (len(target.seen), target.connections) == (2, 1)
    assert (len(second.seen), second.connections) == (2, 1)


async def test_a_connection_that_was_closed_meanwhile_is_not_used(app: App, target: Target):
    async def close_after(exchange: Exchange) -> None:
        await exchange.answer("200 OK", b"bye")
        exchange.is_open = False

    url = target.on("/bye", close_after)
    async with working(app):
        for _ in range(3):
            job_id = await app.http.post(url, max_attempts=2).enqueue_async()
            assert await ended(app, job_id) == ["succeeded"]
            assert app.client().get(job_id).attempt == 1
    assert target.connections == 3


async def test_a_connection_that_breaks_under_a_request_costs_one_attempt_and_no_second(app: App, target: Target):
    """The first request leaves a connection behind that the server drops when the next request arrives on it."""

    async def drop_second(exchange: Exchange) -> None:
        on_this = [seen for seen in target.seen if seen.connection == exchange.seen.connection]
        if len(on_this) == 1:
            await exchange.answer("200 OK")
        else:
            exchange.reset()

    url = target.on("/drop", drop_second)
    async with working(app, concurrency=1):
        first = await app.http.post(url).enqueue_async()
        await ended(app, first)
        job_id = await app.http.post(url, retry="immediate").enqueue_async()
        assert await ended(app, job_id) == ["succeeded"]
    assert app.client().get(job_id).attempt == 2
    assert len(target.seen) == 3


@pytest.mark.parametrize("options", [{"delivery": "at_most_once"}, {"max_attempts": 1}], ids=str)
async def test_a_request_that_is_sent_only_once_gets_a_fresh_connection(app: App, target: Target, options):
    async with working(app, concurrency=1):
        for _ in range(2):
            job_id = await app.http.post(target.url).enqueue_async()
            await ended(app, job_id)
        assert target.connections == 1
        job_id = await app.http.post(target.url, **options).enqueue_async()
        assert await ended(app, job_id) == ["succeeded"]
    assert target.connections == 2


async def test_a_worker_that_has_ended_leaves_no_connection_open(app: App, target: Target):
    before = open_sockets()
    for _ in range(2):
        async with working(app, concurrency=20):
            ids = [await app.http.post(target.url).enqueue_async() for _ in range(20)]
            assert await ended(app, *ids) == ["succeeded"] * 20
        async with asyncio.timeout(60):
            while open_sockets() > before:
                await asyncio.sleep(0.01)


async def test_a_worker_that_ends_does_not_break_the_requests_of_another_on_the_same_loop(
    app: App, target: Target, monkeypatch
):
    monkeypatch.setattr("perdure.http.pool._KEPT", 3600.0)
    before = open_sockets()
    begun, may_end = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def wait(exchange: Exchange) -> None:
        loop.call_soon_threadsafe(begun.set)
        while not may_end.is_set():
            await asyncio.sleep(0.01)
        await exchange.answer("200 OK")

    url = target.on("/wait", wait)
    async with working(app, concurrency=1):
        job_id = await app.http.post(url).enqueue_async()
        await begun.wait()
        async with working(app, concurrency=1):
            await asyncio.sleep(0)
        may_end.set()
        assert await ended(app, job_id) == ["succeeded"]
    assert app.client().get(job_id).attempt == 1
    # Long before unused connections are swept up, none is left.
    async with asyncio.timeout(60):
        while open_sockets() > before:
            await asyncio.sleep(0.01)


async def test_a_connection_that_nobody_uses_is_closed_by_itself(app: App, target: Target, monkeypatch):
    monkeypatch.setattr("perdure.http.pool._KEPT", 0.1)
    before = open_sockets()
    async with working(app):
        job_id = await app.http.post(target.url).enqueue_async()
        await ended(app, job_id)
        async with asyncio.timeout(60):
            while open_sockets() > before:
                await asyncio.sleep(0.01)


async def test_a_job_that_is_cancelled_breaks_its_request_off(app: App, target: Target):
    url = target.on("/hang", behaviours.hang)
    async with working(app):
        job_id = await app.http.post(url).enqueue_async()
        async with asyncio.timeout(60):
            while not target.seen:
                await asyncio.sleep(0.01)
        await app.client_async().cancel(job_id)
        assert await ended(app, job_id) == ["cancelled"]


def test_tls_asks_for_the_name_although_it_connects_to_the_address_and_a_broken_one_says_so():
    """The first bytes of TLS carry the name in the clear."""
    heard: list[bytes] = []

    async def listen() -> None:
        async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.read(4096))
            writer.write(b"HTTP/1.1 400 This is no TLS\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(hear, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        app = App("sqlite://", settings=Settings(http_allow=("localhost",)))
        async with server, working(app):
            job_id = await app.http.post(f"https://localhost:{port}/", max_attempts=1).enqueue_async()
            assert await ended(app, job_id) == ["dead"]
            error = app.client().get(job_id).error
        app.close()
        assert error is not None
        assert "TLS failed" in error.message

    asyncio.run(listen())
    assert b"localhost" in heard[0]


def test_requests_of_a_worker_that_died_are_not_tried_in_children(app: App):
    handler = app.registry.handler("http")
    assert handler is not None
    assert handler.reference is None


def test_an_app_that_only_enqueues_does_not_load_the_client():
    code = (
        "import sys, perdure\n"
        "app = perdure.App('sqlite://')\n"
        "app.http.post('https://example.com/', json={'a': 1}).enqueue()\n"
        "print(*sorted({'httpcore2', 'httpx2', 'anyio', 'h11'} & set(sys.modules)))\n"
        "app.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
