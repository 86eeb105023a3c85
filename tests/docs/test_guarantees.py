"""Guarantees of the docs that only single parts, taken by themselves, can prove."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from perdure import App, Job
from perdure.engines.sqlite.connection import connect, connect_reader
from perdure.model.event import AttemptEnded
from perdure.model.job import JobId, WorkerId
from perdure.runtime.executor import Executor
from perdure.runtime.in_flight import Holding
from perdure.system.clock import SystemClock


@pytest.mark.parametrize("opens", [connect, connect_reader])
def test_a_commit_returns_after_its_fsync_and_no_connection_checkpoints_by_itself(opens, tmp_path: Path) -> None:
    """Proves [INV-1]; below SQLite 3.51.3 an automatic checkpoint could damage the log."""
    path = str(tmp_path / "store.db")
    connect(path).close()
    with closing(opens(path)) as connection:
        found = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "wal_autocheckpoint")
        }
    full = 2
    assert found == {"journal_mode": "wal", "synchronous": full, "wal_autocheckpoint": 0}


def a_running_job(task: str) -> Job:
    now = SystemClock().now()
    return Job(
        id=JobId("01890a5d-ac96-774b-bcce-b302099a8057"),
        task=task,
        queue="default",
        state="running",
        lane="fresh",
        args=b"{}",
        priority=0,
        run_at=now,
        attempt=1,
        failures=0,
        recoveries=0,
        delivery="at_least_once",
        created_at=now,
        worker=WorkerId("01890a5d-ac96-774b-bcce-b302099a8058"),
    )


class Doubt:
    """A lease that is in doubt until it is settled; knows how often it was asked."""

    def __init__(self) -> None:
        self.is_settled = False
        self.asked = 0
        self.was_asked_often = asyncio.Event()

    def may_start(self) -> bool:
        self.asked += 1
        if self.asked == 3:
            self.was_asked_often.set()
        return self.is_settled


async def test_no_attempt_starts_under_a_lease_in_doubt_and_it_starts_when_the_doubt_is_over() -> None:
    """Proves [INV-7]."""
    app = App("sqlite://")
    runs = []

    @app.task
    async def work() -> None:
        runs.append(1)

    doubt, buffer, ended = Doubt(), asyncio.Queue[Holding](), asyncio.Queue[AttemptEnded]()
    executor = Executor(registry=app.registry, clock=SystemClock(), random=Random(1))
    slot = asyncio.create_task(executor.serve(buffer, ended.put_nowait, doubt.may_start))
    async with asyncio.timeout(30):
        buffer.put_nowait(Holding(a_running_job("work")))
        await doubt.was_asked_often.wait()
        assert runs == []
        doubt.is_settled = True
        finished = await ended.get()
    assert (runs, finished.outcome.state) == ([1], "succeeded")
    slot.cancel()
    executor.close()


async def test_an_attempt_whose_lease_is_lost_while_in_doubt_never_starts() -> None:
    """Proves [INV-7]."""
    app = App("sqlite://")
    runs = []

    @app.task
    async def work() -> None:
        runs.append(1)

    doubt, buffer, ended = Doubt(), asyncio.Queue[Holding](), asyncio.Queue[AttemptEnded]()
    executor = Executor(registry=app.registry, clock=SystemClock(), random=Random(1))
    slot = asyncio.create_task(executor.serve(buffer, ended.put_nowait, doubt.may_start))
    dropped, kept = Holding(a_running_job("work")), Holding(a_running_job("work"))
    async with asyncio.timeout(30):
        buffer.put_nowait(dropped)
        await doubt.was_asked_often.wait()
        dropped.break_off("lease")
        doubt.is_settled = True
        buffer.put_nowait(kept)
        await ended.get()
    assert runs == [1], "only the job that was fetched under the new lease may have run"
    assert ended.empty()
    slot.cancel()
    executor.close()
