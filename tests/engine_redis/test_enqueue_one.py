"""One plain job is made in fewer steps than a batch, and with the same promises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.conformance.scene import SECOND, Scene
from tests.servers.lossy_socket import LossyProxy
from tests.servers.redis import RedisServer, with_options
from tests.servers.redis_books import audit, keys_of

from perdure.engines.opener import open_store
from perdure.engines.redis.enqueue_one import is_plain
from perdure.engines.redis.lua import script
from perdure.engines.redis.record import WITHIN
from perdure.errors import BadOption, EngineBusy, EngineDamaged, EngineFull, EngineUnreachable
from perdure.model.job import Job
from perdure.store.reads import JobFilter
from perdure.system.clock import SystemClock, VirtualClock

KINDS: list[dict[str, Any]] = [
    {},
    {"task": "задача", "queue": "a:b\n", "args": b"x" * WITHIN},
    {"args": b"", "priority": 100},
    {"priority": -100, "max_attempts": 7, "retry": "exponential(1s)", "delivery": "at_most_once"},
    {"timeout": timedelta(seconds=1, microseconds=5), "retry": ""},
]
NOT_PLAIN: list[dict[str, Any]] = [
    {"unique": ""},
    {"delay": 0 * SECOND},
    {"args": b"x" * (WITHIN + 1)},
    {"args": b"\xff"},
    {"schedule": "nightly"},
]


@pytest.fixture
def own(server: RedisServer) -> Iterator[Scene]:
    """A store on a server of the test's own, which tells the time; its books are right afterwards."""
    with closing(open_store(server.url, clock=SystemClock())) as store:
        yield Scene(store, VirtualClock())
    with server.client() as client:
        assert audit(client, "{perdure}") == []


def steps(server: RedisServer) -> dict[str, int]:
    """How often each command was run since the figures were last set back."""
    with server.client() as client:
        stats = client.info("commandstats")
    return {name.removeprefix("cmdstat_"): figures["calls"] for name, figures in stats.items()}


def everything(server: RedisServer) -> dict[str, bytes]:
    with server.client() as client:
        return {key: client.dump(key) for key in keys_of(client, "{perdure}")}


@pytest.mark.parametrize("changes", KINDS)
def test_the_job_is_what_a_batch_would_have_made(scene: Scene, changes: dict[str, Any]) -> None:
    alone, first, second = (scene.new_job(**changes) for _ in range(3))
    assert is_plain(alone)
    assert scene.store.enqueue([alone]).wait() == [alone.id]
    scene.store.enqueue([first, second]).wait()
    made = scene.get(alone.id)
    assert made == replace(scene.get(first.id), id=alone.id)
    assert scene.fetch(scene.worker(), queue=made.queue)[0].id == alone.id


@pytest.mark.parametrize("changes", NOT_PLAIN)
def test_what_needs_more_is_made_like_a_batch(scene: Scene, changes: dict[str, Any]) -> None:
    job = scene.new_job(**changes)
    assert not is_plain(job)
    assert scene.store.enqueue([job]).wait() == [job.id]
    assert scene.get(job.id).args == job.args


@pytest.mark.parametrize("priority", [101, -101, 1.5])
def test_a_priority_that_there_is_not_is_refused(scene: Scene, priority: Any) -> None:
    with pytest.raises(BadOption, match="whole number from -100 to 100"):
        scene.store.enqueue([scene.new_job(priority=priority)]).wait()
    assert scene.store.count(JobFilter()).wait() == 0


def test_jobs_of_different_kinds_are_kept_apart(own: Scene) -> None:
    jobs = [own.new_job(**{**changes, "queue": f"queue-{number % 2}"}) for number, changes in enumerate(KINDS * 2)]
    for job in jobs:
        own.store.enqueue([job]).wait()
    for job in jobs:
        made = own.get(job.id)
        for field in ("task", "queue", "args", "priority", "max_attempts", "retry", "delivery", "timeout"):
            assert getattr(made, field) == getattr(job, field)
        assert made.created_at == made.run_at


def test_it_takes_no_step_more_than_it_needs_and_only_the_first_of_a_line_is_news(
    own: Scene, server: RedisServer
) -> None:
    own.enqueue()
    assert server.ask("LLEN", "{perdure}:bell:mail") == 1
    server.ask("CONFIG", "RESETSTAT")
    own.enqueue()
    inside = {name: calls for name, calls in steps(server).items() if name in ("time", "hsetnx", "hincrby", "zadd")}
    assert inside == {"time": 1, "hsetnx": 1, "hincrby": 1, "zadd": 2}
    assert not {"publish", "rpush", "exists", "hmget"} & steps(server).keys()
    own.enqueue(queue="other")
    assert (steps(server)["publish"], steps(server)["rpush"]) == (1, 1)


