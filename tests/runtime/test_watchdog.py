"""A worker that another program runs: when it cannot go on, it ends and leaves the process alone."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import App
from perdure.errors import WorkerFailed

LONG = timedelta(minutes=10)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = App(f"sqlite:///{tmp_path}/jobs.db", auto_migrate=True)
    yield app
    app.close()


async def until(condition: Callable[[], Any]) -> Any:
    async with asyncio.timeout(60):
        while not (found := condition()):
            await asyncio.sleep(0.01)
    return found


def running(app: App) -> int:
    return app.client().stats().running


def works(app: App) -> Callable[[], Awaitable[None]]:
    return app.make_worker(None, 2, LONG, timedelta(milliseconds=200)).run


def test_a_keeper_that_fails_ends_the_worker(app: App, caplog: pytest.LogCaptureFixture) -> None:
    entered = threading.Event()

    @app.task
    async def wait() -> None:
        entered.set()
        await asyncio.sleep(3600)

    job_id = wait.enqueue()

    def fail(*_: object) -> None:
        raise ValueError("a defect")

    async def main() -> None:
        worker = app.make_worker(None, 2, timedelta(seconds=1), LONG)
        task = asyncio.create_task(worker.run())
        await until(entered.is_set)
        app.store.beat = fail  # type: ignore[assignment]
        with pytest.raises(WorkerFailed, match="its keeper failed with ValueError: a defect"):
            await asyncio.wait_for(task, 60)

    asyncio.run(main())
    assert (app.client().get(job_id).state, app.client().get(job_id).failures) == ("ready", 0)
    assert app.client().workers() == []
    assert caplog.text.count("This worker ends") == 1


def test_a_part_that_fails_ends_the_worker(app: App, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        worker = app.make_worker(None, 2, LONG, timedelta(milliseconds=200))
        task = asyncio.create_task(worker.run())
        pruners = await until(lambda: [each for each in asyncio.all_tasks() if each.get_name() == "pruner"])
        pruners[0].cancel()
        with pytest.raises(WorkerFailed, match="its pruner was cancelled"):
            await asyncio.wait_for(task, 60)

    asyncio.run(main())
    assert app.client().workers() == []
    assert caplog.text.count("This worker ends") == 1


def test_a_worker_whose_loop_is_closed_beside_it_gives_its_lease_up(app: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    loop = asyncio.new_event_loop()

    async def begin() -> asyncio.Task[None]:
        worker = app.make_worker(None, 2, timedelta(seconds=6), timedelta(milliseconds=200))
        task = asyncio.create_task(worker.run())
        # Registered, and told so by the store; else there would be nothing to give up.
        await until(lambda: not worker.problems())
        return task

    task = loop.run_until_complete(begin())
    end = time.monotonic() + 300
    # Nobody runs the loop any more.
    while "The worker is ended" not in caplog.text:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert "its event loop has ended" in caplog.text
    assert app.client().workers() == []
    # A program that runs it again is told.
    with pytest.raises(WorkerFailed, match="its event loop has ended"):
        loop.run_until_complete(asyncio.wait_for(task, 60))
    loop.close()


def test_a_worker_whose_loop_is_blocked_too_long_ends_and_leaves_the_process_alone(tmp_path: Path) -> None:
    from perdure import Settings

    app = App(settings=Settings(url=f"sqlite:///{tmp_path}/jobs.db", max_block=timedelta(seconds=1)))
    released = threading.Event()

    @app.task
    async def block() -> None:
        released.wait(60)

    job_id = block.enqueue()

    def watch() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end and app.client().get(job_id).reason != "lost":
            time.sleep(0.05)
        released.set()

    watching = threading.Thread(target=watch)
    watching.start()
    with pytest.raises(WorkerFailed, match="blocked its event loop"):
        asyncio.run(works(app)())
    watching.join()
    assert app.client().get(job_id).failures == 1
    assert app.client().workers() == []
    app.close()
