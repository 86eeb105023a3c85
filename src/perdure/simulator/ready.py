"""Ready scenarios: the worst case that retries must survive, and failures that are slow."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import msgspec

from perdure.model.policy.retry import Retry
from perdure.simulator.scenario import Batch, Scenario

_SECOND = timedelta(seconds=1)


class ReadyScenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario with a name, and what to see in it."""

    name: str
    description: str
    scenario: Scenario


ALL_AT_ONCE: Mapping[str, Any] = MappingProxyType({"run_time": timedelta(0), "slots": 1000})
"""Where the moments of attempts alone are of interest, nobody has to wait for a slot."""


def failing_together(
    policy: Retry, *, jobs: int, fail_for: timedelta, seed: int, most_attempts: int, max_attempts: int | None = None
) -> Scenario:
    """Jobs that all start at once, and fail until the other side is back."""
    return Scenario(
        policy=policy,
        max_attempts=max_attempts,
        batches=(Batch(timedelta(0), jobs),),
        outage=(timedelta(0), fail_for),
        seed=seed,
        most_attempts=most_attempts,
        **ALL_AT_ONCE,
    )


WORST_CASE = ReadyScenario(
    name="worst-case",
    description="100 jobs fail, then 100 more, then 1,000, all of them retried without jitter beside steady fresh work",
    scenario=Scenario(
        policy=Retry.preset("quadrupling"),
        rate=40,
        duration=90 * _SECOND,
        batches=(Batch(0 * _SECOND, 100), Batch(5 * _SECOND, 100), Batch(10 * _SECOND, 1000)),
        slots=10,
        run_time=_SECOND / 10,
        outage=(0 * _SECOND, 30 * _SECOND),
        seed=1,
    ),
)
SLOW_FAILURES = ReadyScenario(
    name="slow-failures",
    description="for a minute a tenth of the jobs meet a service that is down, and each of their attempts is a timeout",
    scenario=Scenario(
        policy=Retry.exponential("1s", cap="30s", max_attempts=10),
        rate=40,
        duration=180 * _SECOND,
        slots=10,
        run_time=_SECOND / 10,
        failure_time=_SECOND,
        outage=(20 * _SECOND, 80 * _SECOND),
        outage_hits=0.1,
        seed=1,
    ),
)
READY: Mapping[str, ReadyScenario] = MappingProxyType({ready.name: ready for ready in (WORST_CASE, SLOW_FAILURES)})
