"""The plans of the statements that run all the time: by index, whatever SQLite believes about the tables' sizes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.engines.sqlite import commit
from perdure.engines.sqlite.batch import SIZES
from perdure.engines.sqlite.connection import connect
from perdure.engines.sqlite.filter import filtered
from perdure.engines.sqlite.schema import migrate
from perdure.engines.sqlite.sql import statement
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock

READY = "SEARCH perdure_jobs USING COVERING INDEX perdure_jobs_ready (queue=? AND lane=?)"
RUNNING = "SEARCH perdure_jobs USING INDEX perdure_jobs_running (worker=?)"
WAITING = "SEARCH perdure_jobs USING COVERING INDEX perdure_jobs_waiting"
BY_ROWID = "SEARCH perdure_jobs USING INTEGER PRIMARY KEY (rowid=?)"
BY_ID = "SEARCH perdure_jobs USING INDEX sqlite_autoindex_perdure_jobs_1 (id=?)"

UNFINISHED = "SEARCH perdure_jobs USING INDEX perdure_jobs_unfinished (schedule=?)"

WANTED = {
    "fetch_candidates": [READY, "SEARCH perdure_jobs USING INDEX perdure_jobs_retrying (queue=?)"],
    "fetch_running": ["SCAN perdure_jobs USING INDEX perdure_jobs_running"],
    "fetch_peek": ["SEARCH perdure_jobs USING COVERING INDEX perdure_jobs_ready (queue=?)"],
    "fetch_lease": ["SEARCH perdure_workers USING PRIMARY KEY (id=?)"],
    "fetch": [BY_ROWID],
    "fetch_claimed": [BY_ROWID],
    "commit_fences": [BY_ID],
    "commit_succeeded": [BY_ID],
    "commit_attempts": [BY_ROWID],
    "commit": [BY_ROWID],
    "promote": [f"{WAITING} (run_at<?)", BY_ROWID],
    "promote_next": [WAITING],
    "reap_vanished": ["SEARCH perdure_jobs USING INDEX perdure_jobs_running (worker>?)"],
    "reap_jobs": [RUNNING],
    "beat": ["SEARCH perdure_workers USING PRIMARY KEY (id=?)"],
    "beat_held": [RUNNING],
    "cancelling": ["SEARCH perdure_jobs USING INDEX perdure_jobs_cancelling (worker=?)"],
    "cancel": [BY_ID],
    "prune": ["SEARCH perdure_jobs USING COVERING INDEX perdure_jobs_ended (ended_at<?)", BY_ROWID],
    "prune_attempts": ["SEARCH perdure_attempts USING PRIMARY KEY (job_id=?)"],
    "enqueue_standing": ["USING INDEX perdure_jobs_unique (task=? AND unique_key=?)"],
    "get": [BY_ID],
    "history": ["SEARCH perdure_attempts USING PRIMARY KEY (job_id=?)"],
    "replay_next": ["SEARCH perdure_jobs USING INDEX perdure_jobs_dead (id>?)"],
    "list of dead": ["SEARCH perdure_jobs USING INDEX perdure_jobs_dead (id<?)"],
    "list of a schedule": ["SEARCH perdure_jobs USING INDEX perdure_jobs_schedule (schedule=? AND id<?)"],
    "due": ["SEARCH perdure_schedules USING INDEX perdure_schedules_next (next_at>? AND next_at<?)", UNFINISHED],
    "due_queued": ["SCAN perdure_schedules USING INDEX perdure_schedules_queued", UNFINISHED],
    "due_next": ["SEARCH perdure_schedules USING COVERING INDEX perdure_schedules_next"],
    "fire": ["SEARCH perdure_schedules USING PRIMARY KEY (name=?)", UNFINISHED],
    "fire_last": ["SEARCH perdure_schedules USING PRIMARY KEY (name=?)", UNFINISHED],
    "list of all": ["SEARCH perdure_jobs USING INDEX sqlite_autoindex_perdure_jobs_1 (id<?)"],
}

WIDTHS = {"commit_fences": 18, "commit_succeeded": 10}
"""How many parameters a row of a batch has."""

INSERT = """
    INSERT INTO perdure_jobs (id, task, queue, state, lane, priority, run_at, delivery, created_at, worker, ended_at,
        fingerprint, args)
    VALUES (?, 'send', ?, ?, ?, 0, ?, 'at_least_once', 0, ?, ?, ?, '{}')
