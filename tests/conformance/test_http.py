"""HTTP jobs succeed, fail, and are remembered alike on every engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from tests.http.target import Exchange, Target, answering

from perdure import App, Settings

SETTINGS = Settings(http_allow=("127.0.0.1",), auto_migrate=True)


@pytest.fixture
def target() -> Iterator[Target]:
    opened = Target()
    yield opened
    opened.close()


@pytest.fixture
def app(url: str) -> Iterator[App]:
    opened = App(url, settings=SETTINGS)
    yield opened
    opened.close()


async def test_requests_are_sent_judged_and_remembered(app: App, target: Target):
    async def second_time_lucky(exchange: Exchange) -> None:
        earlier = [seen for seen in target.seen if seen.path == "/flaky"]
        await exchange.answer("200 OK" if len(earlier) == 2 else "500 Oops", b"\x1bbody")

    flaky = target.on("/flaky", second_time_lucky)
    gone = target.on("/gone", answering("410 Gone", b"for good"))
    client = app.client_async()
    worker = app.make_worker()
    running = asyncio.create_task(worker.run())
    try:
        kept = await app.http.post(flaky, json={"order": 7}, retry="immediate").enqueue_async()
        lost = await app.http.post(gone).enqueue_async()
        async with asyncio.timeout(60):
            while not all([(await client.get(job_id)).is_final for job_id in (kept, lost)]):
                await asyncio.sleep(0.02)
        succeeded, dead = await client.get(kept), await client.get(lost)
        history, [group] = await client.history(kept), await client.groups()
    finally:
        worker.stop()
        await running
    assert (succeeded.state, succeeded.attempt) == ("succeeded", 2)
    assert succeeded.result is not None
    answer = json.loads(succeeded.result)
    assert (answer["status"], answer["reason"], answer["excerpt"]) == (200, "OK", "\\x1bbody")
    assert answer["ms"] > 0
    assert [record.outcome for record in history] == ["failed", "succeeded"]
    assert history[0].error is not None
    assert history[0].error.detail is not None
    assert history[0].error.detail["status"] == 500
    assert (dead.state, dead.reason) == ("dead", "unrecoverable")
    assert dead.error is not None
    assert dead.error.detail is not None
    assert dead.error.detail["excerpt"] == "for good"
    assert (group.count, group.task) == (1, "http")
