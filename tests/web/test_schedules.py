"""Schedules and queue settings over the API, on every engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from tests.conformance.conftest import Engine
from tests.web.reach import Reach, expect

from perdure import App
from perdure.admin import schedules as service
from perdure.model.schedule.definition import Definition

NIGHTLY = {"name": "nightly", "cron": "0 0 3 * * *", "tz": "Europe/Berlin", "task": "send", "args": ["a@b.c"]}
PING = {"name": "ping", "cron": "@every 30s", "http": {"url": "https://example.com/ping", "json": {"a_b": 1}}}


async def patch(reach: Reach, path: str, body: Any, status: int = 200) -> Any:
    return expect(await reach.ask("PATCH", path, json=body), status)


async def delete(reach: Reach, path: str, status: int = 200) -> Any:
    return expect(await reach.ask("DELETE", path), status)


async def test_a_schedule_is_made_shown_changed_and_removed(engine: Engine, reach: Reach) -> None:
    made = await reach.post("schedules", NIGHTLY, 201)
    assert (made["cron"], made["tz"], made["queue"], made["state"]) == (
        "0 0 3 * * *",
        "Europe/Berlin",
        "mail",
        "active",
    )
    assert made["args"] == {"args": ["a@b.c"]}
    assert await reach.get("schedules/nightly") == made
    assert await reach.post("schedules", NIGHTLY) == made, "the same again changes nothing"
    await reach.post("schedules", {**NIGHTLY, "cron": "@hourly"}, 409)
    changed = await patch(reach, "schedules/nightly", {"cron": "@daily", "maxRetries": 2, "kwargs": {"body": "hello"}})
    assert (changed["cron"], changed["max_attempts"]) == ("@daily", 3)
    assert changed["args"] == {"args": ["a@b.c"], "kwargs": {"body": "hello"}}
    assert changed["tz"] == "Europe/Berlin", "what is not named stays"
    assert (await patch(reach, "schedules/nightly", {"max_attempts": None}))["max_attempts"] is None
    assert (await patch(reach, "schedules/nightly", {"is_paused": True}))["state"] == "paused"
    assert await delete(reach, "schedules/nightly") == {"name": "nightly", "is_removed": True}
    await delete(reach, "schedules/nightly", 404)
    await reach.get("schedules/nightly", 404)


async def test_a_schedule_of_a_request_keeps_it_as_it_was_given(reach: Reach) -> None:
    made = await reach.post("schedules", PING, 201)
    assert made["task"] == "http"
    assert made["args"]["kwargs"] == {"method": "POST", "url": "https://example.com/ping", "json": {"a_b": 1}}
    changed = await patch(reach, "schedules/ping", {"http": {"url": "https://example.com/b", "method": "GET"}})
    assert changed["args"]["kwargs"] == {"method": "GET", "url": "https://example.com/b"}
    await reach.post("schedules", {**PING, "task": "send"}, 422)


async def test_schedules_come_in_pages_by_name(engine: Engine, reach: Reach) -> None:
    for name in ("c", "a", "b"):
        await reach.post("schedules", {**NIGHTLY, "name": name}, 201)
    first = await reach.ask("GET", "schedules?limit=2")
    assert [each["name"] for each in first.json()["schedules"]] == ["a", "b"]
    assert first.headers["link"] == '</api/v1/schedules?limit=2&cursor=b>; rel="next"'
    second = await reach.get(f"schedules?limit=2&cursor={first.json()['next_cursor']}")
    assert ([each["name"] for each in second["schedules"]], second["next_cursor"]) == (["c"], None)


async def test_a_schedule_is_paused_resumed_run_and_looked_ahead_of(engine: Engine, reach: Reach) -> None:
    await reach.post("schedules", NIGHTLY, 201)
    assert await reach.post("schedules/nightly/pause") == {"name": "nightly", "is_paused": True, "is_changed": True}
    assert (await reach.post("schedules/nightly/pause"))["is_changed"] is False
    assert (await reach.post("schedules/nightly/resume"))["is_changed"] is True
    run = await reach.post("schedules/nightly/run", None, 201)
    assert (await reach.get(f"jobs/{run['id']}"))["schedule"] == "nightly"
    assert [job["id"] for job in (await reach.get("jobs?schedule=nightly"))["jobs"]] == [run["id"]]
    await reach.post("schedules/nightly/run", None, 409)
    ticks = (await reach.get("schedules/nightly/ticks?n=3"))["ticks"]
    moments = [datetime.fromisoformat(tick) for tick in ticks]
    assert len(moments) == 3
    assert moments == sorted(moments)
    assert len((await reach.get("schedules/nightly/ticks"))["ticks"]) == 5
    await reach.get("schedules/nightly/ticks?n=0", 422)
    await reach.post("schedules/none/run", None, 404)


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"cron": "61 * * * * *"}, "/cron"),
        ({"cron": "every day"}, "/cron"),
        ({"tz": "Europe/Nowhere"}, "/tz"),
        ({"retry": "exponental(1s)"}, "/retry"),
        ({"overlap": "maybe"}, "/overlap"),
        ({"task": "sned"}, "/task"),
        ({"args": [1, 2, 3, 4]}, ""),
    ],
)
async def test_a_fault_of_a_schedule_says_where_it_is(reach: Reach, wrong: dict[str, Any], pointer: str) -> None:
    refused = await reach.post("schedules", {**NIGHTLY, **wrong}, 422)
    assert refused["errors"][0]["pointer"] == pointer
    await reach.post("schedules", NIGHTLY, 201)
    refused = await patch(reach, "schedules/nightly", wrong, 422)
    assert refused["errors"][0]["pointer"] == pointer


async def test_a_bad_request_of_a_schedule_is_pointed_at(reach: Reach) -> None:
    refused = await reach.post("schedules", {**PING, "http": {"url": "file:///etc/passwd"}}, 422)
    assert refused["errors"][0]["pointer"] == "/http"
    await reach.post("schedules", {"name": "x", "cron": "@hourly"}, 422)


async def test_what_code_defines_can_be_paused_and_not_changed(reach: Reach, app: App) -> None:
    definition = Definition(name="coded", task="send", args=b"{}", cron="@hourly")
    await service.add_schedule(app.store, definition)
    [known] = await app.store.get_schedules(["coded"])
    assert known is not None
    coded = msgspec.structs.replace(known, origin="code", revision="r2")
    assert await app.store.put_schedule(coded, known.revision)
    await patch(reach, "schedules/coded", {"cron": "@daily"}, 409)
    assert (await patch(reach, "schedules/coded", {"isPaused": True}))["state"] == "paused"


async def test_queue_settings_are_set_taken_back_and_shown(engine: Engine, reach: Reach) -> None:
    changed = await patch(reach, "queues/mail", {"retryShare": 0.1, "strict": True, "concurrency": 5})
    nothing = {"retry_share": None, "strict": None, "max_retries_running": None, "concurrency": None}
    assert changed["settings"] == {**nothing, "retry_share": 0.1, "strict": True, "concurrency": 5}
    changed = await patch(reach, "queues/mail", {"concurrency": "none", "strict": None})
    assert changed["settings"] == {**nothing, "retry_share": 0.1, "concurrency": "none"}
    assert (await reach.get("queues/mail"))["settings"] == changed["settings"]
    for wrong in ({}, {"concurrency": 0}, {"retry_share": 2}, {"strict": "no"}):
        await patch(reach, "queues/mail", wrong, 422)


async def test_a_pause_ends_when_it_was_said_to(engine: Engine, reach: Reach) -> None:
    before = datetime.now(UTC)
    await reach.post("queues/mail/pause", {"duration": "1h", "reason": "later"})
    until = datetime.fromisoformat((await reach.get("queues/mail"))["paused_until"])
    assert timedelta(minutes=59) < until - before < timedelta(minutes=61)
    end = (before + timedelta(days=1)).replace(microsecond=0)
    await reach.post("queues/mail/pause", {"until": end.isoformat()})
    assert datetime.fromisoformat((await reach.get("queues/mail"))["paused_until"]) == end
    await reach.post("queues/mail/pause", {"until": "2001-01-01T00:00:00Z"}, 422)
    await reach.post("queues/mail/pause", {"until": end.isoformat(), "duration": 5}, 422)