def test_a_repeated_call_changes_nothing_and_answers_the_same(own: Scene, server: RedisServer) -> None:
    job = own.new_job()
    assert own.store.enqueue([job]).wait() == [job.id]
    before = everything(server)
    assert own.store.enqueue([replace(job, priority=5)]).wait() == [job.id]
    assert everything(server) == before
    (running,) = own.fetch(own.worker())
    assert own.store.enqueue([job]).wait() == [job.id]
    assert own.get(job.id) == running


@pytest.mark.parametrize("name", ["records", "jobs", "counts", "ready:fresh:mail"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_key_of_another_kind_leaves_nothing_behind(
    own: Scene, server: RedisServer, name: str, is_first: bool
) -> None:
    if not is_first:
        own.enqueue()
    key = f"{{perdure}}:{name}"
    kept = server.ask("DUMP", key)
    server.ask("SET", key, "something else")
    before = everything(server)
    with pytest.raises(EngineDamaged, match="another type"):
        own.enqueue()
    assert everything(server) == before
    server.ask("DEL", key)
    if kept is not None:
        server.ask("RESTORE", key, 0, kept)


def test_a_bell_of_another_kind_costs_the_job_nothing(own: Scene, server: RedisServer) -> None:
    server.ask("SET", "{perdure}:bell:mail", "something else")
    assert own.get(own.enqueue()).state == "ready"
    server.ask("DEL", "{perdure}:bell:mail")


def test_a_full_server_refuses_it_whole(own: Scene, server: RedisServer) -> None:
    own.enqueue()
    before = everything(server)
    server.ask("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(EngineFull, match="no room"):
        own.enqueue()
    assert everything(server) == before
    server.ask("CONFIG", "SET", "maxmemory", "0")


def test_a_server_that_forgot_the_script_learns_it_again(own: Scene, server: RedisServer) -> None:
    own.enqueue()
    server.ask("SCRIPT", "FLUSH")
    made: Job = own.get(own.enqueue())
    assert made.state == "ready"
    assert server.ask("SCRIPT", "EXISTS", script("enqueue_one").sha) == [1]


def test_a_server_that_became_a_replica_is_unreachable_until_it_is_one_no_more(own: Scene, server: RedisServer) -> None:
    own.enqueue()
    server.ask("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(EngineUnreachable, match="nothing to be changed"):
        own.enqueue()
    server.ask("REPLICAOF", "NO", "ONE")
    own.enqueue()


@pytest.mark.parametrize("losses", [1, 2])
def test_a_lost_reply_is_asked_for_once_more(own: Scene, server: RedisServer, losses: int) -> None:
    mark = script("enqueue_one").sha.encode()
    own.enqueue()
    with closing(LossyProxy(server.socket)) as proxy, closing(open_store(proxy.url, clock=SystemClock())) as store:
        proxy.lose_reply_to(*[mark] * losses)
        job = own.new_job()
        if losses == 1:
            assert store.enqueue([job]).wait() == [job.id]
        else:
            with pytest.raises(EngineUnreachable):
                store.enqueue([job]).wait()
        assert proxy.lost == losses
    assert own.store.count(JobFilter()).wait() == 2


def test_an_answer_that_does_not_come_in_time_is_told(server: RedisServer, own: Scene) -> None:
    own.enqueue()
    with closing(open_store(with_options(server.url, timeout="0.2"), clock=SystemClock())) as impatient:
        server.ask("CLIENT", "PAUSE", "1000", "WRITE")
        with pytest.raises(EngineBusy, match="took too long"):
            impatient.enqueue([own.new_job()]).wait()
        server.ask("CLIENT", "UNPAUSE")


def test_it_is_confirmed_where_the_address_asks_for_that(server: RedisServer, own: Scene) -> None:
    own.enqueue()
    impossible = with_options(server.url, wait_replicas="1", timeout="0.2")
    with closing(open_store(impossible, clock=SystemClock())) as store, pytest.raises(EngineBusy):
        store.enqueue([own.new_job()]).wait()


async def test_awaited_it_takes_the_same_steps(own: Scene, server: RedisServer) -> None:
    job = own.new_job()
    assert await own.store.enqueue([job]) == [job.id]
    assert await own.store.enqueue([job]) == [job.id]
    assert steps(server)["hsetnx"] == 2
