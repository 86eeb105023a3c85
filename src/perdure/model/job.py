"""What a job is: the request to run a task, as it is enqueued, kept, and remembered attempt by attempt."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import Literal, NewType

import msgspec

from perdure.model.failure import Failure
from perdure.model.state import ENDED, Delivery, Lane, State

JobId = NewType("JobId", str)
WorkerId = NewType("WorkerId", str)

AttemptOutcome = Literal[
    "succeeded", "failed", "timeout", "lost", "snoozed", "released", "parked", "cancelled", "running"
]
"""How an attempt ended; `running` while it has not."""

LOWEST_PRIORITY = -100
HIGHEST_PRIORITY = 100

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
CHANCE = 62
"""How many bits of an id are left to chance."""
_LOW = 2**CHANCE - 1
NO_ID = -1
"""The value below every id, for `make_id` and `put_id` where no id was made before."""
_ID = "%08x-%04x-7%03x-%04x-%012x"
_ID_FORM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class NewJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job about to be enqueued; the client makes its id, so that a repeated enqueue is the same job."""

    id: JobId
    task: str
    queue: str
    args: bytes
    """The arguments as JSON text (UTF-8), opaque to every engine."""
    delay: timedelta | None = None
    """Not before so long after the store's now; at most one of delay and run_at is set."""
    run_at: datetime | None = None
    priority: int = 0
    unique: str | None = None
    max_attempts: int | None = None
    retry: str | None = None
    """The job's own retry policy in its text form, if it has one."""
    delivery: Delivery = "at_least_once"
    timeout: timedelta | None = None
    schedule: str | None = None
    """The name of the schedule that makes it, if one does."""
    tick_at: datetime | None = None
    """The tick that it is made for."""


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job as the store keeps it, its last attempt included."""

    id: JobId
    task: str
    queue: str
    state: State
    lane: Lane
    args: bytes
    priority: int
    run_at: datetime
    attempt: int
    """The number of the newest attempt, 0 before the first; with the id it is the fence."""
    failures: int
    recoveries: int
    """How many attempts ended because their worker vanished."""
    delivery: Delivery
    created_at: datetime
    origin: str | None = None
    """The queue that the job was enqueued to, when it has moved to a retry queue since."""
    unique: str | None = None
    max_attempts: int | None = None
    retry: str | None = None
    timeout: timedelta | None = None
    delay: timedelta | None = None
    """The delay chosen after the newest failure."""
    reason: str | None = None
    """Why the job is where it is: `exhausted`, `timeout`, `lost`, `parked`, … see outcome.Reason."""
    error: Failure | None = None
    result: bytes | None = None
    """What the handler returned, as JSON text."""
    worker: WorkerId | None = None
    """Who runs it; present exactly while the job is running."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    """When the job succeeded, died or was cancelled."""
    replayed_at: datetime | None = None
    """When the job was due after a person last put it back; `within` counts from then."""
    parked_at: datetime | None = None
    """Since when the job has been parked, while it is."""
    is_cancelling: bool = False
    """An operator asked for its cancellation while it was running."""
    schedule: str | None = None
    """The name of the schedule that made it, if one did."""
    tick_at: datetime | None = None
    """The tick that it was made for; None when a person had the schedule run at once."""

    @property
    def is_final(self) -> bool:
        """Whether the job has ended: succeeded, dead or cancelled."""
        return self.state in ENDED

    @property
    def scheduled_id(self) -> JobId | None:
        """The id of the scheduled job that this job is a run of; None where it is no such run."""
        return JobId(self.schedule) if self.schedule is not None and is_job_id(self.schedule) else None

    @property
    def life_began_at(self) -> datetime:
        """From when the policy's `within` counts."""
        return self.replayed_at or self.created_at

    @property
    def fence(self) -> tuple[JobId, int]:
        """What every write about a running job must carry."""
        return (self.id, self.attempt)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a job, as its history remembers it."""

    job_id: JobId
    attempt: int
    outcome: AttemptOutcome
    reason: str | None = None
    error: Failure | None = None
    worker: WorkerId | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    delay: timedelta | None = None
    """How long the job then waited before its next attempt, where one followed."""


def is_job_id(text: str) -> bool:
    """Whether a text has the form of a job id."""
    return _ID_FORM.fullmatch(text) is not None


def make_id(now: datetime, noise: int, after: int) -> int:
    """A UUIDv7 value as an integer, above `after` whatever the clock does; `noise` is 62 random bits.

    The moment comes first: ids sort by the time they were made. `after` is the id made before, or NO_ID.
    """
    return put_id(id_moment((now - _EPOCH) // _MICROSECOND), noise, after)


def put_id(moment: int, noise: int, after: int) -> int:
    """The same from the part of it that tells the time."""
    body = moment << CHANCE | noise & _LOW
    return body if body > after else after + 1


def id_moment(microseconds: int) -> int:
    """What an id tells of the time since 1970: 48 bits of milliseconds, 12 bits of their fraction."""
    return (microseconds << 12) // 1000


def derive_id(job: Job, purpose: str) -> JobId:
    """The id of what is made of an ended job for a purpose: the same whenever it is made of the same ending."""
    text = f"{job.id}/{job.attempt}/{purpose}".encode()
    noise = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest())
    milliseconds = ((job.ended_at or job.created_at) - _EPOCH) // timedelta(milliseconds=1)
    return format_id((milliseconds << 74) | (noise & (2**74 - 1)))


def format_id(body: int) -> JobId:
    """The canonical text of a value from make_id, with UUID's version and variant bits put in."""
    parts = (body >> 90, body >> 74 & 0xFFFF, body >> 62 & 0xFFF, body >> 48 & 0x3FFF | 0x8000, body & 0xFFFFFFFFFFFF)
    return JobId(_ID % parts)


def join_id(moment: int, chance: str) -> JobId:
    """The same text from its parts: what `id_moment` gave, and what `format_chance` made of the random bits."""
    text = moment.to_bytes(8, "big").hex()
    return JobId(f"{text[1:9]}-{text[9:13]}-7{text[13:]}-{chance}")


def format_chance(noise: int) -> str:
    """The text of an id's random bits, with UUID's variant before them."""
    return f"{noise >> 48 | 0x8000:04x}-{noise & 0xFFFFFFFFFFFF:012x}"
