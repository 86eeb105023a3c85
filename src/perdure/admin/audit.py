"""Goes through a store in small steps, tells what is wrong with it, and has it repaired."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from perdure.admin.idempotency import damaged_notes
from perdure.admin.reply_generator import Steps, ask, stepped
from perdure.store import Store
from perdure.store.audit import Fault

STEP = 1000
"""How many records one step looks at; each step is soon over, so that workers are not kept waiting."""
QUICK = 200
"""How many steps a quick audit takes at most."""


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit found."""

    faults: tuple[Fault, ...]
    is_whole: bool
    """Whether everything was looked at."""


@stepped
def audit(store: Store, *, is_quick: bool = False) -> Steps[AuditReport]:
    """Look for records that cannot be read, jobs in no queue or for no worker, and wrong counters; reads only."""
    faults = list((yield from damaged_notes(store)))
    cursor: str | None = None
    steps = 0
    while not steps or cursor is not None:
        if is_quick and steps == QUICK:
            return AuditReport(faults=tuple(faults), is_whole=False)
        audited = yield from ask(store.audit(cursor, STEP))
        faults += audited.faults
        cursor = audited.cursor
        steps += 1
    return AuditReport(faults=tuple(dict.fromkeys(faults)), is_whole=True)


@stepped
def repair(store: Store, faults: Sequence[Fault]) -> Steps[list[Fault]]:
    """Repair what can be repaired; those that were still there and are repaired now."""
    done: list[Fault] = []
    chosen = [fault for fault in faults if fault.repair is not None]
    for first in range(0, len(chosen), STEP):
        some = chosen[first : first + STEP]
        answers = yield from ask(store.repair(some))
        done += [fault for fault, is_done in zip(some, answers, strict=True) if is_done]
    return done
