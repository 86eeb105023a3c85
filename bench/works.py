"""The works: what is done and measured, the same for everybody, each a small function from a peer to figures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.catalogue import PERDURE, RAW, Peer
from bench.ground import FailedError, Ground
from bench.processors import Processors
from bench.report import BUSY
from bench.servers import Server


@dataclass(frozen=True, kw_only=True)
class Course:
    """What a run was asked for, and where."""

    engine: str
    server: Server
    jobs: int
    """How many jobs a drain is made of; the other works take their share of it."""
    seconds: float
    """About how long a measurement may take; slow peers get fewer jobs."""

    def count(self, peer: Peer, share: float = 1.0, seconds: float = 1.0) -> int:
        return peer.jobs(self.engine, max(20, int(self.jobs * share)), self.seconds * seconds)

    def ground(self, peer: Peer, jobs: int, *, runs: int = 1) -> Ground:
        return Ground(peer, self.engine, self.server, jobs, limit=self.seconds, runs=runs)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a work came to: figures by name, how many jobs they rest on, and what else there is to say."""

    figures: dict[str, float]
    jobs: int
    notes: tuple[str, ...] = ()


Work = Callable[[Course, Peer], Found]


def enqueue_one(course: Course, peer: Peer) -> Found:
    """Jobs a second, one durable enqueue after the other."""
    with course.ground(peer, course.count(peer, 0.25)) as ground:
        done = ground.enqueue("enqueue_one", "noop_async")
        return Found(figures={"enqueue one by one": done.rate}, jobs=done.jobs)


def enqueue_bulk(course: Course, peer: Peer) -> Found:
    """Jobs a second, in calls of 1,000."""
    # The pace is that of a drain, and bulk is several times as fast everywhere.
    with course.ground(peer, course.count(peer, 2.5, 5)) as ground:
        done = ground.enqueue("enqueue_bulk", "noop_async")
        return Found(figures={"enqueue in bulk": done.rate}, jobs=done.jobs)


def drain(name: str, task: str, workers: int) -> Work:
    """Jobs a second, run by worker processes that find them all there; and how many processors that kept busy."""

    def measured(course: Course, peer: Peer) -> Found:
        # With fewer jobs the start of two processes would be most of what is seen.
        with course.ground(peer, course.count(peer)) as ground:
            jobs = ground.fill(task)
            ground.start_workers(workers)
            ground.wait(1)
            processors = Processors()
            done = ground.wait(jobs)
            busy = processors.busy()
            notes = _checked(ground, done, jobs)
            figures = {name: _rate(ground, workers)} | ({} if busy is None else {f"{BUSY}{name}": busy})
            return Found(figures=figures, jobs=done, notes=notes)

    return measured


