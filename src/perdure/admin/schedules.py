"""What operators do to schedules: list, add, pause, resume, run now, look ahead, remove."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

import msgspec

from perdure.admin.damage import check_readable
from perdure.admin.inspect import Page, check_limit
from perdure.admin.reply_generator import Steps, ask, stepped
from perdure.errors import BadOption, EngineBusy, PerdureError, RecordDamaged, Refused, ScheduleNotFound
from perdure.model.event import JobsEnqueued, Observer
from perdure.model.job import JobId
from perdure.model.payload.codec import PAYLOAD_LIMIT, encode_args
from perdure.model.policy.limit import Limit
from perdure.model.policy.retry import Retry
from perdure.model.schedule.definition import (
    Definition,
    Missed,
    Overlap,
    Schedule,
    Ticks,
    new_schedule,
    next_revision,
    paused,
    redefined,
    resumed,
)
from perdure.model.schedule.option import make_definition
from perdure.model.state import Delivery
from perdure.store import Store
from perdure.store.reply import Reply
from perdure.store.schedules import Firing
from perdure.text.duration import Duration

MOST_TICKS = 1000
CHANGE_TRIES = 10
"""How often a change is tried again when a scheduler came between."""


class ScheduleOptions(TypedDict, total=False):
    """How the jobs of a schedule are made, and what it does about ticks that come too soon or were missed."""

    tz: str
    queue: str
    priority: int
    max_attempts: Limit | None
    max_retries: Limit | None
    retry: Retry | str | None
    delivery: Delivery
    timeout: Duration | None
    overlap: Overlap
    missed: Missed
    recurring: bool


def define(
    name: str, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], cron: str, options: ScheduleOptions
) -> Definition:
    """The definition of a schedule as an operator gives it."""
    given: dict[str, Any] = dict(options)
    is_recurring = given.pop("recurring", True)
    unknown = set(given) - set(ScheduleOptions.__annotations__)
    if unknown:
        raise BadOption(f"There is no option {min(unknown)!r} of a schedule.", f"There are: {', '.join(_OPTIONS)}.")
    encoded = encode_args(tuple(args), dict(kwargs), PAYLOAD_LIMIT)
    return make_definition(name=name, task=task, args=encoded, cron=cron, is_recurring=is_recurring, **given)


@stepped
def schedules(store: Store, *, limit: int = 50, cursor: str | None = None) -> Steps[Page[Schedule]]:
    """A page of schedules by name."""
    check_limit(limit)
    found = yield from ask(current_schedules(store, limit=limit + 1, after=cursor))
    return Page(found[:limit], found[limit - 1].name if len(found) > limit else None)


@stepped
def current_schedules(store: Store, *, limit: int, after: str | None = None) -> Steps[list[Schedule]]:
    """Schedules that are not over, by name."""
    found: list[Schedule] = []
    while len(found) < limit:
        page = yield from ask(store.schedules(limit=limit, after=after))
        found += [each for each in page if not each.is_over]
        if len(page) < limit:
            break
        after = page[-1].name
    return found[:limit]


@stepped
def schedule(store: Store, name: str) -> Steps[Schedule]:
    """The schedule of this name; raises ScheduleNotFound, and RecordDamaged when it cannot be read."""
    [known] = yield from ask(store.get_schedules([name]))
    if known is None:
        yield from check_readable(store, "schedule", name)
    if known is None or known.is_over:
        raise _not_found(name)
    return known


@stepped
def removable_schedule(store: Store, name: str) -> Steps[Schedule | None]:
    """The schedule of this name; None when there is one that cannot be read. Raises ScheduleNotFound."""
    try:
        return (yield from ask(schedule(store, name)))
    except RecordDamaged:
        return None


@stepped
def add_schedule(store: Store, definition: Definition, *, replace: bool = False) -> Steps[Schedule]:
    """Keep a schedule under its name; the same one again changes nothing, another needs `replace`."""
    for _ in range(CHANGE_TRIES):
        now = yield from ask(store.now())
        [known] = yield from ask(store.get_schedules([definition.name]))
        if known is not None and known.definition == definition and not known.is_over:
            return known
        if known is None:
            wanted = new_schedule(definition, "operator", now)
        elif known.is_over:
            # The count is kept: the next job must not have the id of the one that was made before.
            begun = msgspec.structs.replace(new_schedule(definition, "operator", now), fired=known.fired)
            wanted = msgspec.structs.replace(begun, revision=next_revision(begun))
        else:
            _check_replaceable(known, is_asked=replace)
            wanted = redefined(known, definition, "operator", now)
        if (yield from ask(store.put_schedule(wanted, None if known is None else known.revision))):
            return wanted
        if known is None:
            yield from check_readable(store, "schedule", definition.name)
    raise busy(definition.name)


@stepped
def change_schedule(
    store: Store, name: str, change: Callable[[Definition], Definition], *, is_paused: bool | None = None
) -> Steps[Schedule]:
    """Change what a schedule is and whether it is paused, in one step; what code defines can only be paused."""
    for _ in range(CHANGE_TRIES):
        known = yield from ask(schedule(store, name))
        now = yield from ask(store.now())
        wanted = known
        definition = change(known.definition)
        if definition != known.definition:
            _check_replaceable(known, is_asked=True)
            wanted = redefined(wanted, definition, "operator", now)
        if is_paused is not None and is_paused != known.is_paused:
            if is_paused:
                _check_can_pause(wanted)
            wanted = paused(wanted) if is_paused else resumed(wanted, now)
        if wanted is known or (yield from ask(store.put_schedule(wanted, known.revision))):
            return wanted
    raise busy(name)


def pause_schedule(store: Store, name: str) -> Reply[bool]:
    """Stop firing a schedule; whether that changed anything."""

    def change(known: Schedule, now: datetime) -> Schedule | None:
        _check_can_pause(known)
        return None if known.is_paused else paused(known)

    return _change(store, name, change)


def resume_schedule(store: Store, name: str) -> Reply[bool]:
    """Fire a paused schedule again, from its next tick on; whether that changed anything."""
    return _change(store, name, lambda known, now: resumed(known, now) if known.is_paused else None)


@stepped
def run_schedule_now(store: Store, name: str, observer: Observer | None = None) -> Steps[JobId]:
    """Make a job of a schedule at once, beside its ticks; refused while one is unfinished, unless they may overlap.

    The observer, if any, is told of the job.
    """
    for _ in range(CHANGE_TRIES):
        known = yield from ask(schedule(store, name))
        if known.is_busy and known.definition.overlap != "allow":
            raise Refused(
                f"A job of the schedule {name} is unfinished, and its overlap is {known.definition.overlap!r}.",
                f"See it with `perdure jobs ls --schedule {name}`; wait for it, or cancel it first.",
            )
        now = yield from ask(store.now())
        job = known.job_now(now)
        after = msgspec.structs.replace(known, last_job_id=job.id, fired=known.fired + 1)
        after = msgspec.structs.replace(after, revision=next_revision(after, job.id))
        needs_idle = known.definition.overlap != "allow"
        step = Firing(name=name, replaces=known.revision, schedule=after, jobs=(job,), needs_idle=needs_idle)
        [is_taken] = yield from ask(store.fire([step]))
        if is_taken:
            if observer is not None:
                observer.tell(JobsEnqueued(jobs=[job], ids=[job.id], started_at=now, ended_at=now))
            return job.id
    raise busy(name)


@stepped
def next_ticks(store: Store, name: str, n: int = 5) -> Steps[list[datetime]]:
    """The next ticks of a schedule, whether it is paused or not; raises ScheduleNotFound."""
    known = yield from ask(schedule(store, name))
    now = yield from ask(store.now())
    found = ticks_from(known.ticks(), max(now, known.since), n)
    return found if known.definition.is_recurring else found[:1]


@stepped
def remove_schedule(store: Store, name: str) -> Steps[None]:
    """Forget a schedule, also one that cannot be read; the jobs that it made stay. Raises ScheduleNotFound."""
    [known] = yield from ask(store.get_schedules([name]))
    if known is not None and known.is_over:
        raise _not_found(name)
    if not (yield from ask(store.remove_schedule(name))):
        raise _not_found(name)


def ticks_from(ticks: Ticks, after: datetime, n: int) -> list[datetime]:
    """The first n ticks after a moment."""
    if not 1 <= n <= MOST_TICKS:
        raise BadOption(f"n is {n}; it must lie between 1 and {MOST_TICKS}.")
    found: list[datetime] = []
    tick = ticks.after(after)
    while tick is not None and len(found) < n:
        found.append(tick)
        tick = ticks.after(tick)
    return found


def description(schedule: Schedule) -> str | None:
    """A schedule's rule in plain words; None where it cannot be worked out here."""
    try:
        return schedule.ticks().rule.describe()
    except PerdureError:
        return None


