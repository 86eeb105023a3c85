"""Jobs that are changed while they wait: they run when, where and as often as was said last."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from perdure import App, Retry, Settings

MINUTE = timedelta(minutes=1)


@pytest.fixture
def app() -> App:
    return App("sqlite://")


def test_jobs_run_when_they_were_last_told_to(app: App) -> None:
    seen: list[tuple[str, timedelta]] = []

    @app.task
    def work(name: str) -> None:
        seen.append((name, t.now - start))

    with app.testing() as t, app.client() as client:
        start = t.now
        sooner = work.options(delay="1h").enqueue("sooner")
        later = work.enqueue("later")
        client.change(sooner, delay="1m")
        client.change(later, run_at=start + 2 * MINUTE)
        assert t.drain() == 0
        t.advance("3m")
    assert seen == [("sooner", MINUTE), ("later", 2 * MINUTE)]


def test_a_retry_can_be_brought_forward_and_keeps_its_count(app: App) -> None:
    @app.task(retry=Retry.fixed("1h", jitter="none", max_attempts=3))
    def fail() -> None:
        raise ConnectionError

    with app.testing() as t, app.client() as client:
        job_id = fail.enqueue()
        t.drain()
        assert client.change(job_id, delay=0).failures == 1
        t.drain()
        assert (t.job(job_id).failures, t.job(job_id).state) == (2, "waiting")


def test_a_limit_that_is_used_up_already_ends_the_job_without_another_run(app: App) -> None:
    runs = []

    @app.task(retry=Retry.fixed("1m", jitter="none", max_attempts=10))
    def fail() -> None:
        runs.append(1)
        raise ConnectionError

    with app.testing() as t, app.client() as client:
        lower, higher = fail.enqueue(), fail.options(max_attempts=2).enqueue()
        t.advance("30s")
        client.change(lower, max_attempts=1)
        client.change(higher, max_attempts=3)
        assert len(runs) == 2
        t.advance("1h")
        assert (t.job(lower).state, t.job(lower).reason, t.job(lower).failures) == ("dead", "exhausted", 1)
        assert (t.job(higher).state, t.job(higher).failures) == ("dead", 3)
    assert len(runs) == 4


@pytest.mark.parametrize("delay", ["0s", "200ms"])
def test_an_idle_worker_takes_a_job_when_it_is_due_after_the_change(tmp_path: Path, delay: str) -> None:
    """The worker would look for itself after ten minutes only."""
    app = App(f"sqlite:///{tmp_path}/jobs.db", settings=Settings(poll=10 * MINUTE, concurrency=1))
    ran = asyncio.Event()

    @app.task
    async def work() -> None:
        ran.set()

    async def play() -> None:
        worker = app.make_worker()
        working = asyncio.create_task(worker.run())
        async with app.client_async() as client:
            await work.enqueue_async()
            await ran.wait()
            ran.clear()
            job_id = await work.options(delay="1h").enqueue_async()
            await client.change(job_id, delay="1m")
            assert not ran.is_set()
            await client.change(job_id, delay=delay)
            await ran.wait()
        worker.stop()
        await working

    try:
        asyncio.run(asyncio.wait_for(play(), 30))
    finally:
        app.close()
