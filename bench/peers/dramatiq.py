"""Dramatiq on Redis: actors, `send` to enqueue, the `dramatiq` command with one process."""

from __future__ import annotations

import time
from collections.abc import Sequence

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.peers import job

broker = RedisBroker(url=job.URL)
dramatiq.set_broker(broker)


@dramatiq.actor
def noop_async(number: int) -> None:
    job.noop(number)


@dramatiq.actor(max_retries=3, min_backoff=0, max_backoff=0)
def fail_twice(number: int) -> None:
    job.fail_twice(number)


ACTORS = {"noop_async": noop_async, "fail_twice": fail_twice}


def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        ACTORS[task].send(number)


def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    for number in numbers:
        ACTORS[task].send_with_options(args=(number,), delay=max(0, int((due - time.time()) * 1000)))


job.gate()
