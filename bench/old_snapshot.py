"""Measures the throughput on PostgreSQL while another transaction holds an old snapshot open.

    python bench/old_snapshot.py [--before 30] [--seconds 300] [--after 30] [--workers 1]

A producer enqueues no-op jobs all the time, and worker processes run them. After `--before` seconds a REPEATABLE READ
transaction opens and stays open for `--seconds`; the run goes on for `--after` seconds when it has ended. It prints for
each period of ten seconds the jobs per second and the index entries read for each job, and the ratio of the last minute
of the transaction to the time before it.
"""

from __future__ import annotations

import argparse
import asyncio
import mmap
import multiprocessing
import struct
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.servers import started
from perdure import App

PERIOD = 10.0
"""The seconds over which each rate is measured."""
BATCH = 500
"""The number of jobs in one call of the producer."""
BACKLOG = 4000
"""The producer waits while this many jobs are unfinished."""


class Counters:
    """Numbers that several processes share; each process writes only its own."""

    def __init__(self, path: str, count: int) -> None:
        with open(path, "a+b") as file:
            file.truncate(8 * count)
            self._map = mmap.mmap(file.fileno(), 8 * count)

    def add(self, place: int, number: int) -> None:
        self.set(place, self.get(place) + number)

    def set(self, place: int, number: int) -> None:
        struct.pack_into("<Q", self._map, 8 * place, number)

    def get(self, place: int) -> int:
        (number,) = struct.unpack_from("<Q", self._map, 8 * place)
        return int(number)


def work(url: str, path: str, place: int, processes: int) -> None:
    """Run a worker, and count what it finishes."""
    app = App(url)
    counters = Counters(path, processes + 1)

    @app.task
    async def noop(number: int) -> None:
        counters.add(place, 1)

    asyncio.run(app.make_worker().run())


def produce(url: str, path: str, processes: int) -> None:
    """Enqueue all the time, but never run far ahead of the workers."""
    app = App(url)
    counters = Counters(path, processes + 1)

    @app.task
    async def noop(number: int) -> None: ...

    made = 0
    while True:
        while made - sum(counters.get(place) for place in range(1, processes + 1)) > BACKLOG:
            time.sleep(0.002)
        app.enqueue_many([noop.bind(number) for number in range(BATCH)])
        made += BATCH
        counters.set(0, made)


def main() -> None:
    options = _options()
    with started(("postgres",)) as servers, tempfile.NamedTemporaryFile(prefix="pd-snapshot-") as file:
        url = servers["postgres"].fresh()
        App(url, auto_migrate=True).close()
        with closing(App(url, auto_migrate=True)) as app:
            app.store.now().wait()
        context = multiprocessing.get_context("spawn")
        processes = [
            context.Process(target=produce, args=(url, file.name, options.workers)),
            *(
                context.Process(target=work, args=(url, file.name, place, options.workers))
                for place in range(1, options.workers + 1)
            ),
        ]
        for process in processes:
            process.start()
        try:
            _measure(options, url, Counters(file.name, options.workers + 1))
        finally:
            for process in processes:
                process.kill()
                process.join()


class Run:
    """Rates of the workers, and how many index entries the server reads for each job."""

    def __init__(self, url: str, counters: Counters, workers: int) -> None:
        self._url = url
        self._counters = counters
        self._workers = workers
        self._began = time.monotonic()

    def done(self) -> int:
        return sum(self._counters.get(place) for place in range(1, self._workers + 1))

    def rates(self, label: str, seconds: float) -> list[float]:
        rates = []
        for _ in range(max(1, round(seconds / PERIOD))):
            start, count, entries = time.monotonic(), self.done(), self._entries()
            time.sleep(PERIOD)
            jobs, after = self.done() - count, self._entries()
            rates.append(jobs / (time.monotonic() - start))
            read = ", ".join(f"{name} {(after[name] - entries.get(name, 0)) / max(1, jobs):,.1f}" for name in after)
            moment = time.monotonic() - self._began
            print(f"{moment:6.0f} s {label:>7} {rates[-1]:>8,.0f} jobs/s; entries per job: {read}", flush=True)
        return rates

    def _entries(self) -> dict[str, int]:
        query = (
            "SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes WHERE relname = 'jobs' AND idx_tup_read > 0"
        )
        with psycopg.connect(self._url, autocommit=True) as session:
            return dict(session.execute(query).fetchall())


def _measure(options: argparse.Namespace, url: str, counters: Counters) -> None:
    run = Run(url, counters, options.workers)
    while not run.done():
        time.sleep(0.05)
    time.sleep(3)
    normal = run.rates("before", options.before)
    with psycopg.connect(url) as session:
        session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        session.execute("SELECT 1")
        held = run.rates("held", options.seconds)
    run.rates("after", options.after)
    last = held[-max(1, int(60 / PERIOD)) :]
    base, end = sum(normal) / len(normal), sum(last) / len(last)
    print(f"before {base:,.0f}/s, last minute of the transaction {end:,.0f}/s, ratio {end / base:.2f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="throughput while another transaction holds an old snapshot open")
    parser.add_argument("--before", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--after", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
