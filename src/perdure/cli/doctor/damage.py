"""What `perdure doctor` finds about the records themselves, and `--repair`, which mends what can be mended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from perdure.admin.audit import QUICK, STEP, audit, repair
from perdure.cli.doctor.finding import Finding
from perdure.runtime.periodic.reaper import Reaper
from perdure.store.audit import Fault, RecordKind
from perdure.system.clock import SystemClock

if TYPE_CHECKING:
    from perdure.app import App

_MOST_SHOWN = 50
"""How many faults the table shows; --json has all of them."""
_UPGRADE = "upgrade this machine if a later version wrote it"
_REMEDIES: dict[RecordKind, str] = {
    "job": f"{_UPGRADE}; else mend its record, then run 'perdure doctor --repair'",
    "attempt": f"{_UPGRADE}; else nothing: only this line of the job's history is missing",
    "forward": f"{_UPGRADE}; else run 'perdure dlq forward' for its job",
    "schedule": f"{_UPGRADE}; else run 'perdure schedules rm' and add it anew",
    "setting": f"{_UPGRADE}; else set it anew with 'perdure queues set'",
    "pause": "run 'perdure queues resume' or 'perdure queues pause' for this queue",
    "note": "nothing: it goes when its time is over; until then use another idempotency key",
    "worker": "nothing: it goes when its lease has run out; restart that worker if it is to be seen",
    "policy": f"{_UPGRADE}; else nothing: the policy of its task, queue or app holds",
    "counter": "run 'perdure doctor --repair'",
    "queue": "run 'perdure doctor --repair'",
    "key": "find out who wrote it, and rename or delete the key; then run 'perdure doctor --repair'",
}


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, and what was done about it."""

    faults: tuple[Fault, ...]
    """What is wrong now."""
    repaired: tuple[Fault, ...] = ()
    is_whole: bool = True

    @property
    def document(self) -> dict[str, Any]:
        return {
            "faults": [_document(fault) for fault in self.faults],
            "repaired": [_document(fault) for fault in self.repaired],
            "is_whole": self.is_whole,
        }


def look(app: App, own: App | None, *, repairs: bool, is_dry_run: bool) -> Damage:
    """Audit the store, and repair it if told to; a dry run only tells what it would do."""
    found = audit(app.store, is_quick=not repairs).wait()
    if not repairs or is_dry_run:
        return Damage(faults=found.faults, is_whole=found.is_whole)
    repaired = repair(app.store, [fault for fault in found.faults if fault.kind != "counter"]).wait()
    lost = [fault for fault in found.faults if fault.detail == "reap"]
    asyncio.run(_reap(app, own or app))
    # Counters are compared once more: those that were wrong only because of what is repaired now must not be changed.
    again = audit(app.store).wait()
    repaired += repair(app.store, [fault for fault in again.faults if fault.kind == "counter"]).wait()
    left = audit(app.store).wait()
    repaired += [fault for fault in lost if fault not in left.faults]
    return Damage(faults=left.faults, repaired=tuple(repaired), is_whole=left.is_whole)


def damage_findings(damage: Damage, *, is_dry_run: bool) -> Iterator[Finding]:
    """One finding for each fault: what is wrong, and what to do about it."""
    for fault in damage.repaired[:_MOST_SHOWN]:
        yield Finding("records", "ok", f"repaired {fault.kind} {fault.name}: {fault.problem}")
    yield from _more(damage.repaired, "ok", "repaired")
    for fault in damage.faults[:_MOST_SHOWN]:
        yield Finding("records", "problem", f"{fault.kind} {fault.name}: {fault.problem}; {_remedy(fault, is_dry_run)}")
    yield from _more(damage.faults, "problem", "to be mended")
    if not damage.is_whole:
        text = f"only about {QUICK * STEP:,} records were looked at; 'perdure doctor --repair' looks at all"
        yield Finding("records", "note", text)
    elif not damage.faults:
        yield Finding("records", "ok", "every record can be read, and every job is where its record says")


def _more(faults: Sequence[Fault], level: Any, what: str) -> Iterator[Finding]:
    if len(faults) > _MOST_SHOWN:
        yield Finding("records", level, f"{len(faults) - _MOST_SHOWN:,} more {what}; --json lists all of them")


def _remedy(fault: Fault, is_dry_run: bool) -> str:
    if fault.repair is None:
        return _REMEDIES[fault.kind]
    if is_dry_run:
        return f"'perdure doctor --repair --yes' would {fault.repair}"
    return "run 'perdure doctor --repair'"


def _document(fault: Fault) -> dict[str, Any]:
    remedy = _REMEDIES[fault.kind] if fault.repair is None else None
    return {
        "kind": fault.kind,
        "name": fault.name,
        "problem": fault.problem,
        "repair": fault.repair,
        "remedy": remedy,
    }


async def _reap(app: App, knowing: App) -> None:
    """Decide about the jobs of workers that are gone, as any worker would."""
    reaper = Reaper(
        store=app.store,
        registry=knowing.registry,
        clock=SystemClock(),
        random=Random(),
        observer=app.observer,
        every=1.0,
    )
    while await reaper.step() == 0.0:
        pass
