"""Measures what a claim and a commit cost as the store grows, and, on PostgreSQL, under a transaction left open.

    python bench/backlog.py [--engine postgres] [--sizes 1000,100000,1000000] [--batch 100] [--rounds 60] [--held 50000]

Rows are made by the store's own enqueue. At each size it claims and commits a batch at a time and prints medians, and
their ratio to the smallest size. `--held` then opens a transaction that keeps the server from cleaning up, drains so
many jobs under it, and prints the same as dead rows gather, then once more after the transaction has ended.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.catalogue import ENGINES
from bench.servers import started
from perdure.application.identity import Ids
from perdure.engines.opener import open_store
from perdure.model.job import Job, NewJob, WorkerId
from perdure.model.outcome import Outcome
from perdure.store import Store
from perdure.store.jobs import Ended, Want
from perdure.system.clock import SystemClock

QUEUE = "default"
WORKER = WorkerId("bench")
FILL = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="what a claim and a commit cost as the store grows")
    parser.add_argument("--engine", choices=ENGINES, default="postgres")
    parser.add_argument("--sizes", type=lambda text: [int(each) for each in text.split(",")], default=[1000, 100_000])
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--held", type=int, default=0, help="drain so many jobs under a transaction left open")
    options = parser.parse_args()
    if options.held and options.engine != "postgres":
        parser.error("only PostgreSQL keeps dead rows for a transaction left open")
    with started((options.engine,)) as servers:
        url = servers[options.engine].fresh()
        with closing(open_store(url, clock=SystemClock(), auto_migrate=True)) as store:
            _run(Bench(store, options.batch), url, options)


def _run(bench: Bench, url: str, options: argparse.Namespace) -> None:
    first: tuple[float, float] | None = None
    print(f"{options.engine}, batches of {options.batch}, medians of {options.rounds}")
    print(f"{'jobs in the store':>24}{'claim':>12}{'commit':>12}{'claim ÷ first':>16}{'commit ÷ first':>16}")
    for size in options.sizes:
        bench.fill(size)
        costs = bench.measure(options.rounds)
        first = first or costs
        bench.show(f"{size:,}", costs, first)
    if options.held and first:
        bench.fill(bench.jobs + 2 * options.held)
        _hold(bench, url, options.held, first)


class Bench:
    """A store, and a worker on it that claims and commits by hand."""

    def __init__(self, store: Store, batch: int) -> None:
        self._store = store
        self.batch = batch
        self._ids = Ids(SystemClock(), random.Random(1))
        self.jobs = 0
        store.register(
            WORKER, host="here", pid=1, queues=(QUEUE,), concurrency=1, version="bench", lease=timedelta(days=1)
        ).wait()

    def fill(self, size: int) -> None:
        """Enqueue until the store has had so many jobs."""
        while self.jobs < size:
            count = min(FILL, size - self.jobs)
            args = b'{"args":[1]}'
            self._store.enqueue(
                [NewJob(id=self._ids.job(), task="noop", queue=QUEUE, args=args) for _ in range(count)]
            ).wait()
            self.jobs += count

    def measure(self, rounds: int) -> tuple[float, float]:
        """The median milliseconds of a claim and of a commit; as many jobs as were taken are made again."""
        claims, commits = [], []
        for _ in range(rounds):
            claim, commit = self.turn()
            claims.append(claim)
            commits.append(commit)
            self.jobs -= self.batch
            self.fill(self.jobs + self.batch)
        return statistics.median(claims), statistics.median(commits)

    def drain(self, rounds: int) -> tuple[float, float]:
        """The same without making new jobs."""
        turns = [self.turn() for _ in range(rounds)]
        return statistics.median(claim for claim, _ in turns), statistics.median(commit for _, commit in turns)

    def turn(self) -> tuple[float, float]:
        """Claim a batch and commit it; the milliseconds of each."""
        began = time.perf_counter()
        want = Want(queue=QUEUE, count=self.batch, retry_share=0, carry=0)
        jobs = self._store.fetch(WORKER, [want], self.batch).wait().jobs
        claimed = time.perf_counter()
        assert len(jobs) == self.batch
        accepted = self._store.commit([_succeeded(job) for job in jobs]).wait()
        assert all(accepted)
        return (claimed - began) * 1e3, (time.perf_counter() - claimed) * 1e3

    def show(self, label: str, costs: tuple[float, float], first: tuple[float, float]) -> None:
        claim, commit = costs
        print(
            f"{label:>24}{claim:>9.2f} ms{commit:>9.2f} ms{claim / first[0]:>16.2f}{commit / first[1]:>16.2f}",
            flush=True,
        )


def _succeeded(job: Job) -> Ended:
    assert job.started_at is not None
    assert job.worker is not None
    outcome = Outcome(
        verb="succeed",
        state="succeeded",
        attempt="succeeded",
        failures=job.failures,
        recoveries=job.recoveries,
        lane=job.lane,
    )
    return Ended(
        job_id=job.id,
        attempt=job.attempt,
        worker=job.worker,
        task=job.task,
        outcome=outcome,
        started_at=job.started_at,
        ended_at=job.started_at,
    )


def _hold(bench: Bench, url: str, jobs: int, first: tuple[float, float]) -> None:
    """Drain jobs while another session holds a snapshot, and show the cost at each tenth."""
    with psycopg.connect(url.partition("?")[0]) as session:
        session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        session.execute("SELECT 1")
        step = max(1, jobs // bench.batch // 5)
        for part in range(5):
            bench.show(f"held, to {(part + 1) * step * bench.batch:,} taken", bench.drain(step), first)
        session.rollback()
    bench.show("the next 20 after it", bench.drain(20), first)
    with psycopg.connect(url.partition("?")[0], autocommit=True) as session:
        session.execute("VACUUM perdure.jobs")
    bench.show("20 after a vacuum", bench.drain(20), first)


if __name__ == "__main__":
    main()