"""
SHARES = {"succeeded": 50, "waiting": 30, "ready": 18, "dead": 1, "running": 1}


def fill(connection: sqlite3.Connection, start: int, count: int) -> None:
    def rows() -> Iterator[tuple[object, ...]]:
        states = [state for state, share in SHARES.items() for _ in range(share)]
        for number in range(start, start + count):
            state = states[number % 100]
            yield (
                f"{number:032x}",
                f"queue-{number % 3}",
                state,
                "retry" if number % 7 == 0 else "fresh",
                number,
                f"worker-{number % 5}" if state == "running" else None,
                number if state in ("succeeded", "dead") else None,
                "0" if state == "dead" else None,
            )

    connection.execute("BEGIN")
    connection.executemany(INSERT, rows())
    connection.execute("COMMIT")


def prepared(path: Path) -> sqlite3.Connection:
    connection = connect(str(path))
    migrate(connection, VirtualClock(), auto_migrate=True)
    commit.prepare(connection)
    return connection


@pytest.fixture(
    scope="module", params=["empty", "large", "large and analyzed", "analyzed when small", "analyzed when tiny"]
)
def connection(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("plans") / "store.db"
    opened = prepared(path)
    if request.param == "large and analyzed":
        fill(opened, 0, 100_000)
        opened.execute("ANALYZE")
    elif request.param != "empty":
        small = {"large": 0, "analyzed when small": 400, "analyzed when tiny": 100}[request.param]
        fill(opened, 0, small)
        if small:
            opened.execute("ANALYZE")
        fill(opened, small, 100_000 - small)
    # Statistics are read when a file is opened.
    opened.close()
    opened = prepared(path)
    yield opened
    opened.close()


class _Unset(dict[str, None]):
    """Every parameter, unset: a plan does not depend on them."""

    def __missing__(self, name: str) -> None:
        return None


def plan(connection: sqlite3.Connection, text: str) -> list[str]:
    places = text.count("?")
    rows = connection.execute(f"EXPLAIN QUERY PLAN {text}", [None] * places if places else _Unset()).fetchall()
    return [row[3] for row in rows]


def texts(name: str) -> list[str]:
    """The statement in all its variants."""
    if name in WIDTHS:
        row = f"({', '.join('?' * WIDTHS[name])})"
        return [statement(name, rows=", ".join([row] * size)) for size in SIZES]
    if name == "replay_next":
        return [filtered(name, JobFilter())]
    if name == "list of a schedule":
        return [
            filtered("list", JobFilter(schedule="nightly")),
            filtered("list", JobFilter(schedule="x", state="dead")),
        ]
    if name.startswith("list"):
        return [filtered("list", JobFilter(state="dead" if name.endswith("dead") else None))]
    return [statement(name)]


@pytest.mark.parametrize("name", WANTED)
def test_the_statement_uses_its_indexes_and_reads_nothing_else(connection: sqlite3.Connection, name: str) -> None:
    for text in texts(name):
        steps = plan(connection, text)
        for wanted in WANTED[name]:
            assert any(wanted in step for step in steps), steps
        if name != "fetch_running":  # all that runs is looked at, and that is few
            assert not any(step.startswith("SCAN perdure_jobs") for step in steps), steps
        assert not any("BLOOM FILTER" in step or "AUTOMATIC" in step for step in steps), steps
        if name not in ("replay_next", "list of dead"):  # a few dead jobs may be sorted
            assert not any("TEMP B-TREE" in step for step in steps), steps


def test_a_watcher_looks_at_indexes_only(connection: sqlite3.Connection) -> None:
    steps = [step for step in plan(connection, statement("hints")) if "perdure_jobs" in step]
    assert all("INDEX perdure_jobs_" in step for step in steps), steps


def test_counting_the_jobs_of_queues_reads_indexes_where_there_may_be_many(connection: sqlite3.Connection) -> None:
    steps = plan(connection, statement("queues"))
    for many in ("waiting", "ready", "ended"):
        assert f"SCAN perdure_jobs USING COVERING INDEX perdure_jobs_{many}" in steps, steps


@pytest.mark.parametrize(("name", "index"), [("succeeded", "ended"), ("dead", "dead"), ("waiting", "waiting")])
def test_recent_reads_its_index_from_one_end_and_sorts_nothing(
    connection: sqlite3.Connection, name: str, index: str
) -> None:
    (step,) = plan(connection, statement(f"recent_{name}"))
    assert step == f"SCAN perdure_jobs USING INDEX perdure_jobs_{index}"
