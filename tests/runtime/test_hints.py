"""A hint reaches the parts of a worker that do not fetch, too."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from perdure import App, Settings

PATIENCE = 20.0


async def test_a_running_job_is_cancelled_after_a_hint_however_rarely_the_worker_polls(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}", settings=Settings(poll=timedelta(hours=1)))
    started, broken_off = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            broken_off.set()

    worker = app.make_worker()
    running = asyncio.create_task(worker.run())
    try:
        job_id = await work.enqueue_async()
        await asyncio.wait_for(started.wait(), PATIENCE)
        await app.client_async().cancel(job_id)
        await asyncio.wait_for(broken_off.wait(), PATIENCE)
    finally:
        worker.stop()
        worker.stop()
        await running
        app.close()
