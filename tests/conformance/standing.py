"""What the tests of standing by share, whatever the engine: to wait for a standby, and for what comes of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta

from perdure.model.job import Job
from perdure.store.jobs import Fetched
from perdure.store.standby import Standby

LONG = timedelta(seconds=60)
PATIENCE = 60.0


async def answer(standby: Standby) -> Fetched | None:
    """What a standby comes to, to be awaited in a task."""
    return await standby


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something to be so, seen from the loop."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it did not come about"
        await asyncio.sleep(0.005)


async def claimed(task: asyncio.Task[Fetched | None]) -> list[Job]:
    """The jobs that a standby was given."""
    fetched = await asyncio.wait_for(task, PATIENCE)
    assert fetched is not None
    return fetched.jobs
