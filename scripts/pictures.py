"""Draws the pictures of docs/fairness.md anew from the simulator, into docs/images or the folder that is named."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import msgspec

from perdure import Retry, simulate
from perdure.cli.simulate.picture import AGE, ATTEMPTS, BACKLOG, STARTS, draw
from perdure.simulator.ready import SLOW_FAILURES, WORST_CASE
from perdure.simulator.run import run
from perdure.simulator.scenario import Scenario
from perdure.simulator.variants import cap, one_line, retry_queue, share

IMAGES = Path(__file__).parents[1] / "docs" / "images"
LABELS = {
    one_line: "no mechanism: one line",
    share: "share: retry_share=0.2",
    retry_queue: "retry queue: 2 of 10 slots",
    cap: "cap: max_retries_running=2",
}


def worst_case(folder: Path) -> None:
    """Fast failures: any mechanism keeps fresh work going, and the share clears the retries soonest."""
    draw(
        folder / "worst-case.svg",
        [(label, run(variant(WORST_CASE.scenario))) for variant, label in LABELS.items()],
        "Many fast failures: in one line, fresh jobs wait behind the retries; any mechanism lets them pass",
        [("starts per second", STARTS), ("jobs not started", BACKLOG), ("oldest fresh job, seconds", AGE)],
        until=timedelta(seconds=140),
    )


def slow_failures(folder: Path) -> None:
    """Slow failures: a share of the starts is not a share of the slots."""
    scenario: Scenario = msgspec.structs.replace(
        SLOW_FAILURES.scenario, duration=timedelta(seconds=120), bucket=timedelta(seconds=2)
    )
    draw(
        folder / "slow-failures.svg",
        [(label, run(variant(scenario))) for variant, label in LABELS.items()],
        "Slow failures: timeouts fill the slots, whatever their share of the starts; only a cap or own workers help",
        [("jobs not started", BACKLOG), ("oldest fresh job, seconds", AGE)],
        until=timedelta(seconds=120),
    )


def retries_starve(folder: Path) -> None:
    """The other way round: fresh jobs first means that retries never run while there is more to do than can be done."""
    runs = [
        (
            f"retry_share={share_of_retries:g}",
            simulate(
                Retry.fixed("2s", max_attempts=4),
                rate=110,
                duration="60s",
                slots=10,
                run_time="100ms",
                failure_rate=0.1,
                retry_share=share_of_retries,
                seed=1,
            ),
        )
        for share_of_retries in (0, 0.2)
    ]
    draw(
        folder / "retries-starve.svg",
        runs,
        "More work than slots for a minute: fresh first lets every retry wait; a share of 0.2 does not",
        [("starts per second", STARTS), ("jobs not started", BACKLOG)],
        until=timedelta(seconds=90),
    )


def jitter(folder: Path) -> None:
    """Jitter spreads those who failed together."""
    policy = Retry.exponential("4s", cap="30s", jitter="full", max_attempts=8)
    runs = [
        (
            name,
            simulate(chosen, batches=[(0, 1000)], slots=1000, run_time="10ms", outage=(0, "20s"), capacity=150, seed=1),
        )
        for name, chosen in (("without jitter", policy.replace(jitter="none")), ("with full jitter", policy))
    ]
    draw(
        folder / "jitter.svg",
        [(f"{name}: {found.dead} of {found.jobs:,} jobs dead", found) for name, found in runs],
        "1,000 jobs failed together, the other side serves 150 per second: without jitter they all come back at once",
        [("attempts per second", ATTEMPTS)],
        until=timedelta(seconds=180),
    )


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    for picture in (worst_case, slow_failures, retries_starve, jitter):
        picture(folder)
        print(f"drew {picture.__name__.replace('_', '-')}.svg")


if __name__ == "__main__":
    main()
