"""Huey: one storage class per engine, tasks called to enqueue them, `huey_consumer` with one process."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from huey import PostgresHuey, RedisHuey, SqliteHuey

from bench.peers import job


def _make() -> Any:
    if job.ENGINE == "sqlite":
        return SqliteHuey("bench", filename=job.URL.removeprefix("sqlite:///"), fsync=True, timeout=30)
    if job.ENGINE == "postgres":
        return PostgresHuey("bench", dsn=job.URL)
    return RedisHuey("bench", url=job.URL)


huey = _make()


@huey.task(name="noop_async")
def noop_async(number: int) -> None:
    job.noop(number)


@huey.task(name="fail_twice", retries=2, retry_delay=0)
def fail_twice(number: int) -> None:
    job.fail_twice(number)


TASKS = {"noop_async": noop_async, "fail_twice": fail_twice}


def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        TASKS[task](number)


def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    moment = datetime.fromtimestamp(due, UTC).replace(tzinfo=None)
    for number in numbers:
        TASKS[task].schedule((number,), eta=moment)


job.gate()
