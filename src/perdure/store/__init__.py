"""The seam between the pipeline and the engines: protocols and the values that cross it, nothing that runs."""

from __future__ import annotations

from typing import Protocol

from perdure.store.audit import AuditStore
from perdure.store.capability import Capabilities
from perdure.store.forwards import ForwardStore
from perdure.store.jobs import JobStore
from perdure.store.notes import NoteStore
from perdure.store.reads import QueueStore, ReadStore
from perdure.store.schedules import ScheduleStore
from perdure.store.wakeup import Wakeups
from perdure.store.workers import WorkerStore


class Store(JobStore, ForwardStore, WorkerStore, ReadStore, QueueStore, ScheduleStore, NoteStore, AuditStore, Protocol):
    """An open engine: every verb of the seam."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def wakeups(self) -> Wakeups: ...

    def close(self) -> None:
        """Finish what was asked, then let go of threads, connections and files; a second call does nothing."""
        ...


__all__ = [
    "AuditStore",
    "Capabilities",
    "ForwardStore",
    "JobStore",
    "NoteStore",
    "QueueStore",
    "ReadStore",
    "ScheduleStore",
    "Store",
    "Wakeups",
    "WorkerStore",
]
