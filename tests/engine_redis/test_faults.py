"""What goes wrong with a server is told in Perdure's words, leaves nothing half done, and is over when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.conformance.scene import SECOND, Scene, death, ended, failure, success
from tests.servers.lossy_socket import LossyProxy
from tests.servers.redis import RedisServer, with_options

from perdure.engines.opener import open_store
from perdure.engines.redis.lua import script
from perdure.engines.redis.schema import VERSION
from perdure.engines.redis.store import RedisStore
from perdure.errors import (
    BadSetting,
    EngineBusy,
    EngineError,
    EngineFull,
    EngineUnreachable,
    PerdureError,
    SchemaTooNew,
    SchemaTooOld,
    Unsupported,
)
from perdure.store import Store
from perdure.store.reads import JobFilter
from perdure.system.clock import SystemClock, VirtualClock


@pytest.fixture
def proxy(server: RedisServer) -> Iterator[LossyProxy]:
    with closing(LossyProxy(server.socket)) as opened:
        yield opened


@pytest.fixture
def behind(proxy: LossyProxy, server: RedisServer, own: Scene, clock: VirtualClock) -> Iterator[Scene]:
    """The same store, reached through the proxy, on a server that knows the scripts already."""
    for name in ("enqueue", "enqueue_one", "fetch", "commit", "succeed"):
        server.ask("SCRIPT", "LOAD", script(name).text)
    with closing(open_store(proxy.url, clock=clock)) as store:
        scene = Scene(store, clock)
        scene.new_id = own.new_id  # type: ignore[method-assign]
        yield scene


def test_a_server_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(EngineUnreachable, match="no connection"):
        open_store(f"redis://?socket={tmp_path}/nowhere", clock=VirtualClock())


def test_a_port_that_nobody_listens_on_is_unreachable_and_no_password_is_told() -> None:
    with pytest.raises(EngineUnreachable) as caught:
        open_store("redis://me:s3cret@127.0.0.1:1/0", clock=VirtualClock())
    assert "127.0.0.1:1" in str(caught.value)
    shown, error = "", caught.value
    while error is not None:
        shown += repr(error)
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    assert "s3cret" not in shown


def test_a_wrong_password_is_unreachable_and_not_told(server: RedisServer) -> None:
    server.ask("CONFIG", "SET", "requirepass", "right")
    with pytest.raises(EngineUnreachable, match="may not do that") as caught:
        open_store(f"redis://:s3cret@?socket={server.socket}", clock=VirtualClock())
    assert "s3cret" not in repr(caught.value)


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random", "volatile-lru", "volatile-ttl"])
def test_a_server_that_may_evict_keys_is_refused_with_what_to_set(server: RedisServer, policy: str) -> None:
    server.ask("CONFIG", "SET", "maxmemory-policy", policy)
    with pytest.raises(Unsupported, match=rf"{policy}.*maxmemory-policy noeviction"):
        open_store(server.url, clock=VirtualClock())


def test_a_store_of_a_newer_perdure_is_refused(server: RedisServer) -> None:
    server.ask("SET", "{perdure}:schema", VERSION + 1)
    with pytest.raises(SchemaTooNew, match=f"version {VERSION + 1}"):
        open_store(server.url, clock=VirtualClock())


def test_a_store_with_a_layout_that_was_never_released_is_refused_and_left_alone(server: RedisServer) -> None:
    server.ask("SET", "{perdure}:schema", 1)
    with pytest.raises(SchemaTooOld, match="version 1"):
        open_store(server.url, clock=VirtualClock())
    assert server.ask("GET", "{perdure}:schema") == b"1"


def test_every_call_survives_a_server_that_forgets_scripts(own: Scene, server: RedisServer) -> None:
    def forget() -> None:
        server.ask("SCRIPT", "FLUSH")

    forget()
    worker = own.worker()
    for _ in range(3):
        forget()
        job = own.new_job(unique="7")
        assert own.store.enqueue([job]).wait() == [job.id]
        forget()
        (claimed,) = own.fetch(worker)
        forget()
        assert own.end(claimed, success(claimed))
        forget()
        assert own.get(job.id).state == "succeeded"


async def test_awaited_calls_survive_it_too(own: Scene, server: RedisServer) -> None:
    for _ in range(3):
        await asyncio.to_thread(server.ask, "SCRIPT", "FLUSH")
        job = own.new_job()
        assert await own.store.enqueue([job]) == [job.id]


def fill_memory(server: RedisServer) -> None:
    """Leave the server no memory for anything more."""
    server.ask("CONFIG", "SET", "maxmemory", "1")


def test_a_full_server_refuses_new_jobs_loudly_and_goes_on_when_there_is_room(own: Scene, server: RedisServer) -> None:
    before = own.enqueue()
    fill_memory(server)
    with pytest.raises(EngineFull, match="no room"):
        own.store.enqueue([own.new_job(unique="7") for _ in range(3)]).wait()
    assert own.store.count(JobFilter()).wait() == 1
    server.ask("CONFIG", "SET", "maxmemory", "0")
    assert own.get(before).state == "ready"
    own.enqueue(unique="7")
    assert own.store.count(JobFilter()).wait() == 2


def test_a_full_server_takes_everything_but_new_jobs(own: Scene, server: RedisServer) -> None:
    worker = own.worker()
    ids = [own.enqueue() for _ in range(6)]
    waiting = own.enqueue(delay=SECOND)
    fill_memory(server)
    own.worker("worker-2")
    jobs = own.fetch(worker, limit=4)
    assert own.store.beat(worker, 30 * SECOND).wait().held
    assert own.end(jobs[0], success(jobs[0]))
    assert own.end(jobs[1], failure(jobs[1], delay=5 * SECOND))
    assert own.end(jobs[2], death(jobs[2]))
    assert own.store.cancel([jobs[3].id, ids[4]], "unwanted").wait() == ["asked", "cancelled"]
    assert own.store.retry([jobs[2].id]).wait() == ["replayed"]
    own.pass_time(SECOND)
    assert own.store.promote(10).wait().count == 1
    assert own.store.pause("mail", None).wait()
    own.pass_time(60 * SECOND)
    assert len(own.store.reap(10).wait().workers) == 2
    assert own.store.prune(0 * SECOND, 10).wait() == 2
    assert own.get(waiting).state == "ready"
    server.ask("CONFIG", "SET", "maxmemory", "0")


def test_a_server_that_became_a_replica_is_unreachable_until_it_is_one_no_more(own: Scene, server: RedisServer) -> None:
    server.ask("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(EngineUnreachable, match="nothing to be changed"):
        own.enqueue()
    server.ask("REPLICAOF", "NO", "ONE")
    own.enqueue()
    assert own.store.count(JobFilter()).wait() == 1


def test_the_new_primary_is_found_at_once_when_the_address_leads_there(
    proxy: LossyProxy, behind: Scene, server: RedisServer
) -> None:
    behind.enqueue()
    with closing(RedisServer()) as promoted:
        promoted.ask("FLUSHALL")
        server.ask("REPLICAOF", "127.0.0.1", "1")
        proxy._server = promoted.socket
        job_id = behind.enqueue()
        assert behind.get(job_id).state == "ready"
        server.ask("REPLICAOF", "NO", "ONE")


def keep_asking(store: Store) -> None:
    while True:
        store.count(JobFilter()).wait()


def test_an_unfinished_call_of_another_makes_the_server_busy(own: Scene, server: RedisServer) -> None:
    server.ask("CONFIG", "SET", "lua-time-limit", "1")
    with closing(open_store(with_options(server.url, timeout="0.3"), clock=VirtualClock())) as impatient:
        with server.client() as client:
            connection = client.connection_pool.get_connection()
            connection.send_command("EVAL", "while true do end", 0)
            try:
                with pytest.raises(EngineBusy):
                    keep_asking(impatient)
            finally:
                server.ask("SCRIPT", "KILL")
                server.wait()
                connection.disconnect()
                client.connection_pool.release(connection)
        assert impatient.count(JobFilter()).wait() == 0


@pytest.mark.parametrize("name", ["records", "running:worker-1"])
def test_a_key_of_another_kind_stops_a_beat_before_the_lease_is_renewed(
    own: Scene, server: RedisServer, name: str
) -> None:
    worker = own.worker()
    job = own.running(worker)
    key, lease = f"{{perdure}}:{name}", server.ask("ZSCORE", "{perdure}:workers", "worker-1")
    kept = server.ask("DUMP", key)
    server.ask("SET", key, "something else")
    own.pass_time(SECOND)
    with pytest.raises(EngineError):
        own.store.beat(worker, 30 * SECOND).wait()
    assert server.ask("ZSCORE", "{perdure}:workers", "worker-1") == lease
    server.ask("DEL", key)
    server.ask("RESTORE", key, 0, kept)
    assert own.store.beat(worker, 30 * SECOND).wait().held == (job.fence,)


def test_a_key_of_another_kind_stops_a_script_before_it_writes(own: Scene, server: RedisServer) -> None:
    job = own.running()
    for name in ("jobs", "waiting", "counts", "unique", "ready:fresh:mail"):
        kept = server.ask("DUMP", f"{{perdure}}:{name}")
        server.ask("SET", f"{{perdure}}:{name}", "something else")
        with pytest.raises(EngineError):
            own.store.enqueue([own.new_job(unique="7"), own.new_job(delay=SECOND)]).wait()
        server.ask("DEL", f"{{perdure}}:{name}")
        if kept is not None:
            server.ask("RESTORE", f"{{perdure}}:{name}", 0, kept)
    assert own.store.count(JobFilter()).wait() == 1
    for name in ("ended", "attempts:" + job.id, "counts", "ready:retry:mail"):
        kept = server.ask("DUMP", f"{{perdure}}:{name}")
        server.ask("SET", f"{{perdure}}:{name}", "something else")
        with pytest.raises(EngineError):
            own.end(job, failure(job))
        server.ask("DEL", f"{{perdure}}:{name}")
        if kept is not None:
            server.ask("RESTORE", f"{{perdure}}:{name}", 0, kept)
    assert own.get(job.id) == job


def mark(name: str) -> bytes:
    """What a request to run a script can be told by."""
    return script(name).sha.encode()


def test_an_enqueue_whose_reply_was_lost_is_done_once(proxy: LossyProxy, behind: Scene) -> None:
    behind.enqueue()
    proxy.lose_reply_to(mark("enqueue"))
    jobs = [behind.new_job(unique=str(number)) for number in range(3)]
    assert behind.store.enqueue(jobs).wait() == [job.id for job in jobs]
    assert proxy.lost == 1
    assert behind.store.count(JobFilter()).wait() == 4


@pytest.mark.parametrize("outcome_of", [success, failure, death])
def test_a_commit_whose_reply_was_lost_is_accepted(proxy: LossyProxy, behind: Scene, outcome_of: type) -> None:
    job = behind.running()
    proxy.lose_reply_to(mark("succeed" if outcome_of is success else "commit"))
    assert behind.end(job, outcome_of(job))
    assert proxy.lost == 1
    assert len(behind.store.history(job.id, 10).wait()) == 1


@pytest.mark.parametrize("outcome_of", [success, failure, death])
def test_a_commit_in_doubt_is_accepted_when_it_is_asked_for_again(
    proxy: LossyProxy, behind: Scene, outcome_of: type
) -> None:
    job = behind.running()
    name = "succeed" if outcome_of is success else "commit"
    proxy.lose_reply_to(mark(name), mark(name))
    with pytest.raises(EngineUnreachable):
        behind.end(job, outcome_of(job))
    kept = behind.get(job.id)
    assert behind.end(job, outcome_of(job))
    assert behind.get(job.id) == kept
    assert not behind.end(job, outcome_of(job)), "what is in doubt no more is committed once"


def test_a_commit_in_doubt_is_known_again_though_another_attempt_has_ended_since(
    proxy: LossyProxy, behind: Scene, own: Scene
) -> None:
    job = behind.running()
    again = failure(job, state="ready", delay=0 * SECOND)
    proxy.lose_reply_to(mark("commit"), mark("commit"))
    with pytest.raises(EngineUnreachable):
        behind.end(job, again)
    (second,) = own.fetch(own.worker("worker-2"))
    own.end(second, death(second))
    assert behind.end(job, again)
    assert [record.attempt for record in behind.store.history(job.id, 10).wait()] == [1, 2]


def test_what_somebody_else_decided_meanwhile_is_no_commit_of_ours(
    proxy: LossyProxy, behind: Scene, own: Scene
) -> None:
    job = behind.running()
    behind.store._doubts.add([ended(job, success(job))], ["never-arrived"])
    assert own.end(job, failure(job, attempt="lost", reason="lost"))
    assert not behind.end(job, success(job))


async def test_awaited_commits_whose_reply_was_lost_are_accepted(proxy: LossyProxy, behind: Scene) -> None:
    worker = behind.worker()
    await behind.store.enqueue([behind.new_job() for _ in range(5)])
    jobs = await asyncio.to_thread(behind.fetch, worker)
    proxy.lose_reply_to(mark("succeed"))
    answers = await asyncio.gather(*(behind.store.commit([ended(job, success(job))]) for job in jobs))
    assert answers == [[True]] * 5
    assert proxy.lost == 1


def test_a_fetch_whose_reply_was_lost_is_told_and_its_jobs_are_known_to_the_next_beat(
    proxy: LossyProxy, behind: Scene
) -> None:
    worker = behind.worker()
    job_id = behind.enqueue()
    proxy.lose_reply_to(mark("fetch"))
    with pytest.raises(EngineUnreachable):
        behind.fetch(worker)
    assert behind.store.beat(worker, 30 * SECOND).wait().held == ((job_id, 1),)


def test_a_restarted_server_is_found_again_by_threads_and_loops(server: RedisServer) -> None:
    with closing(open_store(server.url, clock=SystemClock())) as store:
        scene = Scene(store, VirtualClock())

        async def around() -> None:
            first, second = scene.new_job(), scene.new_job()
            await store.enqueue([first])
            await asyncio.to_thread(server.kill)
            with pytest.raises(EngineUnreachable):
                await store.enqueue([second])
            with pytest.raises(EngineUnreachable):
                await asyncio.to_thread(store.enqueue([second]).wait)
            await asyncio.to_thread(server.start)
            assert await store.enqueue([second]) == [second.id]
            assert await asyncio.to_thread(store.enqueue([second]).wait) == [second.id]

        asyncio.run(around())


@pytest.mark.parametrize(
    "url",
    [
        "redis://there:port",
        "redis://there/name",
        "redis://there?prefix={x}",
        "redis://there?prefix=",
        "redis://there?timeout=never",
        "redis://there?nonsense=1",
        "redis://there?cluster=maybe",
        "redis://there?cluster=true&wait_replicas=1",
        "redis://there/3?cluster=true",
        "redis://there?ssl_ca_certs=ca.pem",
        "rediss://there?ssl_cert_reqs=requird",
    ],
)
def test_a_url_that_makes_no_sense_is_refused_before_anything_is_tried(url: str) -> None:
    with pytest.raises(BadSetting):
        open_store(url, clock=VirtualClock())


def test_a_batch_too_large_for_one_script_is_refused(scene: Scene, store: RedisStore) -> None:
    with pytest.raises(PerdureError, match="too large"):
        store.enqueue([scene.new_job()] * 50_001).wait()


def test_the_driver_is_asked_for_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "hiredis", None)
    with pytest.raises(Unsupported, match=r"pip install perdure\[redis\]"):
        open_store("redis://there", clock=VirtualClock())


def test_a_change_that_no_replica_confirms_in_time_is_in_doubt_and_can_be_asked_for_again(server: RedisServer) -> None:
    url = with_options(server.url, wait_replicas="1", timeout="0.4")
    with closing(open_store(url, clock=VirtualClock())) as store:
        scene = Scene(store, VirtualClock())
        job = scene.new_job()
        for _ in range(2):
            with pytest.raises(EngineBusy, match=r"asked for \[1\] and got \[0\]"):
                store.enqueue([job]).wait()
        assert store.count(JobFilter()).wait() == 1
        assert "a replica has it too" in store.capabilities.durability


async def test_a_change_can_wait_until_the_server_says_that_it_is_on_disk() -> None:
    with closing(RedisServer(appendonly="yes", appendfsync="always")) as server:
        if server.is_oldest:
            pytest.skip("the server has no WAITAOF")
        url = with_options(server.url, wait_aof="true")
        with closing(open_store(url, clock=VirtualClock())) as store:
            scene = Scene(store, VirtualClock())
            job_id = scene.enqueue()
            other = scene.new_job()
            await store.enqueue([other])
            assert "WAITAOF" in store.capabilities.durability
        server.restart()
        with closing(open_store(server.url, clock=VirtualClock())) as store:
            assert [job and job.id for job in store.get([job_id, other.id]).wait()] == [job_id, other.id]
