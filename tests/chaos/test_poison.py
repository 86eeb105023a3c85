"""A job that kills its worker ends dead within its limit and takes no other job with it."""

from __future__ import annotations

import subprocess

import pytest
from tests.chaos.checker import check
from tests.chaos.crew import Crew, until

INNOCENTS = 50
LIMIT = 3


# Proves [INV-8].
@pytest.mark.crash
@pytest.mark.parametrize("behaviour", ["exits", "kills itself", "segfaults"])
@pytest.mark.parametrize("kind", ["on_loop", "in_thread", "in_child"])
def test_a_job_that_kills_its_worker_dies_alone(crew: Crew, kind: str, behaviour: str) -> None:
    innocents = [crew.enqueue("on_loop" if number % 2 else "in_thread", seconds=0.1) for number in range(INNOCENTS)]
    # Its priority puts the poison among the innocents that run first.
    poison = crew.enqueue(kind, behaviour, seconds=0.1, limit=LIMIT, priority=10)
    workers: list[subprocess.Popen[bytes]] = []

    def is_over() -> bool:
        # Whoever runs workers replaces those that crash.
        while sum(worker.poll() is None for worker in workers) < 2:
            workers.append(crew.worker(lease="1s"))
        return crew.is_drained()

    until(is_over, "every job has ended")
    job = crew.job(poison)
    assert (job.state, job.reason) == ("dead", "lost")
    assert 1 <= len(crew.seen("start", job=poison)) <= LIMIT
    assert {crew.state(innocent) for innocent in innocents} == {"succeeded"}
    assert len(workers) <= 3, "the poison took down more than one worker"
    assert check(crew.events(), crew.jobs()).problems() == {}
