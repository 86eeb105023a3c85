"""What a schedule is: a rule that makes jobs, as it is asked for and as the store keeps it."""

from __future__ import annotations

import functools
import hashlib
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from perdure.errors import BadOption
from perdure.model.job import NO_ID, JobId, NewJob, format_id, is_job_id, make_id
from perdure.model.schedule.rule import Rule, parse_rule
from perdure.model.state import Delivery
from perdure.system.exhaustion import is_exhaustion

Overlap = Literal["skip", "queue", "allow"]
"""What becomes of a tick while a job of the schedule is unfinished, retries included.

skip: no job is made for it · queue: its job is made when the earlier ones have ended · allow: its job is made at once.
"""
Missed = Literal["latest", "skip", "all"]
"""What becomes of ticks that came while no scheduler was there: the newest fires, none does, or up to MOST do."""
Origin = Literal["code", "operator"]
Standing = Literal["active", "paused", "done", "broken", "orphaned"]

OVERLAPS: tuple[Overlap, ...] = get_args(Overlap)
MISSED: tuple[Missed, ...] = get_args(Missed)

MOST = 100
"""How many ticks `missed="all"` makes up for, and how many may queue up."""
ORPHANED_AFTER = timedelta(minutes=5)
"""When no worker has named a schedule from code for so long, it is orphaned."""
CHECK_STOPPED = timedelta(minutes=1)
"""How long after it stopped a schedule is first checked for removal."""
AFTER_ALL_TICKS = datetime(3000, 1, 1, tzinfo=UTC)
"""`since` of a schedule that has stopped: no rule has a tick after it, for workers of earlier versions too."""
ORPHANED = "No living worker's code names it any more."


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is asked for: which job to make, and when."""

    name: str
    task: str
    args: bytes
    """The arguments as JSON text (UTF-8), opaque to every engine."""
    cron: str
    """The rule: a cron expression, `@hourly` and the like, or `@every 10s`."""
    tz: str = "UTC"
    queue: str = "default"
    priority: int = 0
    max_attempts: int | None = None
    retry: str | None = None
    delivery: Delivery = "at_least_once"
    timeout: timedelta | None = None
    is_recurring: bool = True
    overlap: Overlap = "skip"
    missed: Missed = "latest"

    def ticks(self, anchor: datetime) -> Ticks:
        """The moments of its rule; raises BadCron or BadOption when they cannot be worked out here."""
        return Ticks(rule=_rule(self.cron), zone=read_zone(self.tz), anchor=anchor)


class Ticks(msgspec.Struct, frozen=True, kw_only=True):
    """The moments of a rule in a time zone; those of `@every` are counted from the anchor."""

    rule: Rule
    zone: tzinfo
    anchor: datetime

    def after(self, moment: datetime) -> datetime | None:
        """The first tick after a moment."""
        return self.rule.next(moment, zone=self.zone, anchor=self.anchor)

    def until(self, moment: datetime) -> datetime | None:
        """The last tick at or before a moment."""
        return self.rule.previous(moment + timedelta(microseconds=1), zone=self.zone, anchor=self.anchor)


class Schedule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule as the store keeps it."""

    definition: Definition
    origin: Origin
    revision: str
    """Changes with every change; a change is accepted only by who has seen the revision before it."""
    created_at: datetime
    """Also what the ticks of `@every` are counted from."""
    since: datetime
    """Ticks up to here are done with: the newest that was fired or skipped, or when the rule was set or resumed."""
    next_at: datetime | None
    """The next tick; while it is broken or orphaned, when it is looked at again; None: nothing is to come."""
    is_paused: bool = False
    last_tick_at: datetime | None = None
    last_job_id: JobId | None = None
    fired: int = 0
    skipped: int = 0
    backlog: tuple[datetime, ...] = ()
    """With overlap="queue", the ticks that wait for the earlier job to end."""
    problem: str | None = None
    """Why it does not fire, though it should."""
    stopped_at: datetime | None = None
    """When the schedule of a scheduled job stopped: it fired for the only time, or the job was cancelled.

    It is kept so that a retry brings it back. `next_at` is then the time of the next check for its removal, no tick.
    """
    set_backs: int = 0
    """How often it began anew because the clock was set back behind its newest tick."""
    named_at: datetime | None = None
    """When a worker last named it in its code; kept by the store beside the rest."""
    is_busy: bool = False
    """Whether a job of it is unfinished; found out by the store when it is read."""

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def is_job(self) -> bool:
        """Whether it was made as a job: its name is then the job's id."""
        return is_job_id(self.name)

    @property
    def is_over(self) -> bool:
        """Whether it has stopped and no job of it is unfinished; users see such a schedule as removed."""
        return self.stopped_at is not None and not self.is_busy

    @property
    def next_tick_at(self) -> datetime | None:
        """The next tick; None when nothing is to come."""
        return self.next_at if self.stopped_at is None else None

    @property
    def standing(self) -> Standing:
        """How it stands, in a word."""
        if self.stopped_at is not None:
            return "done"
        if self.is_paused:
            return "paused"
        if self.problem is not None:
            return "orphaned" if self.problem == ORPHANED else "broken"
        return "done" if self.next_at is None and not self.backlog else "active"

    def ticks(self) -> Ticks:
        """The moments of its rule; raises BadCron or BadOption when they cannot be worked out here."""
        return self.definition.ticks(self.created_at)

    def job(self, tick: datetime) -> NewJob:
        """The job of one tick; its id follows from the name and the tick, so that it cannot be made twice."""
        # A moment that comes again after the clock was set back is another tick; a microsecond tells them apart.
        tick += timedelta(microseconds=self.set_backs)
        # [INV-21] One job per tick: whoever fires it, however often, makes the same job.
        made = self._job(tick, "", tick_at=tick)
        if self.is_job and not self.definition.is_recurring and self.fired == 0:
            # The only run of a scheduled job is the job itself, under the id that its maker was given.
            return msgspec.structs.replace(made, id=JobId(self.name))
        return made

    def job_now(self, now: datetime) -> NewJob:
        """The job of a run that a person asked for; asked for again at the same revision, it is the same job."""
        return self._job(now, self.revision, tick_at=None)

    def _job(self, moment: datetime, salt: str, *, tick_at: datetime | None) -> NewJob:
        known = self.definition
        digest = hashlib.sha256(f"{self.name}\0{salt}\0{moment.astimezone(UTC).isoformat()}".encode()).digest()
        return NewJob(
            id=format_id(make_id(moment, int.from_bytes(digest[:8], "big"), NO_ID)),
            task=known.task,
            queue=known.queue,
            args=known.args,
            run_at=moment,
            priority=known.priority,
            max_attempts=known.max_attempts,
            retry=known.retry,
            delivery=known.delivery,
            timeout=known.timeout,
            schedule=self.name,
            tick_at=tick_at,
        )


