"""The one decision about schedules: which ticks fire, which are skipped, and when the next one is.

`plan` is pure. The next tick follows from the rule and the last tick alone, never from how a job of the schedule fared.
Schedulers, the testing harness and operators all call it; the store makes what it says one atomic step.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from perdure.errors import PerdureError
from perdure.model.job import Job
from perdure.model.schedule.definition import (
    AFTER_ALL_TICKS,
    CHECK_STOPPED,
    MOST,
    ORPHANED,
    ORPHANED_AFTER,
    Schedule,
    Ticks,
)

ON_TIME = timedelta(seconds=5)
"""A scheduler so late has not missed anything: it was busy, or another took its place."""
LOOK_AGAIN = timedelta(minutes=1)
"""When a schedule that is broken or orphaned is looked at again."""
RAREST_CHECK = timedelta(days=1)
"""The longest time between two checks whether a schedule that has stopped can be removed."""
_COUNTED = 1000
"""How many missed ticks are counted; those beyond are passed over without a count."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What follows: the ticks that fire now, and the schedule as it then stands."""

    ticks: tuple[datetime, ...]
    schedule: Schedule | None
    """None: it has fired for the last time and is gone. Its revision is still the one before."""
    skipped: int = 0
    needs_idle: bool = False
    """Whether the ticks may fire only if no job of the schedule is unfinished."""


def plan(schedule: Schedule, now: datetime) -> Planned:
    """What a schedule that is due, or whose backlog can go on, does now, by the store's clock."""
    if schedule.stopped_at is not None:
        return Planned(ticks=(), schedule=schedule)
    if _is_orphaned(schedule, now):
        return put_off(schedule, ORPHANED, now)
    try:
        ticks = schedule.ticks()
        due, passed = _due(schedule, ticks, now)
        since = due[-1] if due else schedule.since
        next_at = ticks.after(since)
    except PerdureError as error:
        return put_off(schedule, str(error), now)
    chosen = _chosen(schedule, due, now)
    fired, backlog, needs_idle = _let_through(schedule, chosen)
    stopped_at: datetime | None = None
    skipped = passed + len(due) + len(schedule.backlog) - len(fired) - len(backlog)
    if not schedule.definition.is_recurring and (fired or backlog):
        next_at = None
        if not backlog and schedule.origin == "operator":
            if not schedule.is_job:
                return Planned(ticks=fired, schedule=None, skipped=skipped, needs_idle=needs_idle)
            since, stopped_at, next_at = AFTER_ALL_TICKS, now, now + CHECK_STOPPED
    after = msgspec.structs.replace(
        schedule,
        since=since,
        next_at=next_at,
        backlog=backlog,
        problem=None,
        stopped_at=stopped_at,
        last_tick_at=fired[-1] if fired else schedule.last_tick_at,
        last_job_id=schedule.job(fired[-1]).id if fired else schedule.last_job_id,
        fired=schedule.fired + len(fired),
        skipped=schedule.skipped + skipped,
    )
    return Planned(ticks=fired, schedule=after, skipped=skipped, needs_idle=needs_idle)


def plan_removal(schedule: Schedule, run: Job | None, now: datetime) -> Planned:
    """Remove a schedule that has stopped once no retry can bring it back; until then check again, ever more rarely.

    `run` is its newest job; None when that was pruned.
    """
    is_settled = run is None or (run.state == "succeeded" and not schedule.definition.is_recurring)
    if is_settled and not schedule.is_busy:
        return Planned(ticks=(), schedule=None, needs_idle=True)
    age = now - (schedule.stopped_at or now)
    pause = min(max(age, CHECK_STOPPED), RAREST_CHECK)
    return Planned(ticks=(), schedule=msgspec.structs.replace(schedule, next_at=now + pause))


def put_off(schedule: Schedule, problem: str, now: datetime) -> Planned:
    """Nothing fires, and nothing is done with: when the problem is solved, what was missed is known."""
    return Planned(ticks=(), schedule=msgspec.structs.replace(schedule, problem=problem, next_at=now + LOOK_AGAIN))


def _is_orphaned(schedule: Schedule, now: datetime) -> bool:
    return schedule.origin == "code" and schedule.named_at is not None and now - schedule.named_at > ORPHANED_AFTER


def _due(schedule: Schedule, ticks: Ticks, now: datetime) -> tuple[list[datetime], int]:
    """The ticks that have come and are not done with, oldest first; and how many before them are passed over."""
    if schedule.next_at is None:
        return [], 0
    found = list(islice(_forward(ticks, schedule.since, now), _COUNTED))
    if len(found) < _COUNTED:
        return found, 0
    newest = list(islice(_backward(ticks, now), MOST))[::-1]
    return [tick for tick in newest if tick > schedule.since], _COUNTED - len(newest)


def _forward(ticks: Ticks, since: datetime, now: datetime) -> Iterator[datetime]:
    tick = ticks.after(since)
    while tick is not None and tick <= now:
        yield tick
        tick = ticks.after(tick)


def _backward(ticks: Ticks, now: datetime) -> Iterator[datetime]:
    tick = ticks.until(now)
    while tick is not None:
        yield tick
        tick = ticks.until(tick - timedelta(microseconds=1))


def _chosen(schedule: Schedule, due: list[datetime], now: datetime) -> list[datetime]:
    """Those of the due ticks that are to fire: all when they are on time, else as `missed` says."""
    if due and now - due[0] > ON_TIME:
        match schedule.definition.missed:
            case "latest":
                due = due[-1:]
            case "skip":
                due = [tick for tick in due if now - tick <= ON_TIME]
            case "all":
                due = due[-MOST:]
    return due if schedule.definition.is_recurring else due[:1]


def _let_through(schedule: Schedule, chosen: list[datetime]) -> tuple[tuple[datetime, ...], tuple[datetime, ...], bool]:
    """Which of the chosen ticks fire now and which wait, as `overlap` says; and whether that needs an idle schedule."""
    match schedule.definition.overlap:
        case "allow":
            return tuple(chosen), (), False
        case "skip":
            fired = () if schedule.is_busy else tuple(chosen[:1])
            return fired, (), bool(fired)
        case "queue":
            line = (*schedule.backlog, *chosen)
            if schedule.is_busy or not line:
                return (), line[:MOST], False
            return line[:1], line[1 : MOST + 1], True
