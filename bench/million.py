"""Enqueues many jobs with `enqueue_many`, drains them with two worker processes, and watches the workers' memory.

    python bench/million.py [--engine postgres] [--jobs 1000000]

Prints rates, and each worker's memory when it has warmed up and at the end. Exits with 1 unless every job succeeded,
and the newest 1,000 of them at their first attempt.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.backlog import ENGINES
from perdure import App

ROOT = Path(__file__).parents[1]
BATCH = 1000
app = App()


@app.task
async def noop(number: int) -> None:
    """Does nothing, so that what is measured is the queue."""


def main() -> None:
    parser = argparse.ArgumentParser(description="many jobs, two worker processes, flat memory")
    parser.add_argument("--engine", choices=sorted(ENGINES), default="postgres")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder, ENGINES[options.engine](Path(folder)) as url:
        sys.exit(0 if _run(url, options.jobs) else 1)


def _run(url: str, jobs: int) -> bool:
    here = App(url, auto_migrate=True)
    began = time.monotonic()
    for first in range(0, jobs, BATCH):
        here.enqueue_many([here.bind_named("noop", [n], {}) for n in range(first, min(first + BATCH, jobs))])
    print(f"{jobs:,} jobs enqueued, {jobs / (time.monotonic() - began):,.0f}/s", flush=True)
    client = here.client()
    began = time.monotonic()
    workers = [_start(url) for _ in range(2)]
    try:
        early: list[int] = []
        while (ended := client.count(state="succeeded")) < jobs:
            if not early and ended > jobs // 10:
                early = [_memory(worker.pid) for worker in workers]
            if any(worker.poll() is not None for worker in workers):
                print("a worker ended by itself")
                return False
            time.sleep(1)
        print(f"drained by two processes, {jobs / (time.monotonic() - began):,.0f}/s")
        late = [_memory(worker.pid) for worker in workers]
        print(f"memory in MiB after a tenth: {early}, at the end: {late}")
    finally:
        for worker in workers:
            worker.terminate()
            worker.wait(60)
    again = sum(job.attempt != 1 for job in client.list(state="succeeded", limit=1000))
    print(f"{again} of the newest 1,000 ran more than once")
    here.close()
    return again == 0


def _start(url: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PERDURE_URL": url, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", "from bench.million import app; app.run_worker()"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _memory(pid: int) -> int:
    """The resident memory of a process in MiB."""
    found = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(found.stdout) // 1024


if __name__ == "__main__":
    main()
