"""Measures enqueue and drain beside the raw engine in one run, and prints ratios: absolute figures move, ratios less.

    python bench/run.py [--jobs 20000] [--rounds 3]

The raw engine is what a few lines of sqlite3 can do with the same durability (WAL, synchronous=FULL) and a table of the
same width: rows inserted in batches, claimed 500 at a time and completed 500 at a time, one transaction each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from perdure import App
from perdure.model.event import AttemptEnded, Event

BATCH = 500


def main() -> None:
    parser = argparse.ArgumentParser(description="enqueue and drain beside the raw engine, as ratios")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    figures: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        # Interleaved, so that whatever else the machine does falls on all alike.
        for name, measure in MEASURES.items():
            with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
                for key, rate in measure(Path(folder) / "bench.db", options.jobs).items():
                    figures.setdefault(f"{name} {key}", []).append(rate)
    medians = {key: statistics.median(rates) for key, rates in figures.items()}
    ratios = {key: medians[f"perdure {key}"] / medians[f"raw {raw}"] for key, raw in AGAINST.items()}
    if options.json:
        print(json.dumps({"jobs_per_second": medians, "ratio_to_raw": ratios}))
        return
    print(
        f"{options.jobs:,} jobs, median of {options.rounds} rounds, SQLite {sqlite3.sqlite_version}, synchronous=FULL"
    )
    print(f"{'':34}{'jobs/s':>10}{'spread':>18}")
    for key, rates in figures.items():
        print(f"{key:34}{medians[key]:>10,.0f}{f'{min(rates):,.0f}–{max(rates):,.0f}':>18}")
    for key, ratio in ratios.items():
        print(f"{key + ' ÷ raw ' + AGAINST[key]:34}{ratio:>10.2f}")


def measure_raw(path: Path, jobs: int) -> dict[str, float]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=1000;"
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY, task TEXT, queue TEXT, state TEXT, lane TEXT, priority INTEGER,"
        " run_at INTEGER, attempt INTEGER, worker TEXT, started_at INTEGER, ended_at INTEGER, args BLOB, result BLOB);"
        "CREATE INDEX ready ON jobs (queue, lane, priority DESC, run_at, id) WHERE state = 'ready';"
    )
    rows = [("noop", "default", "ready", "fresh", 0, n, 0, b'{"args":[1]}') for n in range(jobs)]
    insert = "INSERT INTO jobs (task, queue, state, lane, priority, run_at, attempt, args) VALUES (?,?,?,?,?,?,?,?)"

    def enqueue() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(insert, rows)
        connection.execute("COMMIT")

    claim = (
        "UPDATE jobs SET state = 'running', attempt = attempt + 1, worker = 'w', started_at = 1 WHERE id IN"
        " (SELECT id FROM jobs WHERE state = 'ready' AND queue = 'default' AND lane = 'fresh'"
        f" ORDER BY priority DESC, run_at, id LIMIT {BATCH}) RETURNING id, attempt, args"
    )
    complete = (
        "UPDATE jobs SET state = 'succeeded', ended_at = 2, worker = NULL WHERE id = ? AND attempt = ? AND worker = 'w'"
    )

    def drain() -> None:
        done = 0
        while done < jobs:
            connection.execute("BEGIN IMMEDIATE")
            claimed = connection.execute(claim).fetchall()
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(complete, [(row[0], row[1]) for row in claimed])
            connection.execute("COMMIT")
            done += len(claimed)

    rates = {"bulk enqueue": _rate(jobs, enqueue), "drain": _rate(jobs, drain)}
    connection.close()
    return rates


def measure_perdure(path: Path, jobs: int) -> dict[str, float]:
    ended = Counter()
    app = App(f"sqlite:///{path}", observer=ended)

    @app.task
    async def on_the_loop(n: int) -> None: ...

    @app.task
    def in_a_thread(n: int) -> None: ...

    rates = {}
    bound = [on_the_loop.bind(n) for n in range(jobs)]
    app.store.now().wait()
    rates["bulk enqueue"] = _rate(jobs, lambda: app.enqueue_many(bound))
    rates["drain async"] = _drain(app, ended, jobs)
    app.enqueue_many([in_a_thread.bind(n) for n in range(jobs)])
    rates["drain sync"] = _drain(app, ended, jobs)
    app.close()
    return rates


class Counter:
    """Counts attempts whose outcome is durable."""

    def __init__(self) -> None:
        self.count = 0

    def tell(self, event: Event) -> None:
        self.count += isinstance(event, AttemptEnded)


def _drain(app: App, ended: Counter, jobs: int) -> float:
    async def drain() -> float:
        worker = app.make_worker()
        until = ended.count + jobs
        began = time.perf_counter()
        running = asyncio.create_task(worker.run())
        while ended.count < until:
            await asyncio.sleep(0.005)
        elapsed = time.perf_counter() - began
        worker.stop()
        await running
        return jobs / elapsed

    return asyncio.run(drain())


def _rate(jobs: int, work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return jobs / (time.perf_counter() - began)


MEASURES: dict[str, Callable[[Path, int], dict[str, float]]] = {"raw": measure_raw, "perdure": measure_perdure}
AGAINST = {"bulk enqueue": "bulk enqueue", "drain async": "drain", "drain sync": "drain"}

if __name__ == "__main__":
    main()
