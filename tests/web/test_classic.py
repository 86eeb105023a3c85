"""Jobs of the form {schedule, api, type, isRecurring, maxRetryCount}, through the whole pipeline on virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.conformance.conftest import Engine
from tests.http.target import Exchange, Target, answering
from tests.web.conftest import connected
from tests.web.reach import Reach, expect

from perdure import App, Settings
from perdure.testing import Harness
from perdure.web.app import create_app

EXAMPLE_1 = {
    "schedule": "*/10 * * * * *",
    "api": "https://unreliable-api.com/webhook",
    "type": "AT_LEAST_ONCE",
    "isRecurring": True,
    "maxRetryCount": 3,
}
EXAMPLE_2 = {
    "schedule": "0 0 12 * * *",
    "api": "https://critical-api.com/notification",
    "type": "AT_MOST_ONCE",
    "isRecurring": False,
    "maxRetryCount": 5,
}
EXAMPLE_3 = {
    "schedule": "*/5 * * * * *",
    "api": "https://sometimes-down.com/api",
    "type": "AT_LEAST_ONCE",
    "isRecurring": True,
    "maxRetryCount": 2,
}
UNKNOWN = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest.fixture
def target() -> Iterator[Target]:
    opened = Target()
    yield opened
    opened.close()


@pytest.fixture
def caller() -> Iterator[App]:
    """An app that may reach the target."""
    made = App("sqlite://", settings=Settings(http_allow=("127.0.0.1",)))
    yield made
    made.close()


@pytest.fixture
def t(caller: App) -> Iterator[Harness]:
    with caller.testing() as harness:
        yield harness


@pytest.fixture
async def timed(caller: App, t: Harness) -> AsyncIterator[Reach]:
    """The API over the store of the harness."""
    async with connected(create_app(caller)) as client:
        yield Reach(client)


class Times:
    """Answers as it is told, and remembers when it was asked on the test's clock."""

    def __init__(self, t: Harness, *statuses: str) -> None:
        self._t = t
        self._statuses = statuses
        self.at: list[datetime] = []

    async def __call__(self, exchange: Exchange) -> None:
        self.at.append(self._t.now)
        status = self._statuses[min(len(self.at), len(self._statuses)) - 1]
        await exchange.answer(status)

    def since(self, start: datetime) -> list[float]:
        return [(moment - start).total_seconds() for moment in self.at]


async def patch(reach: Reach, path: str, body: Any, status: int = 200) -> Any:
    return expect(await reach.ask("PATCH", path, json=body), status)


def next_multiple(t: Harness, seconds: int) -> datetime:
    """The next moment of the clock's minute that a `*/seconds` rule names."""
    start = t.now.replace(microsecond=0)
    return start + timedelta(seconds=seconds - start.second % seconds)


async def test_a_request_that_always_fails_is_sent_at_0_1_3_and_7_s_and_then_at_the_next_tick(
    t: Harness, timed: Reach, target: Target
) -> None:
    times = Times(t, "500 Internal Server Error")
    made = await timed.post("jobs", {**EXAMPLE_1, "api": target.on("/down", times)}, 201)
    first = next_multiple(t, 10)
    t.advance(first - t.now + timedelta(seconds=12))
    assert times.since(first) == [0, 1, 3, 7, 10, 11]
    assert [seen.method for seen in target.seen] == ["POST"] * 6
    rows = (await timed.get(f"jobs/{made['id']}/history?limit=10"))["attempts"]
    assert [row["retry_count"] for row in rows] == [1, 0, 3, 2, 1, 0], "newest first"
    assert {row["status"] for row in rows} == {"FAILED"}
    assert {row["http_status"] for row in rows} == {500}
    assert {row["job_id"] for row in rows} == {made["id"]}
    assert [datetime.fromisoformat(row["execution_time"]) for row in rows] == times.at[::-1]
    assert len({row["run_id"] for row in rows}) == 2
    assert len((await timed.get(f"jobs/{made['id']}/history?limit=3"))["attempts"]) == 3


