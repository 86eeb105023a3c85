"""A producer process: enqueues jobs one by one or in batches, and tells the ledger before and after each enqueue.

Run as `python -m tests.chaos.produce KEY COUNT MODE SEED`; COUNT 0 goes on until it is killed.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator

from tests.chaos.work import KINDS, app, ledger

from perdure import Bound
from perdure.model.state import Delivery

LARGEST_BATCH = 40
_BEHAVIOURS = {"returns": 0.7, "fails once": 0.2, "fails always": 0.1}
_KINDS = {"on_loop": 0.6, "in_thread": 0.38, "in_child": 0.02}


def main(key: str, count: int, mode: str, seed: int, seconds: float = 0.0) -> None:
    """Enqueue `count` jobs, or for ever."""
    rng = random.Random(seed)
    keys = (f"{key}-{number}" for number in itertools.count())
    left = itertools.count() if count == 0 else iter(range(count))
    for batch in itertools.count():
        size = 1 if mode == "one" else rng.randint(1, LARGEST_BATCH)
        names = [next(keys) for _ in itertools.islice(left, size)]
        if not names:
            break
        _enqueue(names, f"{key}-batch-{batch}", rng, seconds)
    app.close()


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
