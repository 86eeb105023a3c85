"""Connections: made when needed, kept, replaced when they broke, never shared with a child, gone with the store."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

import pytest
from tests.conformance.scene import Scene
from tests.servers.redis import RedisServer

from perdure.engines.opener import open_store
from perdure.engines.redis.address import read_address
from perdure.engines.redis.channel import open_channel
from perdure.engines.redis.connection import Connection
from perdure.engines.redis.store import RedisStore
from perdure.engines.redis.wire import ServerError, pack
from perdure.errors import EngineUnreachable
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock


def clients(server: RedisServer) -> int:
    """How many connections the server has, but the one that asks."""
    with server.client() as client:
        return len(client.client_list()) - 1


def hang_up(server: RedisServer) -> None:
    server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


async def test_a_connection_that_the_server_closed_while_it_was_idle_is_replaced_unnoticed(server: RedisServer) -> None:
    with closing(open_store(server.url, clock=VirtualClock())) as store:
        scene = Scene(store, VirtualClock())
        worker = await asyncio.to_thread(scene.worker)
        await store.enqueue([scene.new_job(), scene.new_job()])
        await asyncio.to_thread(hang_up, server)
        await asyncio.sleep(0)
        # A fetch is never done again by itself: it must have found a connection that works.
        assert len(await asyncio.to_thread(scene.fetch, worker, limit=1)) == 1
        assert await store.count(JobFilter()) == 2


async def test_calls_one_after_the_other_share_a_connection_and_close_ends_all(server: RedisServer) -> None:
    before = clients(server)
    store = open_store(server.url, clock=VirtualClock())
    scene = Scene(store, VirtualClock())
    for _ in range(10):
        await store.enqueue([scene.new_job()])
        await asyncio.to_thread(scene.enqueue)
    assert clients(server) == before + 2
    await asyncio.to_thread(store.close)
    assert clients(server) == before


async def test_a_cancelled_request_leaves_its_answer_to_nobody(server: RedisServer) -> None:
    channel = await open_channel(read_address(server.url.partition("://")[2], is_tls=False))
    asked = asyncio.create_task(channel.ask(pack("BLPOP", "nothing", 10)))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert not channel.is_at_rest


async def test_an_answer_that_does_not_come_in_time_costs_the_connection(server: RedisServer) -> None:
    address = read_address(f"{server.url.partition('://')[2]}&timeout=0.1", is_tls=False)
    channel = await open_channel(address)
    with pytest.raises(TimeoutError):
        await channel.ask(pack("BLPOP", "nothing", 10))
    assert not channel.is_at_rest
    with closing(Connection(address)) as connection, pytest.raises(TimeoutError):
        await asyncio.to_thread(connection.ask, pack("BLPOP", "nothing", 10))


async def test_an_error_of_the_server_is_an_answer_after_which_the_connection_goes_on(server: RedisServer) -> None:
    address = read_address(server.url.partition("://")[2], is_tls=False)
    channel = await open_channel(address)
    with closing(Connection(address)) as connection:
        for wrong, right in (await channel.ask(pack("NOSUCH") + pack("PING"), 2), connection.ask(pack("X") * 2, 2)):
            assert isinstance(wrong, ServerError)
            assert right == b"PONG" or isinstance(right, ServerError)
        assert connection.is_at_rest
    assert channel.is_at_rest
    channel.close()


@pytest.mark.parametrize("size", [100_000, 3_000_000])
async def test_what_takes_many_reads_arrives_whole(store: RedisStore, scene: Scene, size: int) -> None:
    job = scene.new_job(args=bytes(range(48, 58)) * (size // 10))
    assert await store.enqueue([job]) == [job.id]
    (awaited,) = await store.get([job.id])
    assert awaited is not None
    assert awaited.args == job.args
    assert (await asyncio.to_thread(scene.get, job.id)).args == job.args


def test_user_password_and_database_of_the_url_are_used(server: RedisServer) -> None:
    server.ask("ACL", "SETUSER", "clerk", "on", ">p@ss", "~*", "&*", "+@all")
    with closing(open_store(f"redis://clerk:p%40ss@/3?socket={server.socket}", clock=VirtualClock())) as store:
        job_id = Scene(store, VirtualClock()).enqueue()
        assert asyncio.run(_get(store, job_id)) == job_id
    assert server.ask("DBSIZE") == 0
    with pytest.raises(EngineUnreachable, match="may not do that"):
        open_store(f"redis://clerk:wrong@/3?socket={server.socket}", clock=VirtualClock())


async def _get(store: RedisStore, job_id: str) -> str | None:
    (found,) = await store.get([job_id])
    return found and found.id


def test_a_server_without_a_password_refuses_one_as_no_entry(server: RedisServer) -> None:
    with pytest.raises(EngineUnreachable, match="may not do that"):
        open_store(f"redis://:s3cret@?socket={server.socket}", clock=VirtualClock())


def test_a_server_that_takes_no_more_connections_is_unreachable(
    server: RedisServer, open_one: Callable[..., RedisStore]
) -> None:
    server.ask("CONFIG", "SET", "maxclients", "1")
    with server.client() as holding:
        holding.ping()
        with pytest.raises(EngineUnreachable, match="no connection"):
            open_one(server.url)


def test_a_single_server_needs_no_driver_of_clusters() -> None:
    code = "import sys, perdure.engines.redis.store; sys.exit('redis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=300, check=False).returncode == 0
