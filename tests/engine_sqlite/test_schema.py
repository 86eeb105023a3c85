"""The schema: made when the file is opened, safely beside others; refused when it is newer; its constraints hold."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from tests.conformance.scene import Scene
from tests.engine_sqlite.conftest import Open

from perdure.engines.migrator import migrations, wanted_version
from perdure.engines.sqlite.schema import PACKAGE
from perdure.engines.sqlite.store import SqliteStore, open_sqlite
from perdure.errors import EngineError, EngineUnreachable, SchemaTooNew, SchemaTooOld
from perdure.model.state import DELIVERIES, ENDED, LANES, STATES
from perdure.system.clock import VirtualClock

NOBODY = "00000000-0000-7000-8000-000000000000"


def tables(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").fetchall()
    finally:
        connection.close()
    return {name for (name,) in rows}


def test_a_new_file_gets_the_newest_schema(store: SqliteStore, path: Path) -> None:
    status = store.schema().wait()
    assert (status.found, status.wanted) == (wanted_version(PACKAGE), wanted_version(PACKAGE))
    assert all(name.startswith("perdure_") for name in tables(path))


def test_migrations_are_numbered_without_gaps() -> None:
    assert [migration.version for migration in migrations(PACKAGE)] == list(range(1, wanted_version(PACKAGE) + 1))


def test_opening_again_changes_nothing(open_file: Open, path: Path, outsider: sqlite3.Connection) -> None:
    before = outsider.execute("SELECT version, applied_at FROM perdure_schema").fetchall()
    open_file().close()
    assert outsider.execute("SELECT version, applied_at FROM perdure_schema").fetchall() == before


def test_a_newer_file_is_refused_with_both_versions(open_file: Open, outsider: sqlite3.Connection) -> None:
    outsider.execute("INSERT INTO perdure_schema (version, applied_at) VALUES (999, 0)")
    with pytest.raises(SchemaTooNew, match=rf"999.*{wanted_version(PACKAGE)}.*Upgrade"):
        open_file()


def test_an_older_file_is_refused_when_migrating_is_not_wanted(open_file: Open, path: Path) -> None:
    with pytest.raises(SchemaTooOld, match="perdure db migrate"):
        open_file(auto_migrate=False)
    assert tables(path) == set()


def test_a_current_file_opens_without_migrating(open_file: Open) -> None:
    open_file().close()
    assert open_file(auto_migrate=False).schema().wait().is_current


def test_a_file_of_the_first_version_is_migrated_with_what_it_holds(open_file: Open, path: Path) -> None:
    old = sqlite3.connect(path)
    old.executescript(migrations(PACKAGE)[0].text)
    old.execute("INSERT INTO perdure_schema (version, applied_at) VALUES (1, 0)")
    old.execute("INSERT INTO perdure_queues (name, paused_at, pause_reason) VALUES ('mail', 5, 'upgrade')")
    insert(old)
    old.commit()
    old.close()
    store = open_file()
    (queue,) = store.queues().wait()
    assert (queue.ready, queue.is_paused, queue.pause_reason, queue.paused_until) == (1, True, "upgrade", None)
    assert store.settings().wait() == {}
    assert store.resume("mail").wait() is True


def test_many_openers_at_once_all_get_a_working_store(path: Path) -> None:
    gate = threading.Barrier(8)
    answers: list[object] = []

    def open_and_enqueue(number: int) -> None:
        gate.wait()
        try:
            store = open_sqlite(str(path), VirtualClock(), auto_migrate=True, is_inline=False)
            scene = Scene(store, VirtualClock())
            answers.append(scene.enqueue(id=f"job-{number}"))
            store.close()
        except BaseException as error:
            answers.append(error)

    threads = [threading.Thread(target=open_and_enqueue, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, answers)) == [f"job-{number}" for number in range(8)]


def test_an_applications_own_tables_are_left_alone(open_file: Open, path: Path) -> None:
    own = sqlite3.connect(path)
    own.execute("CREATE TABLE orders (id INTEGER)")
    own.execute("INSERT INTO orders VALUES (7)")
    own.execute("PRAGMA user_version = 12")
    own.commit()
    assert open_file().schema().wait().is_current
    assert own.execute("SELECT id FROM orders").fetchall() == [(7,)]
    assert own.execute("PRAGMA user_version").fetchone() == (12,)
    own.close()


def test_a_migration_that_fails_leaves_nothing_behind(open_file: Open, path: Path) -> None:
    own = sqlite3.connect(path)
    own.execute("CREATE TABLE perdure_queues (something INTEGER)")
    own.commit()
    own.close()
    with pytest.raises(EngineError):
        open_file()
    assert tables(path) == {"perdure_queues"}


def test_a_file_of_something_else_is_refused(open_file: Open, path: Path) -> None:
    path.write_bytes(b"these are my tax papers, not a database\n" * 100)
    before = path.read_bytes()
    with pytest.raises(EngineUnreachable, match="another file name"):
        open_file()
    assert path.read_bytes() == before


def insert(connection: sqlite3.Connection, **changes: object) -> None:
    values = {
        "id": NOBODY,
        "task": "send",
        "queue": "mail",
        "state": "ready",
        "lane": "fresh",
        "priority": 0,
        "run_at": 0,
        "delivery": "at_least_once",
        "created_at": 0,
        "args": "{}",
        **changes,
    }
    names = ", ".join(values)
    places = ", ".join(f":{name}" for name in values)
    connection.execute(f"INSERT INTO perdure_jobs ({names}) VALUES ({places})", values)


def test_the_sets_of_the_model_are_the_sets_of_the_schema(outsider: sqlite3.Connection) -> None:
    for state in STATES:
        ended = {"ended_at": 1, "fingerprint": "0"} if state in ENDED else {}
        running = {"worker": "worker-1"} if state == "running" else {}
        insert(outsider, id=state, state=state, **ended, **running)
    for lane in LANES:
        insert(outsider, id=lane, lane=lane)
    for delivery in DELIVERIES:
        insert(outsider, id=delivery, delivery=delivery)


@pytest.mark.parametrize(
    "broken",
    [
        {"state": "lost"},
        {"state": "lost", "ended_at": 1},
        {"lane": "slow"},
        {"delivery": "exactly_once"},
        {"state": "running"},
        {"worker": "worker-1"},
        {"state": "succeeded"},
        {"ended_at": 1},
        {"state": "dead", "ended_at": 1},
        {"is_cancelling": 1},
        {"is_cancelling": 2, "state": "running", "worker": "worker-1"},
        {"attempt": -1},
        {"failures": -1},
        {"recoveries": -1},
        {"priority": 101},
        {"priority": -101},
    ],
)
def test_the_constraints_state_the_invariants(outsider: sqlite3.Connection, broken: dict[str, object]) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        insert(outsider, **broken)


def test_two_live_jobs_cannot_have_one_unique_key(outsider: sqlite3.Connection) -> None:
    insert(outsider, id="1", unique_key="7")
    insert(outsider, id="2", unique_key="7", state="succeeded", ended_at=1)
    with pytest.raises(sqlite3.IntegrityError):
        insert(outsider, id="3", unique_key="7", state="running", worker="worker-1")
