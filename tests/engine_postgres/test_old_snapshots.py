"""Claims while another transaction holds an old snapshot: their cost stays bounded, and no job is passed over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.conformance.scene import a_want, death, failure
from tests.engine_postgres.scene import RealScene

from perdure.engines.postgres import claim_ranges
from perdure.engines.postgres.claim_ranges import QueueRanges
from perdure.engines.postgres.sql import statement
from perdure.engines.postgres.store import PostgresStore
from perdure.errors import EngineError, LeaseLost
from perdure.model.change import Change
from perdure.model.job import Job, JobId, WorkerId
from perdure.store.jobs import Want
from perdure.store.reads import JobFilter
from perdure.system.clock import SystemClock

PATIENCE = 60.0
NEVER = 1e9
MILLISECOND = timedelta(milliseconds=1)

FILL = """
INSERT INTO jobs (id, run_at, created_at, priority, state, lane, delivery, task, queue, args)
SELECT gen_random_uuid(), $2::bigint + number, 0, 0, 'ready', 'fresh', 'at_least_once', 'send', 'mail', '{}'
FROM generate_series(1, $1::integer) AS number
"""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, float], None]:
    """Every read from the beginning counts as slow, and claims begin where the one before the last ended.

    Nothing is swept but where jobs are known to have come late. Gives the way to change one of these.
    """

    def change(name: str, value: float) -> None:
        monkeypatch.setattr(claim_ranges, name, value)

    change("SLOW", -(10**12))
    change("CONFIRMED", 1)
    change("NEAR_JOBS", 1)
    change("NEAR_SECONDS", 0.0)
    change("PAUSE", NEVER)
    change("URGENT_PAUSE", 0.0)
    change("FIRST_SPAN", 8)
    return change


class Line(RealScene):
    """A queue whose claims begin where earlier ones ended."""

    def __init__(self, store: PostgresStore) -> None:
        super().__init__(store)
        self.postgres = store
        self.me = self.worker()
        self.pass_by()

    def pass_by(self) -> None:
        """Claim jobs until the places of all that were enqueued before are behind the late range."""
        self.postgres._slow.suspect("mail")
        for _ in range(6):
            self.enqueue()
            assert self.claim()
        assert self.ranges.is_bounded

    @property
    def ranges(self) -> QueueRanges:
        return self.postgres._slow._queues["mail"]

    def claim(self, count: int = 100, **changes: Any) -> list[Job]:
        want = Want(queue="mail", count=count, retry_share=500_000, carry=0, **changes)
        return self.store.fetch(self.me, [want], count).wait().jobs

    def claim_within(self, fetches: int, job_id: JobId) -> None:
        """Fetch until a job is claimed."""
        claimed: list[JobId] = []
        for _ in range(fetches):
            claimed += [job.id for job in self.claim()]
            if job_id in claimed:
                return
        pytest.fail(f"not claimed by {fetches} fetches")


@pytest.fixture
def line(slow: object, store: PostgresStore) -> Line:
    return Line(store)


@contextmanager
def old_snapshot(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT count(*) FROM queues")
        yield


def entries_read(connection: psycopg.Connection[Any], schema: str, index: str, name: str, **values: Any) -> int:
    """How many entries of an index a statement reads, those of versions that are gone too; nothing is changed."""

    def read() -> int:
        query = "SELECT pg_stat_get_xact_tuples_returned(%s::regclass)"
        (count,) = connection.execute(query, [index]).fetchone() or (0,)
        return int(count)

    found = statement(name, schema)
    with connection.transaction(force_rollback=True):
        before = read()
        psycopg.RawCursor(connection).execute(found.text, found.values(values))
        return read() - before


def claims(worker: str, count: int) -> dict[str, object]:
    limits = {"is_strict": False, "max_retries_running": None, "concurrency": None}
    return {"worker": worker, "queue": "mail", "count": count, "share": 200_000, "carry": 0, "now": None, **limits}


@pytest.mark.usefixtures("slow")
def test_a_claim_reads_no_entries_of_the_jobs_claimed_since_an_old_snapshot(
    store: PostgresStore, dsn: str, schema: str
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection, old_snapshot(dsn):
        connection.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
        line = Line(store)
        read = {}
        for total in (1000, 20_000):
            left = total
            psycopg.RawCursor(connection).execute(FILL, [total, SystemClock().microseconds()])
            while left:
                left -= len(line.claim(1000))
            values = claims(line.me, 10)
            psycopg.RawCursor(connection).execute(FILL, [100, SystemClock().microseconds()])
            ranges = line.ranges.next(0.0).text()
            read[total] = entries_read(connection, schema, "jobs_ready", "fetch_ranges", **values, ranges=ranges)
            from_beginning = entries_read(connection, schema, "jobs_ready", "fetch", **values)
            line.claim(1000)
        assert from_beginning > 20_000, "there is something to be avoided"
        assert read[1000] < 3000
        assert read[20_000] < 3000


def test_a_slow_claim_is_noticed_and_the_next_quick_one_ends_the_suspicion(
    store: PostgresStore, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_ranges, "SLOW", 10**9)
    scene = RealScene(store)
    worker = scene.worker()
    first = scene.enqueue()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END'"
        )
        connection.execute("CREATE TRIGGER waits BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION wait()")
        assert [job.id for job in scene.fetch(worker)] == [first]
        connection.execute("DROP TRIGGER waits ON jobs")
    assert "mail" in store._slow
    second = scene.enqueue()
    assert [job.id for job in scene.fetch(worker)] == [second]
    assert "mail" not in store._slow


@pytest.mark.skipif(os.environ.get("PERDURE_HOSTILE") != "long", reason="120,000 jobs; PERDURE_HOSTILE=long runs it")
def test_slow_claims_are_noticed_and_left_when_they_are_quick_again(
    store: PostgresStore, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_ranges, "PAUSE", 0.0)
    scene = RealScene(store)
    worker = scene.worker()

    def claim() -> list[Job]:
        return store.fetch(worker, [a_want(fresh=1, retry=0)], 1).wait().jobs

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
        with old_snapshot(dsn):
            psycopg.RawCursor(connection).execute(FILL, [120_000, 0])
            connection.execute("UPDATE jobs SET state = 'running', worker = 'gone'")
            for _ in range(10):
                scene.enqueue()
                assert len(claim()) == 1
            assert "mail" in store._slow
            assert store._slow._queues["mail"].is_bounded
        connection.execute("VACUUM jobs")
        deadline = time.monotonic() + PATIENCE
        while "mail" in store._slow:
            assert time.monotonic() < deadline
            scene.enqueue()
            assert len(claim()) == 1


def test_a_higher_priority_that_was_never_seen_comes_first_at_once(line: Line) -> None:
    line.enqueue()
    high = line.enqueue(priority=77)
    assert [job.id for job in line.claim(1)] == [high]
    low = line.enqueue(priority=-50)
    assert len(line.claim(2)) == 2
    higher = line.enqueue(priority=78)
    assert [job.id for job in line.claim()] == [higher]
    assert line.get(low).state == "running"


def test_jobs_of_a_priority_are_claimed_in_the_order_of_their_enqueueing(line: Line) -> None:
    ids = [line.enqueue(priority=number % 3) for number in range(60)]
    claimed = [job.id for _ in range(20) for job in line.claim(3)]
    assert claimed == [ids[place] for rest in (2, 1, 0) for place in range(rest, 60, 3)]


def test_retries_have_their_share_and_come_when_they_are_due(line: Line) -> None:
    line.enqueue()
    (job,) = line.claim()
    assert line.end(job, failure(job, state="ready", delay=None))
    fresh = [line.enqueue() for _ in range(4)]
    claimed = [one.id for one in line.claim(2)]
    assert sorted(claimed) == sorted([job.id, fresh[0]])


def test_a_delayed_job_that_is_promoted_after_later_ones_were_claimed_comes_at_once(line: Line) -> None:
    late = line.enqueue(delay=MILLISECOND, priority=3)
    time.sleep(0.01)
    line.pass_by()
    newer = line.enqueue(priority=3)
    assert line.store.promote(100).wait().count == 1
    assert [job.id for job in line.claim(1)] == [late]
    assert [job.id for job in line.claim(1)] == [newer]


def test_a_job_enqueued_with_a_run_at_in_the_past_comes_at_once(line: Line) -> None:
    line.enqueue()
    old = line.enqueue(run_at=line.clock.now() - timedelta(days=1))
    assert [job.id for job in line.claim(1)] == [old]


def test_a_job_whose_priority_is_raised_comes_at_once(line: Line) -> None:
    for _ in range(8):
        line.enqueue()
    raised = line.enqueue()
    # Each of these finds nothing of a higher priority, so that their places are passed.
    for _ in range(6):
        assert [job.priority for job in line.claim(1)] == [0]
    assert line.store.change([raised], Change(priority=9)).wait() == ["changed"]
    assert [job.id for job in line.claim(1)] == [raised]


def test_a_paused_queue_gives_all_its_jobs_when_it_is_resumed(line: Line) -> None:
    line.store.pause("mail", None).wait()
    ids = [line.enqueue() for _ in range(3)]
    for _ in range(10):
        assert line.claim() == []
    line.store.resume("mail").wait()
    assert [job.id for job in line.claim()] == ids


def test_a_queue_at_its_limit_gives_its_jobs_when_there_is_room(line: Line) -> None:
    ids = [line.enqueue() for _ in range(3)]
    for _ in range(10):
        assert line.claim(concurrency=1) == []
    assert [job.id for job in line.claim(concurrency=1000)] == ids


def test_a_dead_job_that_is_replayed_comes_at_once(line: Line) -> None:
    line.enqueue()
    (job,) = line.claim()
    assert line.end(job, death(job))
    line.pass_by()
    assert line.store.replay(JobFilter(ids=(job.id,)), 10, timedelta(0)).wait() == 1
    line.claim_within(1, job.id)


def test_a_job_that_is_given_back_comes_at_once(line: Line) -> None:
    line.enqueue()
    (job,) = line.claim()
    line.pass_by()
    assert line.end(job, failure(job, state="ready", attempt="released", delay=None, lane="fresh"))
    line.claim_within(1, job.id)


def test_a_job_of_a_transaction_that_commits_late_comes_soon(line: Line, caller: psycopg.Connection[Any]) -> None:
    (late,) = line.store.enqueue_within(caller, [line.new_job()])
    line.pass_by()
    caller.commit()
    # One fetch sees that the transaction has ended, and the next one reads the places that it may have left jobs in.
    line.claim_within(2, late)


def test_a_job_that_was_locked_when_it_was_passed_comes_soon(line: Line, caller: psycopg.Connection[Any]) -> None:
    locked = line.enqueue()
    caller.execute("SELECT 1 FROM jobs WHERE id = %s FOR UPDATE", [locked])
    line.pass_by()
    caller.rollback()
    line.claim_within(2, locked)


def test_a_job_that_came_to_an_old_place_in_any_other_way_is_found_by_sweeping(
    line: Line, slow: Callable[[str, float], None], caller: psycopg.Connection[Any]
) -> None:
    """As after a step of the server's clock, or a promotion by another process."""
    slow("PAUSE", 0.0)
    # One slice with each fetch, however quick it is.
    slow("CHEAP", -1)
    line.ranges._span = 1
    line.ranges._rests_until = 0.0
    for _ in range(4):
        line.pass_by()
    for part in (0.0, 0.2, 0.4, 0.6, 0.8):
        marks = line.ranges._marks
        mark = marks[int(part * len(marks))]
        (behind,) = caller.execute(
            "INSERT INTO jobs (id, run_at, created_at, priority, state, delivery, task, queue, args)"
            " SELECT gen_random_uuid(), %s, 0, 0, 'ready', 'at_least_once', 'send', 'mail', '{}' RETURNING id::text",
            [max(mark.positions[claim_ranges.HIGHEST][0], 0) + 1],
        ).fetchone() or ("",)
        caller.commit()
        # The rest of one round and all of the next, at most every other fetch for something urgent.
        line.claim_within(4 * len(marks) + 4, JobId(behind))


