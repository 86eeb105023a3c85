"""/events: one poller for all who listen, nothing missed after a lost connection, slow clients let go."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from tests.conformance.conftest import Engine
from tests.conformance.scene import Scene, death
from tests.web.conftest import connected, serving
from tests.web.reach import API, check_problem

from perdure import App
from perdure.errors import EngineUnreachable
from perdure.store import Store
from perdure.web import live as live_module
from perdure.web.app import Api, create_app
from perdure.web.live import Live, LiveEvent, Subscription
from perdure.web.rest import events as events_module

PATIENCE = 60.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "_SHARE", 0.0)


@pytest.fixture
def api(app: App) -> Api:
    made = create_app(app)
    made.context.live._interval = 0.02
    return made


class Stream:
    """A client of the events."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.aiter_lines()
        self.last_id = ""

    async def event(self, kind: str, **wanted: Any) -> dict[str, Any]:
        """The next event of a kind with these values; others are passed over."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found, data = await self._next()
                if found == kind and all(data.get(name) == value for name, value in wanted.items()):
                    return data

    async def comment(self) -> str:
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                if line.startswith(":"):
                    return line
        raise AssertionError("the stream has ended")

    async def end(self) -> None:
        async with asyncio.timeout(PATIENCE):
            async for _ in self._lines:
                pass

    async def _next(self) -> tuple[str, dict[str, Any]]:
        kind = ""
        async for line in self._lines:
            name, _, value = line.partition(": ")
            match name:
                case "id":
                    self.last_id = value
                case "event":
                    kind = value
                case "data":
                    return kind, json.loads(value)
        raise AssertionError("the stream has ended")


@asynccontextmanager
async def listening(url: str, query: str = "", **headers: str) -> AsyncIterator[Stream]:
    async with (
        httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client,
        client.stream("GET", f"{API}/events{query}", headers=headers) as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        yield Stream(response)


async def test_a_client_is_told_the_numbers_first_and_then_what_happens(
    engine: Engine, api: Api, app: App, scene: Scene
) -> None:
    with serving(api) as url:
        async with listening(url) as stream:
            assert (await stream.event("stats"))["states"]["ready"] == 0
            job_id = await app.tasks["send"].enqueue_async("a@b.c")
            job = await stream.event("job", id=job_id)
            assert (job["state"], job["task"], "args" in job) == ("ready", "send", False)
            await app.client_async().cancel(job_id)
            assert (await stream.event("job", id=job_id))["state"] == "cancelled"
            await app.client_async().pause("mail", "a reason")
            assert (await stream.event("queue", is_paused=True))["pause_reason"] == "a reason"


async def test_a_scheduled_job_is_told_of_by_its_id(engine: Engine, api: Api, app: App, scene: Scene) -> None:
    body = {"schedule": "0 0 3 1 1 *", "api": "https://example.com/", "isRecurring": True}
    with serving(api) as url:
        async with listening(url, "?kinds=stats,job") as stream, httpx2.AsyncClient(base_url=url) as client:
            await stream.event("stats")
            made = (await client.post(f"{API}/jobs", json=body)).json()["id"]
            assert (await stream.event("job", id=made))["state"] == "waiting"
            await client.post(f"{API}/jobs/{made}/retry")
            assert (await stream.event("job", schedule=made, state="ready"))["task"] == "http"
            (run,) = scene.fetch(scene.worker(), queue="default")
            assert (await stream.event("job", id=made, state="running"))["attempt"] == 1
            scene.end(run, death(run))
            assert (await stream.event("job", id=made, state="waiting"))["reason"] == "scheduled"
            await client.post(f"{API}/jobs/{made}/cancel")
            await stream.event("job", id=made, state="cancelled")


async def test_a_scheduled_job_that_was_there_before_is_told_of_with_its_run(api: Api, app: App, scene: Scene) -> None:
    body = {"schedule": "0 0 3 1 1 *", "api": "https://example.com/"}
    with serving(api) as url:
        async with httpx2.AsyncClient(base_url=url) as client:
            made = (await client.post(f"{API}/jobs", json=body)).json()["id"]
            api.context.live._view._tracked.clear()
            async with listening(url, "?kinds=stats,job") as stream:
                await stream.event("stats")
                api.context.live._view._tracked.clear()
                await client.post(f"{API}/jobs/{made}/retry")
                await stream.event("job", id=made, state="ready")


async def test_a_client_gets_only_the_kinds_it_asked_for(api: Api, app: App) -> None:
    with serving(api) as url:
        async with listening(url, "?kinds=queue") as stream, listening(url, "?kinds=stats") as other:
            await other.event("stats")
            app.client().pause("mail")
            assert (await stream._next())[0] == "queue"
    async with connected(create_app(app)) as client:
        assert check_problem(await client.get(f"{API}/events?kinds=stats,nonsense"))["status"] == 422


async def test_a_lost_connection_goes_on_where_it_was(api: Api, app: App) -> None:
    with serving(api) as url:
        async with listening(url) as steady:
            async with listening(url) as lost:
                await lost.event("stats")
            await steady.event("stats")
            first = await app.tasks["send"].enqueue_async("a@b.c")
            await steady.event("job", id=first)
            second = await app.tasks["send"].enqueue_async("a@b.c")
            await steady.event("job", id=second)
            async with listening(url, "?kinds=job", **{"Last-Event-ID": lost.last_id}) as again:
                assert [(await again._next())[1]["id"] for _ in range(2)] == [first, second]


@pytest.mark.parametrize("last_id", ["nonsense", "0-0", "-1", "99999999999999999999999"])
async def test_an_id_that_is_not_known_begins_anew_with_the_numbers(api: Api, last_id: str) -> None:
    with serving(api) as url:
        async with listening(url, **{"Last-Event-ID": last_id}) as stream:
            assert (await stream._next())[0] == "stats"


async def test_a_silent_stream_has_heartbeats(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "HEARTBEAT", 0.05)
    with serving(api) as url:
        async with listening(url) as stream:
            assert await stream.comment() == ": beat"
            assert await stream.comment() == ": beat"


async def test_a_stream_whose_kinds_are_silent_has_heartbeats_although_others_are_not(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "HEARTBEAT", 0.2)
    with serving(api) as url:
        async with listening(url) as busy, listening(url, "?kinds=trouble") as silent:
            await busy.event("stats")
            loop = api.context.live._polling.get_loop()
            chatter = asyncio.create_task(_chatter(loop, api))
            assert await silent.comment() == ": beat"
            chatter.cancel()


async def _chatter(loop: asyncio.AbstractEventLoop, api: Api) -> None:
    while True:
        loop.call_soon_threadsafe(api.context.live._tell, "stats", {})
        await asyncio.sleep(0.01)


async def test_streams_end_when_the_server_stops(api: Api) -> None:
    with serving(api) as url:
        async with listening(url) as stream:
            await stream.event("stats")
            api.context.drain()
            await stream.end()


async def test_more_clients_than_there_is_room_for_are_told_to_come_back(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "MOST_SUBSCRIBERS", 1)
    with serving(api) as url:
        async with listening(url) as stream:
            await stream.event("stats")
            async with httpx2.AsyncClient(base_url=url) as client:
                response = await client.get(f"{API}/events")
            assert (check_problem(response)["status"], response.headers["retry-after"]) == (429, "5")


async def test_a_client_that_is_gone_is_forgotten_and_with_the_last_one_the_poller_stops(api: Api) -> None:
    with serving(api) as url:
        async with listening(url) as stream:
            await stream.event("stats")
            assert api.context.live.count == 1
        async with asyncio.timeout(PATIENCE):
            while api.context.live.count or api.context.live._polling is not None:
                await asyncio.sleep(0.01)


async def test_a_client_that_reads_nothing_is_let_go(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "SLOWEST", 0.2)
    large = {"much": "x" * 1_000_000}
    with serving(api) as url, socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            while not api.context.live.count:
                await asyncio.sleep(0.01)
            loop = api.context.live._polling.get_loop()
            while api.context.live.count:
                loop.call_soon_threadsafe(api.context.live._tell, "stats", large)
                await asyncio.sleep(0.05)


async def test_a_client_whose_queue_is_full_is_let_go_and_no_other() -> None:
    subscription = Subscription()
    for number in range(live_module._QUEUED):
        subscription.put(LiveEvent(number=number, kind="stats", data={}))
    assert not subscription.is_closed
    subscription.put(LiveEvent(number=-1, kind="stats", data={}))
    assert subscription.is_closed
    assert await subscription.next(1.0) is None


async def test_one_poller_looks_for_all_who_listen(app: App) -> None:
    looks = 0

    async def store() -> Store:
        nonlocal looks
        looks += 1
        return app.store

    live = Live(store, interval=3600)
    subscriptions = [live.subscribe(None) for _ in range(20)]
    async with asyncio.timeout(PATIENCE):
        kinds = [(await subscription.next(PATIENCE)).kind for subscription in subscriptions]
    assert (set(kinds), looks) == ({"stats"}, 1)
    for subscription in subscriptions:
        live.unsubscribe(subscription)


async def test_an_engine_in_trouble_is_told_once_and_the_events_go_on_after_it(app: App) -> None:
    is_down = True

    async def store() -> Store:
        if is_down:
            raise EngineUnreachable("It cannot be reached.")
        return app.store

    live = Live(store, interval=0.01)
    subscription = live.subscribe(None)
    first = await subscription.next(PATIENCE)
    assert (first.kind, first.data) == ("trouble", {"detail": "It cannot be reached."})
    assert await subscription.next(0.1) is None
    is_down = False
    assert (await subscription.next(PATIENCE)).kind == "stats"
    live.unsubscribe(subscription)


async def test_what_is_known_of_jobs_stays_bounded(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "_TRACKED", 5)
    view = live_module.View()
    await view.look(app.store)
    for _ in range(4):
        app.enqueue_many([app.tasks["send"].bind("a") for _ in range(10)])
        told = await view.look(app.store)
        assert len([kind for kind, _ in told if kind == "job"]) == 10
        assert len(view._tracked) <= 5
