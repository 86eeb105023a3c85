"""A server with a replica: what was confirmed survives a failover; one that is loading its data is waited for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.chaos.checker import check
from tests.chaos.crew import Crew, Engine, until
from tests.conformance.scene import Scene
from tests.servers.ports import free_port
from tests.servers.redis import VERSION, RedisServer
from tests.servers.redis_books import audit

from perdure.engines.opener import open_store
from perdure.errors import EngineError, EngineUnreachable
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock


class Pair:
    """A primary and its replica, and one more that follows whoever listens on the primary's port."""

    def __init__(self) -> None:
        self.port = free_port()
        self._servers = [self._start(port=str(self.port), bind="127.0.0.1")]
        self._follow()

    @property
    def url(self) -> str:
        """A store whose changes count when two servers have them."""
        return f"redis://127.0.0.1:{self.port}?wait_replicas=1"

    @property
    def primary(self) -> RedisServer:
        return self._servers[0]

    def fail_over(self) -> None:
        """The primary dies; the replica takes its place and its address, and gets a replica of its own."""
        self._servers.pop(0).close()
        self.primary.ask("REPLICAOF", "NO", "ONE")
        self.primary.ask("CONFIG", "SET", "bind", "127.0.0.1")
        self.primary.ask("CONFIG", "SET", "port", str(self.port))
        self._follow()

    def close(self) -> None:
        for server in self._servers:
            server.close()

    def _follow(self) -> None:
        replica = self._start(replicaof=f"127.0.0.1 {self.port}")
        self._servers.append(replica)
        until(lambda: replica.ask("INFO", "replication")["master_link_status"] == "up", "the replica follows")

    def _start(self, **settings: str) -> RedisServer:
        return RedisServer(appendonly="yes", appendfsync="always", **{"repl-diskless-sync-delay": "0"}, **settings)


@pytest.fixture
def pair() -> Iterator[Pair]:
    if os.environ.get(VERSION) == "6.2":
        pytest.skip("so old a server cannot take over another's port while it runs")
    with closing(Pair()) as made:
        yield made


async def test_a_change_that_was_confirmed_is_there_after_a_failover(pair: Pair) -> None:
    with closing(open_store(pair.url, clock=VirtualClock())) as store:
        scene = Scene(store, VirtualClock())
        first, second = scene.enqueue(), scene.new_job()
        await store.enqueue([second])
        pair.fail_over()
        found = await store.get([first, second.id])
        assert [job and job.state for job in found] == ["ready", "ready"]


# Proves [INV-1].
@pytest.mark.crash
def test_nothing_that_was_confirmed_is_lost_and_workers_go_on_after_a_failover(pair: Pair, tmp_path: Path) -> None:
    crew = Crew(Engine(url=pair.url, find_damage=list, is_free=lambda: True), tmp_path)
    try:
        workers = [crew.worker(lease="3s") for _ in range(2)]
        until(lambda: len(crew.registered()) == 2, "the workers are there")
        assert crew.produce("job", 600, "batches", seed=3, seconds=0.05).wait(300) == 0
        until(lambda: len(crew.seen("end")) >= 100, "the work goes on")
        pair.fail_over()
        until(lambda: _is_drained(crew), "every job has ended")
        assert crew.stop(*workers) == [0, 0]
        verdict = check(crew.events(), crew.jobs())
        print(verdict.figures())
        assert verdict.problems() == {}
        assert verdict.accepted == 600
    finally:
        crew.close()
        print(crew.output()[-5_000:])
    with pair.primary.client() as client:
        assert audit(client, "{perdure}") == []


def _is_drained(crew: Crew) -> bool:
    try:
        return crew.is_drained()
    except EngineError:
        return False


def test_a_server_that_is_loading_its_data_is_unreachable_with_the_reason_and_then_there() -> None:
    if os.environ.get(VERSION) == "6.2":
        pytest.skip("so old a server cannot be told to answer while it loads")
    with closing(RedisServer(appendonly="yes", appendfsync="always")) as server:
        with closing(open_store(server.url, clock=VirtualClock())) as store:
            scene = Scene(store, VirtualClock())
            store.enqueue([scene.new_job() for _ in range(300)]).wait()
        # A store has few keys, however many its jobs are; others on the server may have many.
        with server.client() as client:
            client.mset({f"another's key {number}": "x" * 100 for number in range(300)})
        server.ask("CONFIG", "SET", "auto-aof-rewrite-percentage", "0")
        server.ask("BGREWRITEAOF")
        until(lambda: not server.ask("INFO", "persistence")["aof_rewrite_in_progress"], "the file is rewritten")
        server.kill()
        # So long for each key, and it answers calls in between.
        server.start(is_awaited=False, **{"key-load-delay": "5000", "loading-process-events-interval-bytes": "1024"})
        said = until(lambda: _loading(server), "it says that it is loading")
        assert "loading its data" in said
        server.wait()
        with closing(open_store(server.url, clock=VirtualClock())) as store:
            assert store.count(JobFilter()).wait() == 300


def _loading(server: RedisServer) -> str | None:
    try:
        open_store(server.url, clock=VirtualClock()).close()
    except EngineUnreachable as error:
        return str(error) if "loading" in str(error) else None
    raise AssertionError("it has loaded its data before it could be asked")
