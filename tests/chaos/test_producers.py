"""Producers killed in the middle of enqueuing leave whole jobs and whole batches behind, and nothing that was answered
is missing."""

from __future__ import annotations

import random
from functools import partial

import pytest
from tests.chaos.checker import check
from tests.chaos.crew import Crew, until

KILLS = 8


# Proves [INV-1] and [INV-15].
@pytest.mark.crash
@pytest.mark.every_engine
@pytest.mark.parametrize("mode", ["one", "batches"])
def test_what_was_answered_exists_once_and_batches_are_whole_though_producers_are_killed(crew: Crew, mode: str) -> None:
    rng = random.Random(2)
    workers = [crew.worker() for _ in range(2)]
    for turn in range(KILLS // 2):
        pair = [crew.produce(f"{mode}-{turn}-{number}", 0, mode, seed=turn) for number in range(2)]
        for process in pair:
            wanted = rng.randint(1, 120)
            until(partial(_has_enqueued, crew, process.pid, wanted), "it enqueues")
            crew.kill(process)
    until(crew.is_drained, "every job has ended")
    crew.stop(*workers)
    verdict = check(crew.events(), crew.jobs())
    assert verdict.problems() == {}
    assert verdict.accepted >= KILLS
    assert verdict.invoked > verdict.accepted, "no kill came between an enqueue and its answer"


def _has_enqueued(crew: Crew, pid: int, wanted: int) -> bool:
    return len(crew.seen("enq_ok", pid=pid)) >= wanted
