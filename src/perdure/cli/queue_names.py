"""Warns of names of queues that nobody knows here: most likely they are mistyped.

A queue needs no declaration, so an unknown one may come to life later. What was asked for is done all the same.
"""

from __future__ import annotations

from perdure.cli import faults
from perdure.store import Store
from perdure.text.suggestion import in_brackets


def known_queues(store: Store) -> set[str]:
    """The queues that have a job, a pause or settings, those that registered workers serve, and `default`."""
    names = {"default", *(queue.name for queue in store.queues().wait())}
    return names.union(*(worker.queues for worker in store.workers().wait()))


def warn_of_unknown(queue: str, known: set[str], then: str) -> None:
    """Say that nobody knows the queue, which name may be meant, and what holds now."""
    if queue not in known:
        faults.warn(
            f"no job, pause, setting or worker names the queue {queue!r} here{in_brackets(queue, known)}. {then}"
        )
