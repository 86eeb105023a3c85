"""Scheduled jobs: jobs that were made with a schedule, found under the one id that their maker was given.

The id is the name of the schedule. The only run of a one-shot job has the same id. The runs of a recurring job have ids
of their own, and name the scheduled job as their schedule. `find` gives a plain job or a scheduled job for an id;
`as_job` shows a scheduled job in the form of a job: its unfinished run, or waiting for its next run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from perdure.admin.damage import check_readable
from perdure.admin.reply_generator import Steps, ask, stepped
from perdure.admin.runs import attempts_of, newest_run, unfinished_run
from perdure.admin.selection import not_found, read_id
from perdure.errors import PerdureError
from perdure.model.job import Attempt, Job, JobId
from perdure.model.schedule.definition import Schedule
from perdure.model.state import State
from perdure.store import Store
from perdure.store.reads import JobFilter

_CHUNK = 500
"""How many schedules are read at once."""
_ABOVE_ALL_IDS = "g"
"""Sorts after every job id, which begins with a hexadecimal digit."""
_NEVER: frozenset[State] = frozenset({"succeeded", "dead"})
"""The states that a scheduled job with a schedule is never in; only its runs are."""


class ScheduledJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was made with a schedule."""

    id: JobId
    schedule: Schedule | None
    """None once it was removed."""
    run: Job | None
    """The unfinished run, else the newest; None before the first, or when it was pruned."""

    @property
    def is_ended(self) -> bool:
        """Whether it will not run again, unless a person retries it."""
        is_stopped = self.schedule is None or self.schedule.stopped_at is not None
        return is_stopped and (self.run is None or self.run.is_final)

    def as_job(self, now: datetime) -> Job:
        """The scheduled job in the form of a job, under its own id."""
        known, run = self.schedule, self.run
        if known is not None and known.stopped_at is None and (run is None or run.is_final):
            return _waiting(known, now)
        assert run is not None, "without a schedule that goes on there is a run"
        shown = msgspec.structs.replace(run, id=self.id, schedule=self.id)
        if known is None or run.id == self.id:
            return shown
        shown = msgspec.structs.replace(shown, created_at=known.created_at)
        if not (known.definition.is_recurring and run.is_final):
            return shown
        # A recurring job stops only when it is cancelled, however its last run ended.
        return msgspec.structs.replace(
            shown, state="cancelled", reason="cancelled", ended_at=known.stopped_at, error=None, result=None
        )


def find(store: Store, job_id: str) -> Steps[Job | ScheduledJob]:
    """What has this id: a job or a scheduled job; raises JobNotFound."""
    wanted = read_id(job_id)
    [job] = yield from ask(store.get([wanted]))
    if job is not None and job.schedule != job.id:
        return job
    found = yield from find_scheduled(store, wanted, job)
    if found is None:
        yield from check_readable(store, "job", wanted)
        yield from check_readable(store, "schedule", wanted)
        raise not_found(wanted)
    return found


def find_scheduled(store: Store, wanted: JobId, job: Job | None = None) -> Steps[ScheduledJob | None]:
    """The scheduled job with this id; `job` is the job with the same id, where there is one."""
    [known] = yield from ask(store.get_schedules([wanted]))
    run = job
    if known is None:
        if run is None:
            run = yield from ask(newest_run(store, wanted))
        return None if run is None else ScheduledJob(id=wanted, schedule=None, run=run)
    if known.last_job_id is not None and (run is None or run.id != known.last_job_id):
        [run] = yield from ask(store.get([known.last_job_id]))
    if known.is_busy and (run is None or run.is_final):
        # A person has put an older run back.
        run = (yield from ask(unfinished_run(store, wanted))) or run
    if run is None and known.stopped_at is not None:
        return None
    return ScheduledJob(id=wanted, schedule=known, run=run)


