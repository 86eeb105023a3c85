"""The verbs that keep schedules: what is kept of one, who may change it, and how they are found."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec import structs
from tests.conformance.scene import SECOND, Scene

from perdure.model.schedule.definition import Definition, Schedule, new_schedule, paused


def a_schedule(scene: Scene, **changes: object) -> Schedule:
    given = {"name": "nightly", "task": "send", "args": b"{}", "cron": "@every 10s", **changes}
    return new_schedule(Definition(**given), "operator", scene.clock.now())


def test_a_schedule_comes_back_as_it_was_put(scene: Scene) -> None:
    schedule = a_schedule(
        scene,
        args=b'{"args":["\\u0000 \xc3\xa9"]}',
        cron="0 0 3 * * *",
        tz="Europe/Berlin",
        queue="mail",
        priority=-7,
        max_attempts=3,
        retry="fixed(1s)",
        delivery="at_most_once",
        timeout=timedelta(milliseconds=1500),
        is_recurring=False,
        overlap="queue",
        missed="all",
    )
    full = structs.replace(
        schedule,
        fired=7,
        skipped=2,
        backlog=(schedule.created_at, schedule.created_at + SECOND),
        problem="a problem",
        last_tick_at=schedule.created_at,
        stopped_at=schedule.created_at,
        last_job_id=scene.new_id(),
    )
    assert scene.store.put_schedule(full, None).wait() is True
    assert scene.store.get_schedules(["nightly"]).wait() == [full]
    assert scene.store.schedules(limit=10).wait() == [full]


def test_names_that_nobody_has_are_none_in_their_place(scene: Scene) -> None:
    scene.schedule("b")
    found = scene.store.get_schedules(["a", "b", "c"]).wait()
    assert [one and one.name for one in found] == [None, "b", None]


def test_pages_go_down_as_well_as_up(scene: Scene) -> None:
    names = ["0190", "a", "b", "nightly", "zebra"]
    for name in names:
        scene.schedule(name)

    def page(after: str | None, *, is_descending: bool) -> list[str]:
        found = scene.store.schedules(limit=2, after=after, is_descending=is_descending).wait()
        return [one.name for one in found]

    assert page(None, is_descending=True) == ["zebra", "nightly"]
    assert page("nightly", is_descending=True) == ["b", "a"]
    assert page("a", is_descending=True) == ["0190"]
    assert page("c", is_descending=True) == ["b", "a"]
    assert page(None, is_descending=False) == ["0190", "a"]


def test_a_new_schedule_does_not_take_the_place_of_another(scene: Scene) -> None:
    scene.schedule("nightly")
    other = a_schedule(scene, args=b"[]")
    assert scene.store.put_schedule(other, None).wait() is False
    assert scene.get_schedule("nightly").definition.args == b"{}"


def test_a_change_is_accepted_from_who_has_seen_the_last_one_only(scene: Scene) -> None:
    scene.schedule("nightly")
    seen = scene.get_schedule("nightly")
    first, second = paused(seen), structs.replace(seen, fired=9, revision="other")
    assert scene.store.put_schedule(first, seen.revision).wait() is True
    assert scene.store.put_schedule(second, seen.revision).wait() is False
    assert scene.get_schedule("nightly") == first


def test_a_change_that_is_asked_for_twice_is_made_once_and_answered_alike(scene: Scene) -> None:
    made = a_schedule(scene)
    assert [scene.store.put_schedule(made, None).wait() for _ in range(2)] == [True, True]
    changed = paused(made)
    assert [scene.store.put_schedule(changed, made.revision).wait() for _ in range(2)] == [True, True]
    assert scene.store.schedules(limit=10).wait() == [changed]


def test_a_removed_schedule_does_not_come_back_by_a_change(scene: Scene) -> None:
    scene.schedule("nightly")
    seen = scene.get_schedule("nightly")
    assert scene.store.remove_schedule("nightly").wait() is True
    assert scene.store.put_schedule(paused(seen), seen.revision).wait() is False
    assert scene.store.schedules(limit=10).wait() == []


def test_removing_what_is_not_there_changes_nothing(scene: Scene) -> None:
    assert scene.store.remove_schedule("nightly").wait() is False
    scene.schedule("nightly")
    assert [scene.store.remove_schedule("nightly").wait() for _ in range(2)] == [True, False]


def test_schedules_come_by_name_page_by_page(scene: Scene) -> None:
    names = ["B", "a", "a-1", "a.1", "a:1", "b"]
    for name in reversed(names):
        scene.schedule(name)
    found: list[str] = []
    while page := scene.store.schedules(limit=4, after=found[-1] if found else None).wait():
        found += [one.name for one in page]
    assert found == sorted(names, key=str.encode)
    assert scene.store.schedules(limit=0).wait() == []


def test_naming_notes_the_time_and_changes_nothing_else(scene: Scene) -> None:
    scene.schedule("nightly")
    before = scene.get_schedule("nightly")
    assert before.named_at is None
    scene.pass_time(SECOND)
    scene.store.name_schedules(["nightly", "nobody's"]).wait()
    assert scene.get_schedule("nightly") == structs.replace(before, named_at=scene.clock.now())
    assert scene.store.get_schedules(["nobody's"]).wait() == [None]


def test_a_change_does_not_forget_who_named_it(scene: Scene) -> None:
    scene.schedule("nightly")
    scene.store.name_schedules(["nightly"]).wait()
    seen = scene.get_schedule("nightly")
    scene.store.put_schedule(paused(seen), seen.revision).wait()
    assert scene.get_schedule("nightly").named_at == scene.clock.now()


@pytest.mark.parametrize("number", [1, 250])
def test_any_number_of_schedules_is_found_by_name(scene: Scene, number: int) -> None:
    names = [scene.schedule(f"number-{place:03d}") for place in range(number)]
    assert [one and one.name for one in scene.store.get_schedules(names).wait()] == names
    assert [one.name for one in scene.store.schedules(limit=1000).wait()] == names
