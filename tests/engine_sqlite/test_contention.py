"""Other programs on the same file: locks are waited for, and a lock without end is a clear error."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.conformance.scene import Scene
from tests.engine_sqlite.conftest import Open

from perdure.engines.sqlite import connection as connections
from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import EngineBusy
from perdure.store.reads import JobFilter

HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(3)
connection.execute("COMMIT")
"""

PRODUCE = """
import sys
from perdure.system.clock import SystemClock
from perdure.engines.opener import open_store
from perdure.model.job import NewJob
store = open_store("sqlite:///" + sys.argv[1], clock=SystemClock())
for number in range(100):
    store.enqueue([NewJob(id=f"{sys.argv[2]}-{number}", task="send", queue="mail", args=b"{}")]).wait()
store.close()
"""


def test_a_lock_held_for_three_seconds_is_waited_for(scene: Scene, path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        job_id = scene.enqueue()
        assert holder.wait() == 0
    assert scene.get(job_id).state == "ready"


def test_a_lock_without_end_is_a_clear_error_and_work_goes_on_after_it(
    monkeypatch: pytest.MonkeyPatch, open_file: Open, clock: object, path: Path
) -> None:
    monkeypatch.setattr(connections, "BUSY_TIMEOUT", 0.01)
    monkeypatch.setattr(connections, "CLAIM_TRIES", 3)
    store = open_file()
    scene = Scene(store, clock)  # type: ignore[arg-type]
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(EngineBusy, match="locked"):
        scene.enqueue()
    assert store.count(JobFilter()).wait() == 0
    holder.execute("COMMIT")
    holder.close()
    assert scene.enqueue()


def test_several_processes_write_to_one_file_without_an_error(store: SqliteStore, path: Path) -> None:
    producers = [
        subprocess.Popen([sys.executable, "-c", PRODUCE, str(path), str(number)], stderr=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    errors = [producer.communicate()[1] for producer in producers]
    assert errors == [""] * 4
    assert store.count(JobFilter()).wait() == 400


def test_reads_do_not_wait_for_writers(scene: Scene, store: SqliteStore, outsider: sqlite3.Connection) -> None:
    job_id = scene.enqueue()
    outsider.execute("BEGIN IMMEDIATE")
    outsider.execute("DELETE FROM perdure_jobs")
    assert scene.get(job_id).state == "ready"
    outsider.execute("ROLLBACK")


def test_a_process_killed_inside_a_transaction_leaves_nothing_half_done(scene: Scene, path: Path) -> None:
    script = HOLD.replace('print("held"', 'connection.execute("DELETE FROM perdure_jobs"); print("held"')
    job_id = scene.enqueue()
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
    assert scene.get(job_id).state == "ready"
    assert scene.enqueue()


def test_many_threads_of_readers_get_whole_answers(scene: Scene, store: SqliteStore) -> None:
    ids = store.enqueue([scene.new_job() for _ in range(100)]).wait()
    wrong: list[object] = []

    def read() -> None:
        for _ in range(30):
            if [job and job.id for job in store.get(ids).wait()] != ids:
                wrong.append("torn")

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
