"""Guarantees of the docs that need parts of a worker by themselves to be proven."""

from __future__ import annotations

import asyncio
from random import Random

from perdure import App, Job
from perdure.clock import SystemClock
from perdure.model.job import JobId, WorkerId
from perdure.runtime.committer import Finished
from perdure.runtime.executor import Executor
from perdure.runtime.held import Holding


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

    doubt, buffer, ended = Doubt(), asyncio.Queue[Holding](), asyncio.Queue[Finished]()
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

    doubt, buffer, ended = Doubt(), asyncio.Queue[Holding](), asyncio.Queue[Finished]()
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
