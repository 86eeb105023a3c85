"""Whose turn it is among the queues of one worker: each gets its weight's part of what is started, over any stretch.

Every queue has a clock of its own that moves by `stride` with each job started, and the queue whose clock is furthest
behind is next; a queue of weight 3 has a third of the stride of one of weight 1. Only whole numbers are added, so
nothing drifts and batches of one are as exact as large ones. A queue that had nothing to give saves nothing up: its
clock is set to where the others are, and until it gives something again it is offered one place at a time.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from typing import Any

from perdure.errors import BadOption
from perdure.model.queue.fairness import is_queue_name
from perdure.text.shown import shown

HEAVIEST = 1000
"""The largest weight."""


class Turns:
    """The weights of some queues, and what each has had so far."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        for queue, weight in weights.items():
            check_weight(queue, weight)
        whole = math.lcm(*weights.values())
        self._strides = {queue: whole // weight for queue, weight in weights.items()}
        self._clocks = dict.fromkeys(weights, 0)
        self._places = {queue: place for place, queue in enumerate(weights)}
        self._idle: set[str] = set()

    def order(self) -> list[str]:
        """The queues, the one furthest behind first."""
        return sorted(self._clocks, key=lambda queue: (self._clocks[queue], self._places[queue]))

    def allot(self, room: int) -> dict[str, int]:
        """Share out so many places; queues that get none are left out, the others stand in order."""
        behind = [(clock, self._places[queue], queue) for queue, clock in self._clocks.items()]
        heapq.heapify(behind)
        # With one place at a time for the idle, little is left over when they stay so; when all are, none is special.
        idle = self._idle if len(self._idle) < len(self._clocks) else set()
        allotted: dict[str, int] = {}
        for _ in range(room):
            clock, place, queue = behind[0]
            allotted[queue] = allotted.get(queue, 0) + 1
            if queue in idle:
                heapq.heappop(behind)
            else:
                heapq.heapreplace(behind, (clock + self._strides[queue], place, queue))
        return allotted

    def started(self, counts: Mapping[str, int], short: set[str]) -> None:
        """So many jobs of each queue were started; `short` are the queues that gave less than they were offered."""
        # [INV-18] What was really started moves the clock, so that weights hold under any cut.
        for queue, count in counts.items():
            self._clocks[queue] += count * self._strides[queue]
        self._idle = (self._idle - {queue for queue, count in counts.items() if count}) | short
        busy = [clock for queue, clock in self._clocks.items() if queue not in short]
        # Nothing is saved up by a queue that could not use its part; when all are idle they start anew together.
        level = min(busy) if busy else max(self._clocks.values())
        for queue in short:
            self._clocks[queue] = max(self._clocks[queue], level)
        floor = min(self._clocks.values())
        for queue in self._clocks:
            self._clocks[queue] -= floor


def read_weights(queues: Mapping[str, int] | Iterable[str]) -> dict[str, int]:
    """The weight of each queue, from a mapping or from names such as `mail:3`; a name alone has weight 1."""
    given = list(queues.items()) if isinstance(queues, Mapping) else [_parts(text) for text in queues]
    weights: dict[str, int] = {}
    for queue, weight in given:
        if not is_queue_name(queue):
            raise BadOption(
                f"The queue name {shown(queue)} cannot be used.",
                "Names have 1 to 128 letters, digits, or any of _ . -",
            )
        check_weight(queue, weight)
        if weights.setdefault(queue, weight) != weight:
            raise BadOption(f"The queue {queue} is given two weights, {weights[queue]} and {weight}.", "Name it once.")
    return weights


def check_weight(queue: str, weight: object) -> None:
    """Refuse what is no weight."""
    if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= HEAVIEST:
        raise BadOption(
            f"The weight of the queue {queue} is {shown(weight)}, and it is a whole number from 1 to {HEAVIEST}.",
            "A queue of weight 3 gets three jobs started for each one of a queue of weight 1.",
        )


def _parts(text: str) -> tuple[str, Any]:
    """Name and weight; a weight that is no number is left as it is, and then refused by name."""
    name, colon, number = text.partition(":")
    weight = number.strip()
    return name.strip(), 1 if not colon else int(weight) if weight.isascii() and weight.isdigit() else weight
