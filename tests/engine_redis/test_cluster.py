"""A Cluster of three nodes: every verb works, and two prefixes may live on two nodes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis
from redis.crc import key_slot
from tests.chaos.crew import until
from tests.conformance.scene import SECOND, Scene, death, ended, failure, success
from tests.engine_redis.test_rights import documented, documented_for
from tests.servers.ports import free_port
from tests.servers.redis import PATIENCE, RedisServer

from perdure.engines.opener import open_store
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock

pytestmark = pytest.mark.skipif(os.environ.get("PERDURE_CHAOS") != "long", reason="a Cluster is for the long tests")

SLOTS = 16384


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[int]]:
    ports = [free_port(also=(10_000,)) for _ in range(3)]
    nodes = [
        RedisServer(port=str(port), bind="127.0.0.1", **{"cluster-enabled": "yes", "cluster-node-timeout": "2000"})
        for port in ports
    ]
    try:
        for number, node in enumerate(nodes):
            first, last = number * SLOTS // 3, (number + 1) * SLOTS // 3 - 1
            node.ask("CLUSTER", "ADDSLOTS", *range(first, last + 1))
            node.ask("CLUSTER", "MEET", "127.0.0.1", ports[0])
        deadline = time.monotonic() + PATIENCE
        while not all(is_whole(node) for node in nodes):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield ports
    finally:
        for node in nodes:
            node.close()


def is_whole(node: RedisServer) -> bool:
    told = node.ask("CLUSTER INFO")
    return told["cluster_state"] == "ok" and told["cluster_known_nodes"] == "3"


@pytest.mark.parametrize("prefix", ["perdure", "a", "b", "c", "d"])
def test_every_verb_works_on_a_cluster(cluster: list[int], prefix: str) -> None:
    clock = VirtualClock()
    with closing(open_store(f"redis://127.0.0.1:{cluster[0]}?cluster=true&prefix={prefix}", clock=clock)) as store:
        scene = Scene(store, clock)
        worker = scene.worker()
        one, two, three = (scene.running(worker) for _ in range(3))
        assert scene.end(one, success(one))
        assert scene.end(two, failure(two))
        assert scene.end(three, death(three))
        scene.pass_time(10 * SECOND)
        assert store.promote(10).wait().count == 1
        assert store.replay(JobFilter(), 10, SECOND).wait() == 1
        assert store.cancel([two.id], "unwanted").wait() == ["cancelled"]
        assert store.prune(0 * SECOND, 10).wait() == 2
        assert [job.id for job in store.list(JobFilter(), limit=10).wait()] == [three.id]
        assert store.queues().wait()[0].ready == 1
        assert store.beat(worker, SECOND).wait().held == ()


async def test_awaited_verbs_work_on_a_cluster(cluster: list[int]) -> None:
    clock = VirtualClock()
    store = open_store(f"redis://127.0.0.1:{cluster[1]}?cluster=true&prefix=awaited", clock=clock)
    scene = Scene(store, clock)
    worker = await asyncio.to_thread(scene.worker)
    await asyncio.gather(*(store.enqueue([scene.new_job()]) for _ in range(50)))
    jobs = await asyncio.to_thread(scene.fetch, worker)
    answers = await asyncio.gather(*(store.commit([ended(job, success(job))]) for job in jobs))
    assert answers == [[True]] * 50
    await asyncio.to_thread(store.close)


def test_hints_are_heard_across_nodes(cluster: list[int]) -> None:
    clock = VirtualClock()
    urls = [f"redis://127.0.0.1:{port}?cluster=true&prefix=hints" for port in cluster]
    with closing(open_store(urls[0], clock=clock)) as listening, closing(open_store(urls[1], clock=clock)) as other:
        heard = threading.Event()
        stop = listening.wakeups.subscribe(heard.set)
        scene = Scene(other, clock)
        worker = scene.worker()

        def is_heard() -> bool:
            scene.fetch(worker)
            scene.enqueue()
            return heard.wait(0.2)

        until(is_heard, "a hint is heard")
        stop()


def test_prefixes_spread_over_the_nodes(cluster: list[int]) -> None:
    owners = {key_slot(f"{{{prefix}}}".encode()) * 3 // SLOTS for prefix in ("perdure", "a", "b", "c", "d")}
    assert owners == {0, 1, 2}
    with closing(redis.Redis(port=cluster[0])) as client:
        assert client.ping()


USE_ALL = """
import asyncio, sys
from contextlib import closing
from tests.conformance.every_verb import use_every_verb, wake_a_worker
from perdure.system.clock import VirtualClock
from perdure.engines.opener import open_store
clock = VirtualClock()
with closing(open_store(sys.argv[1], clock=clock)) as store:
    use_every_verb(store, clock)
asyncio.run(wake_a_worker(sys.argv[1]))
"""


def test_the_documented_rights_are_enough_on_a_cluster(cluster: list[int]) -> None:
    """In a process of its own: the driver leaves connections to an event loop that ends before the store is closed."""
    granted = documented_for("cluster=true")
    for port in cluster:
        with closing(redis.Redis(port=port)) as operator:
            operator.execute_command(*(word.replace("{perdure}", "{guarded}") for word in documented()), *granted)
    url = f"redis://perdure:secret@127.0.0.1:{cluster[0]}?cluster=true&prefix=guarded"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", USE_ALL, url], cwd=root, check=False, timeout=120)
    assert done.returncode == 0
    for port in cluster:
        with closing(redis.Redis(port=port)) as operator:
            assert operator.acl_log() == []
