"""due and fire: one job per tick, whoever fires it, however often, and as the schedule's overlap allows."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from msgspec import structs
from tests.conformance.scene import SECOND, Scene, death, failure, firing, success

from perdure.errors import BadOption, EngineError
from perdure.model.schedule.definition import Definition, new_schedule, paused
from perdure.model.schedule.fire import plan
from perdure.store import Store
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock

TEN = 10 * SECOND


def test_nothing_is_due_before_its_tick(scene: Scene) -> None:
    scene.schedule("nightly")
    began = scene.clock.now()
    scene.pass_time(TEN - SECOND / 1000)
    due = scene.store.due(10).wait()
    assert (due.schedules, due.next_at, due.now) == ((), began + TEN, scene.clock.now())


def test_a_store_without_schedules_has_nothing_to_come(scene: Scene) -> None:
    due = scene.store.due(10).wait()
    assert (due.schedules, due.next_at) == ((), None)


def test_what_is_due_comes_longest_due_first_up_to_the_limit(scene: Scene) -> None:
    for name, period in (("c", 3), ("a", 2), ("b", 1), ("d", 60)):
        scene.schedule(name, cron=f"@every {period}s")
    scene.pass_time(5 * SECOND)
    assert [one.name for one in scene.store.due(10).wait().schedules] == ["b", "a", "c"]
    assert [one.name for one in scene.store.due(2).wait().schedules] == ["b", "a"]
    due = scene.store.due(0).wait()
    assert (due.schedules, due.next_at) == ((), scene.clock.now() - 4 * SECOND)


def test_a_paused_schedule_is_never_due(scene: Scene) -> None:
    scene.schedule("nightly")
    seen = scene.get_schedule("nightly")
    scene.store.put_schedule(paused(seen), seen.revision).wait()
    scene.pass_time(TEN)
    due = scene.store.due(10).wait()
    assert (due.schedules, due.next_at) == ((), None)


def test_a_fired_tick_is_a_ready_job_that_knows_where_it_comes_from(scene: Scene) -> None:
    scene.schedule("nightly", args=b'{"args":[7]}', priority=5, max_attempts=3, retry="fixed(1s)", timeout=TEN)
    began = scene.clock.now()
    scene.pass_time(TEN + SECOND)
    assert scene.fire() == [began + TEN]
    (job,) = scene.store.list(JobFilter(), limit=10).wait()
    assert (job.schedule, job.tick_at, job.run_at) == ("nightly", began + TEN, began + TEN)
    assert (job.task, job.queue, job.state, job.args) == ("send", "mail", "ready", b'{"args":[7]}')
    assert (job.priority, job.max_attempts, job.retry, job.timeout) == (5, 3, "fixed(1s)", TEN)
    assert job.created_at == scene.clock.now()
    (fetched,) = scene.fetch(scene.worker())
    assert (fetched.schedule, fetched.tick_at) == ("nightly", began + TEN)
    after = scene.get_schedule("nightly")
    assert (after.next_at, after.last_tick_at, after.last_job_id) == (began + 2 * TEN, began + TEN, job.id)
    assert (after.fired, after.skipped, after.is_busy) == (1, 0, True)


def test_a_job_that_no_schedule_made_says_so(scene: Scene) -> None:
    job = scene.get(scene.enqueue())
    assert (job.schedule, job.tick_at) == (None, None)


# Proves [INV-21].
def test_of_any_number_of_equal_steps_one_is_taken(scene: Scene) -> None:
    scene.schedule("nightly", overlap="allow")
    scene.pass_time(TEN)
    due = scene.store.due(10).wait()
    steps = [firing(due.schedules[0], plan(due.schedules[0], due.now), salt=str(turn)) for turn in range(5)]
    assert [scene.store.fire([step]).wait() for step in steps] == [[True], [False], [False], [False], [False]]
    assert scene.store.count(JobFilter(schedule="nightly")).wait() == 1
    assert scene.get_schedule("nightly").fired == 1


def test_a_step_whose_reply_was_lost_is_taken_once_and_answered_alike(scene: Scene) -> None:
    scene.schedule("nightly", overlap="allow")
    scene.pass_time(TEN)
    due = scene.store.due(10).wait()
    step = firing(due.schedules[0], plan(due.schedules[0], due.now))
    assert [scene.store.fire([step]).wait() for _ in range(3)] == [[True]] * 3
    assert scene.store.count(JobFilter()).wait() == 1


def test_a_tick_has_one_job_even_if_its_schedule_is_made_anew(scene: Scene, clock: VirtualClock) -> None:
    scene.schedule("nightly", overlap="allow")
    before = scene.get_schedule("nightly")
    scene.pass_time(TEN)
    scene.fire()
    scene.store.remove_schedule("nightly").wait()
    scene.store.put_schedule(before, None).wait()
    scene.fire()
    assert scene.store.count(JobFilter()).wait() == 1
    assert scene.get_schedule("nightly").next_at == clock.now() + TEN


def test_a_step_of_a_schedule_that_was_changed_or_removed_meanwhile_makes_nothing(scene: Scene) -> None:
    scene.schedule("changed")
    scene.schedule("removed")
    scene.pass_time(TEN)
    due = scene.store.due(10).wait()
    steps = [firing(one, plan(one, due.now)) for one in due.schedules]
    seen = scene.get_schedule("changed")
    scene.store.put_schedule(paused(seen), seen.revision).wait()
    scene.store.remove_schedule("removed").wait()
    assert scene.store.fire(steps).wait() == [False, False]
    assert scene.store.count(JobFilter()).wait() == 0


def test_each_step_of_a_batch_stands_by_itself(scene: Scene) -> None:
    for name in ("a", "b", "c"):
        scene.schedule(name)
    scene.pass_time(TEN)
    due = scene.store.due(10).wait()
    steps = [firing(one, plan(one, due.now)) for one in due.schedules]
    stale = structs.replace(steps[1], replaces="another revision")
    assert scene.store.fire([steps[0], stale, steps[2]]).wait() == [True, False, True]
    jobs = scene.store.list(JobFilter(), limit=10).wait()
    assert {job.schedule for job in jobs} == {due.schedules[0].name, due.schedules[2].name}


def test_a_step_may_make_several_jobs(scene: Scene) -> None:
    scene.schedule("nightly", overlap="allow", missed="all")
    scene.pass_time(7 * TEN)
    assert len(scene.fire()) == 7
    jobs = scene.store.list(JobFilter(schedule="nightly"), limit=10).wait()
    assert [job.tick_at for job in jobs] == [scene.clock.now() - place * TEN for place in range(7)]


def test_the_last_step_removes_the_schedule_and_leaves_its_job(scene: Scene) -> None:
    scene.schedule("once", is_recurring=False)
    scene.pass_time(TEN)
    assert scene.fire() == [scene.clock.now()]
    assert scene.store.get_schedules(["once"]).wait() == [None]
    due = scene.store.due(10).wait()
    assert (due.schedules, due.next_at) == ((), None)
    assert scene.store.count(JobFilter(schedule="once", state="ready")).wait() == 1


def test_a_last_step_that_is_repeated_makes_nothing_more(scene: Scene) -> None:
    scene.schedule("once", is_recurring=False)
    scene.pass_time(TEN)
    due = scene.store.due(10).wait()
    step = firing(due.schedules[0], plan(due.schedules[0], due.now))
    scene.store.fire([step]).wait()
    scene.store.fire([step]).wait()
    assert scene.store.count(JobFilter()).wait() == 1


@pytest.mark.parametrize("state", ["waiting", "ready", "running", "retry"])
def test_a_tick_is_skipped_while_a_job_of_the_schedule_is_unfinished(scene: Scene, state: str) -> None:
    scene.schedule("nightly")
    scene.pass_time(TEN)
    scene.fire()
    worker = scene.worker()
    if state != "ready":
        (job,) = scene.fetch(worker)
        if state != "running":
            delay = 0 * SECOND if state == "retry" else 99 * SECOND
            scene.end(job, failure(job, state="waiting" if delay else "ready", delay=delay))
    scene.pass_time(TEN)
    assert scene.get_schedule("nightly").is_busy
    assert scene.fire() == []
    assert (scene.get_schedule("nightly").fired, scene.get_schedule("nightly").skipped) == (1, 1)
    assert scene.get_schedule("nightly").next_at == scene.clock.now() + TEN


@pytest.mark.parametrize("ending", ["succeeded", "dead", "cancelled", "cancelled while running"])
def test_a_schedule_goes_on_however_its_last_job_ended(scene: Scene, ending: str) -> None:
    scene.schedule("nightly")
    scene.pass_time(TEN)
    scene.fire()
    worker = scene.worker()
    if ending == "cancelled":
        (ready,) = scene.store.list(JobFilter(), limit=1).wait()
        scene.store.cancel([ready.id], "unwanted").wait()
    else:
        (job,) = scene.fetch(worker)
        if ending == "cancelled while running":
            scene.store.cancel([job.id], "unwanted").wait()
        outcome = {"succeeded": success, "dead": death}.get(ending, failure)
        scene.end(job, outcome(job))
    assert not scene.get_schedule("nightly").is_busy
    scene.pass_time(TEN)
    assert scene.fire() == [scene.clock.now()]


@pytest.mark.parametrize("verb", ["retry", "replay"])
def test_a_job_that_a_person_put_back_is_unfinished_again(scene: Scene, verb: str) -> None:
    scene.schedule("nightly")
    scene.pass_time(TEN)
    scene.fire()
    (job,) = scene.fetch(scene.worker())
    scene.end(job, death(job))
    if verb == "retry":
        scene.store.retry([job.id]).wait()
    else:
        scene.store.replay(JobFilter(), 10, 0 * SECOND).wait()
    assert scene.get_schedule("nightly").is_busy
    scene.pass_time(TEN)
    assert scene.fire() == []


def test_a_job_that_becomes_unfinished_between_look_and_step_holds_the_step_up(scene: Scene) -> None:
    scene.schedule("nightly")
    scene.pass_time(TEN)
    due = scene.store.due(10).wait()
    step = firing(due.schedules[0], plan(due.schedules[0], due.now))
    scene.enqueue(schedule="nightly")
    assert step.needs_idle
    assert scene.store.fire([step]).wait() == [False]
    assert scene.store.count(JobFilter()).wait() == 1


def test_an_unfinished_job_holds_up_its_own_schedule_only(scene: Scene) -> None:
    scene.schedule("nightly")
    scene.enqueue(schedule="nightl")
    scene.enqueue(schedule="nightly:2")
    scene.pass_time(TEN)
    assert len(scene.fire()) == 1


def test_queued_ticks_fire_one_after_the_other_as_their_jobs_end(scene: Scene) -> None:
    scene.schedule("nightly", overlap="queue")
    began = scene.clock.now()
    worker = scene.worker(lease=99 * SECOND)
    fired = []
    for _ in range(3):
        scene.pass_time(TEN)
        fired += scene.fire()
    assert fired == [began + TEN]
    assert scene.get_schedule("nightly").backlog == (began + 2 * TEN, began + 3 * TEN)
    assert scene.store.due(10).wait().schedules == ()
    for tick in (2, 3):
        (job,) = scene.fetch(worker)
        scene.end(job, death(job))
        assert scene.fire() == [began + tick * TEN]
        assert scene.fire() == []
    assert scene.get_schedule("nightly").backlog == ()
    assert scene.get_schedule("nightly").fired == 3


def test_a_backlog_that_can_go_on_counts_against_the_limit_of_due(scene: Scene) -> None:
    worker = scene.worker()
    for name in ("a", "b", "c"):
        scene.schedule(name, overlap="queue")
    for _ in range(2):
        scene.pass_time(TEN)
        scene.fire()
    for job in scene.fetch(worker):
        scene.end(job, success(job))
    assert len(scene.store.due(2).wait().schedules) == 2
    assert len(scene.store.due(10).wait().schedules) == 3


def test_jobs_are_found_by_their_schedule(scene: Scene) -> None:
    for name in ("a", "b"):
        scene.schedule(name, overlap="allow")
    scene.enqueue()
    for _ in range(3):
        scene.pass_time(TEN)
        scene.fire()
    (first, *_) = scene.fetch(scene.worker(), limit=1, fresh=1, retry=0)
    scene.end(first, death(first))
    assert scene.store.count(JobFilter(schedule="a")).wait() == 3
    page = scene.store.list(JobFilter(schedule="b"), limit=2).wait()
    assert [job.tick_at for job in page] == [scene.clock.now(), scene.clock.now() - TEN]
    rest = scene.store.list(JobFilter(schedule="b"), limit=2, after=page[-1].id).wait()
    assert [job.tick_at for job in rest] == [scene.clock.now() - 2 * TEN]
    alive = sum(scene.store.count(JobFilter(schedule=name, state="ready")).wait() for name in "ab")
    assert alive == 6 - bool(first.schedule)
    assert scene.store.count(JobFilter(schedule="c")).wait() == 0


# Proves [INV-21].
def test_schedulers_that_race_for_the_same_ticks_make_one_job_each(
    scene: Scene, open_again: Callable[[VirtualClock], Store], clock: VirtualClock
) -> None:
    names = [scene.schedule(f"number-{place}", overlap="allow", cron="@every 1s") for place in range(20)]
    stores = [open_again(clock) for _ in range(3)]
    taken: list[int] = []
    for _ in range(5):
        clock.advance(SECOND)
        start = threading.Barrier(len(stores))

        def race(store: Store, start: threading.Barrier = start) -> None:
            start.wait()
            due = store.due(100).wait()
            steps = [firing(one, plan(one, due.now), salt=str(id(store))) for one in due.schedules]
            taken.append(sum(store.fire(steps).wait()) if steps else 0)

        threads = [threading.Thread(target=race, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # What is locked by another is left alone for the moment, and taken by the next look.
        taken.append(len(scene.fire()))
    assert sum(taken) == 100
    jobs = scene.store.list(JobFilter(), limit=1000).wait()
    assert len({(job.schedule, job.tick_at) for job in jobs}) == len(jobs) == 100
    assert {scene.get_schedule(name).fired for name in names} == {5}


def test_a_step_with_a_job_that_cannot_be_stored_changes_nothing(scene: Scene) -> None:
    now = scene.clock.now()
    good = new_schedule(Definition(name="good", task="t", args=b"{}", cron="@every 1s"), "operator", now)
    scene.store.put_schedule(good, None).wait()
    scene.pass_time(SECOND)
    bad_job = structs.replace(good.job(scene.clock.now()), priority=1000)
    step = firing(good, plan(good, scene.clock.now()), jobs=(bad_job,))
    with pytest.raises((EngineError, BadOption)):
        scene.store.fire([step]).wait()
    assert scene.get_schedule("good") == good
    assert scene.store.count(JobFilter()).wait() == 0
