"""Hints between processes: few, mended when the connection breaks, and off when they are switched off."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest
from tests.engine_postgres.scene import RealScene
from tests.servers import postgres

from perdure.engines.postgres.address import read_address
from perdure.engines.postgres.enqueue import Hint
from perdure.engines.postgres.store import PostgresStore
from perdure.engines.postgres.wakeup import PostgresWakeups, channel_of
from perdure.errors import EngineError
from perdure.system.clock import VirtualClock

PATIENCE = 60.0
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


class Paced:
    """A source of hints whose time stands still, and a listener to what it sends by itself."""

    def __init__(self, url: str, schema: str, listening: psycopg.Connection[tuple[object, ...]]) -> None:
        self._clock = VirtualClock()
        self._listening = listening
        self.wakeups = PostgresWakeups(
            read_address(url.removeprefix("postgresql://")), "me", has_thread=True, clock=self._clock
        )
        self._listening.execute(f'LISTEN "{channel_of(schema)}"')

    def after(self, milliseconds: float) -> Paced:
        self._clock.advance(timedelta(milliseconds=milliseconds))
        return self

    def enqueue(self, took: float = 0.5) -> bool:
        """Make a job; whether the statement carried a hint."""
        hint = self.wakeups.turn()
        self.after(took)
        if hint.channel is not None:
            self.wakeups.sent()
        self.wakeups.hint(is_sent=hint.channel is not None)
        return hint.channel is not None

    def heard(self, within: float) -> int:
        """How many hints the thread has sent, after the first for so long at most."""
        return sum(1 for _ in self._listening.notifies(timeout=within, stop_after=1))


@pytest.fixture
def paced(url: str, dsn: str, schema: str) -> Iterator[Paced]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        made = Paced(url, schema, connection)
        yield made
        made.wakeups.close()


def test_jobs_that_come_one_by_one_are_each_announced_by_their_own_statement(paced: Paced) -> None:
    assert [paced.after(5).enqueue() for _ in range(20)] == [True] * 20
    paced.after(1000)
    assert paced.heard(within=0.2) == 0


def test_a_single_slow_commit_does_not_keep_the_next_job_quiet(paced: Paced) -> None:
    assert paced.after(1000).enqueue(took=300)  # the first has its connection to open
    for _ in range(3):
        assert [paced.after(5).enqueue() for _ in range(2)] == [True] * 2
        assert paced.after(5).enqueue(took=20)
    paced.after(1000)
    assert paced.heard(within=0.2) == 0


def test_where_commits_are_slow_hints_are_rare(paced: Paced) -> None:
    assert [paced.after(1).enqueue(took=10) for _ in range(7)] == [True, True, False, True, False, True, False]


def test_a_busy_producer_announces_its_jobs_now_and_then_and_sends_nothing_besides(paced: Paced) -> None:
    paced.after(1000)
    carried = [paced.enqueue() for _ in range(200)]
    # A hundred milliseconds of work.
    assert carried[0]
    assert 10 <= sum(carried) <= 20
    gaps = [len(part) for part in "".join(map(str, map(int, carried))).split("1")]
    assert max(gaps) <= 16, "nobody waits for longer than the gap of the busy"
    assert paced.heard(within=0.2) == 0


def test_the_last_of_many_jobs_is_announced_by_itself(paced: Paced) -> None:
    paced.after(1000)
    for _ in range(5):
        assert paced.enqueue()
        assert not paced.enqueue()
        paced.after(500)
        assert paced.heard(within=PATIENCE) == 1
        paced.after(500)


def test_a_hint_that_was_carried_is_not_sent_again(paced: Paced) -> None:
    paced.after(1000)
    assert [paced.enqueue(), paced.enqueue()] == [True, False]
    assert paced.after(3).enqueue()
    paced.after(1000)
    assert paced.heard(within=0.3) == 0


def test_what_was_owed_is_owed_again_when_its_statement_failed(paced: Paced) -> None:
    paced.after(1000)
    assert [paced.enqueue(), paced.enqueue()] == [True, False]
    hint = paced.after(3).wakeups.turn()
    assert hint.channel is not None
    paced.wakeups.failed(hint)
    paced.after(1000)
    assert paced.heard(within=PATIENCE) == 1


def test_a_statement_that_failed_and_carried_nothing_else_owes_nothing(paced: Paced) -> None:
    paced.after(1000)
    paced.wakeups.failed(paced.wakeups.turn())
    paced.wakeups.failed(Hint())
    paced.after(1000)
    assert paced.heard(within=0.3) == 0


def test_a_job_made_while_another_statement_carries_a_hint_is_announced_too(paced: Paced) -> None:
    paced.after(1000)
    hint = paced.wakeups.turn()
    paced.wakeups.hint()
    # The hint may have gone before that job was there.
    paced.wakeups.sent()
    paced.wakeups.hint(is_sent=hint.channel is not None)
    paced.after(1000)
    assert paced.heard(within=PATIENCE) == 1


def test_an_enqueue_that_fails_leaves_what_was_owed_before_it(
    store: PostgresStore, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Hint] = []
    monkeypatch.setattr(store.wakeups, "failed", told.append)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ALTER TABLE jobs RENAME TO gone")
    with pytest.raises(EngineError):
        RealScene(store).enqueue()
    assert len(told) == 1


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
