"""Whatever strikes workers and the engine, every accepted job ends once, and the order of starts holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.chaos.crew import Crew
from tests.chaos.faults import PROCESS_FAULTS
from tests.chaos.fixtures import working
from tests.chaos.server_faults import TARGETS, Target
from tests.chaos.storm import Storm, run

# The rest of the faults have tests of their own; here they strike together in the long profile.
_FEW = ("worker killed in a job", "worker stopped", "clock set", "no descriptors")
PROFILES = {
    "short": Storm(
        jobs=300,
        faults=0,
        process_faults=tuple(fault for fault in PROCESS_FAULTS if fault.name in _FEW),
        pause=0.2,
        seconds=0.03,
        rate=60,
        workers=3,
        slots=6,
    ),
    "long": Storm(jobs=100_000, faults=320, pause=0.6, seconds=0.06, rate=250),
}
SEED = int(os.environ.get("PERDURE_SEED", "1"))


@pytest.fixture(params=list(TARGETS))
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    """Each engine in turn."""
    yield from TARGETS[request.param](tmp_path)


@pytest.fixture
def crew(target: Target, tmp_path: Path) -> Iterator[Crew]:
    yield from working(target.engine, tmp_path)


# Proves [INV-1], [INV-2], [INV-3] and [INV-5].
@pytest.mark.crash
@pytest.mark.timeout(3000)
def test_every_job_ends_once_whatever_fault_strikes(
    crew: Crew, target: Target, record_property: Callable[[str, object], None]
) -> None:
    storm = PROFILES[os.environ.get("PERDURE_CHAOS", "short")]
    report = run(storm, crew, target.faults, seed=SEED)
    record_property("storm", report.figures())
    print(report.figures())
    assert report.verdict.problems() == {}
    assert report.verdict.accepted + report.verdict.recovered >= report.jobs >= storm.jobs
    assert report.verdict.cut_short > 0, "no fault hit a running job"
    assert sum(report.faults.values()) >= storm.faults
    assert max(report.ahead, default=0) <= storm.most_ahead
