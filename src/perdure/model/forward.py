"""The forwarding of a dead job: to which sink, how far it is, and what a try came to."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, get_args

import msgspec

from perdure.model.job import JobId

ForwardState = Literal["pending", "failing", "stopped", "forwarded"]
"""pending: not tried to the end yet · failing: refused, and tried again later · stopped: refused as often as the sink's
policy allows, and waiting for a person · forwarded: the sink has accepted it."""

FORWARD_STATES: tuple[ForwardState, ...] = get_args(ForwardState)


class Sink(msgspec.Struct, frozen=True):
    """A sink as policies know it: what it is called, and the queue that its copies go to, if it is one."""

    name: str
    queue: str | None = None


NOWHERE = Sink("none")
"""Explicitly no sink, whatever holds further out."""


class Forward(msgspec.Struct, frozen=True, kw_only=True):
    """How far the forwarding of a dead job is; exists while the job is dead."""

    job_id: JobId
    attempt: int
    """The attempt that the job died of; with the id it says which death is meant."""
    queue: str
    """The queue that the job was enqueued to; workers of that queue forward it."""
    state: ForwardState
    tries: int = 0
    """How many tries were begun, those included whose worker vanished."""
    sink: str | None = None
    """What the sink is called; None when the job died without one and a person asked for it to be forwarded."""
    error: str | None = None
    """Why the newest try failed."""
    next_at: datetime | None = None
    """When the next try is due; while a try is under way, when others may take it over."""
    tried_at: datetime | None = None
    forwarded_at: datetime | None = None


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What one try came to."""

    job_id: JobId
    attempt: int
    number: int
    """Which try it was: the `tries` that the claim gave back."""
    sink: str | None
    error: str | None = None
    """Why it failed; None when the sink has accepted the job."""
    delay: timedelta | None = None
    """After a failure, how long to wait for the next try; None stops the forwarding until a person asks for it."""

    @property
    def state(self) -> ForwardState:
        """The state that follows."""
        if self.error is None:
            return "forwarded"
        return "stopped" if self.delay is None else "failing"
