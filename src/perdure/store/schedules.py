"""The verbs of schedules: kept by name, changed by who has seen them last, fired by any number of schedulers at once.

Whoever changes a schedule names the revision that the change is based on; if another was faster, nothing happens and
the reply says so. A revision belongs to one change, so a change that is asked for twice after a lost reply is made once
and answered alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from perdure.model.job import NewJob
from perdure.model.schedule.definition import Schedule
from perdure.store.reply import Reply


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at the schedules found."""

    now: datetime
    """The store's clock, by which they are due."""
    schedules: tuple[Schedule, ...]
    next_at: datetime | None
    """When the first of all schedules is due; not later than now if some are."""


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a schedule: the jobs to make, and how it stands afterwards."""

    name: str
    replaces: str
    """The revision that the step is based on."""
    schedule: Schedule | None
    """The schedule afterwards, with its new revision; None removes it."""
    jobs: tuple[NewJob, ...] = ()
    needs_idle: bool = False
    """Refuse the step while a job of the schedule is unfinished."""


class ScheduleStore(Protocol):
    """The verbs of schedules."""

    def put_schedule(self, schedule: Schedule, replaces: str | None) -> Reply[bool]:
        """Keep a schedule under its name, a new one (`replaces` None) or in place of a revision; whether it is."""
        ...

    def get_schedules(self, names: Sequence[str]) -> Reply[list[Schedule | None]]:
        """The schedules with these names, in order; None for those that do not exist."""
        ...

    def schedules(self, *, limit: int, after: str | None = None, is_descending: bool = False) -> Reply[list[Schedule]]:
        """Schedules by name, ascending unless told otherwise; `after` is the last name of the page before."""
        ...

    def remove_schedule(self, name: str) -> Reply[bool]:
        """Forget a schedule; its jobs stay. Whether it was there."""
        ...

    def name_schedules(self, names: Sequence[str]) -> Reply[None]:
        """Note that a living worker names these schedules in its code."""
        ...

    def due(self, limit: int) -> Reply[Due]:
        """Up to `limit` schedules whose tick has come, the longest due first, and those whose backlog can go on."""
        ...

    def fire(self, firings: Sequence[Firing]) -> Reply[list[bool]]:
        """Take steps, each atomic: make its jobs and change its schedule, or nothing; for each whether it was taken.

        A step is taken if the schedule has the revision that it is based on and, where it needs that, no unfinished
        job. Of any number of schedulers that take the same step at once, one does.
        """
        ...