_OPTIONS = tuple(ScheduleOptions.__annotations__)


@stepped
def _change(store: Store, name: str, change: Callable[[Schedule, datetime], Schedule | None]) -> Steps[bool]:
    for _ in range(CHANGE_TRIES):
        known = yield from ask(schedule(store, name))
        now = yield from ask(store.now())
        wanted = change(known, now)
        if wanted is None:
            return False
        if (yield from ask(store.put_schedule(wanted, known.revision))):
            return True
    raise busy(name)


def _check_can_pause(known: Schedule) -> None:
    if known.stopped_at is not None:
        raise Refused(
            f"The job {known.name} has begun its last run, and a run that has begun cannot be paused.",
            f"Cancel it with `perdure jobs cancel {known.name}`; a retry brings it back.",
        )


def _check_replaceable(known: Schedule, *, is_asked: bool) -> None:
    if known.origin == "code":
        raise Refused(
            f"The schedule {known.name} is defined in the app's code, which would take its place again.",
            "Change it there, or choose another name.",
        )
    if not is_asked:
        raise Refused(
            f"There is another schedule named {known.name}.", "Choose another name, or ask for it to be replaced."
        )


def _not_found(name: str) -> ScheduleNotFound:
    return ScheduleNotFound(
        f"No schedule is named {name[:80]!r}.", "`perdure schedules ls` lists them; one that fires once is gone then."
    )


def busy(name: str) -> EngineBusy:
    """The error for a schedule that others change faster than this process can."""
    return EngineBusy(f"The schedule {name} was changed again and again.", "The same call may be tried again.")
