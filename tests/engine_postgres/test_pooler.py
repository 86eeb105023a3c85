"""Through a pooler in transaction mode the suite's hot verbs hold, and nothing is kept in a session."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.conformance.conftest import Engine, clock, open_again, scene, store
from tests.conformance.scene import Scene, success
from tests.conformance.test_commit import *  # noqa: F403 - the suite's own tests, on another way to the server
from tests.conformance.test_fetch import *  # noqa: F403 - the same
from tests.conformance.test_workers import *  # noqa: F403 - the same
from tests.engine_postgres.scene import RealScene
from tests.servers import postgres
from tests.servers.pooler import Pooler

from perdure.engines.opener import open_store
from perdure.store.reads import JobFilter
from perdure.system.clock import SystemClock, VirtualClock

__all__ = ["clock", "open_again", "scene", "store"]

KEPT = re.compile(r"\s*(SET|LISTEN|DECLARE|PREPARE|DISCARD|CREATE TEMP)\b|pg_advisory_lock", re.IGNORECASE)


@pytest.fixture(scope="module")
def pooler() -> Iterator[Pooler]:
    parts = urlsplit(postgres.shared_server())
    assert parts.hostname is not None
    made = Pooler(parts.hostname, parts.port or 5432, parts.username or "postgres", parts.path[1:])
    yield made
    made.close()


@pytest.fixture
def engine() -> Engine:
    return Engine(name="postgres behind a pooler", make_url=postgres.make_url)


@pytest.fixture
def url(pooler: Pooler, tmp_path: object) -> str:
    direct = postgres.make_url(tmp_path)  # type: ignore[arg-type] - a path, as pytest gives it
    parts = urlsplit(postgres.with_options(direct, pooler="true"))
    return parts._replace(netloc=f"{parts.username}@127.0.0.1:{pooler.port}").geturl()


async def test_nothing_is_kept_in_a_session(pooler: Pooler, scene: Scene, url: str) -> None:
    pooler.statements.clear()
    stop = scene.store.wakeups.subscribe(lambda: None)
    worker = scene.worker()
    for _ in range(12):
        scene.enqueue(unique="7")
        await scene.store.enqueue([scene.new_job()])
        scene.fetch(worker, max_retries_running=3)
        await scene.store.count(JobFilter())
        scene.store.replay(JobFilter(), 5, scene.clock.now() - scene.clock.now()).wait()
    stop()
    scene.store.close()
    open_store(url, clock=VirtualClock(), auto_migrate=True).close()
    assert len(pooler.statements) > 60
    assert pooler.names == {""}
    assert [text for text in pooler.statements if KEPT.match(text)] == []
    assert len(pooler.transactions) > 1, "the sessions took turns"


def test_a_pooler_that_nobody_told_of_is_noticed_and_nothing_is_kept_there(pooler: Pooler, url: str) -> None:
    unsaid = open_store(url.replace("pooler=true", "listen=false"), clock=SystemClock())
    pooler.statements.clear()
    pooler.names.clear()
    scene = RealScene(unsaid)
    for _ in range(6):
        job = scene.running()
        assert scene.end(job, success(job))
    unsaid.close()
    assert pooler.names == {""}
    assert [text for text in pooler.statements if KEPT.match(text)] == []
    assert pooler_settings(pooler) == {"on"}, "no session that others get was changed"


def pooler_settings(pooler: Pooler) -> set[str]:
    """What each session behind the pooler has for a setting that plans that are kept would change."""
    dsn = urlsplit(postgres.shared_server())._replace(netloc=f"postgres@127.0.0.1:{pooler.port}", query="").geturl()
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        rows = [connection.execute("SHOW enable_seqscan").fetchone() for _ in range(6)]
    return {row[0] for row in rows if row}


def test_a_wakeup_comes_from_this_process_at_least(scene: Scene) -> None:
    heard: list[str] = []
    stop: Callable[[], None] = scene.store.wakeups.subscribe(lambda: heard.append("wake"))
    scene.enqueue()
    stop()
    assert heard == ["wake"]
