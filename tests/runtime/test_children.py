"""Child processes: short attempts share them, long ones get one each."""

from __future__ import annotations

import asyncio
import os
import time

import msgspec

from perdure.clock import SystemClock
from perdure.model.codec import encode_args
from perdure.model.job import Job, JobId, NewJob
from perdure.model.outcome import Ending, Returned
from perdure.runtime.children import Children
from perdure.runtime.handler import Handler


def pid_after(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


HANDLER = Handler.of("pid_after", pid_after, is_process=True, max_payload=1000, max_result=1000)


def a_job(seconds: float) -> Job:
    now = SystemClock().now()
    new = NewJob(id=JobId("01900000-0000-7000-8000-000000000000"), task="pid_after", queue="default", args=b"{}")
    return Job(
        id=new.id,
        task=new.task,
        queue=new.queue,
        state="running",
        lane="fresh",
        args=encode_args((seconds,), {}, 1000),
        priority=0,
        run_at=now,
        attempt=1,
        failures=0,
        recoveries=0,
        delivery="at_least_once",
        created_at=now,
    )


async def pids_of(children: Children, seconds: float, count: int) -> set[int]:
    async def at_once() -> None: ...

    async def run() -> Ending:
        return await children.run(a_job(seconds), HANDLER, 4, None, at_once)

    endings = await asyncio.gather(*(run() for _ in range(count)))
    assert all(isinstance(ending, Returned) for ending in endings)
    return {msgspec.json.decode(ending.result) for ending in endings if isinstance(ending, Returned) and ending.result}


async def test_short_attempts_share_a_child_and_long_ones_get_one_each():
    children = Children()
    try:
        await pids_of(children, 0, 1)
        assert len(await pids_of(children, 0, 12)) < 12
        assert len(await pids_of(children, 1.5, 3)) == 3
    finally:
        children.close()
