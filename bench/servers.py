"""The servers of a run, one of each engine, and a fresh store on them for each measurement."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

from bench.allocator import jemalloc
from bench.catalogue import POSTGRES, REDIS, SQLITE

BUFFERS = "1GB"
"""What PostgreSQL may keep in memory; with its small default a million jobs are read and written again and again."""
LOG = "8GB"
"""How much PostgreSQL may log before it makes a checkpoint by itself, after which every page that is touched is logged
whole: whoever is measured just then would pay for it, so there is one before each measurement and none in it."""
PATIENCE = 60.0
"""How long a server may take to rewrite its log, in seconds."""


class Server(Protocol):
    """Where stores are."""

    def fresh(self) -> str:
        """The URL of an empty store."""
        ...

    def forget(self, url: str) -> None:
        """Remove it."""
        ...

    def close(self) -> None:
        """End the server and remove what it left."""
        ...

    @property
    def settings(self) -> str:
        """What was said to it about durability."""
        ...


class Sqlite:
    """A file of its own for each."""

    settings = "WAL, synchronous=FULL"

    def __init__(self) -> None:
        self._folders: dict[str, tempfile.TemporaryDirectory[str]] = {}

    def fresh(self) -> str:
        folder = tempfile.TemporaryDirectory(prefix="pd-bench-")
        url = f"sqlite:///{Path(folder.name) / 'jobs.db'}"
        self._folders[url] = folder
        return url

    def forget(self, url: str) -> None:
        self._folders.pop(url).cleanup()

    def close(self) -> None:
        for url in list(self._folders):
            self.forget(url)


class Postgres:
    """A database of its own for each."""

    settings = f"synchronous_commit=on, fsync=on, shared_buffers={BUFFERS}, checkpoints between measurements only"

    def __init__(self) -> None:
        self._server = PostgresServer(
            is_durable=True, shared_buffers=BUFFERS, max_wal_size=LOG, checkpoint_timeout="1h"
        )
        self._numbers = itertools.count(1)

    def fresh(self) -> str:
        name = f"bench_{next(self._numbers)}"
        self._server.execute(f"CREATE DATABASE {name}")
        # What the last measurement left to write must not fall on this one.
        self._server.execute("CHECKPOINT")
        return self._server.dsn.removesuffix("postgres") + name

    def forget(self, url: str) -> None:
        self._server.execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    def close(self) -> None:
        self._server.close()


class Redis:
    """The whole server, emptied, over TCP on loopback: not every peer speaks to a socket."""

    def __init__(self) -> None:
        self._port = free_port()
        self._allocator = jemalloc()
        self._server = RedisServer(
            preload=self._allocator,
            port=str(self._port),
            bind="127.0.0.1",
            appendonly="yes",
            appendfsync="everysec",
            databases="16",
            **{"auto-aof-rewrite-percentage": "0"},
        )

    def fresh(self) -> str:
        self._server.ask("FLUSHALL", "SYNC")
        self._server.ask("SCRIPT", "FLUSH")
        self._rewrite_log()
        return f"redis://127.0.0.1:{self._port}/0"

    def forget(self, url: str) -> None:
        self._server.ask("FLUSHALL", "SYNC")

    def close(self) -> None:
        self._server.close()

    @property
    def settings(self) -> str:
        allocator = "the C library's allocator" if self._allocator is None else "jemalloc"
        return f"appendonly yes, appendfsync everysec, its log rewritten between measurements only; {allocator}"

    def _rewrite_log(self) -> None:
        """Drop what was logged of stores that are gone.

        Left to itself, the server does it whenever the log has doubled: by a fork, whose pages are copied as they are
        written to for seconds after, so that whoever is measured just then would have half its rate.
        """
        self._server.ask("BGREWRITEAOF")
        deadline = time.monotonic() + PATIENCE
        while _is_rewriting(self._server.ask("INFO", "persistence")):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the server was still rewriting its log after {PATIENCE:.0f} s")
            time.sleep(0.01)


def _is_rewriting(persistence: dict[str, Any]) -> bool:
    return bool(persistence["aof_rewrite_in_progress"] or persistence["aof_rewrite_scheduled"])


KINDS: dict[str, Callable[[], Server]] = {SQLITE: Sqlite, POSTGRES: Postgres, REDIS: Redis}


@contextmanager
def started(engines: tuple[str, ...]) -> Iterator[dict[str, Server]]:
    """One server of each of these engines."""
    with ExitStack() as stack:
        servers: dict[str, Server] = {}
        for engine in engines:
            server = KINDS[engine]()
            stack.callback(server.close)
            servers[engine] = server
        yield servers
