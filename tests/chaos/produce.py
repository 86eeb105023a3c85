"""A producer process: enqueues jobs one by one or in batches, and tells the ledger before and after each enqueue.

Run as `python -m tests.chaos.produce KEY COUNT MODE SEED [SECONDS [RATE]]`; COUNT 0 goes on until it is killed. SECONDS
is the mean length of a run. With the mode `storm` a failed enqueue is no end: its jobs may exist or not, and others are
enqueued until COUNT were accepted, RATE of them per second.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections.abc import Iterator

from tests.chaos.work import KINDS, app, ledger

from perdure import Bound
from perdure.errors import EngineError
from perdure.model.state import Delivery

LARGEST_BATCH = 40
_BEHAVIOURS = {"returns": 0.7, "fails once": 0.2, "fails always": 0.1}
_KINDS = {"on_loop": 0.6, "in_thread": 0.38, "in_child": 0.02}


def main(key: str, count: int, mode: str, seed: int, seconds: float = 0.0, rate: float = 0.0) -> None:
    """Enqueue `count` jobs, or for ever."""
    rng = random.Random(seed)
    if mode == "storm":
        _enqueue_until_accepted(key, count, rng, seconds, rate)
        app.close()
        return
    keys = (f"{key}-{number}" for number in itertools.count())
    left = itertools.count() if count == 0 else iter(range(count))
    for batch in itertools.count():
        size = 1 if mode == "one" else rng.randint(1, LARGEST_BATCH)
        names = [next(keys) for _ in itertools.islice(left, size)]
        if not names:
            break
        _enqueue(names, f"{key}-batch-{batch}", rng, seconds)
    app.close()


def _enqueue_until_accepted(key: str, count: int, rng: random.Random, seconds: float, rate: float) -> None:
    accepted, began = 0, time.monotonic()
    for batch in itertools.count():
        if accepted >= count:
            return
        names = [f"{key}-{batch}-{number}" for number in range(rng.randint(1, LARGEST_BATCH))]
        try:
            _enqueue(names, f"{key}-batch-{batch}", rng, seconds)
        except EngineError:
            time.sleep(0.2)
        else:
            accepted += len(names)
        time.sleep(max(0.0, began + accepted / rate - time.monotonic()))


def _enqueue(names: list[str], batch: str, rng: random.Random, seconds: float) -> None:
    bound = list(_bind(names, batch, rng, seconds))
    ids = app.enqueue_many(bound)
    for name, job_id in zip(names, ids, strict=True):
        ledger.write("enq_ok", key=name, job=job_id)


def _bind(names: list[str], batch: str, rng: random.Random, seconds: float) -> Iterator[Bound]:
    for name in names:
        limit = rng.randint(2, 6)
        delivery: Delivery = "at_most_once" if rng.random() < 0.05 else "at_least_once"
        behaviour = rng.choices(list(_BEHAVIOURS), list(_BEHAVIOURS.values()))[0]
        task = KINDS[rng.choices(list(_KINDS), list(_KINDS.values()))[0]]
        ledger.write("enq_invoke", key=name, batch=batch, limit=limit, delivery=delivery)
        prepared = task.options(max_attempts=limit, delivery=delivery)
        yield prepared.bind(name, behaviour, round(rng.uniform(0.1, 2.0) * seconds, 4))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), *map(float, sys.argv[5:]))
