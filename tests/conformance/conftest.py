"""The engines that the suite runs on; the only file of it that knows their names."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conformance.scene import Scene
from tests.servers import postgres, redis
from tests.servers.damage import Damager, postgres_damager, redis_damager, sqlite_damager

from perdure.engines.opener import open_store
from perdure.engines.set_aside import forget_named
from perdure.store import Store
from perdure.system.clock import Clock, VirtualClock


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach one engine: a URL of a new, empty store, and a caller's own connection to it."""

    name: str
    make_url: Callable[[Path], str]
    connect: Callable[[Path], AbstractContextManager[Any]] | None = None
    find_damage: Callable[[Path], list[str]] = lambda directory: []
    """What is wrong with what the engine keeps, looked at from outside; empty when all is well."""
    make_damager: Callable[[Path], Damager] | None = None
    """What can damage its records from outside; None for a store that nobody else can open."""


ENGINES = (
    Engine(
        name="sqlite-file",
        make_url=lambda directory: f"sqlite:///{directory}/store.db",
        connect=lambda directory: closing(sqlite3.connect(directory / "store.db")),
        make_damager=sqlite_damager,
    ),
    Engine(name="sqlite-memory", make_url=lambda directory: "sqlite://"),
    Engine(
        name="postgres",
        make_url=postgres.make_url,
        connect=lambda directory: closing(postgres.connect(directory)),
        make_damager=postgres_damager,
    ),
    Engine(name="redis", make_url=redis.make_url, find_damage=redis.find_damage, make_damager=redis_damager),
)


_IN_MEMORY_TOO = {"test_batches", "test_commit", "test_enqueue", "test_fetch", "test_get", "test_reply", "test_wakeups"}
"""The files that run on a private SQLite database as well. Its verbs are those of a file; only their way to the one
connection, the replies and the wake-ups differ, and these files use them. tests/stateful runs all verbs on it."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def is_wanted(item: pytest.Item) -> bool:
        return (
            "[sqlite-memory" not in item.name
            or item.path.parent != Path(__file__).parent
            or item.path.stem in _IN_MEMORY_TOO
        )

    left_out = [item for item in items if not is_wanted(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if is_wanted(item)]


@pytest.fixture(params=ENGINES, ids=[engine.name for engine in ENGINES])
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def url(engine: Engine, tmp_path: Path) -> str:
    return engine.make_url(tmp_path)


@pytest.fixture
def open_again(url: str, store: Store) -> Iterator[Callable[[Clock], Store]]:
    """Opens the same store once more, as another process would."""
    if not store.capabilities.is_shared:
        pytest.skip("the store is private to whoever opened it")
    opened: list[Store] = []

    def open_one_more(clock: Clock) -> Store:
        opened.append(open_store(url, clock=clock))
        return opened[-1]

    yield open_one_more
    for other in opened:
        other.close()


@pytest.fixture
def connection(engine: Engine, store: Store, tmp_path: Path) -> Iterator[Any]:
    """A caller's own connection to the store."""
    if not store.capabilities.has_caller_transactions:
        pytest.skip("the engine cannot enqueue inside a caller's transaction")
    assert engine.connect is not None
    with engine.connect(tmp_path) as opened:
        yield opened


@pytest.fixture
def store(
    engine: Engine, url: str, clock: VirtualClock, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Store]:
    opened = open_store(url, clock=clock)
    yield opened
    opened.close()
    if request.node.get_closest_marker("leaves_damage") is None:
        assert engine.find_damage(tmp_path) == []


@pytest.fixture
def damager(engine: Engine, store: Store, tmp_path: Path) -> Iterator[Damager]:
    """Damages the store's records from outside."""
    if engine.make_damager is None:
        pytest.skip("the store is private to whoever opened it")
    forget_named()
    made = engine.make_damager(tmp_path)
    yield made
    made.close()


@pytest.fixture
def scene(store: Store, clock: VirtualClock) -> Scene:
    return Scene(store, clock)