async def test_an_at_most_once_request_is_sent_once_and_its_schedule_is_gone(
    t: Harness, timed: Reach, target: Target
) -> None:
    times = Times(t, "503 Service Unavailable")
    made = await timed.post("jobs", {**EXAMPLE_2, "api": target.on("/critical", times)}, 201)
    assert made["max_retry_count"] == 5
    t.advance("3d")
    assert len(times.at) == 1
    assert (times.at[0].hour, times.at[0].minute, times.at[0].second) == (12, 0, 0)
    await timed.get(f"jobs/{made['id']}/schedule", 404)
    await timed.get(f"schedules/{made['id']}", 404)
    [row] = (await timed.get(f"jobs/{made['id']}/history"))["attempts"]
    assert (row["status"], row["retry_count"]) == ("FAILED", 0)
    shown = await timed.get(f"jobs/{made['id']}")
    assert (shown["status"], shown["schedule"], shown["last_status"]) == ("ended", None, "FAILED")
    assert shown["next_execution_time"] is None


async def test_after_a_retry_that_succeeds_the_next_tick_follows(t: Harness, timed: Reach, target: Target) -> None:
    times = Times(t, "502 Bad Gateway", "404 Not Found", "204 No Content")
    made = await timed.post("jobs", {**EXAMPLE_3, "api": target.on("/sometimes", times)}, 201)
    first = next_multiple(t, 5)
    t.advance(first - t.now + timedelta(seconds=6))
    assert times.since(first) == [0, 1, 3, 5]
    rows = (await timed.get(f"jobs/{made['id']}/history"))["attempts"]
    assert [(row["retry_count"], row["status"], row["http_status"]) for row in rows] == [
        (0, "SUCCESS", 204),
        (2, "SUCCESS", 204),
        (1, "FAILED", 404),
        (0, "FAILED", 502),
    ]


@pytest.mark.parametrize(("count", "requests"), [(0, 1), (1, 2), (None, 4)])
async def test_no_retries_means_none_and_unset_means_three(
    t: Harness, timed: Reach, target: Target, count: int | None, requests: int
) -> None:
    body = {"schedule": "0 0 12 * * *", "api": target.on("/down", answering("500 No")), "is_recurring": False}
    given = {} if count is None else {"max_retry_count": count}
    made = await timed.post("jobs", {**body, **given}, 201)
    assert made["max_retry_count"] == requests - 1
    t.advance("2d")
    assert len(target.seen) == requests


async def test_while_a_retry_waits_it_is_the_next_execution(t: Harness, timed: Reach, target: Target) -> None:
    made = await timed.post("jobs", {**EXAMPLE_1, "api": target.on("/down", answering("500 No"))}, 201)
    first = next_multiple(t, 10)
    before = await timed.get(f"jobs/{made['id']}/schedule")
    assert datetime.fromisoformat(before["next_execution_time"]) == first
    t.advance(first - t.now + timedelta(seconds=4))
    during = await timed.get(f"jobs/{made['id']}/schedule")
    assert datetime.fromisoformat(during["next_execution_time"]) == first + timedelta(seconds=7)
    assert datetime.fromisoformat(during["next_tick"]) == first + timedelta(seconds=10)
    run = (await timed.get(f"jobs?schedule={made['id']}"))["jobs"][0]
    assert (await timed.get(f"jobs/{run['id']}/schedule"))["name"] == made["id"]
    assert (await timed.get(f"jobs/{run['id']}/history"))["attempts"][-1]["retry_count"] == 2


async def test_a_change_holds_from_the_next_run_on(t: Harness, timed: Reach, target: Target) -> None:
    made = await timed.post("jobs", {**EXAMPLE_2, "api": target.url + "/old"}, 201)
    wanted = {"schedule": "*/20 * * * * *", "api": target.url + "/new", "maxRetryCount": 0, "isRecurring": True}
    changed = await patch(timed, f"jobs/{made['id']}", wanted)
    assert changed["schedule"] == "*/20 * * * * *"
    assert (changed["api"], changed["max_retry_count"]) == (target.url + "/new", 0)
    assert (changed["is_recurring"], changed["type"]) == (True, "AT_MOST_ONCE")
    t.advance("60s")
    assert [seen.path for seen in target.seen] == ["/new"] * 3


