"""The same load under each mechanism of fairness, with and without jitter, for a comparison with equal slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from perdure.model.queue.fairness import Fairness
from perdure.simulator.result import Simulation
from perdure.simulator.run import run
from perdure.simulator.scenario import Scenario

_USUAL_SHARE = Fairness().retry_share


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One of the simulations of a comparison."""

    mechanism: str
    is_jittered: bool
    simulation: Simulation


def compare(scenario: Scenario) -> tuple[Compared, ...]:
    """The scenario under each mechanism; as its policy says, then, where that has jitter, without."""
    policies = [scenario.policy]
    if scenario.policy.jitter != "none":
        policies.append(scenario.policy.replace(jitter="none"))
    return tuple(
        Compared(
            mechanism=mechanism,
            is_jittered=policy.jitter != "none",
            simulation=run(msgspec.structs.replace(variant(scenario), policy=policy)),
        )
        for policy in policies
        for mechanism, variant in MECHANISMS.items()
    )


def one_line(scenario: Scenario) -> Scenario:
    """No mechanism: fresh jobs and retries in one line, by the time at which they are due."""
    return msgspec.structs.replace(scenario, fairness=_fairness(scenario), has_lanes=False)


def share(scenario: Scenario) -> Scenario:
    """The retry lane gets its share of what is fetched."""
    fairness = _fairness(scenario, retry_share=_share(scenario), is_strict=scenario.fairness.is_strict)
    return msgspec.structs.replace(scenario, fairness=fairness, has_lanes=True)


def retry_queue(scenario: Scenario) -> Scenario:
    """Retries have a queue and slots of their own, which are taken from the others: there are as many as before."""
    own = _retry_slots(scenario)
    return msgspec.structs.replace(
        scenario,
        fairness=_fairness(scenario, retry_queue=scenario.fairness.retry_queue or "retries"),
        has_lanes=True,
        workers=1,
        slots=max(1, _slots(scenario) - own),
        retry_workers=1,
        retry_slots=own,
    )


def cap(scenario: Scenario) -> Scenario:
    """Retries come first, but only so many run at once."""
    most = scenario.fairness.max_retries_running or _retry_slots(scenario)
    return msgspec.structs.replace(
        scenario, fairness=_fairness(scenario, retry_share=1.0, max_retries_running=most), has_lanes=True
    )


MECHANISMS: Mapping[str, Callable[[Scenario], Scenario]] = MappingProxyType(
    {"none": one_line, "share": share, "retry queue": retry_queue, "cap": cap}
)


def _fairness(scenario: Scenario, **mechanism: Any) -> Fairness:
    """The queue with one mechanism only; its limit stays."""
    return Fairness(concurrency=scenario.fairness.concurrency, **mechanism)


def _share(scenario: Scenario) -> float:
    return scenario.fairness.retry_share if scenario.has_lanes else _USUAL_SHARE


def _slots(scenario: Scenario) -> int:
    return scenario.workers * scenario.slots


def _retry_slots(scenario: Scenario) -> int:
    """As many slots as the share comes to."""
    return max(1, round(_slots(scenario) * _share(scenario)))
