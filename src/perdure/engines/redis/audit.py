"""Looks for damage and repairs it: keys of another type, records that cannot be read, jobs in no line, wrong counters.

Counters are compared with the jobs themselves. Where all jobs are looked at in one script, that is exact. In a larger
store jobs move between two steps: then a counter is called wrong only if it did not change while the jobs were counted,
and two counts in a row found it wrong by the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from perdure.engines.job_faults import policy_fault
from perdure.engines.redis import forwards, notes, queues, reads, schedules, workers
from perdure.engines.redis.keys import KEYS
from perdure.engines.redis.record import to_job
from perdure.engines.redis.rows import to_attempt
from perdure.engines.redis.verb import Argument, Call, Verb
from perdure.engines.set_aside import collecting, each_readable, readable, to_name, why_unreadable
from perdure.model.job import JobId
from perdure.store.audit import Audited, Fault
from perdure.store.reply import Reply

MOST = 1000
"""The most jobs that one script looks at or repairs."""
_ALL = 1_000_000_000
"""More schedules or notes than there can be."""
_IN_LINE = "put it back into the line that its record names"
_FAULTS: dict[bytes, tuple[str, str]] = {
    b"no line": ("it is in no queue: its record says where it should be, and it is not there", _IN_LINE),
    b"not parked": ("it is parked, and workers that know its task cannot find it", _IN_LINE),
    b"no worker": ("it is running, and no worker has it", "put it back into its queue"),
    b"not held": (
        "it is running, and is not among the jobs of its worker",
        "give it to its worker again, or to `reap`",
    ),
    b"not known": ("it is running for a worker that nobody knows", "let `reap` decide about it"),
    b"set aside": ("it was set aside because it could not be read, and can be read now", "put it back into its queue"),
    b"no record": ("it is listed, and has no record", "take it off the list"),
}


class _Place(msgspec.Struct, array_like=True):
    """Where an audit stands; the cursor between its steps."""

    section: str = "keys"
    after: str = ""
    counted: dict[str, int] = {}
    """What the jobs so far make up of each counter."""
    before: dict[str, str] = {}
    """The counters when the count began."""
    pages: int = 0
    wrong_by: dict[str, int] | None = None
    """What the first count found; None during it."""


_decode = msgspec.json.Decoder(_Place).decode


class AuditVerbs:
    """The verbs of audits, for the store."""

    _ask: Callable[[Callable[[], Verb[Any]]], Reply[Any]]

    def examine(self, kind: Literal["job", "schedule"], name: str) -> Reply[str | None]:
        return self._ask(lambda: examine(kind, name))

    def audit(self, cursor: str | None, limit: int) -> Reply[Audited]:
        return self._ask(lambda: audit(cursor, limit))

    def repair(self, faults: Sequence[Fault]) -> Reply[list[bool]]:
        return self._ask(lambda: repair(faults))


def examine(kind: Literal["job", "schedule"], name: str) -> Verb[str | None]:
    with collecting() as found:
        if kind == "job":
            yield from reads.get([JobId(name)])
        else:
            yield from schedules.get_schedules([name])
    return why_unreadable(found)


def audit(cursor: str | None, limit: int) -> Verb[Audited]:
    place = _Place() if cursor is None else _decode(cursor)
    match place.section:
        case "keys":
            found = yield from _keys()
            # With a key of another type nothing else can be looked at.
            return _audited(found, None if found else _Place(section="small"))
        case "small":
            return _audited((yield from _small()), _Place(section="jobs"))
        case "jobs":
            return (yield from _jobs(place, max(1, min(limit, MOST))))
        case _:
            return (yield from _records(place, max(1, min(limit, MOST))))


def repair(faults: Sequence[Fault]) -> Verb[list[bool]]:
    ids = [fault.name.encode() for fault in faults if fault.detail == "job"]
    done: set[str] = set()
    for first in range(0, len(ids), MOST):
        repaired = yield Call("repair", ids[first : first + MOST], is_write=True)
        done.update(job_id.decode() for job_id in repaired)
    counters = [fault for fault in faults if fault.kind == "counter" and fault.repair]
    arguments: list[Argument] = []
    for fault in counters:
        arguments += msgspec.json.decode(fault.detail, type=tuple[str, str, str, str])
    answers = (yield Call("repair_counters", arguments, is_write=True)) if counters else []
    corrected = {fault.name for fault, answer in zip(counters, answers, strict=True) if answer}
    return [fault.name in (done if fault.detail == "job" else corrected) for fault in faults]


def _keys() -> Verb[list[Fault]]:
    wanted = {key.name: key.type for key in KEYS if "<" not in key.name}
    kinds = yield Call("audit_keys", [name.encode() for name in wanted])
    return [
        Fault(kind="key", name=name, problem=f"it holds a {kind.decode()}, not a {wanted[name]}")
        for name, kind in zip(wanted, kinds, strict=True)
        if kind.decode() not in ("none", wanted[name])
    ]


def _small() -> Verb[list[Fault]]:
    """What is wrong with everything that there are few of."""
    with collecting() as found:
        yield from workers.workers()
        yield from schedules.schedules(_ALL, None, False)
        yield from queues.queues()
        yield from forwards.forward_counts()
        for kind in ("enqueue", "replay"):
            yield from notes.notes(kind, _ALL)
    # Counters are compared with the jobs later, those that hold no number included.
    return [fault for fault in found if fault.kind != "counter"]


def _jobs(place: _Place, limit: int) -> Verb[Audited]:
    page, numbers, flat = yield Call("audit_jobs", (place.after.encode(), limit))
    with collecting() as found:
        for job_id, record, args, error, result, attempts, fault in page:
            job = (
                None
                if record is None
                else readable("job", job_id, partial(to_job, job_id, record, args, error, result))
            )
            read = partial(to_attempt, JobId(to_name(job_id)))
            each_readable("attempt", attempts, partial(_attempt_name, job_id), read)
            if job is not None and (policy := policy_fault(job)) is not None:
                found.append(policy)
            if fault == b"no record" or (job is not None and fault in _FAULTS):
                problem, what = _FAULTS[fault]
                found.append(Fault(kind="job", name=to_name(job_id), problem=problem, repair=what, detail="job"))
    counters = {
        to_name(name): value.decode(errors="replace") for name, value in zip(flat[::2], flat[1::2], strict=True)
    }
    counted = dict(place.counted)
    for name, number in zip(numbers[::2], numbers[1::2], strict=True):
        counted[to_name(name)] = counted.get(to_name(name), 0) + int(number)
    before = place.before if place.pages else counters
    after = _Place(
        section="jobs", after="", counted=counted, before=before, pages=place.pages + 1, wrong_by=place.wrong_by
    )
    if len(page) == limit:
        after.after = page[-1][0].decode()
        return _audited(found if place.wrong_by is None else (), after)
    if place.wrong_by is not None:
        found.clear()  # the first count has told of the jobs
    return _counted(after, counters, found)


def _counted(place: _Place, counters: dict[str, str], found: list[Fault]) -> Audited:
    """All jobs are counted: what follows for the counters."""
    wrong_by: dict[str, int] = {}
    for name in sorted({*counters, *place.counted}):
        right, said = place.counted.get(name, 0), counters.get(name, "")
        is_number = said.lstrip("-").isdigit()
        if said == place.before.get(name, "") and (not is_number or int(said) != right) and (said or right):
            wrong_by[name] = right - (int(said) if is_number else 0)
    is_exact = place.pages == 1
    if wrong_by and not is_exact and place.wrong_by is None:
        return _audited(found, _Place(section="jobs", wrong_by=wrong_by))
    for name, number in wrong_by.items():
        if is_exact or (place.wrong_by or {}).get(name) == number:
            found.append(_counter_fault(name, counters.get(name, ""), place.counted.get(name, 0)))
    return _audited(found, _Place(section="records", after="0"))


def _counter_fault(name: str, said: str, right: int) -> Fault:
    key, _, field = name.partition(" ")
    return Fault(
        kind="counter",
        name=name,
        problem=f"it says {said or 'nothing'}, and there are {right}",
        repair=f"set it to {right}",
        detail=msgspec.json.encode((key, field, said, str(right))).decode(),
    )


def _records(place: _Place, limit: int) -> Verb[Audited]:
    cursor, ids = yield Call("audit_records", (place.after.encode(), limit))
    found = [
        Fault(
            kind="job",
            name=to_name(job_id),
            problem="it has a record, and is not in the list of all jobs",
            repair="put it on the list, and into the line that its record names",
            detail="job",
        )
        for job_id in ids
    ]
    return _audited(found, None if cursor == b"0" else _Place(section="records", after=cursor.decode()))


def _attempt_name(job_id: bytes, record: bytes) -> str:
    return f"of job {to_name(job_id)}"


def _audited(found: Sequence[Fault], place: _Place | None) -> Audited:
    return Audited(faults=tuple(found), cursor=None if place is None else msgspec.json.encode(place).decode())
