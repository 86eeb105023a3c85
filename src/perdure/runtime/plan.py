"""What a worker is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import msgspec

from perdure.model.schedule.definition import Definition
from perdure.runtime.children.entry import Entry


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is asked to do."""

    queues: Mapping[str, int]
    """The queues to serve and the weight of each."""
    concurrency: int
    lease: timedelta
    grace: timedelta
    max_block: timedelta = timedelta(minutes=5)
    """How long the event loop may be blocked before the worker ends."""
    poll: timedelta
    prefetch: timedelta
    max_prefetch: int
    retention: timedelta
    version: str
    schedules: tuple[Definition, ...] = ()
    """Those of the app's code."""
    entry: Entry = Entry()
    """What child processes import before the modules of tasks."""
