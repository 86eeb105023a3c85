"""The statements of the hot path read no more than they need, at every batch size, with fresh and stale statistics."""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.servers import postgres

from perdure.engines.postgres.claim_ranges import QueueRanges
from perdure.engines.postgres.sql import statement

JOBS = 30_000
SIZES = (1, 100, 1000)
FAR = 10**15

FILL = """
INSERT INTO jobs (
    id, run_at, created_at, priority, attempt, state, lane, delivery, task, queue, worker, started_at, ended_at,
    fingerprint, args
)
SELECT
    gen_random_uuid(), number, number, number % 3, 1, made.state,
    CASE WHEN number % 5 = 0 THEN 'retry' ELSE 'fresh' END, 'at_least_once', 'send', 'queue-' || number % 2,
    CASE WHEN made.state = 'running' THEN 'worker-' || number % 3 END,
    number, CASE WHEN made.state IN ('succeeded', 'dead') THEN number END,
    CASE WHEN made.state = 'dead' THEN 'group' END, '{}'
FROM (
    SELECT
        number,
        (ARRAY['succeeded', 'succeeded', 'succeeded', 'ready', 'waiting', 'running', 'dead'])[1 + number % 7] AS state
    FROM generate_series(1, $1::integer) AS number
) AS made
"""


class Large:
    """A large table, and a look at how the server goes about a statement on it."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        self.connection = connection
        self._schema = schema
        self._used: Counter[str] = Counter()

    def plan(self, name: str, **values: Any) -> str:
        """How a statement was executed, each node with the rows that it really read; nothing is changed."""
        found = statement(name, self._schema)
        cursor = psycopg.RawCursor(self.connection)
        with self.connection.transaction(force_rollback=True):
            cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) {found.text}", found.values(values))
            return "\n".join(line for (line,) in cursor.fetchall())

    def _skip(self, count: int, what: str) -> int:
        """How many jobs to leave out: each is planned for once, so that no dead version of it is read."""
        self._used[what] += count
        return self._used[what] - count

    def running(self, count: int) -> str:
        """A batch to commit, of other workers than the one whose jobs succeed."""
        rows = self.connection.execute(
            "SELECT id::text, attempt, worker FROM jobs WHERE worker <> 'worker-1' ORDER BY id LIMIT %s OFFSET %s",
            [count, self._skip(count, "running")],
        ).fetchall()
        assert len(rows) == count
        return json.dumps(
            [
                {
                    "place": place,
                    "id": job_id,
                    "attempt": attempt,
                    "worker": worker,
                    "started_at": 1,
                    "ended_at": 2,
                    "outcome": "failed",
                    "state": "waiting",
                    "lane": "retry",
                    "delay": 5,
                    "failures": 1,
                    "recoveries": 0,
                    "reason": "failed",
                }
                for place, (job_id, attempt, worker) in enumerate(rows)
            ]
        )

    def succeeded(self, count: int) -> dict[str, object]:
        """A batch of successes that are alike, as it is committed."""
        rows = self.connection.execute(
            "SELECT id::text FROM jobs WHERE worker = 'worker-1' ORDER BY id LIMIT %s OFFSET %s",
            [count, self._skip(count, "succeeded")],
        ).fetchall()
        assert len(rows) == count
        numbers = f"{{{','.join(['1'] * count)}}}"
        return {
            "ids": f"{{{','.join(sorted(job_id for (job_id,) in rows))}}}",
            "started_at": numbers,
            "ended_at": numbers,
            "results": "{}",
            "result": None,
            "worker": "worker-1",
            "attempt": "1",
            "failures": "0",
            "recoveries": "0",
            "lane": "fresh",
            "now": 5,
        }


@pytest.fixture(scope="module", params=["stale statistics", "fresh statistics"])
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    directory: Path = tmp_path_factory.mktemp("plans")
    postgres.make_url(directory)
    with psycopg.connect(postgres.caller_dsn(directory), autocommit=True) as connection:
        connection.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
        connection.execute("INSERT INTO workers VALUES ('worker-1', 1, 1, %s, 1, 1, 'here', '[]', '1')", [FAR])
        # What the planner knows of in the stale case: a handful of jobs, of which one in seven is ready.
        psycopg.RawCursor(connection).execute(FILL, [70])
        connection.execute("ANALYZE jobs")
        psycopg.RawCursor(connection).execute(FILL, [JOBS])
        if request.param == "fresh statistics":
            connection.execute("ANALYZE jobs")
        yield Large(connection, postgres.schema_of(directory))


def most_rows_read(plan: str) -> int:
    """The most rows that any scan of the jobs gave or threw away, over all its rounds."""
    most = 0.0
    for node in re.split(r"->", plan):
        if re.search(r"(Scan|on) .*\bjobs", node):
            found = re.search(r"rows=([0-9.]+) loops=([0-9.]+)", node)
            removed = re.search(r"Rows Removed by (?:Filter|Index Recheck): ([0-9]+)", node)
            rows = float(found[1]) * float(found[2]) if found else 0.0
            most = max(most, rows + (float(removed[1]) if removed else 0.0))
    return int(most)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("queue", ["queue-1", "empty"])
@pytest.mark.parametrize("cap", [None, 10**6])
@pytest.mark.parametrize("is_strict", [False, True])
def test_fetch_reads_each_lane_in_order_up_to_its_limit(
    large: Large, size: int, queue: str, cap: int | None, is_strict: bool
) -> None:
    plan = large.plan(
        "fetch",
        worker="worker-1",
        queue=queue,
        count=size,
        share=200_000,
        carry=500_000,
        is_strict=is_strict,
        max_retries_running=cap,
        concurrency=None,
        now=5,
    )
    assert "Seq Scan on jobs" not in plan
    assert "Sort" not in plan
    assert "jobs_ready" in plan
    # What the cap counts are the running retries of the queue; entries of versions that are gone are seen too.
    assert most_rows_read(plan) <= max(3 * size + 10, 0 if cap is None else JOBS // 20)


@pytest.mark.parametrize("queue", ["queue-1", "empty"])
def test_a_limit_is_counted_among_what_runs(large: Large, queue: str) -> None:
    given = {"worker": "worker-1", "queue": queue, "count": 10, "share": 200_000, "carry": 0, "is_strict": False}
    plan = large.plan("fetch", **given, max_retries_running=None, concurrency=10**6, now=5)
    assert "jobs_running" in plan
    assert "Seq Scan on jobs" not in plan
    # One in seven runs; entries of versions that are gone are seen too.
    assert most_rows_read(plan) <= JOBS // 3


@pytest.mark.parametrize("size", SIZES)
def test_commit_looks_each_fence_up_by_the_jobs_id(large: Large, size: int) -> None:
    plan = large.plan("commit", ended=large.running(size), now=5)
    assert "Seq Scan on jobs" not in plan
    assert "jobs_running" not in plan
    assert "jobs_pkey" in plan
    assert most_rows_read(plan) <= size


@pytest.mark.parametrize("size", SIZES)
def test_a_commit_of_successes_looks_each_fence_up_by_the_jobs_id(large: Large, size: int) -> None:
    plan = large.plan("commit_succeeded", **large.succeeded(size))
    assert "Seq Scan on jobs" not in plan
    assert "jobs_running" not in plan
    assert "jobs_pkey" in plan
    assert most_rows_read(plan) <= size


@pytest.mark.parametrize("size", SIZES)
def test_promote_reads_the_waiting_in_order(large: Large, size: int) -> None:
    plan = large.plan("promote", limit=size, since=0, now=FAR)
    assert "Seq Scan on jobs" not in plan
    assert "Sort" not in plan
    assert "jobs_waiting" in plan
    assert most_rows_read(plan) <= 2 * size + 1


def test_promote_with_nothing_due_reads_next_to_nothing(large: Large) -> None:
    plan = large.plan("promote", limit=1000, since=0, now=0)
    assert "Seq Scan on jobs" not in plan
    assert most_rows_read(plan) <= 1


def test_reap_skips_from_worker_to_worker(large: Large) -> None:
    plan = large.plan("reap_jobs", limit=10)
    assert "jobs_running" in plan
    assert most_rows_read(plan) <= JOBS // 20, "only the jobs of one worker at a time are looked at"
    with large.connection.transaction(force_rollback=True):
        large.connection.execute(
            "INSERT INTO workers SELECT 'worker-' || n, 1, 1, %s, 1, 1, 'h', '[]', '1' FROM generate_series(0, 2, 2) n",
            [FAR],
        )
        assert most_rows_read(large.plan("reap_jobs", limit=10)) <= 3, "all are living"


def test_a_peek_at_several_queues_reads_one_job_of_each(large: Large) -> None:
    plan = large.plan("fetch_lease", worker="worker-1", queues=["queue-1", "empty", "queue-0"], count=3, now=5)
    assert "Seq Scan on jobs" not in plan
    assert most_rows_read(plan) <= 3


def test_a_beat_reads_the_workers_own_jobs(large: Large) -> None:
    plan = large.plan("beat_held", worker="worker-1")
    assert "jobs_running" in plan


def test_what_is_to_be_cancelled_is_found_without_looking_at_what_runs(large: Large) -> None:
    assert "jobs_cancelling" in large.plan("cancelling", worker="worker-1")


def test_prune_reads_the_oldest_that_ended(large: Large) -> None:
    plan = large.plan("prune", age=0, limit=100, since=0, now=FAR)
    assert "jobs_ended" in plan
    assert "Seq Scan on jobs" not in plan
    assert most_rows_read(plan) <= 200


NOTHING = dict.fromkeys(
    ["ids", "state", "task", "queue", "reason", "schedule", "forward", "group", "before", "after", "error"]
)


def test_a_page_of_the_dead_is_found_among_the_dead(large: Large) -> None:
    plan = large.plan("list", **{**NOTHING, "state": "dead"}, below=None, limit=50)
    assert "Seq Scan on jobs" not in plan
    assert most_rows_read(plan) <= 500


def test_a_page_of_the_jobs_of_a_schedule_is_found_among_them(large: Large) -> None:
    plan = large.plan("list", **{**NOTHING, "schedule": "nightly"}, below=None, limit=50)
    assert "jobs_schedule" in plan
    assert most_rows_read(plan) <= 50


def test_a_look_at_what_is_due_reads_no_jobs_but_unfinished_ones(large: Large) -> None:
    with large.connection.transaction(force_rollback=True):
        large.connection.execute(
            "INSERT INTO schedules SELECT 'number-' || n, n, NULL, TRUE, 'r', '{}' FROM generate_series(1, 2000) AS n"
        )
        plan = large.plan("due", limit=100, now=50)
        assert "Seq Scan on jobs" not in plan
        assert "jobs_unfinished" in plan
        steps = json.dumps(
            [
                {
                    "place": n,
                    "name": f"number-{n}",
                    "replaces": "r",
                    "needs_idle": True,
                    "revision": "s",
                    "document": "",
                }
                | {"next_at": None, "is_queued": False}
                for n in range(1, 50)
            ]
        )
        plan = large.plan("fire", steps=steps, jobs="[]", now=50)
        assert "Seq Scan on jobs" not in plan
        assert "jobs_unfinished" in plan


def test_a_page_of_all_jobs_is_read_by_id(large: Large) -> None:
    plan = large.plan("list", **NOTHING, below=None, limit=50)
    assert "jobs_pkey" in plan
    assert most_rows_read(plan) <= 50


def test_the_next_dead_to_replay_are_found_among_the_dead(large: Large) -> None:
    plan = large.plan("replay_next", **NOTHING, above=None, limit=100)
    assert "Seq Scan on jobs" not in plan
    assert most_rows_read(plan) <= 1000


@pytest.mark.parametrize(("name", "index"), [("succeeded", "ended"), ("dead", "dead"), ("waiting", "waiting")])
def test_recent_reads_its_index_from_one_end(large: Large, name: str, index: str) -> None:
    plan = large.plan(f"recent_{name}", limit=100)
    assert f"jobs_{index}" in plan
    assert "Sort" not in plan
    assert most_rows_read(plan) <= 100


LOOKS = ("promote", "cancelling")
"""What a worker looks for at every hint."""


class Kept:
    """A session that keeps plans, and has made all of them while the table was empty."""

    NAMES = (
        "fetch",
        "fetch_nothing",
        "fetch_ranges",
        "commit",
        "commit_succeeded",
        "enqueue_alike",
        "enqueue_one",
        "promote",
        "cancelling",
    )

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        self._connection = connection
        self._cursor = psycopg.RawCursor(connection)
        session = statement("session", schema)
        self._cursor.execute(session.text, session.values({"pid": str(connection.info.backend_pid)}))
        assert self._cursor.fetchone() == (True,)
        for name in self.NAMES:
            connection.execute(f"PREPARE kept_{name} AS {statement(name, schema).text}".encode())
        self._schema = schema
        self.plan("fetch", **fetching(1))
        self.plan("fetch_nothing", **fetching(1))
        self.plan("commit", ended="[]", now=5)
        self.plan("commit_succeeded", **nobody())
        self.plan("enqueue_alike", **new_jobs(1))
        self.plan("enqueue_one", **new_jobs(1))
        self.plan("promote", limit=1, since=0, now=5)
        self.plan("fetch_ranges", **fetching(1), ranges="[]")
        self.plan("cancelling", worker="worker-1")

    def plan(self, name: str, **values: Any) -> str:
        given = statement(name, self._schema).values(values)
        texts = ", ".join("NULL" if value is None else f"'{value}'" for value in given)
        with self._connection.transaction(force_rollback=True):
            self._cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) EXECUTE kept_{name} ({texts})")
            return "\n".join(line for (line,) in self._cursor.fetchall())


def fetching(count: int) -> dict[str, object]:
    limits = {"is_strict": False, "max_retries_running": None, "concurrency": None}
    return {"worker": "worker-1", "queue": "queue-1", "count": count, "share": 200_000, "carry": 0, "now": 5, **limits}


def nobody() -> dict[str, object]:
    numbers = {"attempt": "1", "failures": "0", "recoveries": "0"}
    arrays = dict.fromkeys(["ids", "started_at", "ended_at", "results"], "{}")
    return {**arrays, **numbers, "result": None, "worker": "worker-1", "lane": "fresh", "now": 5}


def new_jobs(count: int) -> dict[str, object]:
    nothing = dict.fromkeys(["delay", "run_at", "max_attempts", "retry", "timeout", "channel", "sender"])
    given = {"task": "send", "queue": "queue-1", "priority": 0, "delivery": "at_least_once", "now": 5}
    ids = ",".join(str(uuid.uuid4()) for _ in range(count))
    return {**nothing, **given, "id": ids[:36], "ids": f"{{{ids}}}", "args": f"{{{','.join(['a'] * count)}}}"}


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Large, Kept]]:
    """A table that has grown since the plans were made, and nobody has told the server."""
    directory: Path = tmp_path_factory.mktemp("grown")
    postgres.make_url(directory)
    dsn = postgres.caller_dsn(directory)
    with psycopg.connect(dsn, autocommit=True) as connection, psycopg.connect(dsn, autocommit=True) as session:
        connection.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
        connection.execute("INSERT INTO workers VALUES ('worker-1', 1, 1, %s, 1, 1, 'here', '[]', '1')", [FAR])
        kept = Kept(session, postgres.schema_of(directory))
        psycopg.RawCursor(connection).execute(FILL, [JOBS])
        yield Large(connection, postgres.schema_of(directory)), kept


@pytest.mark.parametrize("size", SIZES)
def test_plans_that_are_kept_are_good_after_the_table_has_grown(grown: tuple[Large, Kept], size: int) -> None:
    large, kept = grown
    plans = {
        "fetch": kept.plan("fetch", **fetching(size)),
        "fetch_nothing": kept.plan("fetch_nothing", **fetching(size)),
        "commit": kept.plan("commit", ended=large.running(size), now=5),
        "commit_succeeded": kept.plan("commit_succeeded", **large.succeeded(size)),
        "enqueue_alike": kept.plan("enqueue_alike", **new_jobs(size)),
        "enqueue_one": kept.plan("enqueue_one", **new_jobs(size)),
        "promote": kept.plan("promote", limit=size, since=0, now=FAR),
        "fetch_ranges": kept.plan("fetch_ranges", **fetching(size), ranges=QueueRanges().next(0.0).text()),
        "cancelling": kept.plan("cancelling", worker="worker-1"),
    }
    for name, plan in plans.items():
        assert "Seq Scan on jobs" not in plan, name
        assert "Sort" not in plan, name
        assert most_rows_read(plan) <= 3 * size + 10, name
        # Nothing is compared with everything else.
        assert most_rows_removed(plan) <= 3 * size, name


def most_rows_removed(plan: str) -> int:
    return max((int(count) for count in re.findall(r"Rows Removed by [A-Za-z ]+: ([0-9]+)", plan)), default=0)