def new_schedule(definition: Definition, origin: Origin, now: datetime) -> Schedule:
    """A schedule that begins now; raises BadCron or BadOption when its rule has no meaning here."""
    begun = Schedule(
        definition=definition,
        origin=origin,
        revision="",
        created_at=now,
        since=now,
        next_at=definition.ticks(now).after(now),
    )
    return msgspec.structs.replace(begun, revision=next_revision(begun))


def redefined(schedule: Schedule, definition: Definition, origin: Origin, now: datetime) -> Schedule:
    """The schedule with another definition; only where the rule is another one does its next tick change."""
    before = schedule.definition
    changed = msgspec.structs.replace(schedule, definition=definition, origin=origin, problem=None)
    if schedule.stopped_at is not None and not definition.is_recurring:
        # Its only run was made already; what changes about that run is the caller's to do.
        definition.ticks(schedule.created_at)
        return msgspec.structs.replace(changed, revision=next_revision(changed))
    if schedule.stopped_at is not None:
        return moved(msgspec.structs.replace(changed, stopped_at=None, backlog=()), now)
    is_same_rule = (before.cron, before.tz) == (definition.cron, definition.tz)
    is_rearmed = schedule.standing == "done" or schedule.problem is not None
    if schedule.is_paused or (is_same_rule and not is_rearmed):
        definition.ticks(schedule.created_at)
        return msgspec.structs.replace(changed, revision=next_revision(changed))
    since = max(schedule.since, now) if not is_same_rule or schedule.problem is None else schedule.since
    return moved(msgspec.structs.replace(changed, backlog=()), since)


def paused(schedule: Schedule) -> Schedule:
    """The schedule without ticks to come, until it is resumed."""
    changed = msgspec.structs.replace(schedule, is_paused=True, next_at=None, backlog=())
    return msgspec.structs.replace(changed, revision=next_revision(changed))


def resumed(schedule: Schedule, now: datetime) -> Schedule:
    """The schedule with the first tick from now on as its next; what came while it was paused is not made up for."""
    return moved(msgspec.structs.replace(schedule, is_paused=False, problem=None, stopped_at=None), now)


def stopped(schedule: Schedule, now: datetime, made: NewJob | None = None) -> Schedule:
    """The schedule without any tick to come, kept for a retry; `made` is the job that is made in the same step."""
    changed = msgspec.structs.replace(
        schedule,
        is_paused=False,
        problem=None,
        backlog=(),
        since=AFTER_ALL_TICKS,
        stopped_at=now,
        next_at=now + CHECK_STOPPED,
    )
    if made is not None:
        changed = msgspec.structs.replace(changed, last_job_id=made.id, fired=changed.fired + 1)
    return msgspec.structs.replace(changed, revision=next_revision(changed))


def mended(schedule: Schedule) -> Schedule:
    """The schedule after a problem is solved: the ticks that came meanwhile are still to be done with."""
    return moved(msgspec.structs.replace(schedule, problem=None), schedule.since)


def moved(schedule: Schedule, since: datetime) -> Schedule:
    """The schedule with its ticks up to a moment done with."""
    changed = msgspec.structs.replace(schedule, since=since, next_at=schedule.ticks().after(since))
    return msgspec.structs.replace(changed, revision=next_revision(changed))


def next_revision(schedule: Schedule, salt: str = "") -> str:
    """A revision that follows from the one before and all that changed, so that a repeated change is the same one.

    Those who may make the same change at the same time, and must know whose it was, add a salt of their own.
    """
    return hashlib.sha256(msgspec.json.encode(schedule) + salt.encode()).hexdigest()[:32]


def read_zone(name: str) -> tzinfo:
    """The time zone of a name of the tz database."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        if is_exhaustion(error):
            raise  # it could not be read now; that says nothing about the zone
        raise BadOption(
            f"tz is {name[:80]!r}, and this machine knows no such time zone.",
            "Name one like Europe/Berlin or UTC; the package tzdata brings all of them.",
        ) from None


@functools.lru_cache(maxsize=1000)
def _rule(text: str) -> Rule:
    return parse_rule(text)
