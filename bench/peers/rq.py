"""RQ: `enqueue` for one and `enqueue_many` for many, its simple worker, which does not fork for each job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from redis import Redis
from rq import Queue, Retry, SimpleWorker

from bench.peers import job

queue = Queue(connection=Redis.from_url(job.URL))
RETRY = Retry(max=3)


def noop_async(number: int) -> None:
    job.noop(number)


def fail_twice(number: int) -> None:
    job.fail_twice(number)


TASKS = {"noop_async": noop_async, "fail_twice": fail_twice}


def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        queue.enqueue(TASKS[task], number, result_ttl=0, retry=RETRY)


def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    queue.enqueue_many([Queue.prepare_data(TASKS[task], (n,), result_ttl=0, retry=RETRY) for n in numbers])


def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    moment = datetime.fromtimestamp(due, UTC)
    for number in numbers:
        queue.enqueue_at(moment, TASKS[task], number, result_ttl=0)


def work() -> None:
    SimpleWorker([queue], connection=queue.connection).work(logging_level="WARNING", with_scheduler=True)


job.gate()
