"""One open PostgreSQL store in real time, a scene on it, and the server behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.engine_postgres.scene import RealScene
from tests.servers import postgres

from perdure.engines.opener import open_store
from perdure.engines.postgres.store import PostgresStore
from perdure.system.clock import SystemClock


@pytest.fixture
def schema(tmp_path: Path) -> str:
    return postgres.schema_of(tmp_path)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres.make_url(tmp_path)


@pytest.fixture
def open_one(url: str) -> Iterator[Callable[..., PostgresStore]]:
    """Opens the store, with more options in its URL; closed after the test."""
    opened: list[PostgresStore] = []

    def open_it(server_url: str | None = None, **options: str) -> PostgresStore:
        store = open_store(postgres.with_options(server_url or url, **options), clock=SystemClock())
        assert isinstance(store, PostgresStore)
        opened.append(store)
        return store

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(open_one: Callable[..., PostgresStore]) -> PostgresStore:
    return open_one()


@pytest.fixture
def scene(store: PostgresStore) -> RealScene:
    return RealScene(store)


@pytest.fixture
def dsn(tmp_path: Path, url: str) -> str:
    """Where a caller's own connections go."""
    return postgres.caller_dsn(tmp_path)


@pytest.fixture
def caller(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A caller's own connection, whose tables are beside the store's."""
    with psycopg.connect(dsn) as connection:
        yield connection


@pytest.fixture(scope="module")
def own_server() -> Iterator[postgres.PostgresServer]:
    """A server of the module's own, to be stopped and restarted."""
    server = postgres.PostgresServer(is_durable=True)
    yield server
    server.close()
