"""Answers are bounded in bytes: a page ends early with a cursor, lists cut large payloads, one job is shown whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.conformance.conftest import Engine
from tests.conformance.scene import Scene, an_error, death
from tests.web.reach import Reach

from perdure.model.failure import Failure
from perdure.web import paging
from perdure.web.app import Api

LARGE = "x" * 100_000
MEDIUM = "m" * 10_000


async def _all(reach: Reach, path: str, name: str) -> tuple[list[Any], list[int]]:
    """Every item over all pages, and how many bytes each page had."""
    items: list[Any] = []
    sizes: list[int] = []
    cursor = ""
    while True:
        response = await reach.ask("GET", f"{path}{cursor}")
        assert response.status_code == 200, response.text
        page = response.json()
        assert page[name], "a page is never empty while there is more"
        items += page[name]
        sizes.append(len(response.content))
        if page["next_cursor"] is None:
            assert "link" not in response.headers
            return items, sizes
        assert f"cursor={page['next_cursor']}" in response.headers["link"]
        cursor = f"&cursor={page['next_cursor']}"


async def test_a_page_ends_early_where_it_has_become_large(
    engine: Engine, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "LARGEST_PAGE", 50_000)
    monkeypatch.setattr(paging, "_FIRST_PIECE", 3)
    ids = [await reach.enqueue(args=[MEDIUM]) for _ in range(12)]
    jobs, sizes = await _all(reach, "jobs?limit=1000", "jobs")
    assert [job["id"] for job in jobs] == ids[::-1]
    assert len(sizes) > 2
    assert max(sizes) < 52_000


async def test_large_payloads_are_cut_in_lists_and_whole_by_id(engine: Engine, reach: Reach, scene: Scene) -> None:
    error = Failure(type="E", message="m", lineage=("E",), trace="t" * 30_000, detail={"excerpt": LARGE})
    dead = scene.dead(error=error, args=json.dumps({"args": [LARGE]}).encode())
    job_id = await reach.enqueue(args=[LARGE])
    (listed,) = (await reach.get("dead-letters"))["jobs"]
    assert listed["args"].startswith("[cut: 100,0")
    assert listed["error"]["detail"].startswith("[cut: 100,0")
    assert len(listed["error"]["trace"]) < 17_000
    jobs = {job["id"]: job for job in (await reach.get("jobs"))["jobs"]}
    assert jobs[job_id]["args"].startswith("[cut: 100,0")
    assert (await reach.get(f"jobs/{job_id}"))["args"] == {"args": [LARGE]}
    shown = await reach.get(f"jobs/{dead}")
    assert shown["error"]["detail"] == {"excerpt": LARGE}
    assert len(shown["error"]["trace"]) == 30_000
    assert (await reach.get("dead-letters/groups"))["groups"][0]["sample"]["detail"].startswith("[cut: ")


async def test_a_page_never_holds_more_jobs_in_memory_than_fit(
    reach: Reach, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first few jobs the next piece follows from how large they were."""
    for _ in range(12):
        await reach.enqueue(args=[LARGE])
    monkeypatch.setattr(paging, "_FIRST_PIECE", 2)
    monkeypatch.setattr(paging, "_MOST_LOADED", 350_000)
    store = await api.context.store()
    real, asked = store.list, []

    def listed(where: Any, *, limit: int, after: Any = None) -> Any:
        asked.append(limit)
        return real(where, limit=limit, after=after)

    monkeypatch.setattr(store, "list", listed)
    jobs, _ = await _all(reach, "jobs?limit=1000", "jobs")
    assert len(jobs) == 12
    assert max(asked) <= 4
    asked.clear()
    await reach.get("jobs?limit=1")
    assert asked == [2]


async def test_small_jobs_still_come_in_few_reads(reach: Reach, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await reach.post("jobs", {"jobs": [{"task": "send", "args": [str(number)]} for number in range(300)]}, 201)
    store = await api.context.store()
    real, asked = store.list, []
    monkeypatch.setattr(
        store, "list", lambda where, *, limit, after=None: asked.append(limit) or real(where, limit=limit, after=after)
    )
    page = await reach.get("jobs?limit=1000")
    assert len(page["jobs"]) == 300
    assert len(asked) == 2


@pytest.mark.parametrize("count", [1, 2, 25, 26, 27])
async def test_pages_end_exactly_where_the_jobs_end(reach: Reach, count: int) -> None:
    await reach.post("jobs", {"jobs": [{"task": "send", "args": ["a"]} for _ in range(count)]}, 201)
    for limit in (1, 25, 26, count, count + 1):
        page = await reach.get(f"jobs?limit={limit}")
        assert len(page["jobs"]) == min(limit, count)
        assert (page["next_cursor"] is None) == (limit >= count)


async def test_pages_of_schedules_are_bounded_alike(
    engine: Engine, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "LARGEST_PAGE", 25_000)
    monkeypatch.setattr(paging, "_FIRST_PIECE", 2)
    names = [f"s{number}" for number in range(6)]
    for name in names:
        body = {"name": name, "cron": "@hourly", "task": "send", "args": [MEDIUM if name != "s5" else LARGE]}
        await reach.post("schedules", body, 201)
    found, sizes = await _all(reach, "schedules?limit=1000", "schedules")
    assert [each["name"] for each in found] == names
    assert max(sizes) < 26_000
    assert len(sizes) > 2
    assert found[-1]["args"].startswith("[cut: ")
    assert (await reach.get("schedules/s5"))["args"] == {"args": [LARGE]}


async def test_a_long_history_is_cut_from_its_oldest_attempts_on(
    reach: Reach, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.web.history.LARGEST_PAGE", 25_000)
    error = Failure(type="E", message="n" * 3000, lineage=("E",), trace="t" * 6_000)
    job_id = scene.dead(error=error)
    for _ in range(5):
        await reach.post(f"jobs/{job_id}/retry")
        worker = scene.worker()
        (job,) = scene.fetch(worker)
        assert scene.end(job, death(job, error=error))
    response = await reach.ask("GET", f"jobs/{job_id}/history?limit=1000")
    attempts = response.json()["attempts"]
    assert len(response.content) < 30_000
    assert [attempt["attempt"] for attempt in attempts] == sorted(attempt["attempt"] for attempt in attempts)
    assert attempts[-1]["error"]["trace"] == "t" * 6_000
    assert attempts[0]["error"]["trace"].startswith("[cut: 6,000 characters]")
    assert len(attempts[0]["error"]["message"]) < 210


async def test_a_list_of_replays_shows_a_few_of_very_many_ids(reach: Reach, scene: Scene) -> None:
    ids = [scene.dead(error=an_error()) for _ in range(25)]
    made = await reach.post("replays", {"ids": ids}, 201)
    assert made["request"]["ids"] == ids
    (listed,) = (await reach.get("replays"))["replays"]
    assert listed["request"]["ids"] == [*ids[:20], "[cut: 25 ids]"]
