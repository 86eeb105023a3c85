"""`perdure_jobs_enqueued_total` counts every job that a process made, whoever asked for it, and none twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.web.conftest import connected

from perdure import App, Retry
from perdure.web.app import create_app


@pytest.fixture
def app() -> Iterator[App]:
    made = App("sqlite://")

    @made.task(queue="mail", name="send", retry=Retry.never_retry())
    def send(how: str = "well") -> None:
        if how != "well":
            raise ValueError(how)

    yield made
    made.close()


def enqueued(app: App, queue: str = "mail", task: str = "send") -> float:
    """What a scrape shows; 0 where it shows nothing."""
    families = text_string_to_metric_families(app.render_metrics()[0].decode())
    found = [
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "perdure_jobs_enqueued_total" and sample.labels == {"queue": queue, "task": task}
    ]
    return sum(found)


def test_the_jobs_that_a_worker_fires_are_counted(app: App) -> None:
    app.schedule("often", app.tasks["send"].bind(), cron="@every 10s")
    with app.testing() as t:
        t.advance("35s")
        assert len(t.jobs(schedule="often")) == 3
        assert enqueued(app) == 3


def test_a_tick_that_is_skipped_made_no_job(app: App) -> None:
    send = app.tasks["send"]
    app.schedule("often", send.options(queue="idle").bind(), cron="@every 10s")
    with app.testing() as t:
        app.client().pause("idle")
        t.advance("35s")
        assert len(t.jobs(schedule="often")) == 1
        assert enqueued(app, "idle") == 1


def test_only_the_process_that_fired_a_tick_counts_it(tmp_path) -> None:
    apps = [App(f"sqlite:///{tmp_path}/jobs.db") for _ in range(2)]
    for app in apps:
        send = app.task(name="send", queue="mail")(lambda: None)
        for number in range(20):
            app.schedule(f"often-{number}", send.bind(), cron="@every 1s")

    async def fire() -> None:
        schedulers = [app.make_scheduler() for app in apps]
        running = [asyncio.create_task(scheduler.run()) for scheduler in schedulers]
        while await apps[0].client_async().count() < 20:
            await asyncio.sleep(0.02)
        for scheduler in schedulers:
            scheduler.stop()
        await asyncio.gather(*running)

    asyncio.run(asyncio.wait_for(fire(), 30))
    try:
        assert sum(enqueued(app) for app in apps) == apps[0].client().count()
    finally:
        for app in apps:
            app.close()


def test_a_schedule_that_a_person_runs_is_counted(app: App) -> None:
    with app.client() as client:
        client.add_schedule("nightly", "send", cron="0 3 * * *", queue="mail", overlap="allow")
        client.run_schedule_now("nightly")
        assert enqueued(app) == 1

    async def run() -> None:
        async with app.client_async() as client:
            await client.run_schedule_now("nightly")

    asyncio.run(run())
    assert enqueued(app) == 2


async def test_the_jobs_that_a_server_makes_are_counted_once_for_each_key(app: App) -> None:
    async with connected(create_app(app)) as client:
        body = {"task": "send", "args": ["well"], "unique": "order-7"}
        for key in ("one", "one", "two"):
            answer = await client.post("/api/v1/jobs", json=body, headers={"Idempotency-Key": key})
            assert answer.status_code in (200, 201)
        assert enqueued(app) == 1, "the key was repeated, and then the unique key was taken"
        await client.post("/api/v1/jobs", json={"jobs": [{"task": "send"}] * 3})
        assert enqueued(app) == 4
        await client.post("/api/v1/schedules", json={"name": "nightly", "task": "send", "cron": "0 3 * * *"})
        assert (await client.post("/api/v1/schedules/nightly/run")).status_code == 201
    assert enqueued(app) + enqueued(app, "default") == 5


def test_the_copy_in_a_sinks_queue_is_counted_once() -> None:
    app = App("sqlite://", dead_letter="queue:graveyard")

    @app.task(name="fail", retry=Retry.never_retry())
    def fail() -> None:
        raise ValueError

    with app.testing() as t:
        job_id = fail.enqueue()
        t.drain()
        assert len(t.jobs(queue="graveyard")) == 1
        assert enqueued(app, "graveyard", "fail") == 1
        app.client().forward(job_id)
        t.advance(timedelta(minutes=1))
        assert enqueued(app, "graveyard", "fail") == 1
