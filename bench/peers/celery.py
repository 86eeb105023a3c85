"""Celery on Redis: `delay` to enqueue, one worker with one process of its pool."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from celery import Celery

from bench.peers import job

app = Celery("bench", broker=job.URL)
app.conf.task_ignore_result = True
app.conf.worker_prefetch_multiplier = 64
app.conf.broker_connection_retry_on_startup = True
app.conf.worker_send_task_events = False


@app.task(name="noop_async")
def noop_async(number: int) -> None:
    job.noop(number)


@app.task(name="fail_twice", bind=True, max_retries=3)
def fail_twice(self: Any, number: int) -> None:
    try:
        job.fail_twice(number)
    except job.OnPurposeError as error:
        raise self.retry(exc=error, countdown=0) from None


TASKS = {"noop_async": noop_async, "fail_twice": fail_twice}


def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        TASKS[task].delay(number)


def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    moment = datetime.fromtimestamp(due, UTC)
    for number in numbers:
        TASKS[task].apply_async((number,), eta=moment)


job.gate()
