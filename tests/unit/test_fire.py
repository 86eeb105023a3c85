"""plan: which ticks of a schedule fire, which are skipped, and when the next is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from perdure.model.job import Job, JobId
from perdure.model.schedule.definition import (
    CHECK_STOPPED,
    MISSED,
    MOST,
    ORPHANED,
    ORPHANED_AFTER,
    OVERLAPS,
    Definition,
    Schedule,
    mended,
    new_schedule,
    paused,
    redefined,
    resumed,
    stopped,
)
from perdure.model.schedule.fire import LOOK_AGAIN, ON_TIME, RAREST_CHECK, Planned, plan, plan_removal

START = datetime(2030, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TEN = 10 * SECOND


def a_schedule(origin: str = "operator", **changes: Any) -> Schedule:
    given = {"name": "nightly", "task": "send", "args": b"{}", "cron": "@every 10s", **changes}
    return new_schedule(Definition(**given), origin, START)


def after(planned: Planned) -> Schedule:
    assert planned.schedule is not None
    return planned.schedule


def test_a_tick_that_has_come_fires_and_the_next_follows_from_it() -> None:
    planned = plan(a_schedule(), START + TEN + SECOND)
    assert (planned.ticks, planned.skipped) == ((START + TEN,), 0)
    assert (after(planned).since, after(planned).next_at) == (START + TEN, START + 2 * TEN)


def test_nothing_happens_before_the_tick() -> None:
    planned = plan(a_schedule(), START + TEN - SECOND)
    assert (planned.ticks, after(planned).next_at) == ((), START + TEN)


@pytest.mark.parametrize(
    ("missed", "fired"),
    [("latest", [6]), ("skip", []), ("all", [1, 2, 3, 4, 5, 6])],
)
def test_missed_ticks_fire_as_the_schedule_says(missed: str, fired: list[int]) -> None:
    now = START + 6 * TEN + ON_TIME + SECOND
    planned = plan(a_schedule(missed=missed, overlap="allow"), now)
    assert planned.ticks == tuple(START + place * TEN for place in fired)
    assert planned.skipped == 6 - len(fired)
    assert after(planned).next_at == START + 7 * TEN


def test_a_tick_that_is_on_time_after_an_outage_fires_though_missed_ones_are_skipped() -> None:
    planned = plan(a_schedule(missed="skip", overlap="allow"), START + 6 * TEN + SECOND)
    assert planned.ticks == (START + 6 * TEN,)


@pytest.mark.parametrize("missed", MISSED)
def test_a_scheduler_that_is_a_moment_late_has_missed_nothing(missed: str) -> None:
    planned = plan(a_schedule(cron="@every 1s", missed=missed, overlap="allow"), START + 4 * SECOND)
    assert planned.ticks == tuple(START + place * SECOND for place in range(1, 5))


def test_after_a_long_outage_no_more_than_the_most_are_made_up_for() -> None:
    planned = plan(a_schedule(cron="@every 1s", missed="all", overlap="allow"), START + timedelta(days=400))
    assert len(planned.ticks) == MOST
    assert planned.ticks[-1] == START + timedelta(days=400)
    assert after(planned).next_at == START + timedelta(days=400) + SECOND


def test_while_a_job_is_unfinished_ticks_are_skipped_and_counted() -> None:
    planned = plan(structs.replace(a_schedule(), is_busy=True), START + TEN)
    assert (planned.ticks, planned.skipped, after(planned).skipped) == ((), 1, 1)
    assert after(planned).next_at == START + 2 * TEN


def test_of_several_ticks_at_once_one_fires_where_they_must_not_overlap() -> None:
    planned = plan(a_schedule(cron="@every 1s"), START + 3 * SECOND)
    assert (planned.ticks, planned.skipped, planned.needs_idle) == ((START + SECOND,), 2, True)


def test_queued_ticks_wait_in_line_and_leave_it_in_order() -> None:
    schedule = structs.replace(a_schedule(overlap="queue"), is_busy=True)
    waiting = after(plan(schedule, START + TEN))
    waiting = after(plan(structs.replace(waiting, is_busy=True), START + 2 * TEN))
    assert waiting.backlog == (START + TEN, START + 2 * TEN)
    planned = plan(structs.replace(waiting, is_busy=False), START + 2 * TEN + SECOND)
    assert (planned.ticks, after(planned).backlog) == ((START + TEN,), (START + 2 * TEN,))
    assert planned.needs_idle


def test_a_line_that_is_full_turns_new_ticks_away() -> None:
    schedule = structs.replace(a_schedule(overlap="queue"), is_busy=True)
    for turn in range(1, MOST + 4):
        schedule = structs.replace(after(plan(schedule, START + turn * TEN)), is_busy=True)
    assert (len(schedule.backlog), schedule.backlog[0], schedule.skipped) == (MOST, START + TEN, 3)


def test_a_schedule_that_fires_once_is_gone_when_it_has() -> None:
    planned = plan(a_schedule(is_recurring=False), START + TEN)
    assert (planned.ticks, planned.schedule) == ((START + TEN,), None)


def test_a_schedule_that_fires_once_waits_for_its_turn_and_then_is_gone() -> None:
    schedule = structs.replace(a_schedule(is_recurring=False, overlap="queue"), is_busy=True)
    waiting = after(plan(schedule, START + TEN))
    assert (waiting.backlog, waiting.next_at) == ((START + TEN,), None)
    planned = plan(structs.replace(waiting, is_busy=False), START + 9 * TEN)
    assert (planned.ticks, planned.schedule) == ((START + TEN,), None)


def test_a_schedule_that_fires_once_and_is_skipped_fires_at_its_next_tick() -> None:
    planned = plan(structs.replace(a_schedule(is_recurring=False), is_busy=True), START + TEN)
    assert (planned.ticks, after(planned).next_at) == ((), START + 2 * TEN)


def test_a_schedule_from_code_that_fires_once_is_kept_so_that_a_restart_does_not_fire_it_again() -> None:
    planned = plan(a_schedule(origin="code", is_recurring=False), START + TEN)
    assert planned.ticks == (START + TEN,)
    assert (after(planned).standing, after(planned).next_at) == ("done", None)


def test_a_rule_that_cannot_be_worked_out_here_breaks_the_schedule_and_nothing_else() -> None:
    schedule = a_schedule()
    broken = structs.replace(schedule, definition=structs.replace(schedule.definition, tz="Mars/Base"))
    planned = plan(broken, START + TEN)
    assert planned.ticks == ()
    assert after(planned).standing == "broken"
    assert "Mars/Base" in str(after(planned).problem)
    assert after(planned).next_at == START + TEN + LOOK_AGAIN
    mended = structs.replace(after(planned), definition=schedule.definition)
    again = plan(mended, START + 7 * TEN)
    assert (again.ticks, after(again).problem) == ((START + 7 * TEN,), None)


def test_a_schedule_that_no_worker_names_any_more_is_orphaned_until_one_does() -> None:
    now = START + timedelta(hours=1)
    schedule = structs.replace(a_schedule(origin="code"), named_at=now - ORPHANED_AFTER - SECOND)
    planned = plan(schedule, now)
    assert (planned.ticks, after(planned).problem, after(planned).standing) == ((), ORPHANED, "orphaned")
    again = plan(structs.replace(after(planned), named_at=now), now + TEN)
    assert (len(again.ticks), after(again).standing) == (1, "active")


def test_a_schedule_that_is_mended_has_missed_what_came_meanwhile() -> None:
    orphan = structs.replace(a_schedule(), problem=ORPHANED, next_at=START + timedelta(hours=1))
    assert mended(orphan).next_at == START + TEN
    planned = plan(mended(orphan), START + 3 * TEN)
    assert (planned.ticks, planned.skipped) == ((START + 3 * TEN,), 2)


def test_pausing_leaves_no_tick_and_resuming_takes_the_first_from_then_on() -> None:
    schedule = paused(a_schedule())
    assert (schedule.standing, schedule.next_at) == ("paused", None)
    back = resumed(schedule, START + 35 * SECOND)
    assert (back.standing, back.next_at) == ("active", START + 4 * TEN)


def test_a_new_definition_keeps_the_next_tick_unless_the_rule_is_another() -> None:
    schedule = a_schedule()
    now = START + SECOND
    other_args = redefined(schedule, structs.replace(schedule.definition, args=b"[]"), "operator", now)
    assert (other_args.next_at, other_args.since) == (schedule.next_at, schedule.since)
    other_rule = redefined(schedule, structs.replace(schedule.definition, cron="@every 3s"), "operator", now)
    assert other_rule.next_at == START + 3 * SECOND
    assert len({schedule.revision, other_args.revision, other_rule.revision}) == 3


def test_the_id_of_a_ticks_job_follows_from_name_and_tick_alone() -> None:
    first, second = a_schedule(), structs.replace(a_schedule(args=b"[]"), created_at=START - SECOND, fired=9)
    assert first.job(START).id == second.job(START).id
    ids = {first.job(START + place * SECOND).id for place in range(1000)}
    assert len(ids) == 1000
    assert a_schedule(name="other").job(START).id != first.job(START).id


@given(
    overlap=st.sampled_from(OVERLAPS),
    missed=st.sampled_from(MISSED),
    cron=st.sampled_from(["@every 1s", "@every 7s", "*/10 * * * * *", "5 * * * * *", "0 0 * * * *"]),
    steps=st.lists(st.tuples(st.floats(0.001, 400.0), st.booleans()), min_size=1, max_size=30),
)
def test_every_tick_is_fired_queued_or_skipped_exactly_once_whatever_happens(
    overlap: str, missed: str, cron: str, steps: list[tuple[float, bool]]
) -> None:
    schedule = a_schedule(cron=cron, overlap=overlap, missed=missed)
    now, fired = START, []
    for wait, is_busy in steps:
        now += timedelta(seconds=wait)
        planned = plan(structs.replace(schedule, is_busy=is_busy), now)
        assert not (planned.ticks and is_busy and overlap != "allow")
        assert len(planned.ticks) <= (MOST if overlap == "allow" else 1)
        assert planned.needs_idle == (bool(planned.ticks) and overlap != "allow")
        fired += planned.ticks
        schedule = after(planned)
        assert schedule.next_at is not None
        assert schedule.next_at > now
    ticks, tick = [], schedule.ticks().after(START)
    while tick is not None and tick <= now:
        ticks.append(tick)
        tick = schedule.ticks().after(tick)
    assert fired == sorted(set(fired)), "in order, none twice"
    assert set(fired) <= set(ticks), "none that the rule does not have"
    assert len(fired) + len(schedule.backlog) + schedule.skipped == len(ticks), "none lost without a count"
    assert schedule.fired == len(fired)
    assert schedule.next_at == tick


SCHEDULED = "01890a5d-ac96-774b-bcce-b302099a8057"


def test_the_only_run_of_a_scheduled_job_has_the_jobs_id_and_its_schedule_is_kept() -> None:
    before = a_schedule(name=SCHEDULED, is_recurring=False)
    planned = plan(before, START + TEN)
    assert [before.job(tick).id for tick in planned.ticks] == [SCHEDULED]
    kept = after(planned)
    assert (kept.stopped_at, kept.next_tick_at, kept.standing) == (START + TEN, None, "done")
    assert (kept.last_job_id, kept.is_over) == (SCHEDULED, True)
    assert not structs.replace(kept, is_busy=True).is_over, "while its run is unfinished"
    assert plan(kept, START + timedelta(days=400)).ticks == ()


def test_workers_of_an_earlier_version_find_no_tick_in_a_schedule_that_has_stopped() -> None:
    kept = after(plan(a_schedule(name=SCHEDULED, is_recurring=False), START + TEN))
    unknowing = structs.replace(kept, stopped_at=None)
    planned = plan(unknowing, START + timedelta(days=400))
    assert (planned.ticks, after(planned).next_at) == ((), None)


def test_runs_of_a_recurring_scheduled_job_have_ids_of_their_own() -> None:
    before = a_schedule(name=SCHEDULED)
    planned = plan(before, START + TEN)
    (job,) = (before.job(tick) for tick in planned.ticks)
    assert (job.id == SCHEDULED, job.schedule) == (False, SCHEDULED)
    once = redefined(after(planned), structs.replace(before.definition, is_recurring=False), "operator", START + TEN)
    assert once.job(START + 2 * TEN).id != SCHEDULED, "the id is that of the only run, and there was one already"


def a_run(state: str) -> Job:
    return Job(
        id=JobId(SCHEDULED),
        task="send",
        queue="default",
        state=state,
        lane="fresh",
        args=b"{}",
        priority=0,
        run_at=START,
        attempt=1,
        failures=0,
        recoveries=0,
        delivery="at_least_once",
        created_at=START,
        schedule=SCHEDULED,
    )


@pytest.mark.parametrize(
    ("state", "is_recurring", "is_removed"),
    [
        ("succeeded", False, True),
        (None, False, True),
        (None, True, True),
        ("succeeded", True, False),
        ("dead", False, False),
        ("cancelled", False, False),
        ("running", False, False),
    ],
)
def test_a_schedule_that_has_stopped_is_removed_when_nothing_can_bring_it_back(
    state: str | None, is_recurring: bool, is_removed: bool
) -> None:
    kept = stopped(a_schedule(name=SCHEDULED, is_recurring=is_recurring), START)
    run = None if state is None else a_run(state)
    planned = plan_removal(structs.replace(kept, is_busy=state == "running"), run, START + CHECK_STOPPED)
    assert (planned.schedule is None, planned.needs_idle) == (is_removed, is_removed)
    if planned.schedule is not None:
        assert planned.schedule.next_at == START + 2 * CHECK_STOPPED
        late = plan_removal(planned.schedule, run, START + timedelta(days=100))
        assert after(late).next_at == START + timedelta(days=100) + RAREST_CHECK


def test_a_schedule_of_a_person_that_fires_once_is_gone_as_before() -> None:
    assert plan(a_schedule(is_recurring=False), START + TEN).schedule is None
