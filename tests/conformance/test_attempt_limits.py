"""How often a failing job runs, on every engine: its policy bounds the limit that is stored with it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from perdure import App, AsyncClient
from perdure.model.job import JobId


@pytest.fixture
def app(url: str) -> Iterator[App]:
    opened = App(url, retry="one-shot", auto_migrate=True)

    @opened.task
    async def fail() -> None:
        raise OSError("down")

    yield opened
    opened.close()


async def attempts(client: AsyncClient, job_id: JobId) -> int:
    """How often the job has run when it is dead."""
    async with asyncio.timeout(60):
        while (job := await client.get(job_id)).state != "dead":
            await asyncio.sleep(0.02)
    return job.attempt


async def test_stored_limits_and_policies_are_bounded_and_replays_run_once(app: App) -> None:
    fail = app.tasks["fail"]
    client = app.client_async()
    capped = "fixed(0s, max_attempts=3, caps_jobs=true)"
    jobs = {
        "asks for five": (fail.options(max_attempts=5), 1),
        "asks for no end": (fail.options(max_attempts="unlimited"), 1),
        "own policy without retries": (fail.options(retry="never_retry()", max_attempts=5), 1),
        "own policy": (fail.options(retry="none"), 4),
        "own policy that caps": (fail.options(retry=capped, max_attempts=20), 3),
        "asks for less than the cap": (fail.options(retry=capped, max_attempts=2), 2),
    }
    ids = {name: await prepared.enqueue_async() for name, (prepared, _) in jobs.items()}
    assert (await client.get(ids["own policy that caps"])).retry == capped
    worker = app.make_worker()
    running = asyncio.create_task(worker.run())
    try:
        assert {name: await attempts(client, job_id) for name, job_id in ids.items()} == {
            name: times for name, (_, times) in jobs.items()
        }
        await client.replay(ids["asks for five"])
        async with asyncio.timeout(60):
            while (await client.get(ids["asks for five"])).attempt < 2:
                await asyncio.sleep(0.02)
        assert await attempts(client, ids["asks for five"]) == 2
    finally:
        worker.stop()
        await running
