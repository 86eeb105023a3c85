"""The fixtures of tests with real processes: an engine that several processes can share, and a crew working on it.

Tests know a URL only. Another engine is another entry of ENGINES. What depends on the engine is marked `every_engine`;
the rest runs on the first one, and on all of them in the long campaign.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.chaos.crew import Crew, Engine
from tests.servers import postgres
from tests.servers.redis import RedisServer
from tests.servers.redis_books import audit


def sqlite_engine(directory: Path) -> Iterator[Engine]:
    path = directory / "perdure.db"

    def find_damage() -> list[str]:
        with closing(sqlite3.connect(path)) as connection:
            answers = [answer for (answer,) in connection.execute("PRAGMA quick_check")]
        return [answer for answer in answers if answer != "ok"]

    def is_free() -> bool:
        with closing(sqlite3.connect(path, timeout=1.0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            connection.execute("ROLLBACK")
            return True

    yield Engine(url=f"sqlite:///{path}", find_damage=find_damage, is_free=is_free)


def _postgres(directory: Path) -> Iterator[Engine]:
    # A writer of PostgreSQL keeps nobody from writing, and its server looks after its data by itself.
    yield Engine(url=postgres.make_url(directory), find_damage=list, is_free=lambda: True)


def _redis(directory: Path) -> Iterator[Engine]:
    with closing(RedisServer(appendonly="yes", appendfsync="always")) as server:

        def find_damage() -> list[str]:
            # What a restart reads back is what is on disk.
            server.restart()
            with server.client() as client:
                return audit(client, "{perdure}")

        yield Engine(url=server.url, find_damage=find_damage, is_free=lambda: True)


ENGINES: dict[str, Callable[[Path], Iterator[Engine]]] = {
    "sqlite": sqlite_engine,
    "postgres": _postgres,
    "redis": _redis,
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long campaigns, and what another engine would not do differently."""
    if os.environ.get("PERDURE_CHAOS") == "long":
        return
    first = next(iter(ENGINES))
    left_out = []
    for item in items:
        given = getattr(item, "callspec", None)
        engine = given and (given.params.get("engine") or given.params.get("shared_crew"))
        is_alike = engine in ENGINES and engine != first and item.get_closest_marker("every_engine") is None
        if is_alike or item.get_closest_marker("long") is not None:
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Each engine in turn."""
    yield from ENGINES[request.param](tmp_path)


@pytest.fixture
def crew(engine: Engine, tmp_path: Path) -> Iterator[Crew]:
    """Processes on the engine's store; whatever is left of them is ended after the test, and the store is checked."""
    yield from working(engine, tmp_path)


def working(engine: Engine, directory: Path) -> Iterator[Crew]:
    """A crew on an engine, checked and ended when it is done."""
    crew = Crew(engine, directory)
    try:
        yield crew
    finally:
        crew.close()
        # Shown by pytest beside a failure, and by nobody else.
        print(crew.output()[-10_000:])
    assert engine.find_damage() == []