def test_many_jobs_that_come_late_are_all_claimed_in_order(line: Line, caller: psycopg.Connection[Any]) -> None:
    late = line.store.enqueue_within(caller, [line.new_job() for _ in range(50)])
    line.pass_by()
    newer = [line.enqueue() for _ in range(10)]
    caller.commit()
    claimed: list[str] = []
    while len(claimed) < 60:
        jobs = line.claim(7)
        assert jobs
        claimed += [job.id for job in jobs]
    assert sorted(claimed) == sorted([*late, *newer])
    # The first fetch did not know of them yet.
    assert [job_id for job_id in claimed[7:] if job_id in late] == [job_id for job_id in late if job_id in claimed[7:]]
    assert [job_id for job_id in claimed if job_id in newer] == newer


def test_two_processes_claim_every_job_once(line: Line, open_one: Callable[..., PostgresStore]) -> None:
    other = Line(open_one())
    other.me = other.worker("another")
    ids = [scene.enqueue() for _ in range(50) for scene in (line, other)]
    claimed: list[JobId] = []
    while len(claimed) < 100:
        jobs = [*line.claim(7), *other.claim(3)]
        assert jobs
        claimed += [job.id for job in jobs]
    assert claimed == ids


def test_a_fetch_that_could_not_be_committed_has_passed_nothing(line: Line, dsn: str) -> None:
    ids = [line.enqueue() for _ in range(3)]
    wants = [a_want("mail"), a_want("news")]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''not today''; END'"
        )
        connection.execute(
            "CREATE CONSTRAINT TRIGGER refuses AFTER UPDATE ON jobs DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
        for _ in range(5):
            with pytest.raises(EngineError, match="not today"):
                line.store.fetch(line.me, wants, 100).wait()
        connection.execute("DROP TRIGGER refuses ON jobs")
    assert [job.id for job in line.store.fetch(line.me, wants, 100).wait().jobs] == ids


def test_a_worker_without_a_lease_is_refused(line: Line) -> None:
    line.me = WorkerId("nobody")
    with pytest.raises(LeaseLost):
        line.claim()


@pytest.fixture
def crowded(store: PostgresStore, dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """20,000 jobs have waited, run and ended since an old snapshot, and one is in each state."""
    far = SystemClock().microseconds()
    with psycopg.connect(dsn, autocommit=True) as connection, old_snapshot(dsn):
        connection.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
        connection.execute("INSERT INTO workers VALUES ('living', 1, 1, %s, 1, 1, 'here', '[]', '1')", [2 * far])
        psycopg.RawCursor(connection).execute(FILL, [20_000, 0])
        connection.execute("UPDATE jobs SET state = 'waiting'")
        connection.execute("UPDATE jobs SET state = 'running', worker = 'living'")
        connection.execute("UPDATE jobs SET state = 'succeeded', worker = NULL, ended_at = run_at")
        connection.execute("DELETE FROM jobs")
        psycopg.RawCursor(connection).execute(FILL, [3, 10**6])
        connection.execute("UPDATE jobs SET state = 'waiting' WHERE run_at = %s", [10**6 + 1])
        connection.execute("UPDATE jobs SET state = 'running', worker = 'gone' WHERE run_at = %s", [10**6 + 2])
        connection.execute("UPDATE jobs SET state = 'succeeded', ended_at = run_at WHERE run_at = %s", [10**6 + 3])
        yield connection


def test_other_statements_begin_behind_what_was_there(crowded: psycopg.Connection[Any], schema: str) -> None:
    cases = {
        "promote": ("jobs_waiting", {"limit": 100, "now": None}),
        "prune": ("jobs_ended", {"limit": 100, "age": 0, "now": None}),
    }
    for name, (index, values) in cases.items():
        assert entries_read(crowded, schema, index, name, **values, since=0) >= 20_000, name
        assert entries_read(crowded, schema, index, name, **values, since=10**6) <= 10, name


def test_a_reap_reads_no_entries_of_living_workers(
    crowded: psycopg.Connection[Any], schema: str, store: PostgresStore
) -> None:
    assert entries_read(crowded, schema, "jobs_running", "reap_jobs", limit=100) <= 10
    (job,) = store.reap(100).wait().jobs
    assert job.worker == "gone"
