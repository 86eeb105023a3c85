"""Faults of the engine itself: restarts, cut sessions, locks, a full disk; and the engines that they strike."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
import redis
from tests.chaos.crew import Engine
from tests.chaos.faults import LEASE, Fault, Stage, fill_disk
from tests.chaos.fixtures import sqlite_engine
from tests.servers import postgres
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer
from tests.servers.redis_books import audit

from perdure.engines.redis.keys import KEYS


@dataclass(frozen=True, kw_only=True)
class Target:
    """An engine and the faults that only it has."""

    engine: Engine
    faults: tuple[Fault, ...]
    crash: Callable[[], None] = lambda: None
    """Ends the server without a goodbye and starts it again."""


def sqlite_target(directory: Path) -> Iterator[Target]:
    path = directory / "perdure.db"

    def hold_lock(stage: Stage) -> Iterator[float]:
        with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield stage.rng.uniform(0.2, 1.5) * LEASE
            connection.execute("ROLLBACK")

    def hold_snapshot(stage: Stage) -> Iterator[float]:
        with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            yield stage.rng.uniform(1.0, 4.0)

    yield Target(
        engine=next(sqlite_engine(directory)),
        faults=(
            Fault(name="write lock held", strike=hold_lock, uses_store=True),
            Fault(name="old snapshot", strike=hold_snapshot),
            Fault(name="disk full", strike=fill_disk),
        ),
    )


def postgres_target(directory: Path) -> Iterator[Target]:
    with closing(PostgresServer(is_durable=True)) as server:
        url = postgres.make_url(directory, server.dsn)
        schema = postgres.schema_of(directory)

        def restart(_: Stage) -> Iterator[float]:
            # Like `pg_ctl stop -m immediate`: no checkpoint; the start after it recovers from the log.
            server.restart(signal.SIGQUIT)
            yield 0.5

        def stay_away(stage: Stage) -> Iterator[float]:
            server.stop(signal.SIGQUIT)
            yield stage.rng.uniform(0.5, 2.0) * LEASE
            server.start()

        def cut_sessions(_: Stage) -> Iterator[float]:
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
            yield 0.3

        def lock_table(stage: Stage) -> Iterator[float]:
            with psycopg.connect(server.dsn) as connection:
                connection.execute("SET lock_timeout = '10s'")
                connection.execute(f'LOCK TABLE "{schema}".jobs IN ACCESS EXCLUSIVE MODE')
                yield stage.rng.uniform(0.2, 1.5) * LEASE

        def hold_snapshot(stage: Stage) -> Iterator[float]:
            with closing(psycopg.connect(server.dsn)) as connection:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                connection.execute("SELECT count(*) FROM pg_class")
                yield stage.rng.uniform(1.0, 4.0)

        yield Target(
            engine=Engine(url=url, find_damage=list, is_free=lambda: True),
            faults=(
                Fault(name="server restarted", strike=restart, uses_store=True),
                Fault(name="server away", strike=stay_away, uses_store=True),
                Fault(name="sessions cut", strike=cut_sessions, uses_store=True),
                Fault(name="table locked", strike=lock_table, uses_store=True),
                Fault(name="old snapshot", strike=hold_snapshot),
            ),
            crash=lambda: server.restart(signal.SIGQUIT),
        )


def redis_target(directory: Path) -> Iterator[Target]:
    with closing(RedisServer(appendonly="yes", appendfsync="always")) as server:

        def restart(_: Stage) -> Iterator[float]:
            server.restart()
            yield 0.5

        def stay_away(stage: Stage) -> Iterator[float]:
            server.kill()
            yield stage.rng.uniform(0.5, 2.0) * LEASE
            server.start()

        def cut_sessions(_: Stage) -> Iterator[float]:
            server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            yield 0.3

        def pause(stage: Stage) -> Iterator[float]:
            seconds = stage.rng.uniform(0.2, 1.5) * LEASE
            server.ask("CLIENT", "PAUSE", int(seconds * 1000), "ALL")
            yield seconds

        def fail_over(_: Stage) -> Iterator[float]:
            # The server takes another for its primary, ends blocked commands with UNBLOCKED, and refuses writes.
            server.ask("REPLICAOF", "127.0.0.1", "1")
            yield 1.0
            server.ask("REPLICAOF", "NO", "ONE")

        def use_up_server_memory(stage: Stage) -> Iterator[float]:
            server.ask("CONFIG", "SET", "maxmemory", "1mb")
            yield stage.rng.uniform(0.5, 1.5) * LEASE
            server.ask("CONFIG", "SET", "maxmemory", "0")

        def spoil_key(stage: Stage) -> Iterator[float]:
            with server.client() as client:
                name = stage.rng.choice(_KEYS)
                yield from _spoiled(client, f"{{perdure}}:{name}")

        def find_damage() -> list[str]:
            # What a restart reads back is what is on disk.
            server.restart()
            with server.client() as client:
                return audit(client, "{perdure}")

        strikes: dict[str, Callable[[Stage], Iterator[float]]] = {
            "server restarted": restart,
            "server away": stay_away,
            "sessions cut": cut_sessions,
            "server paused": pause,
            "failover": fail_over,
            "no memory in the server": use_up_server_memory,
            "key of a wrong type": spoil_key,
        }
        yield Target(
            engine=Engine(url=server.url, find_damage=find_damage, is_free=lambda: True),
            faults=tuple(Fault(name=name, strike=strike, uses_store=True) for name, strike in strikes.items()),
            crash=server.restart,
        )


_KEYS = ("ready:fresh:default", *(key.name for key in KEYS if "<" not in key.name and key.name != "schema"))


def _spoiled(client: redis.Redis, key: str) -> Iterator[float]:
    """Keep a value of a wrong type under a key for a while; what was there is put back."""
    kept = f"{key}:kept-by-a-test"
    with client.pipeline(transaction=True) as step:
        if client.exists(key):
            step.rename(key, kept)
        step.set(key, "spoiled")
        step.execute()
    yield 1.0
    with client.pipeline(transaction=True) as step:
        step.delete(key)
        if client.exists(kept):
            step.rename(kept, key)
        step.execute()


TARGETS: dict[str, Callable[[Path], Iterator[Target]]] = {
    "sqlite": sqlite_target,
    "postgres": postgres_target,
    "redis": redis_target,
}
"""Each engine with its own faults, on a server that only the test uses."""
