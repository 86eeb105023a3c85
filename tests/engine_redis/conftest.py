"""A store on a real server, opened as often as a test likes; whatever it did, its keys are whole and none is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from tests.conformance.scene import Scene, death
from tests.servers.redis import RedisServer, client_of, make_url, prefix_of, shared_server
from tests.servers.redis_books import audit, keys_of

from perdure.engines.opener import open_store
from perdure.engines.redis.store import RedisStore
from perdure.model.queue.settings import QueueSettings
from perdure.store.jobs import Want
from perdure.store.reads import JobFilter
from perdure.system.clock import Clock, VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def tag(tmp_path: Path) -> str:
    """What the keys of the test's store begin with."""
    return "{" + prefix_of(tmp_path) + "}"


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    """A client of the shared server, beside the store."""
    with client_of(shared_server()) as opened:
        yield opened


@pytest.fixture
def url(tmp_path: Path) -> str:
    return make_url(tmp_path)


@pytest.fixture
def open_one(url: str, clock: VirtualClock) -> Iterator[Callable[..., RedisStore]]:
    """Opens the test's store, with other options or another clock if told so."""
    opened: list[RedisStore] = []

    def open_it(url_too: str = url, clock_too: Clock = clock, **options: bool) -> RedisStore:
        store = open_store(url_too, clock=clock_too, **options)
        assert isinstance(store, RedisStore)
        opened.append(store)
        return store

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(open_one: Callable[..., RedisStore]) -> RedisStore:
    return open_one()


@pytest.fixture
def scene(store: RedisStore, clock: VirtualClock) -> Scene:
    return Scene(store, clock)


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A server of the test's own, to be killed and set at will."""
    with closing(RedisServer()) as started:
        yield started


@pytest.fixture
def own(server: RedisServer, clock: VirtualClock) -> Iterator[Scene]:
    """A store on a server of the test's own; its books are right afterwards."""
    with closing(open_store(server.url, clock=clock)) as store:
        yield Scene(store, clock)
    with server.client() as client:
        assert audit(client, "{perdure}") == []


@pytest.fixture(autouse=True)
def leaves_nothing_behind(client: redis.Redis, tag: str, url: str) -> Iterator[None]:
    """After each test: the books are right, and when every job is gone, so is every key but the version's."""
    yield
    if not client.exists(f"{tag}:schema"):
        return
    assert audit(client, tag) == []
    clear(url)
    assert keys_of(client, tag) == [f"{tag}:schema"]
    client.delete(f"{tag}:schema")


def clear(url: str) -> None:
    """End and prune everything, by verbs alone."""
    clock = VirtualClock()
    clock.advance(timedelta(days=36_500))
    with closing(open_store(url, clock=clock)) as store:
        scene = Scene(store, clock)
        for queue in store.queues().wait():
            store.resume(queue.name).wait()
            store.configure(queue.name, QueueSettings()).wait()
        for schedule in store.schedules(limit=1000).wait():
            store.remove_schedule(schedule.name).wait()
        store.reap(0).wait()
        while jobs := store.reap(1000).wait().jobs:
            for job in jobs:
                scene.end(job, death(job))
        while live := store.list(JobFilter(state="ready"), limit=1000).wait():
            store.cancel([job.id for job in live], "cleared").wait()
        while live := store.list(JobFilter(state="waiting"), limit=1000).wait():
            store.cancel([job.id for job in live], "cleared").wait()
        store.discard(JobFilter(), 10**6).wait()
        store.prune(timedelta(0), 10**6).wait()
        assert store.fetch(scene.worker("last"), [Want(queue="mail", count=2)], 2).wait().jobs == []
        for worker in store.workers().wait():
            store.deregister(worker.id).wait()