async def test_a_paused_job_sends_nothing_until_it_goes_on(t: Harness, timed: Reach, target: Target) -> None:
    made = await timed.post("jobs", {**EXAMPLE_1, "api": target.url}, 201)
    assert (await patch(timed, f"jobs/{made['id']}", {"isPaused": True}))["status"] == "paused"
    t.advance("60s")
    assert target.seen == []
    assert (await patch(timed, f"jobs/{made['id']}", {"isPaused": False}))["status"] == "active"
    t.advance("20s")
    assert len(target.seen) == 2


async def test_a_deleted_job_is_not_tried_again(t: Harness, timed: Reach, target: Target) -> None:
    made = await timed.post("jobs", {**EXAMPLE_1, "api": target.on("/down", answering("500 No"))}, 201)
    t.advance(next_multiple(t, 10) - t.now)
    expect(await timed.ask("DELETE", f"jobs/{made['id']}"), 200)
    t.advance("60s")
    assert len(target.seen) == 1
    assert (await timed.get(f"jobs/{made['id']}"))["status"] == "ended"
    expect(await timed.ask("DELETE", f"jobs/{made['id']}"), 409)
    await patch(timed, f"jobs/{made['id']}", {"isPaused": True}, 409)


@pytest.mark.parametrize("body", [EXAMPLE_1, EXAMPLE_2, EXAMPLE_3])
async def test_the_examples_are_taken_as_they_are_on_every_engine(
    engine: Engine, reach: Reach, body: dict[str, Any]
) -> None:
    made = await reach.post("jobs", body, 201)
    shown = await reach.get(f"jobs/{made['id']}")
    assert shown == made
    names = {"schedule": "schedule", "api": "api", "type": "type", "isRecurring": "is_recurring"}
    assert {name: shown[snake] for name, snake in names.items()} == {name: body[name] for name in names}
    assert shown["max_retry_count"] == body["maxRetryCount"]
    assert (await reach.get(f"jobs/{made['id']}/history?limit=10")) == {"attempts": []}
    assert (await reach.get(f"jobs/{made['id']}/schedule"))["name"] == made["id"]
    assert (await patch(reach, f"jobs/{made['id']}", {"max_retry_count": 7}))["max_retry_count"] == 7
    expect(await reach.ask("DELETE", f"jobs/{made['id']}"), 200)
    await reach.get(f"jobs/{made['id']}", 404)
    await reach.get(f"jobs/{made['id']}/history", 404)


async def test_a_repeated_request_makes_one_job(reach: Reach) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = await reach.ask("POST", "jobs", json=EXAMPLE_1, headers=headers)
    second = await reach.ask("POST", "jobs", json=EXAMPLE_1, headers=headers)
    assert first.json() == second.json()
    assert first.headers["location"] == second.headers["location"] == f"/api/v1/jobs/{first.json()['id']}"
    assert second.headers["idempotency-replayed"] == "true"
    await reach.post("jobs", EXAMPLE_3, 422, headers=headers)
    await reach.post("jobs", {"task": "send", "args": ["a@b.c"]}, 422, headers=headers)


async def test_a_repeated_request_does_not_bring_a_deleted_job_back(reach: Reach) -> None:
    headers = {"Idempotency-Key": "k1"}
    made = await reach.post("jobs", EXAMPLE_1, 201, headers=headers)
    expect(await reach.ask("DELETE", f"jobs/{made['id']}"), 200)
    again = await reach.post("jobs", EXAMPLE_1, 201, headers=headers)
    assert (again["id"], again["status"]) == (made["id"], "ended")
    await reach.get(f"jobs/{made['id']}", 404)


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"schedule": "every day"}, "/schedule"),
        ({"schedule": "61 * * * * *"}, "/schedule"),
        ({"api": "ftp://example.com"}, "/api"),
        ({"type": "EXACTLY_ONCE"}, "/type"),
        ({"maxRetryCount": -1}, "/max_retry_count"),
        ({"isRecurring": "yes"}, "/is_recurring"),
    ],
)
async def test_a_fault_says_where_it_is(reach: Reach, wrong: dict[str, Any], pointer: str) -> None:
    refused = await reach.post("jobs", {**EXAMPLE_1, **wrong}, 422)
    assert refused["errors"][0]["pointer"] == pointer
    made = await reach.post("jobs", EXAMPLE_1, 201)
    refused = await patch(reach, f"jobs/{made['id']}", wrong, 422)
    assert refused["errors"][0]["pointer"] == pointer


