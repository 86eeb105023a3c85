"""A program that forks while its threads enqueue all the time; run as a process of its own.

Each child uses the app as it was, is refused, follows the advice in the error, and enqueues one job.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import threading
import traceback
import warnings

import pytest

from perdure import App, EngineError

FORKS = int(sys.argv[3])
REMEDY = "In the child process call app.close() first, and make new clients with app.client()"

app = App(sys.argv[1])


@app.task
def work(who: str) -> None:
    """Never runs here."""


def enqueue(is_async: bool, who: str) -> None:
    if is_async:
        asyncio.run(work.enqueue_async(who))
    else:
        work.enqueue(who)


def child(is_async: bool, number: int) -> None:
    client = app.client_async() if is_async else app.client()
    with pytest.raises(EngineError, match=re.escape(REMEDY)):
        enqueue(is_async, "refused")
    with pytest.raises(EngineError, match=re.escape(REMEDY)):
        asyncio.run(client.stats()) if is_async else client.stats()
    app.close()
    enqueue(is_async, f"child-{number}")
    fresh = app.client_async() if is_async else app.client()
    stats = asyncio.run(fresh.stats()) if is_async else fresh.stats()
    assert stats.ready > 0
    app.close()


def busy(is_async: bool, stop: threading.Event, counts: list[int]) -> None:
    async def awaited() -> None:
        while not stop.is_set():
            await work.enqueue_async("parent")
            counts.append(1)

    if is_async:
        asyncio.run(awaited())
    else:
        while not stop.is_set():
            work.enqueue("parent")
            counts.append(1)


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)
    is_async = sys.argv[2] == "async"
    work.enqueue("parent")
    app.client().stats()
    stop = threading.Event()
    counts: list[int] = [1]
    threads = [threading.Thread(target=busy, args=(is_async, stop, counts)) for _ in range(4)]
    for thread in threads:
        thread.start()
    failed = 0
    for number in range(FORKS):
        before = len(counts)
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)  # a child that waits for a lock of the parent waits for ever
            try:
                child(is_async, number)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        failed += os.waitpid(pid, 0)[1] != 0
        while len(counts) <= before:
            threads[0].join(0.001)  # the parent goes on as well
    stop.set()
    for thread in threads:
        thread.join()
    print(f"failed {failed} parent {len(counts)}")
    app.close()


if __name__ == "__main__":
    main()
