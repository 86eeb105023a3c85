"""Limits on queues hold all the time while workers are killed, and no kill leaks a place."""

from __future__ import annotations

import os
import threading
from collections import Counter
from random import Random

import pytest
from tests.chaos.crew import Crew, until

KILLS = 12 if os.environ.get("PERDURE_CHAOS") == "long" else 2
LIMIT, CAP = 5, 2


class Watch:
    """Looks at the store all the time, from outside, and keeps the most that it ever saw running."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.looks = 0

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.is_set():
            lanes = Counter(job.lane for job in self._crew.client.list(state="running", limit=100))
            self.now = lanes + Counter(both=lanes.total())
            self.most |= self.now
            self.looks += 1


@pytest.mark.crash
def test_limits_hold_while_workers_are_killed_and_no_place_is_lost(crew: Crew) -> None:
    random = Random(7)
    limits = f"default: concurrency={LIMIT}, max_retries_running={CAP}, retry_share=0.5"
    settings = {"lease": "1s", "queue_settings": limits, "concurrency": 4, "max_prefetch": 0}
    for number in range(20 + 20 * KILLS):
        crew.enqueue("on_loop", "fails once" if number % 3 == 0 else "returns", 0.05, limit=3)
    with Watch(crew) as watch:
        workers = [crew.worker(**settings) for _ in range(3)]
        for _ in range(KILLS):
            until(lambda: watch.now["both"] >= LIMIT - 1, "the queue is busy")
            victim = random.choice(workers)
            workers.remove(victim)
            crew.kill(victim)
            workers.append(crew.worker(**settings))
        until(crew.is_drained, "everything ends")
    assert watch.looks > 20
    assert watch.most["both"] <= LIMIT
    assert watch.most["retry"] <= CAP
    assert crew.client.stats().running == 0
    # All places are there: as many run at once as before the kills.
    until(lambda: {worker.pid for worker in workers} <= set(crew.registered()), "all workers are there")
    for _ in range(2 * LIMIT):
        crew.enqueue("on_loop", seconds=5.0)
    with Watch(crew) as watch:
        until(lambda: watch.most["both"] >= LIMIT, "every place is taken again")
        looks = watch.looks
        until(lambda: watch.looks > looks + 20, "nothing more is taken")
    assert watch.most["both"] == LIMIT
    for worker in workers:
        crew.kill(worker)
