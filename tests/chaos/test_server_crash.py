"""The engine's server crashes in the middle of the work: nothing is lost, and the pace is soon what it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.chaos.checker import check
from tests.chaos.crew import Crew, until
from tests.chaos.fixtures import working
from tests.chaos.server_faults import TARGETS, Target

from perdure.errors import EngineError

JOBS = 20_000
CALM = 20.0
"""How many seconds the pace is measured before and after the crash."""
SETTLING = 3.0
"""How many seconds after the crash the pace is not counted: leases of two seconds run out, jobs are recovered."""


@pytest.fixture(params=[name for name in TARGETS if name != "sqlite"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    """Each engine that has a server, in turn."""
    yield from TARGETS[request.param](tmp_path)


@pytest.fixture
def crew(target: Target, tmp_path: Path) -> Iterator[Crew]:
    yield from working(target.engine, tmp_path)


# Proves [INV-1].
@pytest.mark.crash
@pytest.mark.long
@pytest.mark.timeout(1500)
def test_the_pace_comes_back_after_the_server_crashed(
    crew: Crew, target: Target, record_property: Callable[[str, object], None]
) -> None:
    workers = [crew.worker(lease="2s", concurrency=8) for _ in range(4)]
    producer = crew.produce("job", JOBS, "batches", seed=4, seconds=0.15)
    assert producer.wait(300) == 0
    until(lambda: len(crew.registered()) == len(workers), "all workers are at work")
    time.sleep(CALM)
    crashed_at = time.monotonic()
    target.crash()
    back_at = time.monotonic()
    time.sleep(SETTLING + CALM)
    ends = [event.at for event in crew.seen("end")]
    before = sum(crashed_at - CALM <= at < crashed_at for at in ends) / CALM
    after = sum(back_at + SETTLING <= at < back_at + SETTLING + CALM for at in ends) / CALM
    until(lambda: is_drained(crew), "every job has ended")
    assert crew.stop(*workers) == [0] * len(workers)
    verdict = check(crew.events(), crew.jobs())
    figures = (
        f"down for {back_at - crashed_at:.2f} s; {before:.0f} attempts/s before, {after:.0f} after; {verdict.figures()}"
    )
    record_property("crash", figures)
    print(figures)
    assert verdict.problems() == {}
    assert verdict.accepted == JOBS
    assert after >= 0.95 * before


def is_drained(crew: Crew) -> bool:
    try:
        return crew.is_drained()
    except EngineError:
        return False
