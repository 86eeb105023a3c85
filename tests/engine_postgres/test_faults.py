"""Servers that restart, sessions that are killed, replies that get lost: what the store makes of them."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.conformance.scene import death, ended, failure, success
from tests.engine_postgres.scene import RealScene
from tests.servers import postgres
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import Proxy

from perdure.engines.opener import open_store
from perdure.engines.postgres.fault import NoConnectionError, TookTooLongError, to_perdure_error
from perdure.engines.postgres.store import PostgresStore
from perdure.errors import EngineBusy, EngineError, EngineFull, EngineUnreachable
from perdure.model.job import Job
from perdure.store.reads import JobFilter
from perdure.system.clock import SystemClock

SECRET = "hunter2-and-more"
KILL = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s"


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    made = Proxy(parts.hostname, parts.port or 5432)
    yield made
    made.close()


@pytest.fixture
def proxied(url: str, proxy: Proxy, open_one: Callable[..., PostgresStore]) -> RealScene:
    """A scene whose store is reached through the proxy."""
    parts = urlsplit(url)
    through = parts._replace(netloc=f"{parts.username}@127.0.0.1:{proxy.port}").geturl()
    return RealScene(open_one(through, timeout="2", listen="false"))


@pytest.fixture
def own(own_server: PostgresServer, tmp_path: Path) -> Iterator[RealScene]:
    """A scene on a server that may be stopped."""
    url = postgres.make_url(tmp_path, own_server.dsn)
    store = open_store(url, clock=SystemClock())
    yield RealScene(store)
    store.close()


def test_a_server_that_is_not_there_is_unreachable_and_the_password_stays_secret() -> None:
    with pytest.raises(EngineUnreachable) as raised:
        open_store(f"postgresql://user:{SECRET}@127.0.0.1:1/app?connect_timeout=2", clock=SystemClock())
    shown = "".join(str(part) for part in (raised.value, raised.value.__cause__, raised.value.__context__))
    assert SECRET not in shown
    assert "127.0.0.1:1" in str(raised.value)


def test_sessions_that_were_killed_while_idle_are_noticed_by_nobody(
    open_one: Callable[..., PostgresStore], schema: str
) -> None:
    store = open_one(application_name=schema)
    scene = RealScene(store)
    worker = scene.worker()
    scene.enqueue()
    with psycopg.connect(postgres.shared_server(), autocommit=True) as operator:
        operator.execute(KILL, [schema])
        assert len(scene.fetch(worker)) == 1
        operator.execute(KILL, [schema])
        assert store.pause("mail", None).wait() is True


async def test_the_same_on_an_event_loop(open_one: Callable[..., PostgresStore], schema: str) -> None:
    store = open_one(application_name=schema)
    scene = RealScene(store)

    async def fetch() -> int:
        return len(await store.list(JobFilter(), limit=10))

    scene.enqueue()
    assert await asyncio.gather(*(fetch() for _ in range(4))) == [1] * 4
    with psycopg.connect(postgres.shared_server(), autocommit=True) as operator:
        operator.execute(KILL, [schema])
    assert await asyncio.gather(*(fetch() for _ in range(4))) == [1] * 4


@pytest.mark.parametrize("count", [1, 2])
def test_an_enqueue_whose_reply_was_lost_makes_the_job_once(proxied: RealScene, proxy: Proxy, count: int) -> None:
    # The connection has prepared the statement: what is lost is the reply to the enqueue itself.
    proxied.store.enqueue([proxied.new_job() for _ in range(count)]).wait()
    proxy.mode = "eat reply"
    jobs = [proxied.new_job() for _ in range(count)]
    assert proxied.store.enqueue(jobs).wait() == [job.id for job in jobs]
    assert proxy.eaten.is_set()
    assert proxied.store.count(JobFilter()).wait() == 2 * count


@pytest.mark.parametrize("outcome_of", [success, failure, death])
def test_a_commit_whose_reply_was_lost_is_recognised(proxied: RealScene, proxy: Proxy, outcome_of: type) -> None:
    known, job = proxied.running(), proxied.running()
    # The connection has prepared the statement: what is lost is the reply to the commit itself.
    proxied.end(known, outcome_of(known))
    proxy.mode = "eat reply"
    assert proxied.end(job, outcome_of(job))
    assert proxy.eaten.is_set()
    assert len(proxied.store.history(job.id, 10).wait()) == 1
    assert not proxied.end(job, outcome_of(job)), "what is settled is settled: a second commit is one too many"


async def test_a_commit_whose_reply_was_lost_is_recognised_on_an_event_loop(proxied: RealScene, proxy: Proxy) -> None:
    known, job = proxied.running(), proxied.running()
    await proxied.store.commit([ended(known, success(known))])
    proxy.mode = "eat reply"
    assert await proxied.store.commit([ended(job, success(job))]) == [True]
    assert proxy.eaten.is_set()


def test_a_commit_that_was_given_up_is_recognised_when_it_is_tried_again_later(
    proxied: RealScene, proxy: Proxy, url: str
) -> None:
    job = proxied.running()
    given = ended(job, success(job))
    proxy.mode = "hang"
    with pytest.raises(EngineBusy):
        proxied.store.commit([given]).wait()
    other = open_store(url, clock=SystemClock())
    assert other.commit([given]).wait() == [True], "as if the first had arrived after all"
    other.close()
    proxy.mode = "pass"
    assert proxied.store.commit([given]).wait() == [True]


def test_another_ending_of_the_attempt_is_not_taken_for_ones_own(proxied: RealScene, proxy: Proxy, url: str) -> None:
    job = proxied.running()
    proxy.mode = "hang"
    with pytest.raises(EngineBusy):
        proxied.end(job, success(job))
    other = RealScene(open_store(url, clock=SystemClock()))
    assert other.end(job, failure(job, attempt="lost", reason="lost"))
    other.store.close()
    proxy.mode = "pass"
    assert not proxied.end(job, success(job))


def test_a_fetch_whose_reply_was_lost_leaves_jobs_that_the_next_beat_shows(proxied: RealScene, proxy: Proxy) -> None:
    worker = proxied.worker()
    proxied.fetch(worker)
    proxied.enqueue()
    proxy.mode = "eat reply"
    with pytest.raises(EngineUnreachable):
        proxied.fetch(worker)
    assert len(proxied.store.beat(worker, timedelta(seconds=30)).wait().held) == 1


def test_a_call_without_an_answer_ends_by_its_deadline_and_the_store_goes_on(proxied: RealScene, proxy: Proxy) -> None:
    proxied.enqueue()
    proxy.mode = "hang"
    with pytest.raises(EngineBusy, match="took too long"):
        proxied.store.pause("mail", None).wait()
    proxy.mode = "pass"
    assert proxied.store.count(JobFilter()).wait() == 1


async def test_a_call_without_an_answer_ends_by_its_deadline_on_a_loop_too(proxied: RealScene, proxy: Proxy) -> None:
    await proxied.store.now()
    proxy.mode = "hang"
    with pytest.raises(EngineBusy, match="took too long"):
        await proxied.store.pause("mail", None)
    proxy.mode = "pass"
    assert await proxied.store.count(JobFilter()) == 0


def test_the_store_goes_on_after_the_server_crashed_and_came_back(own: RealScene, own_server: PostgresServer) -> None:
    job_id = own.enqueue()
    own_server.stop(signal.SIGQUIT)
    with pytest.raises(EngineUnreachable):
        own.enqueue()
    own_server.start()
    assert own.get(job_id).state == "ready"
    own.enqueue()


def test_a_read_only_phase_is_told_and_passes(own: RealScene, own_server: PostgresServer) -> None:
    own.enqueue()
    own_server.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    own_server.execute("SELECT pg_reload_conf()")
    _until(lambda: _is_refused(own))
    with pytest.raises(EngineUnreachable, match="read-only"):
        own.enqueue()
    assert own.store.count(JobFilter()).wait() >= 1
    with psycopg.connect(own_server.dsn, autocommit=True) as operator:
        operator.execute("SET default_transaction_read_only = off")
        operator.execute("ALTER SYSTEM RESET default_transaction_read_only")
        operator.execute("SELECT pg_reload_conf()")
    _until(lambda: not _is_refused(own))


def _is_refused(scene: RealScene) -> bool:
    try:
        scene.enqueue()
    except EngineUnreachable:
        return True
    return False


def _until(condition: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(500):
        if condition():
            return
        waiting.wait(0.02)
    raise AssertionError("it never came about")


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_whatever_isolation_the_server_is_set_to_no_attempt_is_claimed_twice(
    open_one: Callable[..., PostgresStore], isolation: str
) -> None:
    level = isolation.replace(" ", "\\ ")
    scene = RealScene(open_one(options=f"-cdefault_transaction_isolation={level}"))
    scene.store.enqueue([scene.new_job() for _ in range(200)]).wait()
    workers = [scene.worker(f"worker-{number}") for number in range(4)]
    claimed: list[Job] = []

    def claim(number: int) -> None:
        while jobs := scene.fetch(workers[number], limit=7):
            claimed.extend(jobs)
            assert all(scene.store.commit([ended(job, success(job)) for job in jobs]).wait())

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claimed) == len({job.fence for job in claimed}) == 200


def test_the_cap_on_running_retries_is_exact_though_many_fetch_at_once(scene: RealScene, store: PostgresStore) -> None:
    worker = scene.worker()
    scene.store.enqueue([scene.new_job() for _ in range(60)]).wait()
    jobs = scene.fetch(worker, fresh=60, retry=0)
    again = [ended(job, failure(job, state="ready", delay=timedelta(0))) for job in jobs]
    assert all(store.commit(again).wait())
    got: list[Job] = []

    def claim() -> None:
        for _ in range(10):
            got.extend(scene.fetch(worker, limit=3, fresh=0, retry=3, max_retries_running=5))

    threads = [threading.Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 5


CODES = {
    psycopg.errors.DiskFull: EngineFull,
    psycopg.errors.OutOfMemory: EngineFull,
    psycopg.errors.ReadOnlySqlTransaction: EngineUnreachable,
    psycopg.errors.AdminShutdown: EngineUnreachable,
    psycopg.errors.CrashShutdown: EngineUnreachable,
    psycopg.errors.CannotConnectNow: EngineUnreachable,
    psycopg.errors.QueryCanceled: EngineBusy,
    psycopg.errors.DeadlockDetected: EngineBusy,
    psycopg.errors.SerializationFailure: EngineBusy,
    psycopg.errors.TooManyConnections: EngineBusy,
    psycopg.errors.UndefinedTable: EngineError,
    psycopg.OperationalError: EngineUnreachable,
    NoConnectionError: EngineUnreachable,
    TookTooLongError: EngineBusy,
}


@pytest.mark.parametrize("kind", CODES, ids=lambda kind: kind.__name__)
def test_what_the_driver_raises_is_told_in_perdures_words(kind: type[Exception]) -> None:
    seen = to_perdure_error(kind("it said so"), "the store")
    assert type(seen) is CODES[kind]
    assert "it said so" in str(seen)
