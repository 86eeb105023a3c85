"""The servers of a run, one of each engine, and a fresh store on them for each measurement."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

from bench.catalogue import POSTGRES, REDIS, SQLITE


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

    settings = "synchronous_commit=on, fsync=on"

    def __init__(self) -> None:
        self._server = PostgresServer(is_durable=True)
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

    settings = "appendonly yes, appendfsync everysec"

    def __init__(self) -> None:
        self._port = free_port()
        self._server = RedisServer(
            port=str(self._port), bind="127.0.0.1", appendonly="yes", appendfsync="everysec", databases="16"
        )

    def fresh(self) -> str:
        self._server.ask("FLUSHALL", "SYNC")
        self._server.ask("SCRIPT", "FLUSH")
        return f"redis://127.0.0.1:{self._port}/0"

    def forget(self, url: str) -> None:
        self._server.ask("FLUSHALL", "SYNC")

    def close(self) -> None:
        self._server.close()


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
