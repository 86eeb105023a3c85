"""A crowd of requests is under way at once in one worker, all waiting for the same slow server."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import timedelta

from tests.http.target import Exchange, Target
from tests.http.test_connections import working

from perdure import App, Settings

CROWD = 2000 if os.environ.get("PERDURE_CHAOS") == "long" else 400


async def test_a_crowd_of_requests_waits_together_in_one_worker(target: Target):
    """The server answers nobody before all have asked, and the worker polls but once: fewer at once would never end."""

    async def wait_for_all(exchange: Exchange) -> None:
        while len(target.seen) < CROWD:
            await asyncio.sleep(0.2)
        await exchange.answer("200 OK")

    url = target.on("/slow", wait_for_all)
    app = App("sqlite://", settings=Settings(http_allow=("127.0.0.1",), poll=timedelta(hours=1)))
    try:
        app.enqueue_many([app.http.post(url, timeout="120s") for _ in range(CROWD)])
        began = time.monotonic()
        async with working(app, concurrency=CROWD), asyncio.timeout(120):
            while app.client().count(state="succeeded") < CROWD:
                await asyncio.sleep(0.1)
        print(f"{CROWD} requests at once, {time.monotonic() - began:.1f} s in all")
    finally:
        app.close()
    assert len(target.seen) == CROWD
    assert target.connections == CROWD
