"""A job that kills its worker ends dead within its limit and takes no other job with it."""

from __future__ import annotations

import subprocess

import pytest

from tests.chaos.checker import check
from tests.chaos.crew import Crew, until
from tests.chaos.work import KILLERS

INNOCENTS = 50
LIMIT = 3


@pytest.mark.crash
@pytest.mark.parametrize("behaviour", list(KILLERS))
@pytest.mark.parametrize("kind", ["on_loop", "in_thread", "in_child"])
def test_a_job_that_kills_its_worker_dies_alone(crew: Crew, kind: str, behaviour: str) -> None:
    poison, innocents = crew.enqueue_poison(kind, behaviour, limit=LIMIT, innocents=INNOCENTS)
    workers: list[subprocess.Popen[bytes]] = []

    def is_over() -> bool:
        # Whoever runs workers replaces those that crash.
        while sum(worker.poll() is None for worker in workers) < 2:
            workers.append(crew.worker(lease="1s"))
        return crew.is_drained()

    until(is_over, "every job has ended")
    job = crew.client.get(poison)
    assert (job.state, job.reason) == ("dead", "lost")
    assert len(crew.seen("start", job=poison)) <= LIMIT
    assert {crew.client.get(innocent).state for innocent in innocents} == {"succeeded"}
    assert check(crew.events(), crew.jobs()).problems() == {}
