"""What operators do to a scheduled job as a whole: cancel it, or retry it."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from perdure.admin.reply_generator import Steps, ask
from perdure.admin.runs import cancel_runs
from perdure.admin.scheduled import ScheduledJob
from perdure.admin.schedules import CHANGE_TRIES, busy, run_schedule_now
from perdure.errors import WrongState
from perdure.model.event import JobsEnqueued, Observer
from perdure.model.job import JobId, NewJob
from perdure.model.schedule.definition import Schedule, resumed, stopped
from perdure.store import Store
from perdure.store.jobs import CancelAnswer
from perdure.store.schedules import Firing

_NOT_YET = timedelta(minutes=1)
"""The run of a job that is cancelled before its first run is made at least this far from being due, so that no worker
takes it in the moment before it is cancelled."""


def cancel_scheduled(store: Store, found: ScheduledJob) -> Steps[CancelAnswer]:
    """Stop the schedule and cancel the unfinished runs. The schedule is kept, so that a retry brings it back."""
    known, run = found.schedule, found.run
    if found.is_ended:
        is_cancelled = (known is not None and known.definition.is_recurring) or (
            run is not None and run.state == "cancelled"
        )
        return "already cancelled" if is_cancelled else "already ended"
    if known is not None and known.stopped_at is None:
        yield from _stop(store, known, has_run=run is not None)
    answers = yield from ask(cancel_runs(store, found.id))
    return "asked" if "asked" in answers else "cancelled"


def run_to_retry(store: Store, found: ScheduledJob, observer: Observer | None) -> Steps[JobId | None]:
    """The id of the run that a retry of a scheduled job is about; before the first run make that one, and give None.

    None also where a cancelled recurring job only has to go on: its last run succeeded. Raises WrongState where the
    last run of a recurring job succeeded and it goes on anyway.
    """
    known, run = found.schedule, found.run
    if known is not None and known.stopped_at is None and run is None:
        yield from _run_first(store, known, observer)
        return None
    if known is not None and known.definition.is_recurring and run is not None and run.state == "succeeded":
        if known.stopped_at is not None:
            return None
        next_at = known.next_tick_at
        when = "" if next_at is None else f"; the next is due at {next_at:%Y-%m-%d %H:%M:%S} UTC"
        raise WrongState(
            f"The last run of the job {found.id} succeeded{when}.",
            f"Retry takes waiting, dead and cancelled runs. `perdure schedules run {found.id}` runs it once more now.",
        )
    assert run is not None, "without a schedule that goes on there is a run"
    return run.id


def go_on(store: Store, found: ScheduledJob) -> Steps[None]:
    """Have the schedule of a cancelled recurring job fire again, from its next tick on."""
    current = found.schedule
    for _ in range(CHANGE_TRIES):
        if current is None or current.stopped_at is None or not current.definition.is_recurring:
            return
        now = yield from ask(store.now())
        if (yield from ask(store.put_schedule(resumed(current, now), current.revision))):
            return
        [current] = yield from ask(store.get_schedules([found.id]))
    raise busy(found.id)


def _stop(store: Store, known: Schedule, *, has_run: bool) -> Steps[None]:
    current: Schedule | None = known
    for _ in range(CHANGE_TRIES):
        if current is None or current.stopped_at is not None:
            return
        now = yield from ask(store.now())
        # Something must be left that can be shown as cancelled, and retried.
        made = None if has_run or current.last_job_id not in (None, known.last_job_id) else _unstarted(current, now)
        step = Firing(
            name=current.name,
            replaces=current.revision,
            schedule=stopped(current, now, made),
            jobs=() if made is None else (made,),
        )
        [is_taken] = yield from ask(store.fire([step]))
        if is_taken:
            return
        [current] = yield from ask(store.get_schedules([known.name]))
    raise busy(known.name)


def _unstarted(schedule: Schedule, now: datetime) -> NewJob:
    """The run of a job that is cancelled before its first run."""
    due = max(schedule.next_tick_at or now, now + _NOT_YET)
    if schedule.definition.is_recurring:
        # Without a tick, or the tick would count as fired when the job goes on.
        return msgspec.structs.replace(schedule.job_now(now), run_at=due)
    return msgspec.structs.replace(schedule.job(schedule.next_tick_at or now), run_at=due)


def _run_first(store: Store, known: Schedule, observer: Observer | None) -> Steps[None]:
    """Make the first run now: of a one-shot job the only one, of a recurring one beside its ticks."""
    if known.definition.is_recurring:
        yield from ask(run_schedule_now(store, known.name, observer))
        return
    current: Schedule | None = known
    for _ in range(CHANGE_TRIES):
        if current is None or current.stopped_at is not None:
            return
        now = yield from ask(store.now())
        job = msgspec.structs.replace(current.job(current.next_tick_at or now), run_at=now)
        step = Firing(name=current.name, replaces=current.revision, schedule=stopped(current, now, job), jobs=(job,))
        [is_taken] = yield from ask(store.fire([step]))
        if is_taken:
            if observer is not None:
                observer.tell(JobsEnqueued(jobs=[job], ids=[job.id], started_at=now, ended_at=now))
            return
        [current] = yield from ask(store.get_schedules([known.name]))
    raise busy(known.name)
