"""Measures how long a process waits for the write lock of a SQLite file that other processes keep busy.

    python bench/sqlite_waits.py [--seconds 20] [--others one,bulk,drain]

Each kind of other process runs in a loop without a pause: `one` enqueues jobs one by one, `bulk` enqueues 1,000 at a
time, `drain` enqueues 1,000 and claims and commits them in batches of 100. Beside it, one process enqueues single jobs
with a short pause between them. It prints how many milliseconds these took: median, 99th percentile and maximum.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.backlog import _succeeded
from perdure.application.identity import Ids
from perdure.engines.opener import open_store
from perdure.errors import EngineBusy
from perdure.model.job import NewJob, WorkerId
from perdure.store import Store
from perdure.store.jobs import Want
from perdure.system.clock import SystemClock

PAUSE = 0.005
"""The seconds between two jobs of the process that is measured."""


def main() -> None:
    options = _options()
    context = multiprocessing.get_context("spawn")
    print(f"{'other processes':24}{'jobs':>8}{'p50':>10}{'p99':>10}{'max':>10}{'failed':>8}")
    for kinds in [[], *options.others]:
        with tempfile.TemporaryDirectory(prefix="pd-waits-") as folder:
            url = f"sqlite:///{folder}/jobs.db"
            with _open(url):
                pass
            others = [context.Process(target=KINDS[kind], args=(url,), daemon=True) for kind in kinds]
            for process in others:
                process.start()
            try:
                time.sleep(2.0 if others else 0.0)
                _show(" + ".join(kinds) or "none", *_measure(url, options.seconds))
            finally:
                for process in others:
                    process.kill()
                    process.join()


def _measure(url: str, seconds: float) -> tuple[list[float], int]:
    waits, failed = [], 0
    with _open(url) as (store, new_jobs):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.perf_counter()
            try:
                store.enqueue(new_jobs(1)).wait()
            except EngineBusy:
                failed += 1
            waits.append((time.perf_counter() - began) * 1e3)
            time.sleep(PAUSE)
    return sorted(waits), failed


def _show(label: str, waits: list[float], failed: int) -> None:
    p50, p99 = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
    print(f"{label:24}{len(waits):>8}{p50:>7.1f} ms{p99:>7.1f} ms{waits[-1]:>7.1f} ms{failed:>8}", flush=True)


def enqueue_one(url: str) -> None:
    with _open(url) as (store, new_jobs):
        while True:
            store.enqueue(new_jobs(1)).wait()


def enqueue_bulk(url: str) -> None:
    with _open(url) as (store, new_jobs):
        while True:
            store.enqueue(new_jobs(1000)).wait()


def drain(url: str) -> None:
    worker = WorkerId("bench")
    with _open(url) as (store, new_jobs):
        lease = timedelta(days=1)
        store.register(worker, host="", pid=1, queues=("default",), concurrency=1, version="", lease=lease).wait()
        while True:
            store.enqueue(new_jobs(1000)).wait()
            for _ in range(10):
                jobs = store.fetch(worker, [Want(queue="default", count=100)], 100).wait().jobs
                store.commit([_succeeded(job) for job in jobs]).wait()


KINDS: dict[str, Callable[[str], None]] = {"one": enqueue_one, "bulk": enqueue_bulk, "drain": drain}


@contextmanager
def _open(url: str) -> Iterator[tuple[Store, Callable[[int], list[NewJob]]]]:
    ids = Ids(SystemClock(), random.Random())

    def new_jobs(count: int) -> list[NewJob]:
        return [NewJob(id=ids.job(), task="noop", queue="default", args=b"{}") for _ in range(count)]

    with closing(open_store(url, clock=SystemClock(), auto_migrate=True)) as store:
        yield store, new_jobs


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="how long a process waits for the write lock of a SQLite file")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument(
        "--others",
        type=lambda text: [part.split("+") for part in text.split(",")],
        default=[["one"], ["bulk"], ["drain"], ["one", "one", "drain"]],
        help="kinds of other processes, with + between those that run at the same time",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
