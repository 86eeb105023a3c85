"""A running worker and its queues: it follows operators, wakes when a place is free, and keeps weights."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import App, Settings
from perdure.runtime.worker import Worker

PATIENCE = 60.0


class Stage:
    """An app whose jobs note that they run and wait until they are let go."""

    def __init__(self, url: str, **settings: Any) -> None:
        given = {"poll": timedelta(milliseconds=100), "concurrency": 10, "max_prefetch": 0, **settings}
        self.app = App(url, settings=Settings(**given))
        self.running = 0
        self.most = 0
        self.started: list[str] = []
        self.gate = asyncio.Event()
        for queue in ("mail", "default"):
            self._add(queue)

    def _add(self, queue: str) -> None:
        @self.app.task(name=queue, queue=queue)
        async def run() -> None:
            self.started.append(queue)
            self.running += 1
            self.most = max(self.most, self.running)
            await self.gate.wait()
            await asyncio.sleep(0)
            self.running -= 1

    def enqueue(self, queue: str, count: int) -> None:
        self.app.enqueue_many([self.app.tasks[queue].bind() for _ in range(count)])

    @asynccontextmanager
    async def working(self, queues: Mapping[str, int] | None = None) -> AsyncIterator[Worker]:
        worker = self.app.make_worker(queues)
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            self.gate.set()
            worker.stop()
            await running
            self.app.close()


@pytest.fixture
def stage(tmp_path: Path) -> Callable[..., Stage]:
    return lambda url=f"sqlite:///{tmp_path}/jobs.db", **settings: Stage(url, **settings)


async def until(condition: Callable[[], bool], what: str, within: float = PATIENCE) -> None:
    try:
        async with asyncio.timeout(within):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {within:g} s: {what}") from None


async def test_a_worker_follows_the_limits_that_operators_set_while_it_runs(stage: Callable[..., Stage]) -> None:
    play = stage()
    client = play.app.client()
    client.configure("mail", concurrency=2)
    play.enqueue("mail", 10)
    async with play.working():
        await until(lambda: play.running == 2, "the limit is reached")
        await asyncio.sleep(0.3)
        assert play.most == 2
        client.configure("mail", concurrency=5)
        await until(lambda: play.running == 5, "the raised limit is followed")
        client.configure("mail", unset=["concurrency"])
        await until(lambda: play.running == 10, "without a limit all run")


async def test_operators_win_over_configuration_and_that_over_code(stage: Callable[..., Stage]) -> None:
    play = stage(queue_settings="mail: concurrency=3")
    play.app.queue("mail", concurrency=1)
    play.enqueue("mail", 10)
    async with play.working():
        await until(lambda: play.running == 3, "the configuration's limit holds")
        play.app.client().configure("mail", concurrency="none")
        await until(lambda: play.running == 10, "explicitly no limit holds")


async def test_a_place_that_becomes_free_is_taken_at_once_and_not_at_the_next_poll(stage: Callable[..., Stage]) -> None:
    # In memory there is no watcher of the file that would tell of the free place sooner or later.
    play = stage("sqlite://", poll=timedelta(minutes=5))
    play.app.queue("mail", concurrency=1)
    play.enqueue("mail", 20)
    play.gate.set()
    async with play.working():
        await until(lambda: len(play.started) == 20, "all have run, one after the other")
    assert play.most == 1


async def test_work_goes_on_by_itself_when_a_pause_ends(stage: Callable[..., Stage]) -> None:
    play = stage()
    client = play.app.client()
    client.pause("mail", "a short break", duration="700ms")
    (queue,) = client.queues()
    play.enqueue("mail", 1)
    async with play.working():
        await until(lambda: play.started == ["mail"], "the queue is served again")
        (job,) = client.list(queue="mail")
    assert queue.paused_until is not None
    assert job.started_at is not None
    assert job.started_at >= queue.paused_until


async def test_a_single_slot_serves_its_queues_by_their_weights(stage: Callable[..., Stage]) -> None:
    play = stage(concurrency=1)
    play.gate.set()
    play.enqueue("mail", 60)
    play.enqueue("default", 60)
    async with play.working({"mail": 3, "default": 1}):
        await until(lambda: len(play.started) >= 40, "enough have run")
    for begin in range(0, 36, 4):
        assert Counter(play.started[begin : begin + 4]) == {"mail": 3, "default": 1}


async def test_weights_may_come_from_the_environment(stage: Callable[..., Stage]) -> None:
    settings = Settings.from_environment({"PERDURE_QUEUES": "mail:3,default"})
    play = stage(queues=settings.queues)
    worker = play.app.make_worker()
    assert worker._plan.queues == {"mail": 3, "default": 1}
    play.app.close()
