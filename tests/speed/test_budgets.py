"""What a job costs in instructions of Python, at each step of its way; the figures are per job of a large batch.

A busy machine adds a few instructions: timers come due more often during a longer run, and a lock that is taken means
another turn. So the tests only catch a step that costs half as much again as its budget. `make instructions` prints the
exact figures and fails if one is above its budget by more than 3 %; it needs a quiet machine. A change that makes a
step cheaper may lower its budget; a change that makes it dearer must say why it is worth it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.speed.instructions import Instructions

from perdure import App
from perdure.engines.postgres import commit as postgres_commit
from perdure.engines.postgres import fetch as postgres_fetch
from perdure.engines.postgres.commit import Doubts
from perdure.engines.postgres.slow_claims import SlowClaims
from perdure.engines.postgres.verb import Row, Verb
from perdure.engines.sqlite import checkpoint, commit, fetch
from perdure.engines.sqlite.connection import connect
from perdure.engines.sqlite.rows import from_new_job
from perdure.model.decide import decide
from perdure.model.job import Job, JobId, NewJob, WorkerId
from perdure.model.outcome import Returned
from perdure.runtime import executor
from perdure.store.jobs import Ended, Fetched, Want
from perdure.system.clock import to_microseconds

JOBS = 500
IS_EXACT = os.environ.get("PERDURE_SPEED") == "exact"
SLACK = (1.03 if IS_EXACT else 1.5) * (1.0 if sys.version_info[:2] == (3, 11) else 1.3)
"""Other versions of Python count other instructions for the same code; the budgets are those of 3.11."""

BUDGETS = {
    "enqueue": 228,
    "enqueue one by one": 595,
    "succeed": 655,
    "succeed within a timeout": 696,
    "fail": 1777,
    "SQLite: enqueue one by one": 967,
    "SQLite: to rows": 87,
    "SQLite: fetch": 82,
    "SQLite: commit": 102,
    "PostgreSQL: fetch": 59,
    "PostgreSQL: commit": 99,
}


def check(step: str, counted: int) -> None:
    each = counted / JOBS
    told = f"{step}: {each:.0f} instructions per job, budget {BUDGETS[step]}"
    print(told)
    assert each <= BUDGETS[step] * SLACK, told


@pytest.mark.parametrize("step", BUDGETS)
def test_a_step_that_costs_twice_its_budget_is_caught(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    check(step, JOBS * BUDGETS[step])
    with pytest.raises(AssertionError, match="instructions per job"):
        check(step, 2 * JOBS * BUDGETS[step])


class Costless:
    """A store that has jobs ready and takes every commit; the verbs that are not counted are a real store's."""

    def __init__(self, real: Any, jobs: Sequence[Job] = ()) -> None:
        self._real = real
        self._jobs = jobs
        self._given = 0
        self.committed = 0
        self.is_over = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def fetch(self, worker: WorkerId, wants: Sequence[Want], limit: int) -> Fetched:
        await asyncio.sleep(0)
        jobs = list(self._jobs[self._given : self._given + limit])
        self._given += len(jobs)
        return Fetched(jobs=jobs, rooms=(limit,) * len(wants))

    async def commit(self, ended: Sequence[Ended]) -> list[bool]:
        await asyncio.sleep(0)
        self.committed += len(ended)
        if self.committed == len(self._jobs):
            self.is_over.set()
        return [True] * len(ended)

    def enqueue(self, jobs: Sequence[NewJob]) -> Any:
        self.enqueued = [job.id for job in jobs]
        return self

    def wait(self) -> list[JobId]:
        return self.enqueued


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    # The pace and the periodic loops of the worker must not count. Nor must a lease that runs out on a stalled machine:
    # every slot would ask fifty times a second whether it is trusted again.
    monkeypatch.setenv("PERDURE_PREFETCH", "1h")
    monkeypatch.setenv("PERDURE_POLL", "1h")
    monkeypatch.setenv("PERDURE_LEASE", "1h")
    app = App("sqlite://")

    @app.task
    async def returns(number: int) -> None: ...

    @app.task(timeout="1m")
    async def returns_in_time(number: int) -> None: ...

    @app.task
    async def fails(number: int) -> None:
        raise ValueError("no")

    logger = logging.getLogger("perdure")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield app
    logger.setLevel(level)
    app.close()


@pytest.mark.parametrize(
    ("step", "task"), [("succeed", "returns"), ("succeed within a timeout", "returns_in_time"), ("fail", "fails")]
)
async def test_an_attempt_stays_within_its_budget(
    app: App, monkeypatch: pytest.MonkeyPatch, step: str, task: str
) -> None:
    # How often the slots let others in depends on the time that passes, and that is noise here.
    monkeypatch.setattr(executor, "_TURN", 1000.0)
    few = await instructions_of_a_worker(app, task, JOBS)
    many = await instructions_of_a_worker(app, task, 2 * JOBS)
    check(step, many - few)


async def instructions_of_a_worker(app: App, task: str, jobs: int) -> int:
    real = app.store
    store = Costless(real, [running_job(app, task, number) for number in range(jobs)])
    app._store = store  # type: ignore[assignment]
    try:
        worker = app.make_worker()
        with Instructions() as counted:
            running = asyncio.create_task(worker.run())
            async with asyncio.timeout(240):
                await store.is_over.wait()
        worker.stop()
        await running
    finally:
        app._store = real
    return counted.count


def test_an_enqueued_job_stays_within_its_budget(app: App) -> None:
    real = app.store
    app._store = Costless(real)  # type: ignore[assignment]
    returns = app.tasks["returns"]
    try:
        with Instructions() as counted:
            ids = app.enqueue_many([returns.bind(number) for number in range(JOBS)])
    finally:
        app._store = real
    assert len(set(ids)) == JOBS
    check("enqueue", counted.count)


