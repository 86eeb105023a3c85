"""The storm: a stream of jobs is worked off while faults of every kind strike workers and the engine.

Each kind of fault strikes at least once; more are drawn until there were enough. Beside them, probes of a high priority
are enqueued in quiet moments, which tell whether the order of starts holds. The seed decides which faults strike, in
which order, and how long they last.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.checker import Verdict, check
from tests.chaos.crew import Crew, until
from tests.chaos.faults import LEASE, PROCESS_FAULTS, Fault, Stage
from tests.chaos.ledger import Event, of_kind
from tests.chaos.shared_clock import VARIABLE, SharedClock

from perdure.errors import EngineError, PerdureError

_SAMPLE = 300
_PROBE_PRIORITY = 100
_MOST_AT_ONCE = 2


@dataclass(frozen=True, kw_only=True)
class Storm:
    """How much work, and how rough."""

    jobs: int
    faults: int
    """How many faults strike, or as many as there are kinds if that is more."""
    pause: float
    """The mean number of seconds between two faults."""
    seconds: float
    """The mean length of a run."""
    process_faults: tuple[Fault, ...] = PROCESS_FAULTS
    rate: float
    """Jobs that are enqueued per second."""
    workers: int = 4
    slots: int = 8
    prefetch: int = 40
    """How many jobs a worker may hold in advance."""
    patience: float = 300.0
    """How many seconds the rest of the jobs may take after the last fault without the end of any."""

    @property
    def most_ahead(self) -> int:
        """How many jobs of a lower priority may start before a job that is ready: what all workers hold already."""
        return self.workers * (self.slots + self.prefetch)


@dataclass(frozen=True, kw_only=True)
class Report:
    """What came of a storm."""

    verdict: Verdict
    jobs: int
    faults: Mapping[str, int]
    exits: Mapping[int, int]
    """How many workers ended by themselves, by exit code."""
    ahead: Sequence[int]
    """For each probe, how many jobs of a lower priority started before it."""
    wall: float

    def figures(self) -> str:
        faults = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        return (
            f"{sum(self.faults.values())} faults in {self.wall:.0f} s ({faults}); workers that ended by themselves, by"
            f" exit code: {dict(self.exits)}; {len(self.ahead)} probes, at most {max(self.ahead, default=0)} jobs of a"
            f" lower priority ahead; {self.verdict.figures()}"
        )


@dataclass(kw_only=True)
class _Faults:
    """Strikes, and ends what has lasted long enough."""

    stage: Stage
    kinds: Sequence[Fault]
    struck: Counter[str] = field(default_factory=Counter)
    _ongoing: list[tuple[float, Fault, Iterator[float]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = self.stage.rng
        self._next = rng.sample(self.kinds, len(self.kinds))

    @property
    def is_quiet(self) -> bool:
        return not self._ongoing

    @property
    def is_store_there(self) -> bool:
        return not any(fault.uses_store for _, fault, _ in self._ongoing)

    def strike(self) -> None:
        """Let the next fault strike, unless it has to wait for others to end."""
        if len(self._ongoing) >= _MOST_AT_ONCE:
            return
        if not self._next:
            self._next.append(self.stage.rng.choice(self.kinds))
        if (self._next[-1].uses_store and not self.is_store_there) or (self._next[-1].needs_quiet and self._ongoing):
            return
        fault = self._next.pop()
        running = fault.strike(self.stage)
        seconds = next(running, None)
        if seconds is None:
            self._next.insert(0, fault)  # Nothing was there to be struck.
            return
        self.struck[fault.name] += 1
        self.stage.crew.ledger.write("fault", note=fault.name)
        self._ongoing.append((time.monotonic() + seconds, fault, running))

    def end_those_over(self) -> None:
        """End the faults that have lasted long enough."""
        for entry in [each for each in self._ongoing if each[0] <= time.monotonic()]:
            self._end(entry)

    def end_all(self) -> None:
        for entry in list(self._ongoing):
            self._end(entry)

    def _end(self, entry: tuple[float, Fault, Iterator[float]]) -> None:
        self._ongoing.remove(entry)
        next(entry[2], None)
        self.stage.crew.ledger.write("fault_end", note=entry[1].name)


def run(storm: Storm, crew: Crew, engine_faults: Sequence[Fault], *, seed: int) -> Report:
    """Produce, work and strike until all jobs have ended; then compare the store with the ledger."""
    began = time.monotonic()
    clock = SharedClock(crew.directory / "clock")
    crew.environment[VARIABLE] = str(clock.path)
    settings: dict[str, object] = {
        "lease": f"{LEASE}s",
        "concurrency": storm.slots,
        "max_prefetch": storm.prefetch,
        "grace": "5s",
    }
    stage = Stage(crew=crew, clock=clock, rng=random.Random(seed), settings=settings)
    faults = _Faults(stage=stage, kinds=[*storm.process_faults, *engine_faults])
    jobs, probes = _strike_while_working(storm, stage, faults, seed)
    _work_off_the_rest(storm, stage, clock)
    wall = time.monotonic() - began
    events, stored = crew.events(), crew.jobs()
    sample = stage.rng.sample(stored, min(_SAMPLE, len(stored)))
    return Report(
        verdict=check(events, stored, {job.id: crew.client.history(job.id) for job in sample}, is_clock_steady=False),
        jobs=jobs,
        faults=faults.struck,
        exits=Counter(stage.exits),
        ahead=list(_ahead(events, probes)),
        wall=wall,
    )


def _strike_while_working(storm: Storm, stage: Stage, faults: _Faults, seed: int) -> tuple[int, list[str]]:
    """Gives how many jobs were asked for by producers, and the ids of the probes."""
    crew, rng = stage.crew, stage.rng

    def produce(key: str, count: int, seed: int) -> subprocess.Popen[bytes]:
        return crew.produce(key, count, "storm", seed=seed, seconds=storm.seconds, rate=storm.rate)

    producer = produce("job", storm.jobs, seed)
    for _ in range(storm.workers):
        stage.hire()
    jobs, probes = storm.jobs, list[str]()
    wanted = max(storm.faults, len(faults.kinds))
    next_strike = time.monotonic() + storm.pause
    while faults.struck.total() < wanted:
        faults.end_those_over()
        stage.replace_ended()
        if producer.poll() is not None and faults.is_store_there and _is_drained(crew):
            # The faults shall strike while there is work.
            assert producer.returncode == 0, "the producer failed"
            more = max(200, storm.jobs // 20)
            producer = produce(f"more-{jobs}", more, seed + jobs)
            jobs += more
        if time.monotonic() >= next_strike:
            if faults.is_quiet:
                probes += _probe(crew)
            faults.strike()
            next_strike = time.monotonic() + rng.uniform(0.2, 1.8) * storm.pause
        time.sleep(0.02)
    while not faults.is_quiet:
        faults.end_those_over()
        time.sleep(0.02)
    assert producer.wait(storm.patience) == 0, "the producer failed"
    return jobs, probes


def _work_off_the_rest(storm: Storm, stage: Stage, clock: SharedClock) -> None:
    """Without faults every job ends, and every worker stops when it is asked to."""
    crew = stage.crew
    # Retries that were put off before the clock was set back are due at a later time of that clock.
    clock.set(max(clock.offset, 4 * 3600.0))
    progress = _Progress(storm.patience)
    while not _is_drained(crew):
        stage.replace_ended()
        progress.check(crew)
        time.sleep(0.1)
    stage.replace_ended()
    until(lambda: {worker.pid for worker in stage.workers} <= set(crew.registered()), "all workers are at work")
    assert crew.stop(*stage.workers) == [0] * storm.workers, "a worker did not stop gently"


def _probe(crew: Crew) -> list[str]:
    try:
        return [crew.enqueue("on_loop", priority=_PROBE_PRIORITY)]
    except EngineError:
        return []  # It may exist or not, as the ledger has it.


def _ahead(events: Sequence[Event], probes: Sequence[str]) -> Iterator[int]:
    """For each probe that started undisturbed: how many first runs of other jobs started since it was accepted."""
    accepted = {event.job: event.at for event in of_kind(events, "enq_ok")}
    started = {event.job: event for event in reversed(of_kind(events, "start"))}
    faults = [event.at for event in of_kind(events, "fault")]
    others = [event.at for event in of_kind(events, "start") if event.attempt == 1 and event.job not in set(probes)]
    for probe in probes:
        start = started.get(probe)
        if start is None or start.attempt > 1 or any(accepted[probe] <= at <= start.at for at in faults):
            continue
        yield sum(accepted[probe] < at < start.at for at in others)


class _Progress:
    """Fails a storm after which no job ends any more, however long the rest takes as a whole."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._ended = -1
        self._at = time.monotonic()

    def check(self, crew: Crew) -> None:
        stats = crew.client.stats()
        ended = stats.succeeded + stats.dead + stats.cancelled
        if ended > self._ended:
            self._ended, self._at = ended, time.monotonic()
        elif time.monotonic() - self._at > self._patience:
            raise AssertionError(f"no job ended for {self._patience:g} s: {stats}")


def _is_drained(crew: Crew) -> bool:
    try:
        return crew.is_drained()
    except PerdureError:
        return False  # The server is on its way back.
