"""The demo's books: the store's account of every job, checked against what was enqueued and against the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from perdure.cli.demo.ledger import Entry
from perdure.model.job import Job, JobId
from perdure.text.plural import plural


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence that must be true, and what speaks against it."""

    sentence: str
    faults: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.faults


class Books(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run."""

    enqueued: int
    succeeded: int
    dead: int
    cancelled: int
    lost: int
    """Enqueued jobs that have not ended, or that the store does not have."""
    dead_by_reason: Mapping[str, int]
    needed_retries: int
    """Jobs that were started more than once."""
    attempts: int
    starts: int
    """Lines in the ledger: attempts whose handler was entered."""
    repeated: int
    """Jobs whose handler finished more than once, because a worker died before it could say so."""
    workers_lost: int
    checks: tuple[Check, ...]

    @property
    def is_balanced(self) -> bool:
        return all(check.holds for check in self.checks)


def check_books(
    *,
    limits: Mapping[JobId, int],
    found: Sequence[Job],
    stored: int,
    ledger: Sequence[Entry],
    workers_lost: int,
) -> Books:
    """Draw up the books.

    `limits` are the jobs that the demo knows it enqueued, each with the most starts it may have; `found` is what the
    store says about them, `stored` how many jobs it has in all.
    """
    jobs = {job.id: job for job in found}
    ended = [job for job in found if job.is_final and job.id in limits]
    states = Counter(job.state for job in ended)
    starts = Counter(entry.job_id for entry in ledger if entry.kind == "start")
    finishes = Counter(entry.job_id for entry in ledger if entry.kind == "finish")
    return Books(
        enqueued=len(limits),
        succeeded=states["succeeded"],
        dead=states["dead"],
        cancelled=states["cancelled"],
        lost=len(limits) - len(ended),
        dead_by_reason=dict(Counter(job.reason or "unknown" for job in ended if job.state == "dead").most_common()),
        needed_retries=sum(job.attempt > 1 for job in ended),
        attempts=sum(job.attempt for job in ended),
        starts=starts.total(),
        repeated=sum(count > 1 for count in finishes.values()),
        workers_lost=workers_lost,
        checks=(
            _all_ended(limits, jobs, stored),
            _successes_happened(ended, ledger),
            _limits_held(limits, starts),
            _at_most_once_held(ended, starts),
            _attempts_known(jobs, ledger),
        ),
    )


def _all_ended(limits: Mapping[JobId, int], jobs: Mapping[JobId, Job], stored: int) -> Check:
    faults = (
        [f"the store has {plural(stored, 'job')}, and {len(limits)} were enqueued"] if stored != len(limits) else []
    )
    for job_id in limits:
        job = jobs.get(job_id)
        if job is None:
            faults.append(f"{job_id} is not in the store")
        elif not job.is_final:
            faults.append(f"{job_id} is still {job.state}")
    return Check(sentence="every job that was accepted has ended, and there are no others", faults=tuple(faults))


def _successes_happened(ended: Sequence[Job], ledger: Sequence[Entry]) -> Check:
    finished = {(entry.job_id, entry.attempt) for entry in ledger if entry.kind == "finish"}
    faults = [
        f"{job.id} succeeded at attempt {job.attempt}, but no handler finished that attempt"
        for job in ended
        if job.state == "succeeded" and job.fence not in finished
    ]
    return Check(sentence="every job that succeeded was really carried out", faults=tuple(faults))


def _limits_held(limits: Mapping[JobId, int], starts: Mapping[JobId, int]) -> Check:
    faults = [
        f"{job_id} was started {plural(count, 'time')}, and its limit is {limits.get(job_id, 0)}"
        for job_id, count in starts.items()
        if count > limits.get(job_id, 0)
    ]
    return Check(sentence="no job was started more often than its limit allows", faults=tuple(faults))


def _at_most_once_held(ended: Sequence[Job], starts: Mapping[JobId, int]) -> Check:
    once = [job for job in ended if job.delivery == "at_most_once"]
    faults = [f"{job.id} was started {plural(starts[job.id], 'time')}" for job in once if starts.get(job.id, 0) > 1]
    return Check(sentence=f"none of the {len(once)} at-most-once jobs was started twice", faults=tuple(faults))


def _attempts_known(jobs: Mapping[JobId, Job], ledger: Sequence[Entry]) -> Check:
    started = Counter((entry.job_id, entry.attempt) for entry in ledger if entry.kind == "start")
    faults = [
        f"attempt {attempt} of {job_id} was started {plural(count, 'time')}"
        for (job_id, attempt), count in started.items()
        if count > 1
    ]
    for job_id, attempt in started:
        job = jobs.get(job_id)
        if job is None or attempt > job.attempt:
            faults.append(f"attempt {attempt} of {job_id} was started, and the store knows nothing of it")
    return Check(sentence="every start is an attempt that the store knows, each started once", faults=tuple(faults))
