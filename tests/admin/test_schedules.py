"""What operators do to schedules, through the client."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs
from tests.admin.scene import Scene

from perdure.admin.document import job_document, schedule_document
from perdure.client import AsyncClient
from perdure.client_sync import Client
from perdure.errors import BadCron, BadOption, BadPayload, Refused, ScheduleNotFound
from perdure.model.schedule.definition import Definition, new_schedule

SECOND = timedelta(seconds=1)


@pytest.fixture
def client(scene: Scene) -> Client:
    return Client(scene.store)


def add(client: Client, name: str = "nightly", **changes: Any) -> None:
    client.add_schedule(name, "send", "a@b.c", **{"cron": "@every 10s", **changes})


def from_code(scene: Scene, name: str = "nightly") -> None:
    definition = Definition(name=name, task="send", args=b"{}", cron="@every 10s")
    assert scene.store.put_schedule(new_schedule(definition, "code", scene.clock.now()), None).wait()


def test_an_added_schedule_is_shown_with_all_that_was_asked_for(scene: Scene, client: Client) -> None:
    made = client.add_schedule(
        "nightly",
        "send",
        "a@b.c",
        cron="0  0 3 * * *",
        kwargs={"body": "hi"},
        tz="Europe/Berlin",
        queue="mail",
        priority=3,
        max_retries=3,
        retry="harbor",
        delivery="at_most_once",
        timeout="30s",
        overlap="queue",
        missed="all",
        recurring=False,
    )
    assert client.schedule("nightly") == made
    assert client.schedules() == [made]
    document = schedule_document(made)
    assert document["args"] == {"args": ["a@b.c"], "kwargs": {"body": "hi"}}
    assert (document["cron"], document["tz"], document["state"]) == ("0 0 3 * * *", "Europe/Berlin", "active")
    assert (document["max_attempts"], document["timeout"], document["queue"]) == (4, 30.0, "mail")
    assert (document["overlap"], document["missed"], document["is_recurring"]) == ("queue", "all", False)
    assert document["description"] == "at 03:00:00 every day"
    assert document["next_at"] == "2030-01-01T02:00:00Z"


def test_adding_the_same_again_changes_nothing(scene: Scene, client: Client) -> None:
    add(client)
    before = client.schedule("nightly")
    scene.clock.advance(SECOND)
    add(client)
    assert client.schedule("nightly") == before


def test_adding_another_of_the_name_is_refused_unless_it_is_to_replace_it(client: Client) -> None:
    add(client)
    with pytest.raises(Refused, match="another schedule named nightly"):
        add(client, cron="@every 5s")
    add(client, cron="@every 5s", replace=True)
    assert client.schedule("nightly").definition.cron == "@every 5s"


def test_a_schedule_of_the_code_cannot_be_replaced_by_an_operator(scene: Scene, client: Client) -> None:
    from_code(scene)
    with pytest.raises(Refused, match="defined in the app's code"):
        add(client, replace=True)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cron": "99 * * * *"}, BadCron),
        ({"cron": ""}, BadCron),
        ({"tz": "Nowhere"}, BadOption),
        ({"overlap": "no"}, BadOption),
        ({"missed": "no"}, BadOption),
        ({"queue": "a b"}, BadOption),
        ({"priority": 101}, BadOption),
        ({"name": ""}, BadOption),
        ({"kwargs": {"x": float("nan")}}, BadPayload),
        ({"colour": "red"}, BadOption),
        ({"tz": 7}, BadOption),
        ({"cron": 7}, BadOption),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_stored(
    client: Client, changes: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        add(client, **changes)
    assert client.schedules() == []


def test_schedules_come_page_by_page(client: Client) -> None:
    for name in "abc":
        add(client, name)
    first = client.schedules(limit=2)
    assert [one.name for one in first] == ["a", "b"]
    rest = client.schedules(limit=2, cursor=first.next_cursor)
    assert ([one.name for one in rest], rest.next_cursor) == (["c"], None)
    with pytest.raises(BadOption, match="limit"):
        client.schedules(limit=0)


def test_pause_and_resume_say_whether_they_changed_anything(scene: Scene, client: Client) -> None:
    add(client)
    assert [client.pause_schedule("nightly") for _ in range(2)] == [True, False]
    assert client.schedule("nightly").standing == "paused"
    scene.clock.advance(35 * SECOND)
    assert [client.resume_schedule("nightly") for _ in range(2)] == [True, False]
    assert client.schedule("nightly").next_at == scene.clock.now() + 5 * SECOND


def test_running_now_makes_a_job_and_leaves_the_ticks_alone(scene: Scene, client: Client) -> None:
    add(client, queue="default")
    before = client.schedule("nightly")
    scene.clock.advance(SECOND)
    job = client.get(client.run_schedule_now("nightly"))
    assert (job.schedule, job.tick_at, job.state, job.run_at) == ("nightly", None, "ready", scene.clock.now())
    after = client.schedule("nightly")
    assert (after.next_at, after.last_job_id, after.fired, after.is_busy) == (before.next_at, job.id, 1, True)
    assert job_document(job)["schedule"] == "nightly"


def test_running_now_is_refused_while_a_job_is_unfinished(client: Client) -> None:
    add(client)
    client.run_schedule_now("nightly")
    with pytest.raises(Refused, match=r"unfinished.*skip"):
        client.run_schedule_now("nightly")


def test_runs_may_be_asked_for_again_and_again_where_they_may_overlap(client: Client) -> None:
    add(client, overlap="allow")
    assert len({client.run_schedule_now("nightly") for _ in range(3)}) == 3
    assert client.count(schedule="nightly") == 3


def test_the_next_ticks_are_those_of_the_rule(scene: Scene, client: Client) -> None:
    add(client)
    now = scene.clock.now()
    assert client.next_ticks("nightly", 3) == [now + place * 10 * SECOND for place in (1, 2, 3)]
    client.pause_schedule("nightly")
    assert len(client.next_ticks("nightly")) == 5
    with pytest.raises(BadOption, match="n is 0"):
        client.next_ticks("nightly", 0)
    add(client, "once", recurring=False)
    assert client.next_ticks("once") == [now + 10 * SECOND]


def test_removing_forgets_the_schedule_and_keeps_its_jobs(client: Client) -> None:
    add(client)
    job_id = client.run_schedule_now("nightly")
    client.remove_schedule("nightly")
    assert client.schedules() == []
    assert client.get(job_id).schedule == "nightly"


@pytest.mark.parametrize(
    "verb", ["schedule", "pause_schedule", "resume_schedule", "run_schedule_now", "next_ticks", "remove_schedule"]
)
def test_a_name_that_nobody_has_is_not_found(client: Client, verb: str) -> None:
    with pytest.raises(ScheduleNotFound, match="nobody"):
        getattr(client, verb)("nobody")


def test_a_rule_that_cannot_be_read_here_is_shown_without_words(scene: Scene, client: Client) -> None:
    add(client)
    known = client.schedule("nightly")
    broken = structs.replace(known, definition=structs.replace(known.definition, tz="Mars/Base"), revision="b")
    scene.store.put_schedule(broken, known.revision).wait()
    assert schedule_document(client.schedule("nightly"))["description"] is None


async def test_the_asynchronous_client_does_the_same(scene: Scene) -> None:
    async with AsyncClient(scene.store) as client:
        made = await client.add_schedule("nightly", "send", cron="@every 10s", overlap="allow")
        assert await client.schedule("nightly") == made
        assert await client.schedules() == [made]
        assert await client.pause_schedule("nightly")
        assert await client.resume_schedule("nightly")
        job_id = await client.run_schedule_now("nightly")
        assert (await client.get(job_id)).schedule == "nightly"
        assert len(await client.next_ticks("nightly", 2)) == 2
        await client.remove_schedule("nightly")
        with pytest.raises(ScheduleNotFound):
            await client.schedule("nightly")
