"""How attempts end, and what follows: the endings that go into `decide` and the outcome that comes out."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import msgspec

from perdure.model.failure import Failure
from perdure.model.job import AttemptOutcome
from perdure.model.state import Lane, State, Verb

Reason = Literal[
    "failed",
    "timeout",
    "lost",
    "snoozed",
    "released",
    "parked",
    "exhausted",
    "expired",
    "unrecoverable",
    "outcome unknown",
    "unknown task",
    "bad payload",
    "damaged",
    "cancelled",
    "discarded",
]
"""Why a job is where it is.

failed: the newest attempt raised, a retry follows (or, at most once, none may) · timeout: it ran past its timeout ·
lost: its worker vanished · snoozed, released: given back, nothing counted · parked: no worker here knows the task ·
exhausted: it raised once too often · expired: the policy's `within` is over · unrecoverable: GiveUp or a `never` rule ·
outcome unknown: at most once, and nobody can tell whether it ran · unknown task: parked for too long ·
bad payload: its arguments do not decode · damaged: its record could not be read when it was claimed ·
cancelled: on request · discarded: a person dismissed the dead letter.
"""


class Returned(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """The handler returned; `result` is JSON text, or None with a note why it could not be stored."""

    result: bytes | None = None
    note: str | None = None


class Raised(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The handler raised."""

    error: Failure
    is_suspect: bool = False
    """Whether the attempt ran when its worker lost the lease, and may be the reason for that."""


class GaveUp(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The handler raised GiveUp."""

    error: Failure


class AskedToWait(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The handler raised RetryAfter: a failure with an earliest moment for the next attempt."""

    delay: timedelta
    error: Failure


class Snoozed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The handler raised Snooze."""

    delay: timedelta


class Cancelled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The handler raised Cancel, or an operator cancelled the job while it ran."""

    error: Failure | None = None


class TimedOut(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The attempt ran past its timeout; `doing` is what its handler noted on being broken off."""

    timeout: timedelta
    doing: str = ""


class ShutDown(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The worker shut down first; `has_started` tells whether the handler had been entered."""

    has_started: bool


class Vanished(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The worker, or the child process that ran the attempt, is gone."""

    detail: str
    has_started: bool = True
    """Whether the handler may have been entered; known to be false only for at-most-once jobs."""
    is_bystander: bool = False
    """Whether the worker vanished while it ran the attempt in a child process: hardly by the fault of the attempt."""


class TaskUnknown(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """This worker has no task of that name."""


class Spent(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The job was fetched but not entered: its limit or its time is used up already."""

    reason: Literal["exhausted", "expired"]


class Undecodable(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The arguments do not decode, or do not fit the handler."""

    detail: str


Ending = (
    Returned
    | Raised
    | GaveUp
    | AskedToWait
    | Snoozed
    | Cancelled
    | TimedOut
    | ShutDown
    | Vanished
    | Spent
    | TaskUnknown
    | Undecodable
)


class Outcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What follows an attempt: the job's next state and what is recorded of the attempt."""

    verb: Verb
    """The transition, a row of state.TRANSITIONS."""
    state: State
    attempt: AttemptOutcome
    reason: Reason | None = None
    """The job's reason from now on."""
    failures: int
    recoveries: int
    lane: Lane
    delay: timedelta | None = None
    """How long the job waits before it is ready; None when no attempt follows."""
    queue: str | None = None
    """The queue that the job moves to, when it moves."""
    error: Failure | None = None
    result: bytes | None = None
    note: str | None = None
    limit: int | None = None
    """The limit that was decided with, where a rule for this error lowered the job's own."""
    sink: str | None = None
    """The sink that a dead job is to be forwarded to, by name."""
