"""note and notes: made once, found again by anybody, replaced on request, gone when their time is over."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.conformance.scene import SECOND, Scene

HOUR = 3600 * SECOND


def test_a_note_stands_with_its_time_and_body(scene: Scene) -> None:
    made = scene.store.note("request", "key", '{"é": "\\u0000"}', HOUR).wait()
    assert (made.kind, made.key, made.body, made.made_at) == ("request", "key", '{"é": "\\u0000"}', scene.clock.now())
    assert scene.store.notes("request", 10).wait() == [made]


def test_a_second_note_under_a_key_changes_nothing_and_is_given_the_first(scene: Scene) -> None:
    first = scene.store.note("request", "key", "first", HOUR).wait()
    scene.clock.advance(SECOND)
    assert scene.store.note("request", "key", "second", HOUR).wait() == first
    assert scene.store.notes("request", 10).wait() == [first]


def test_a_note_that_replaces_keeps_the_time_of_the_one_that_stands(scene: Scene) -> None:
    first = scene.store.note("request", "key", "first", HOUR).wait()
    scene.clock.advance(HOUR - SECOND)
    second = scene.store.note("request", "key", "second", HOUR, replaces=True).wait()
    assert (second.body, second.made_at) == ("second", first.made_at)
    scene.clock.advance(SECOND)
    assert scene.store.notes("request", 10).wait() == []


def test_a_note_that_replaces_is_made_where_none_stands(scene: Scene) -> None:
    assert scene.store.note("request", "key", "body", HOUR, replaces=True).wait().body == "body"


def test_a_note_whose_time_is_over_stands_no_more(scene: Scene) -> None:
    scene.store.note("request", "key", "first", SECOND).wait()
    scene.clock.advance(SECOND)
    assert scene.store.notes("request", 10).wait() == []
    again = scene.store.note("request", "key", "second", SECOND).wait()
    assert (again.body, again.made_at) == ("second", scene.clock.now())


def test_notes_come_newest_first_up_to_the_limit_and_of_one_kind(scene: Scene) -> None:
    scene.store.note("other", "key 9", "body", HOUR).wait()
    for number in range(5):
        scene.store.note("request", f"key {number}", "body", HOUR).wait()
        scene.clock.advance(SECOND)
    assert [note.key for note in scene.store.notes("request", 3).wait()] == ["key 4", "key 3", "key 2"]
    assert scene.store.notes("request", 0).wait() == []
    assert scene.store.notes("nothing", 10).wait() == []


def test_expired_notes_do_not_crowd_out_those_that_stand(scene: Scene) -> None:
    scene.store.note("request", "standing", "body", HOUR).wait()
    for number in range(20):
        scene.clock.advance(SECOND / 1000)
        scene.store.note("request", f"short {number}", "body", SECOND).wait()
    scene.clock.advance(SECOND)
    assert [note.key for note in scene.store.notes("request", 1).wait()] == ["standing"]


def test_of_many_who_make_the_same_note_at_once_all_get_one(scene: Scene) -> None:
    def make(number: int) -> str:
        return scene.store.note("request", "key", f"body {number}", HOUR).wait().body

    with ThreadPoolExecutor(8) as threads:
        bodies = set(threads.map(make, range(24)))
    assert len(bodies) == 1
