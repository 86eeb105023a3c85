"""Dead jobs reach their sinks through refusals, hangs, resets and killed workers: each at least once, none lost."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.chaos.crew import Crew, until
from tests.http.target import Exchange, Target, answer_ok, answering, hang, reset

EACH = 12
REFUSALS = 50
RETRY = "fixed(50ms, jitter=0.5, max_attempts=unlimited)"


@pytest.fixture
def target() -> Iterator[Target]:
    """Refuses the first 50 requests, each in another way."""
    opened = Target()

    async def refuse(exchange: Exchange) -> None:
        number = len(opened.seen)
        ways = [answering("500 Internal Server Error"), reset, answering("503 Later"), reset]
        # A few hang, not more: each costs its whole time limit.
        way = hang if number % 20 == 0 else ways[number % len(ways)]
        await (way if number <= REFUSALS else answer_ok)(exchange)

    opened.on("/dead", refuse)
    yield opened
    opened.close()


def start(crew: Crew, target: Target) -> subprocess.Popen[bytes]:
    """A worker with sinks of every kind; see bury.py."""
    return crew.worker(
        "tests.chaos.bury", http_allow="127.0.0.1", dead_letter_retry=RETRY, test_target=f"{target.url}/dead"
    )


# Proves [INV-22].
@pytest.mark.crash
@pytest.mark.every_engine
def test_sinks_that_fail_50_times_get_every_dead_job_though_workers_are_killed(crew: Crew, target: Target) -> None:
    queues = ("functions", "killers", "copies", "web")
    jobs = {
        queue: {crew.enqueue_named("fail", number, queue=queue) for number in range(EACH if queue != "killers" else 1)}
        for queue in queues
    }
    everything = set().union(*jobs.values())
    workers = [start(crew, target), start(crew, target)]
    until(lambda: len(crew.seen("refuse")) >= 15, "the function has refused some")
    until(lambda: len(target.seen) >= 15, "the target has refused some")
    crew.kill(workers[0])
    workers[0] = start(crew, target)

    def is_done() -> bool:
        for place, process in enumerate(workers):
            if process.poll() is not None:
                assert process.returncode == -signal.SIGKILL
                workers[place] = start(crew, target)
        return crew.client.stats().forwards["forwarded"] == len(everything)

    until(is_done, "all are forwarded")
    dead = {job.id: job for job in crew.client.dead_letters(limit=1000)}
    assert set(dead) == everything, "what was forwarded is still here"
    accepted = Counter(event.job for event in crew.seen("accept"))
    assert set(accepted) == jobs["functions"] | jobs["killers"]
    assert all(accepted[job_id] >= 2 for job_id in jobs["killers"]), "a sink that kills its worker is asked again"
    posted = {json.loads(seen.body)["id"] for seen in target.seen[REFUSALS:]}
    assert posted == jobs["web"]
    copies = crew.client.list(queue="graveyard", limit=1000)
    assert {copy.unique for copy in copies} == {f"dead-letter:{job_id}:1" for job_id in jobs["copies"]}
    assert len(copies) == EACH
    assert {copy.state for copy in copies} == {"ready"}
    until(lambda: {process.pid for process in workers} <= set(crew.registered()), "both workers are there")
    assert crew.stop(*workers) == [0, 0]
