"""Hints from other processes: few, and heard again after the connection broke."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
import redis
from tests.chaos.crew import until
from tests.conformance.scene import SECOND, Scene
from tests.servers.redis import RedisServer

from perdure.engines.opener import open_store
from perdure.store import Store
from perdure.system.clock import VirtualClock


@pytest.fixture
def pair(server: RedisServer) -> Iterator[tuple[Store, Scene]]:
    """Two openings of a store: one to listen with, one to work with."""
    clock = VirtualClock()
    with (
        closing(open_store(server.url, clock=clock)) as listening,
        closing(open_store(server.url, clock=clock)) as other,
    ):
        yield listening, Scene(other, clock)


def listeners(server: RedisServer) -> list[tuple[bytes, int]]:
    with server.client() as client:
        return [found for found in client.pubsub_numsub("{perdure}:hints") if found[1]]


def test_a_hint_is_heard_again_after_the_connection_was_cut(server: RedisServer, pair: tuple[Store, Scene]) -> None:
    listening, scene = pair
    heard = threading.Event()
    stop = listening.wakeups.subscribe(heard.set)
    until(lambda: listeners(server), "it listens")
    server.ask("CLIENT", "KILL", "TYPE", "pubsub")
    until(lambda: listeners(server), "it listens again")
    heard.wait(1.0)
    heard.clear()
    scene.enqueue()
    assert heard.wait(60)
    stop()


def test_a_hint_is_heard_again_after_the_server_was_restarted(server: RedisServer, pair: tuple[Store, Scene]) -> None:
    listening, scene = pair
    heard = threading.Event()
    stop = listening.wakeups.subscribe(heard.set)
    until(lambda: listeners(server), "it listens")
    server.restart()
    until(lambda: listeners(server), "it listens again")
    heard.wait(1.0)
    heard.clear()
    scene.enqueue()
    assert heard.wait(60)
    stop()


def test_others_are_told_when_a_line_begins_and_not_for_every_job(
    server: RedisServer, pair: tuple[Store, Scene]
) -> None:
    _, scene = pair
    with server.client() as client, client.pubsub() as ear:
        ear.subscribe("{perdure}:hints")
        ear.get_message(timeout=5)
        for _ in range(50):
            scene.enqueue()
        assert count(client, ear) == 1
        scene.fetch(scene.worker())
        scene.enqueue()
        assert count(client, ear) == 1
        scene.enqueue(delay=20 * SECOND)
        scene.enqueue(delay=10 * SECOND)
        scene.enqueue(delay=30 * SECOND)
        assert count(client, ear) == 2, "only a job that is due before all others is news"


def count(client: redis.Redis, ear: redis.client.PubSub) -> int:
    """How many hints came so far: a message of our own comes after all of them."""
    client.publish("{perdure}:hints", "the last one")
    found = 0
    while (message := ear.get_message(timeout=60)) is None or message["data"] != b"the last one":
        assert message is not None
        found += 1
    return found


def test_without_listening_no_thread_is_started_and_nobody_is_told(server: RedisServer) -> None:
    with closing(open_store(f"{server.url}&listen=false", clock=VirtualClock())) as store:
        store.wakeups.subscribe(lambda: None)
        assert [thread.name for thread in threading.enumerate() if "perdure-redis" in thread.name] == []
        with server.client() as client, client.pubsub() as ear:
            ear.subscribe("{perdure}:hints")
            ear.get_message(timeout=5)
            Scene(store, VirtualClock()).enqueue()
            assert count(client, ear) == 0
