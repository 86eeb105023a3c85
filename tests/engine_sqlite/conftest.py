"""A SQLite file of its own for each test, and ways to open it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conformance.scene import Scene

from perdure.engines.sqlite.store import SqliteStore, open_sqlite
from perdure.system.clock import VirtualClock

Open = Callable[..., SqliteStore]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def open_file(path: Path, clock: VirtualClock) -> Iterator[Open]:
    """Opens the file, as often as wanted; all are closed at the end."""
    opened: list[SqliteStore] = []

    def open_it(*, auto_migrate: bool = True, is_inline: bool = False) -> SqliteStore:
        opened.append(open_sqlite(str(path), clock, auto_migrate=auto_migrate, is_inline=is_inline))
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(open_file: Open) -> SqliteStore:
    return open_file()


@pytest.fixture
def scene(store: SqliteStore, clock: VirtualClock) -> Scene:
    return Scene(store, clock)


@pytest.fixture
def outsider(path: Path, store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """Another program's connection to the file."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    yield connection
    connection.close()