async def test_an_ordinary_job_has_no_schedule_that_could_be_changed(reach: Reach) -> None:
    job_id = await reach.enqueue()
    await reach.get(f"jobs/{job_id}/schedule", 404)
    await patch(reach, f"jobs/{job_id}", {"isPaused": True}, 409)
    await patch(reach, f"jobs/{UNKNOWN}", {"isPaused": True}, 404)


async def test_a_request_is_a_job_of_the_task_http_whatever_tasks_the_app_has(reach: Reach) -> None:
    made = await reach.post("jobs", {"task": "http", "kwargs": {"url": "https://example.com/hook"}}, 201)
    assert (await reach.get(f"jobs/{made['id']}"))["args"]["kwargs"]["method"] == "POST"
    await reach.post("jobs", {"task": "http", "kwargs": {"url": "nowhere"}}, 422)


async def test_a_one_shot_job_that_fails_is_retried_under_its_id_and_then_ends(
    t: Harness, timed: Reach, target: Target
) -> None:
    times = Times(t, "500 Internal Server Error")
    body = {**EXAMPLE_1, "isRecurring": False, "api": target.on("/down", times)}
    made = await timed.post("jobs", body, 201)
    first = next_multiple(t, 10)
    assert datetime.fromisoformat(made["next_execution_time"]) == first
    for past, due in [(0, 1), (1, 3), (3, 7)]:
        t.advance(first + timedelta(seconds=past) - t.now)
        shown = await timed.get(f"jobs/{made['id']}")
        assert (shown["status"], shown["schedule"], shown["is_recurring"]) == ("active", EXAMPLE_1["schedule"], False)
        assert datetime.fromisoformat(shown["next_execution_time"]) == first + timedelta(seconds=due)
        schedule = await timed.get(f"jobs/{made['id']}/schedule")
        assert datetime.fromisoformat(schedule["next_execution_time"]) == first + timedelta(seconds=due)
    t.advance("5m")
    assert times.since(first) == [0, 1, 3, 7], "it runs once, whatever its rule says"
    assert (await timed.get(f"jobs/{made['id']}"))["status"] == "ended"
    await timed.get(f"jobs/{made['id']}/schedule", 404)
    t.advance("10d")
    await timed.post(f"jobs/{made['id']}/retry")
    again = await timed.get(f"jobs/{made['id']}")
    assert (again["status"], again["schedule"], again["is_recurring"]) == ("active", EXAMPLE_1["schedule"], False)
    await timed.get(f"jobs/{made['id']}/schedule")


@pytest.mark.parametrize("is_recurring", [True, False])
async def test_what_a_scheduled_job_leaves_in_the_store_goes_with_its_last_run(
    t: Harness, timed: Reach, target: Target, caller: App, is_recurring: bool
) -> None:
    made = await timed.post("jobs", {**EXAMPLE_1, "isRecurring": is_recurring, "api": target.url}, 201)
    t.advance("15s")
    assert len(target.seen) == 1 + is_recurring * (len(target.seen) - 1)
    if is_recurring:
        await timed.post(f"jobs/{made['id']}/cancel")
    t.advance("2h")
    [kept] = await caller.store.get_schedules([made["id"]])
    assert (kept is not None) is is_recurring, "a success cannot be retried, a cancelled job can"
    assert (await timed.get(f"jobs/{made['id']}"))["status"] == "ended"
    await caller.store.prune(timedelta(0), 100)
    t.advance("3d")
    assert await caller.store.get_schedules([made["id"]]) == [None]
    await timed.get(f"jobs/{made['id']}", 404)
