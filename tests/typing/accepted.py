"""What a type checker must accept: mypy --strict reads this file with the sources."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import assert_type

from perdure import App, AsyncClient, Bound, Client, Job, Retry, current_job
from perdure.model.job import JobId
from perdure.task import Task

app = App("sqlite://")


@app.task
def bare(x: int) -> str:
    return str(x)


@app.task(
    queue="mail",
    timeout="30s",
    retry=Retry.exponential("2s", cap="10m", max_attempts=12).never(ValueError).on(TimeoutError, "5s"),
)
async def send(to: str, body: str = "") -> None:
    assert_type(current_job().attempt, int)


@app.task(retry="harbor", process=True)
def render(day: str) -> str:
    return day


def blocking() -> None:
    assert_type(bare(1), str)
    assert_type(bare.enqueue(1), JobId)
    assert_type(send.enqueue("a@b.c", body="hi"), JobId)
    assert_type(render.bind("today"), Bound)
    prepared = send.options(delay="5m", priority=10, unique="order-7", max_retries=3, timeout=timedelta(seconds=3))
    assert_type(prepared.enqueue("a@b.c"), JobId)
    send.options(run_at=datetime.now(UTC), delivery="at_most_once", retry="standard").enqueue("a@b.c", "hi")
    assert_type(app.enqueue_many([send.bind("a@b.c", body="hi"), bare.bind(2)]), list[JobId])
    assert_type(app.http.post("https://example.com/", json={"a": 1}, sign=True, timeout="5s").enqueue(), JobId)
    app.enqueue_many([app.http.get("https://example.com/", retry_on="all", delay="5m"), bare.bind(2)])
    with app.client() as client:
        assert_type(client, Client)
        assert_type(client.get("id"), Job)


async def asynchronous() -> None:
    assert_type(await send.enqueue_async("a@b.c", body="hi"), JobId)
    assert_type(await app.enqueue_many_async([bare.bind(1)]), list[JobId])
    async with app.client_async() as client:
        assert_type(client, AsyncClient)
        assert_type(await client.get("id"), Job)


def keeps_the_signature(task: Task[[int], str]) -> str:
    return task(3)


keeps_the_signature(bare)
