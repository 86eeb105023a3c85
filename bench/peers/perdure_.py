"""Perdure, used as its documentation says: an app, tasks, `enqueue`, `enqueue_many`, and `perdure worker`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from bench.peers import job
from perdure import App

app = App(job.URL, auto_migrate=True)


@app.task
async def noop_async(number: int) -> None:
    job.noop(number)


@app.task
def noop_sync(number: int) -> None:
    job.noop(number)


@app.task(delivery="at_most_once")
async def noop_at_most_once(number: int) -> None:
    job.noop(number)


@app.task
async def compute(number: int) -> None:
    job.compute(number)


@app.task(retry="immediate")
async def fail_twice(number: int) -> None:
    job.fail_twice(number)


def setup() -> None:
    connect()
    app.close()


def connect() -> None:
    app.store.now().wait()


def disconnect() -> None:
    app.close()


def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    enqueue = app.tasks[task].enqueue
    for number in numbers:
        enqueue(number)


def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    bind = app.tasks[task].bind
    app.enqueue_many([bind(number) for number in numbers])


def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    bind = app.tasks[task].options(run_at=datetime.fromtimestamp(due, UTC)).bind
    app.enqueue_many([bind(number) for number in numbers])


def settled(jobs: int) -> int:
    return app.client().count(state="succeeded")


job.gate()
