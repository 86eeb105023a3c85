"""The verbs that look for damage: records that cannot be read, jobs in no queue, and counters that are wrong.

A record that cannot be read is **set aside**: each reader skips it, the log names it once, and it is left as it is. The
audit goes through the store in small steps, so that it keeps nobody waiting, and every repair looks again at what it
changes, so that a job that is just moving is not taken for a lost one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from perdure.store.reply import Reply

RecordKind = Literal[
    "job", "attempt", "forward", "schedule", "setting", "pause", "note", "worker", "counter", "queue", "key", "policy"
]
"""policy: a job's own retry policy · queue: the line of jobs of a queue · key: a key of Redis."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with what the store holds."""

    kind: RecordKind
    name: str
    problem: str
    repair: str | None = None
    """What `repair` does about it; None: a person has to decide."""
    detail: str = ""
    """What the engine needs to know for the repair; opaque to everybody else."""


class Audited(msgspec.Struct, frozen=True, kw_only=True):
    """What one step of an audit found."""

    faults: tuple[Fault, ...]
    cursor: str | None
    """Where the next step goes on; None when the audit is over."""


class AuditStore(Protocol):
    """The verbs that look for damage."""

    def examine(self, kind: Literal["job", "schedule"], name: str) -> Reply[str | None]:
        """Why this record cannot be read; None when it can, or does not exist."""
        ...

    def audit(self, cursor: str | None, limit: int) -> Reply[Audited]:
        """Look at up to `limit` records, from the beginning (None) or from where the step before ended; reads only."""
        ...

    def repair(self, faults: Sequence[Fault]) -> Reply[list[bool]]:
        """Repair faults that an audit found; for each whether it was still there and is repaired now.

        What runs for no worker is not among them: `reap` shows it, and `decide` says what follows.
        """
        ...
