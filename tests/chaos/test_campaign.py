"""Workers killed and replaced again and again lose nothing, repeat nothing that may run once, and exceed no limit."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from tests.chaos.campaign import Campaign, run
from tests.chaos.crew import Crew

PROFILES = {
    "short": Campaign(
        jobs=1_500, slots=6, seconds=0.08, kill_every=0.5, is_patient=True, lease="1500ms", most_kills=30
    ),
    "long": Campaign(jobs=20_000, slots=8, seconds=0.15, kill_every=1.0, is_patient=False, lease="2s"),
}


# Proves [INV-2].
@pytest.mark.crash
@pytest.mark.every_engine
@pytest.mark.timeout(1500)
def test_every_job_ends_once_though_workers_are_killed_all_the_time(
    crew: Crew, record_property: Callable[[str, object], None]
) -> None:
    campaign = PROFILES[os.environ.get("PERDURE_CHAOS", "short")]
    report = run(campaign, crew)
    verdict = report.verdict
    figures = f"{report.kills} kills in {report.wall:.1f} s; {verdict.figures()}"
    record_property("campaign", figures)
    print(figures)
    assert verdict.problems() == {}
    assert verdict.accepted == report.jobs >= campaign.jobs
    assert report.kills >= 10
    assert verdict.cut_short >= report.kills / 2, "the kills must have hit jobs that were running"