@stepped
def attempts_over_runs(store: Store, found: ScheduledJob, limit: int) -> Steps[list[tuple[Job, Attempt]]]:
    """The newest attempts over all runs of a scheduled job, newest first, each with its run."""
    known, run = found.schedule, found.run
    if known is not None and run is not None and known.fired == 1 and known.last_job_id == run.id:
        # The only run need not be looked for.
        attempts = yield from ask(store.history(run.id, limit))
        return [(run, attempt) for attempt in reversed(attempts)]
    return (yield from ask(attempts_of(store, found.id, limit)))


def list_scheduled(
    store: Store, where: JobFilter, *, limit: int, after: str | None = None, until: JobId | None = None
) -> Steps[list[Job]]:
    """Scheduled jobs that match, in the form of jobs, newest first; none with an id below `until`.

    A one-shot job whose run was made is left out: that run has its id and is in every list of jobs.
    """
    if where.ids is not None or where.state in _NEVER or where.schedule or where.group or where.forward:
        return []
    now = yield from ask(store.now())
    found: list[Job] = []
    name: str | None = min(after or _ABOVE_ALL_IDS, _ABOVE_ALL_IDS)
    while len(found) < limit and name is not None:
        page = yield from ask(store.schedules(limit=_CHUNK, after=name, is_descending=True))
        name = page[-1].name if len(page) == _CHUNK else None
        if until is not None:
            wanted = [each for each in page if each.name > until]
            name = name if len(wanted) == len(page) else None
            page = wanted
        shown = yield from _shown(store, page, now)
        found += [job for job in shown if _matches(job, where)]
    return found[:limit]


def scheduled_as_jobs(store: Store, ids: Sequence[JobId]) -> Steps[list[Job]]:
    """Those of the ids that scheduled jobs have, in the form of jobs; in no order."""
    known = yield from ask(store.get_schedules(ids))
    now = yield from ask(store.now())
    return (yield from _shown(store, [each for each in known if each is not None], now))


def _shown(store: Store, schedules: Sequence[Schedule], now: datetime) -> Steps[list[Job]]:
    scheduled = [each for each in schedules if each.is_job and not _is_run_itself(each)]
    ids = [each.last_job_id for each in scheduled if each.last_job_id is not None]
    runs = {job.id: job for job in (yield from ask(store.get(ids))) if job is not None} if ids else {}
    found: list[Job] = []
    for each in scheduled:
        run = None if each.last_job_id is None else runs.get(each.last_job_id)
        if run is not None or each.stopped_at is None:
            found.append(ScheduledJob(id=JobId(each.name), schedule=each, run=run).as_job(now))
    return found


def _is_run_itself(schedule: Schedule) -> bool:
    return schedule.stopped_at is not None and schedule.last_job_id == schedule.name


def _waiting(schedule: Schedule, now: datetime) -> Job:
    """The job of the next run, which is not made before its time."""
    known = schedule.definition
    next_at = schedule.next_tick_at
    return Job(
        id=JobId(schedule.name),
        task=known.task,
        queue=known.queue,
        state="waiting",
        lane="fresh",
        args=known.args,
        priority=known.priority,
        run_at=next_at or _next_tick(schedule, now) or now,
        attempt=0,
        failures=0,
        recoveries=0,
        delivery=known.delivery,
        created_at=schedule.created_at,
        max_attempts=known.max_attempts,
        retry=known.retry,
        timeout=known.timeout,
        reason=_REASONS.get(schedule.standing, "scheduled"),
        schedule=schedule.name,
        tick_at=next_at,
    )


_REASONS = {"paused": "paused", "broken": "broken"}


def _next_tick(schedule: Schedule, now: datetime) -> datetime | None:
    """When a paused schedule would fire if it were resumed now."""
    try:
        return schedule.ticks().after(now)
    except PerdureError:
        return None


def _matches(job: Job, where: JobFilter) -> bool:
    error = "" if job.error is None else f"{job.error.type}\n{job.error.message}".casefold()
    at = job.ended_at or job.created_at
    return (
        where.state in (None, job.state)
        and where.task in (None, job.task)
        and (where.queue is None or where.queue in (job.queue, job.origin))
        and where.reason in (None, job.reason)
        and (where.error is None or where.error.casefold() in error)
        and (where.before is None or at < where.before)
        and (where.after is None or at >= where.after)
    )