def test_jobs_that_are_enqueued_one_by_one_stay_within_their_budget(app: App) -> None:
    real = app.store
    app._store = Costless(real)  # type: ignore[assignment]
    returns = app.tasks["returns"]
    try:
        with Instructions() as counted:
            ids = [returns.enqueue(number) for number in range(JOBS)]
    finally:
        app._store = real
    assert len(set(ids)) == JOBS
    check("enqueue one by one", counted.count)


def test_jobs_that_are_put_into_a_file_one_by_one_stay_within_their_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How often the length of the log is looked at depends on the time that passes.
    monkeypatch.setattr(checkpoint, "GAP", 3600.0)
    stored = App(f"sqlite:///{tmp_path}/jobs.db")

    @stored.task
    async def returns(number: int) -> None: ...

    returns.enqueue(0)  # once before it counts, as below
    with Instructions() as counted:
        for number in range(JOBS):
            returns.enqueue(number)
    assert stored.client().count() == JOBS + 1
    stored.close()
    check("SQLite: enqueue one by one", counted.count)


def test_the_engine_in_a_file_stays_within_its_budget(app: App, tmp_path: Path) -> None:
    stored = App(f"sqlite:///{tmp_path}/jobs.db")
    worker = WorkerId("w")
    stored.store.register(
        worker, host="h", pid=1, queues=("default",), concurrency=1, version="1", lease=timedelta(hours=1)
    ).wait()
    bounds = [app.tasks["returns"].bind(number) for number in range(JOBS)]
    new = stored.new_jobs(bounds)
    stored.enqueue_many(bounds)
    stored.close()
    now = datetime.now(UTC)
    moment = to_microseconds(now)
    with Instructions() as counted:
        rows = [from_new_job(job, moment) for job in new]
    assert len(rows) == JOBS
    check("SQLite: to rows", counted.count)
    connection = connect(f"{tmp_path}/jobs.db")
    commit.prepare(connection)
    # Once before it counts: what reads a statement's text for the first time reads a file.
    fetch_and_commit(connection, app, worker, now)
    for step, count in zip(("fetch", "commit"), fetch_and_commit(connection, app, worker, now), strict=True):
        check(f"SQLite: {step}", count)
    connection.close()


def fetch_and_commit(connection: sqlite3.Connection, app: App, worker: WorkerId, now: datetime) -> tuple[int, int]:
    """What it takes to fetch all jobs and to commit them as succeeded; nothing is changed in the end."""
    moment = to_microseconds(now)
    want = Want(queue="default", count=JOBS, retry_share=200_000)
    connection.execute("BEGIN IMMEDIATE")
    with Instructions() as fetching:
        jobs = fetch.fetch(connection, moment, worker, [want], JOBS).jobs
    assert len(jobs) == JOBS
    ended = succeeded(app, jobs, now)
    with Instructions() as committing:
        answers = commit.commit(connection, moment, ended)
    assert all(answers)
    connection.execute("ROLLBACK")
    return fetching.count, committing.count


def test_the_verbs_of_postgresql_stay_within_their_budgets(app: App) -> None:
    """What happens on this side: the server's rows are made up, and its answer is that all was accepted."""
    now = datetime.now(UTC)
    rows = [postgres_row(running_job(app, "returns", number)) for number in range(JOBS)]
    want = Want(queue="default", count=JOBS, retry_share=200_000)
    with Instructions() as fetching:
        jobs = answer(postgres_fetch.fetch(WorkerId("w"), [want], JOBS, "perdure", SlowClaims()), rows).jobs
    assert [job.id for job in jobs] == sorted(row[0] for row in rows)
    ended = succeeded(app, jobs, now)
    with Instructions() as committing:
        accepted = answer(postgres_commit.commit(ended, Doubts()), [(None,)])
    assert accepted == [True] * JOBS
    check("PostgreSQL: fetch", fetching.count)
    check("PostgreSQL: commit", committing.count)


def answer(verb: Verb[Any], rows: list[Row]) -> Any:
    """What a verb of one statement makes of these rows."""
    script = verb.script()
    next(script)
    with pytest.raises(StopIteration) as done:
        script.send(rows)
    return done.value.value


def postgres_row(job: Job) -> Row:
    """A row as fetch.sql gives it."""
    moment = to_microseconds(job.run_at)
    told = (job.id, job.args, moment, moment, job.priority, job.task, job.lane, job.attempt, 0, 0, job.delivery, MOMENT)
    return (*told, *(None,) * 12, JOBS, False)


def succeeded(app: App, jobs: Sequence[Job], now: datetime) -> list[Ended]:
    random = app.surroundings.random
    return [
        Ended(
            job_id=job.id,
            attempt=job.attempt,
            worker=WorkerId("w"),
            task=job.task,
            outcome=decide(job, Returned(), app.registry.policy(job), now, random),
            started_at=now,
            ended_at=now,
        )
        for job in jobs
    ]


def running_job(app: App, task: str, number: int) -> Job:
    now = datetime.now(UTC)
    full_name = app.tasks[task].name
    return msgspec.structs.replace(RUNNING, id=JobId(str(UUID(int=number))), task=full_name, run_at=now, created_at=now)


MOMENT = 1_700_000_000_000_000
"""When the jobs of a made-up claim started."""
RUNNING = Job(
    id=JobId(""),
    task="",
    queue="default",
    state="running",
    lane="fresh",
    args=b'{"args":[1]}',
    priority=0,
    run_at=datetime(2030, 1, 1, tzinfo=UTC),
    attempt=1,
    failures=0,
    recoveries=0,
    delivery="at_least_once",
    created_at=datetime(2030, 1, 1, tzinfo=UTC),
    worker=WorkerId("w"),
)
