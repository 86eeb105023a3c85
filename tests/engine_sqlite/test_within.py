"""enqueue_within on SQLite: any connection to the file will do, however it is set up, and no other."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.conformance.scene import Scene
from tests.engine_sqlite.conftest import Open

from perdure.engines.sqlite.store import open_sqlite
from perdure.errors import EngineBusy, Unsupported
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock


def test_a_row_factory_or_text_factory_does_not_matter_and_stays(scene: Scene, path: Path) -> None:
    first = scene.enqueue(unique="7")
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    connection.text_factory = bytes
    assert scene.store.enqueue_within(connection, [scene.new_job(unique="7")]) == [first]
    assert connection.row_factory is sqlite3.Row
    assert connection.text_factory is bytes
    connection.rollback()
    connection.close()


def test_nothing_is_begun_or_committed_for_the_caller(scene: Scene, path: Path) -> None:
    connection = sqlite3.connect(path)
    assert not connection.in_transaction
    scene.store.enqueue_within(connection, [scene.new_job()])
    assert connection.in_transaction
    connection.rollback()
    connection.close()


def test_in_autocommit_mode_jobs_are_durable_at_once(scene: Scene, outsider: sqlite3.Connection) -> None:
    (job_id,) = scene.store.enqueue_within(outsider, [scene.new_job()])
    assert scene.get(job_id).state == "ready"


def test_a_connection_to_another_file_is_refused(scene: Scene, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    with pytest.raises(Unsupported, match=r"other\.db"):
        scene.store.enqueue_within(connection, [scene.new_job()])
    connection.close()


def test_a_connection_to_memory_is_refused(scene: Scene) -> None:
    connection = sqlite3.connect(":memory:")
    with pytest.raises(Unsupported, match="in memory"):
        scene.store.enqueue_within(connection, [scene.new_job()])
    connection.close()


def test_a_store_in_memory_says_why_it_cannot(clock: VirtualClock) -> None:
    store = open_sqlite(None, clock, auto_migrate=True, is_inline=True)
    connection = sqlite3.connect(":memory:")
    with pytest.raises(Unsupported, match="private to this process"):
        store.enqueue_within(connection, [Scene(store, clock).new_job()])
    connection.close()
    store.close()


def test_a_link_to_the_file_is_the_file(scene: Scene, path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    connection = sqlite3.connect(link)
    scene.store.enqueue_within(connection, [scene.new_job()])
    connection.commit()
    connection.close()
    assert scene.store.count(JobFilter()).wait() == 1


def test_a_caller_that_meets_a_lock_gets_a_perdure_error(
    scene: Scene, path: Path, outsider: sqlite3.Connection
) -> None:
    connection = sqlite3.connect(path, timeout=0)
    outsider.execute("BEGIN IMMEDIATE")
    with pytest.raises(EngineBusy):
        scene.store.enqueue_within(connection, [scene.new_job()])
    outsider.execute("COMMIT")
    connection.close()


def test_many_jobs_in_one_transaction_all_commit(scene: Scene, open_file: Open, path: Path) -> None:
    connection = sqlite3.connect(path)
    jobs = [scene.new_job() for _ in range(700)]
    assert scene.store.enqueue_within(connection, jobs) == [job.id for job in jobs]
    connection.commit()
    connection.close()
    assert scene.store.count(JobFilter()).wait() == 700
