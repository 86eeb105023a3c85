"""Compares the ledger with the drained store: what was promised against what came of it.

The ledger is believed. An enqueue that was never answered is unknown, not failed: its jobs may exist, and if they do
they must be carried through like any other.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.ledger import Event, of_kind

from perdure import Attempt, Job
from perdure.model.decide import MOST_BYSTANDING

ENDED = ("succeeded", "dead", "cancelled")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the comparison found; the fields of `problems()` must all be empty."""

    invoked: int
    accepted: int
    recovered: int
    """Jobs whose enqueue was never answered, and that exist all the same."""
    states: Mapping[str, int]
    starts: int
    duplicates: int
    """Runs beyond the first whose effect had happened already: allowed at least once, and worth knowing."""
    cut_short: int
    """Starts without an end: attempts that a kill interrupted."""
    overlaps: int
    """Runs that began while an earlier run of the same job went on: only after a process was stopped or starved."""
    lost: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    torn_batches: list[str] = field(default_factory=list)
    at_most_once_again: list[str] = field(default_factory=list)
    over_limit: list[str] = field(default_factory=list)
    same_attempt: list[str] = field(default_factory=list)
    after_end: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    unbalanced: list[str] = field(default_factory=list)
    bad_history: list[str] = field(default_factory=list)

    def problems(self) -> dict[str, list[str]]:
        """What must not be, each with up to ten examples."""
        found = {name: value for name, value in vars(self).items() if isinstance(value, list) and value}
        return {name: value[:10] for name, value in found.items()}

    def figures(self) -> str:
        """The run in one line."""
        ends = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items()))
        return (
            f"{self.accepted} accepted ({self.invoked} invoked, {self.recovered} recovered), {ends};"
            f" {self.starts} starts, {self.cut_short} cut short, {self.duplicates} duplicate runs,"
            f" {self.overlaps} overlaps; problems: {self.problems() or 'none'}"
        )


def check(
    events: Sequence[Event],
    jobs: Sequence[Job],
    histories: Mapping[str, Sequence[Attempt]] | None = None,
    *,
    is_clock_steady: bool = True,
) -> Verdict:
    """Compare; `jobs` is everything in the store after draining, `histories` a sample of them.

    If the wall clock was set meanwhile, moments of the store and of the ledger are not compared.
    """
    invoked = {event.key: event for event in of_kind(events, "enq_invoke")}
    accepted = {event.job: event for event in of_kind(events, "enq_ok")}
    stored: dict[str, Job] = {job.id: job for job in jobs}
    key_of: dict[str, str] = {job.id: _key(job) for job in jobs}
    asked = {job_id: invoked[key] for job_id, key in key_of.items() if key in invoked}
    starts = _by_job(of_kind(events, "start"))
    ends = _by_job(of_kind(events, "end"))
    effects = _by_job(of_kind(events, "effect"))
    recovered = [job_id for job_id in stored if job_id not in accepted and job_id in asked]
    return Verdict(
        invoked=len(invoked),
        accepted=len(accepted),
        recovered=len(recovered),
        states=Counter(job.state for job in jobs),
        starts=sum(map(len, starts.values())),
        duplicates=sum(len(each) - 1 for each in effects.values()),
        cut_short=sum(map(len, starts.values())) - sum(map(len, ends.values())),
        overlaps=sum(_overlaps(each, ends.get(job_id, [])) for job_id, each in starts.items()),
        lost=[job_id for job_id in accepted if job_id not in stored or stored[job_id].state not in ENDED],
        unexpected=sorted((stored.keys() | starts.keys()) - asked.keys() - accepted.keys()),
        doubled=[key for key, count in Counter(key_of.values()).items() if count > 1],
        torn_batches=_torn_batches(invoked.values(), set(key_of.values())),
        at_most_once_again=[
            job_id
            for job_id, each in starts.items()
            if job_id in asked and asked[job_id].delivery == "at_most_once" and len(each) > 1
        ],
        over_limit=[
            job_id
            for job_id, each in starts.items()
            if job_id in asked and len(each) > asked[job_id].limit + _uncounted(stored.get(job_id))
        ],
        same_attempt=_same_attempt(starts),
        after_end=_after_end(starts, stored) if is_clock_steady else [],
        unproven=[job.id for job in jobs if job.state == "succeeded" and not _has_run(job, ends.get(job.id, []))],
        unbalanced=_unbalanced(len(accepted) + len(recovered), jobs),
        bad_history=_bad_history(histories or {}, stored, starts),
    )


def _key(job: Job) -> str:
    """The producer's key: the first argument of every job of these tests."""
    return str(json.loads(job.args)["args"][0])


def _by_job(events: Iterable[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        found[event.job].append(event)
    return found


def _overlaps(starts: Sequence[Event], ends: Sequence[Event]) -> int:
    ended_at = {event.attempt: event.at for event in ends}
    return sum(ended_at.get(earlier.attempt, 0.0) > later.at for earlier, later in itertools.pairwise(starts))


def _uncounted(job: Job | None) -> int:
    """How many starts of a job may be beyond its limit: losses of its worker while it ran in a child process."""
    return 0 if job is None else min(max(0, job.recoveries - 1), MOST_BYSTANDING)


def _torn_batches(invoked: Iterable[Event], stored_keys: set[str]) -> list[str]:
    """Batches of which some jobs exist and some do not."""
    batches: dict[str, list[bool]] = defaultdict(list)
    for event in invoked:
        if event.batch:
            batches[event.batch].append(event.key in stored_keys)
    return [batch for batch, exist in batches.items() if any(exist) and not all(exist)]


def _same_attempt(starts: Mapping[str, Sequence[Event]]) -> list[str]:
    counts = Counter((job_id, event.attempt) for job_id, each in starts.items() for event in each)
    return [f"{job_id} attempt {attempt}" for (job_id, attempt), count in counts.items() if count > 1]


def _after_end(starts: Mapping[str, Sequence[Event]], stored: Mapping[str, Job]) -> list[str]:
    return [
        f"{job_id} attempt {event.attempt}"
        for job_id, each in starts.items()
        for event in each
        if (job := stored.get(job_id)) and job.ended_at is not None and event.wall > job.ended_at.timestamp()
    ]


def _has_run(job: Job, ends: Sequence[Event]) -> bool:
    return any(event.attempt == job.attempt and event.note == "returns" for event in ends)


def _unbalanced(expected: int, jobs: Sequence[Job]) -> list[str]:
    """The books: accepted = succeeded + dead + cancelled, nothing else anywhere."""
    ended = sum(job.state in ENDED for job in jobs)
    if ended == expected and ended == len(jobs):
        return []
    return [f"{expected} were accepted, {ended} ended, {len(jobs)} are in the store"]


def _bad_history(
    histories: Mapping[str, Sequence[Attempt]], stored: Mapping[str, Job], starts: Mapping[str, Sequence[Event]]
) -> list[str]:
    """Jobs whose history is not exactly one finished record per attempt, with every run on the ledger among them."""
    wrong = []
    for job_id, history in histories.items():
        numbers = [record.attempt for record in history]
        ran = {event.attempt for event in starts.get(job_id, [])}
        is_whole = numbers == list(range(1, stored[job_id].attempt + 1)) and ran <= set(numbers)
        if not is_whole or any(record.outcome == "running" for record in history):
            wrong.append(f"{job_id}: {[(record.attempt, record.outcome) for record in history]}, ran {sorted(ran)}")
    return wrong
