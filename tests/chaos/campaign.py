"""The crash campaign: workers are killed and replaced, at a steady pace, while they work off a stream of jobs."""

from __future__ import annotations

import random
import subprocess
import time
from dataclasses import dataclass

from tests.chaos.checker import Verdict, check
from tests.chaos.crew import Crew, until

from perdure import Attempt

_SAMPLE = 300
_FEWEST_KILLS = 10
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
    is_patient: bool
    """Whether a kill waits until most are at work: on a slow machine there would be nobody left to do any."""
    lease: str
    within: float
    seed: int = 1


@dataclass(frozen=True, kw_only=True)
class Report:
    """What came of a campaign."""

    verdict: Verdict
    jobs: int
    kills: int
    wall: float


def run(campaign: Campaign, crew: Crew) -> Report:
    """Produce, work, kill and replace until every job has ended; then compare the ledger with the store."""
    began = time.monotonic()
    rng = random.Random(campaign.seed)
    producer = crew.produce("job", campaign.jobs, "batches", seed=campaign.seed, seconds=campaign.seconds)
    workers = [_hire(campaign, crew) for _ in range(campaign.workers)]
    kills = 0
    next_kill = began + campaign.kill_every
    jobs_made = campaign.jobs
    while producer.poll() is None or kills < _FEWEST_KILLS or not crew.is_drained():
        if producer.poll() == 0 and kills < _FEWEST_KILLS and crew.is_drained():
            # Too little work for so slow a machine: more of it, until enough kills have met it.
            producer = crew.produce(f"more-{jobs_made}", _MORE, "batches", seed=jobs_made, seconds=campaign.seconds)
            jobs_made += _MORE
        if time.monotonic() - began > campaign.within:
            raise AssertionError(f"not drained within {campaign.within:g} s: {crew.client.stats()}")
        assert all(worker.poll() is None for worker in workers), "a worker ended by itself"
        places = _at_work(workers, crew) if campaign.is_patient else list(range(len(workers)))
        if time.monotonic() < next_kill or len(places) <= len(workers) // 2:
            time.sleep(0.02)
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
    return Report(verdict=check(crew.events(), jobs, histories), jobs=jobs_made, kills=kills, wall=wall)


def _at_work(workers: list[subprocess.Popen[bytes]], crew: Crew) -> list[int]:
    """The places of those that have registered."""
    registered = crew.registered()
    return [place for place, worker in enumerate(workers) if worker.pid in registered]


def _hire(campaign: Campaign, crew: Crew) -> subprocess.Popen[bytes]:
    return crew.worker(lease=campaign.lease, concurrency=campaign.slots)