def latency(course: Course, peer: Peer) -> Found:
    """Milliseconds from the call of enqueue to the start on an idle worker."""
    count = min(200, max(20, course.jobs // 10))
    with course.ground(peer, count + 1) as ground:
        _warm(ground)
        ground.ask("trickle", "--task", "noop_async", "--jobs", count, "--first", 1, "--limit", ground.limit)
        time.sleep(0.2)
        ground.wait(count + 1, limit=2.0)
        tally = ground.tally
        waits = sorted(
            (tally.last[n] - tally.sent[n]) * 1e3 for n in range(1, count + 1) if tally.sent[n] and tally.last[n]
        )
        if not waits:
            raise FailedError("no job was run")
        last = waits[min(len(waits) - 1, int(len(waits) * 0.99))]
        return Found(figures={"latency p50": statistics.median(waits), "latency p99": last}, jobs=len(waits))


def fail_twice(course: Course, peer: Peer) -> Found:
    """Jobs a second that fail twice, with a retry at once, and succeed at the third attempt."""
    with course.ground(peer, course.count(peer, 0.25, 0.15), runs=3) as ground:
        jobs = ground.fill("fail_twice")
        ground.start_workers(1)
        done = ground.wait(jobs)
        tally = ground.tally
        began = min((moment for moment in tally.first if moment), default=0.0)
        last = max(tally.last)
        if done < jobs:
            # Some try everything once before they try anything again, so three attempts count as a job.
            last, done = time.monotonic(), sum(min(runs, 3) for runs in tally.runs) // 3
        return Found(figures={"fail twice": done / (last - began)}, jobs=done, notes=_checked(ground, done, jobs))


def due(course: Course, peer: Peer) -> Found:
    """Seconds until all of many jobs that come due at the same moment have started, the worker idle before."""
    # Without a call for many, the enqueue takes about as long as a drain, and on a busy machine twice as long.
    wanted = course.count(peer, 1, 0.25)
    wait = 2 + 2 * wanted / peer.pace.get(course.engine, 16_000)
    with course.ground(peer, wanted + 1) as ground:
        _warm(ground)
        found = ground.enqueue("enqueue_at", "noop_async", wanted, first=1, due=wait)
        moment = found.due
        if time.time() > moment or found.jobs < wanted:
            raise FailedError("could not be enqueued before the jobs came due")
        offset = time.time() - time.monotonic()
        done = ground.wait(wanted + 1, limit=moment - time.time() + course.seconds) - 1
        moments = [each for each in ground.tally.last[1:] if each]
        if not moments:
            raise FailedError("no job was run")
        seconds = max(moments) + offset - moment
        early = sum(each + offset < moment - 0.001 for each in moments)
        notes = (f"{early} jobs ran before they were due",) if early else ()
        missing = (f"{wanted - done} of {wanted} did not start in time",) if done < wanted else ()
        return Found(
            figures={"due": seconds * wanted / done, "due rate": done / seconds}, jobs=done, notes=notes + missing
        )


def memory(course: Course, peer: Peer) -> Found:
    """MiB of an idle worker, and how much it grew over many jobs."""
    most = course.count(peer, 10, 3)
    with course.ground(peer, most) as ground:
        _warm(ground)
        time.sleep(min(2.0, course.seconds / 10))
        idle = ground.memory()
        # What a first tenth leaves in caches and pools is not growth.
        tenth = ground.fill("noop_async", max(1, most // 10), first=1) + 1
        ground.wait(tenth)
        early = ground.memory()
        jobs = ground.fill("noop_async", most - tenth, first=tenth) + tenth
        done = ground.wait(jobs, limit=3 * course.seconds, poll=0.05)
        return Found(figures={"idle memory": idle, "memory growth": ground.memory() - early}, jobs=done)


def backlog(course: Course, peer: Peer) -> Found:
    """The rate of the first jobs with fifty times as many behind them, over the rate with a twentieth behind them."""
    rates = []
    head = course.count(peer)
    for behind in (head // 20, head * 50):
        with course.ground(peer, head + behind) as ground:
            limit, ground.limit = ground.limit, 6 * ground.limit
            ground.fill("noop_async")
            ground.limit = limit
            ground.start_workers(1)
            ground.wait(head)
            moments = sorted(each for each in ground.tally.last if each)[:head]
            rates.append(len(moments) / (moments[-1] - moments[0]))
    return Found(figures={"backlog": rates[1] / rates[0], "backlog rate": rates[1]}, jobs=head)


WORKS: dict[str, Work] = {
    "enqueue-one": enqueue_one,
    "enqueue-bulk": enqueue_bulk,
    "drain1": drain("drain 1 async", "noop_async", 1),
    "drain2": drain("drain 2 async", "noop_async", 2),
    "drain1-sync": drain("drain 1 sync", "noop_sync", 1),
    "drain2-sync": drain("drain 2 sync", "noop_sync", 2),
    "drain1-compute": drain("drain 1 computing", "compute", 1),
    "drain2-compute": drain("drain 2 computing", "compute", 2),
    "drain1-at-most-once": drain("drain 1 at most once", "noop_at_most_once", 1),
    "latency": latency,
    "fail-twice": fail_twice,
    "due": due,
    "memory": memory,
    "backlog": backlog,
}
RAW_WORKS = ("enqueue-one", "enqueue-bulk", "drain1", "drain2", "backlog")
"""What the raw engine can be asked for: it has no retries, no due times and no wake-ups."""
OWN_WORKS = ("drain1-compute", "drain2-compute", "drain1-at-most-once", "backlog")
"""What only Perdure is held against itself with, and the raw engine where it can be asked for it."""


def takes_part(work: str, peer: Peer) -> bool:
    """Whether the work is asked of that peer."""
    if peer is RAW:
        return work in RAW_WORKS
    if peer.plain and work.endswith("-sync"):
        return False
    return work not in OWN_WORKS or peer is PERDURE


def _warm(ground: Ground) -> None:
    """Start a worker and have it run job 0, so that it is known to be there."""
    ground.enqueue("enqueue_one", "noop_async", 1)
    ground.start_workers(1)
    ground.wait(1)


def _rate(ground: Ground, workers: int) -> float:
    """Jobs a second from the moment when all worker processes were running jobs to the last end."""
    tally = ground.tally
    ran = [(tally.last[n], tally.worker[n]) for n in range(tally.jobs) if tally.runs[n]]
    if len(ran) < 2:
        raise FailedError("fewer than two jobs were run")
    firsts = [min((moment for moment, own in ran if own == worker), default=0.0) for worker in range(workers)]
    last = max(moment for moment, _ in ran)
    began = max(firsts) if all(firsts) else min(moment for moment, _ in ran)
    counted = sum(moment > began for moment, _ in ran)
    return counted / max(last - began, 1e-9)


def _checked(ground: Ground, done: int, jobs: int) -> tuple[str, ...]:
    """What was not as it should be; Perdure's own books must agree."""
    notes = []
    again = sum(runs > ground.runs for runs in ground.tally.runs)
    if again:
        notes.append(f"{again} jobs ran more often than they should")
    if done < jobs:
        notes.append(f"{jobs - done} of {jobs} not run in time")
    elif ground.peer is PERDURE and (settled := ground.settled(jobs)) != jobs:
        raise FailedError(f"the store counts {settled} of {jobs} jobs as succeeded")
    return tuple(notes)
