"""Hints between processes: few, mended when the connection breaks, and off when they are switched off."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
from tests.engine_postgres.scene import RealScene
from tests.servers import postgres

from perdure.engines.postgres.store import PostgresStore
from perdure.engines.postgres.wakeup import channel_of

PATIENCE = 20.0
LISTENERS = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND query LIKE 'LISTEN%%'"


class Ear:
    """A subscriber that counts and can be waited for."""

    def __init__(self, store: PostgresStore) -> None:
        self.count = 0
        self._heard = threading.Event()
        self.stop = store.wakeups.subscribe(self._hear)
        assert self._heard.wait(PATIENCE), "listening begins with a hint: something may have been missed"
        self._heard.clear()

    def _hear(self) -> None:
        self.count += 1
        self._heard.set()

    def hears(self, what: Callable[[], object]) -> bool:
        self._heard.clear()
        what()
        return self._heard.wait(PATIENCE)


def listeners(name: str) -> list[int]:
    with psycopg.connect(postgres.shared_server()) as operator:
        return [pid for (pid,) in operator.execute(LISTENERS, [name]).fetchall()]


def test_a_listener_whose_session_was_killed_listens_again(open_one: Callable[..., PostgresStore], schema: str) -> None:
    listening, other = open_one(application_name=f"ear {schema}"), RealScene(open_one())
    ear = Ear(listening)
    (pid,) = listeners(f"ear {schema}")
    with psycopg.connect(postgres.shared_server(), autocommit=True) as operator:
        # It wakes its subscribers once it listens again: what it missed may have been for them.
        assert ear.hears(lambda: operator.execute("SELECT pg_terminate_backend(%s, 5000)", [pid]))
    assert listeners(f"ear {schema}") != [pid]
    assert ear.hears(other.enqueue)
    ear.stop()


def test_many_enqueues_are_few_hints(open_one: Callable[..., PostgresStore], dsn: str, schema: str) -> None:
    scene = RealScene(open_one())
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f'LISTEN "{channel_of(schema)}"')
        for _ in range(200):
            scene.enqueue()
        scene.store.close()
        count = sum(1 for _ in connection.notifies(timeout=0.5))
    assert 1 <= count < 150


def test_the_last_of_many_enqueues_is_heard_by_others(open_one: Callable[..., PostgresStore]) -> None:
    ear, other = Ear(open_one()), RealScene(open_one())
    for _ in range(5):
        other.enqueue()
        assert ear.hears(other.enqueue)
    ear.stop()


def test_two_schemas_of_a_database_do_not_wake_each_other(open_one: Callable[..., PostgresStore], schema: str) -> None:
    assert channel_of(schema) != channel_of("perdure")
    assert channel_of("a" * 63) != channel_of("a" * 62 + "b")


def test_switched_off_nobody_listens_and_nobody_is_notified(
    open_one: Callable[..., PostgresStore], dsn: str, schema: str
) -> None:
    quiet = open_one(listen="false", application_name=f"quiet {schema}")
    heard: list[str] = []
    quiet.wakeups.subscribe(lambda: heard.append("wake"))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f'LISTEN "{channel_of(schema)}"')
        RealScene(quiet).enqueue()
        quiet.close()
        assert list(connection.notifies(timeout=0.3)) == []
    assert heard == ["wake"], "its own process is woken all the same"
    assert listeners(f"quiet {schema}") == []
    assert [thread.name for thread in threading.enumerate() if "perdure-postgres" in thread.name] == []
