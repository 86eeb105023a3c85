"""FlexiQ: a queue on any engine, `delay` for one and `enqueue_many` for many, `flexiq worker`."""

from __future__ import annotations

import time
from collections.abc import Sequence

from flexiq import Queue

from bench.peers import job

# Pushed dispatch fills the workers and then waits for its next round, so it needs many; polling is soon there again.
_PUSHED = {"workers": 500, "push_dispatch": True}
_POLLED = {"workers": 8, "scheduler_batch_size": 16, "scheduler_poll_interval_ms": 1, "push_dispatch": False}

if job.ENGINE == "sqlite":
    queue = Queue(db_path=job.URL.removeprefix("sqlite:///"), **_POLLED)
else:
    queue = Queue(backend=job.ENGINE, db_url=job.URL, **(_PUSHED if job.ENGINE == "redis" else _POLLED))


@queue.task(name="noop_async")
async def noop_async(number: int) -> None:
    job.noop(number)


@queue.task(name="noop_sync")
def noop_sync(number: int) -> None:
    job.noop(number)


@queue.task(name="fail_twice", max_retries=2, retry_delays=[0.0])
def fail_twice(number: int) -> None:
    job.fail_twice(number)


TASKS = {"noop_async": noop_async, "noop_sync": noop_sync, "fail_twice": fail_twice}


def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        TASKS[task].delay(number)


def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    TASKS[task].map([(number,) for number in numbers])


def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    queue.enqueue_many(task, [(number,) for number in numbers], delay=due - time.time())


job.gate()
