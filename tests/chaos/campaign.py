"""The crash campaign: workers are killed and replaced, at a steady pace, while they work off a stream of jobs.

The engine's server may be crashed once in the middle. Around that moment no worker is killed, so that the pace before
and after it is the pace of the same processes.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.chaos.checker import Verdict, check
from tests.chaos.crew import Crew, until
from tests.chaos.ledger import Event, of_kind

from perdure import Attempt
from perdure.errors import EngineError

_SAMPLE = 300
_MORE = 300


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """How much work, and how rough."""

    jobs: int
    workers: int = 4
    slots: int
    seconds: float
    """The mean length of a run."""
    kill_every: float
    fewest_kills: int = 10
    is_patient: bool
    """Whether a kill waits until most are at work: on a slow machine there would be nobody left to do any."""
    lease: str
    patience: float = 300.0
    """How many seconds may pass without the end of any job before the campaign is taken for stuck."""
    most_kills: int | None = None
    """After so many kills the rest is worked off in peace: a slow machine would never come to its end."""
    calm: float = 10.0
    """How many seconds before and after the server's crash no worker is killed."""
    settling: float = 3.0
    """How many seconds after a change the pace is not counted: leases run out and newcomers start."""
    seed: int = 1


@dataclass(frozen=True, kw_only=True)
class Crash:
    """The server's crash: when, how long until it was back and the next attempt ended, and the pace around it."""

    down: float
    until_next_end: float
    before: float
    """Attempts that ended per second of the calm before it."""
    after: float
    """The same of the calm after it, once leases that ran out meanwhile are settled."""

    def figures(self) -> str:
        return (
            f"server down for {self.down:.2f} s, next attempt ended {self.until_next_end:.2f} s after the crash, "
            f"{self.before:.1f} attempts/s before, {self.after:.1f} after ({self.after / self.before:.2f})"
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """What came of a campaign."""

    verdict: Verdict
    jobs: int
    kills: int
    wall: float
    crash: Crash | None = None


class _Storm:
    """The server's crash in the middle: when it is time, and when workers may be killed."""

    def __init__(self, campaign: Campaign, crash: Callable[[], None]) -> None:
        self._campaign = campaign
        self._crash = crash
        self._calm_since: float | None = None
        self._is_settled = False
        self.crashed_at: float | None = None
        self.back_at = 0.0

    def is_calm(self, ended: int, are_all_at_work: Callable[[], bool]) -> bool:
        """Whether workers are left alone now; crashes the server when its time has come."""
        now = time.monotonic()
        if self.crashed_at is not None:
            return now < self.back_at + self._campaign.settling + self._campaign.calm
        if self._calm_since is None and ended >= 0.4 * self._campaign.jobs:
            self._calm_since = now
        if self._calm_since is not None and not self._is_settled:
            # The newest worker has to be at work before the calm counts; one that finds no server at its start ends.
            self._is_settled = are_all_at_work()
            self._calm_since = now
        if self._is_settled and now >= self._calm_since + self._campaign.settling + self._campaign.calm:
            self.crashed_at = time.monotonic()
            self._crash()
            self.back_at = time.monotonic()
        return self._calm_since is not None

    def report(self, events: Sequence[Event]) -> Crash:
        assert self.crashed_at is not None, "the server was never crashed"
        ends = [event.at for event in of_kind(events, "end")]
        calm, settled = self._campaign.calm, self.back_at + self._campaign.settling
        return Crash(
            down=self.back_at - self.crashed_at,
            until_next_end=min(at for at in ends if at > self.back_at) - self.crashed_at,
            before=sum(self.crashed_at - calm <= at < self.crashed_at for at in ends) / calm,
            after=sum(settled <= at < settled + calm for at in ends) / calm,
        )


def run(campaign: Campaign, crew: Crew, crash: Callable[[], None] | None = None) -> Report:
    """Produce, work, kill and replace until every job has ended; then compare the ledger with the store."""
    began = time.monotonic()
    storm = _Storm(campaign, crash) if crash else None
    rng = random.Random(campaign.seed)
    producer = crew.produce("job", campaign.jobs, "batches", seed=campaign.seed, seconds=campaign.seconds)
    workers = [_hire(campaign, crew) for _ in range(campaign.workers)]
    kills = 0
    progress = _Progress(campaign.patience)
    next_kill = began + campaign.kill_every
    jobs_made = campaign.jobs
    while producer.poll() is None or kills < campaign.fewest_kills or not _is_drained(crew):
        if storm and storm.is_calm(_ended(crew), lambda: len(_at_work(workers, crew)) == len(workers)):
            assert all(worker.poll() is None for worker in workers), "a worker ended by itself"
            next_kill = time.monotonic() + campaign.kill_every
            time.sleep(0.1)
            continue
        if producer.poll() == 0 and kills < campaign.fewest_kills and _is_drained(crew):
            # Too little work for so slow a machine: more of it, until enough kills have met it.
            producer = crew.produce(f"more-{jobs_made}", _MORE, "batches", seed=jobs_made, seconds=campaign.seconds)
            jobs_made += _MORE
        progress.check(crew)
        assert all(worker.poll() is None for worker in workers), "a worker ended by itself"
        places = _at_work(workers, crew) if campaign.is_patient else list(range(len(workers)))
        is_enough = campaign.most_kills is not None and kills >= campaign.most_kills
        if is_enough or time.monotonic() < next_kill or len(places) <= len(workers) // 2:
            time.sleep(0.1)
            continue
        place = rng.choice(places)
        crew.kill(workers[place])
        workers[place] = _hire(campaign, crew)
        kills += 1
        next_kill = time.monotonic() + campaign.kill_every
    assert producer.returncode == 0
    wall = time.monotonic() - began
    until(lambda: len(_at_work(workers, crew)) == len(workers), "the last newcomer is at work")
    assert crew.stop(*workers) == [0] * len(workers), "a worker did not stop gently"
    jobs = crew.jobs()
    sample = rng.sample(jobs, min(_SAMPLE, len(jobs)))
    histories: dict[str, list[Attempt]] = {job.id: crew.client.history(job.id) for job in sample}
    events = crew.events()
    return Report(
        verdict=check(events, jobs, histories),
        jobs=jobs_made,
        kills=kills,
        wall=wall,
        crash=storm.report(events) if storm else None,
    )


class _Progress:
    """Fails a campaign in which no job ends any more, however long it takes as a whole."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._ended = -1
        self._at = time.monotonic()

    def check(self, crew: Crew) -> None:
        ended = _ended(crew)
        if ended > self._ended:
            self._ended, self._at = ended, time.monotonic()
        elif time.monotonic() - self._at > self._patience:
            raise AssertionError(f"no job ended for {self._patience:g} s: {crew.client.stats()}")


def _is_drained(crew: Crew) -> bool:
    try:
        return crew.is_drained()
    except EngineError:
        return False  # the server is on its way back


def _ended(crew: Crew) -> int:
    """How many jobs have ended."""
    try:
        stats = crew.client.stats()
    except EngineError:
        return 0
    return stats.succeeded + stats.dead + stats.cancelled


def _at_work(workers: list[subprocess.Popen[bytes]], crew: Crew) -> list[int]:
    """The places of those that have registered."""
    registered = crew.registered()
    return [place for place, worker in enumerate(workers) if worker.pid in registered]


def _hire(campaign: Campaign, crew: Crew) -> subprocess.Popen[bytes]:
    return crew.worker(lease=campaign.lease, concurrency=campaign.slots)
