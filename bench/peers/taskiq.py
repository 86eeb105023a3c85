"""TaskIQ with its stream broker on Redis: `kiq` to enqueue, the `taskiq` command with one process."""

from __future__ import annotations

from collections.abc import Sequence

from taskiq import SimpleRetryMiddleware
from taskiq_redis import RedisStreamBroker

from bench.peers import job

# From the first message on: its default would skip what was enqueued before the first worker came.
broker = RedisStreamBroker(job.URL, consumer_id="0").with_middlewares(SimpleRetryMiddleware(default_retry_count=3))


@broker.task(task_name="noop_async")
async def noop_async(number: int) -> None:
    job.noop(number)


@broker.task(task_name="noop_sync")
def noop_sync(number: int) -> None:
    job.noop(number)


@broker.task(task_name="fail_twice", retry_on_error=True, max_retries=3)
async def fail_twice(number: int) -> None:
    job.fail_twice(number)


TASKS = {"noop_async": noop_async, "noop_sync": noop_sync, "fail_twice": fail_twice}


async def connect() -> None:
    await broker.startup()


async def disconnect() -> None:
    await broker.shutdown()


async def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        await TASKS[task].kiq(number)


job.gate()
