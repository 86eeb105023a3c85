"""Simulations as plain data, for programs: durations are seconds, names are those of the Python values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from perdure.simulator.result import Bucket, Simulation
from perdure.simulator.scenario import Scenario
from perdure.simulator.variants import Compared
from perdure.simulator.view import peak, side_by_side

Document = dict[str, Any]


def simulation_document(found: Simulation) -> Document:
    """Totals, waits, peaks, the bound, and a line for each bucket."""
    peaks, waits = found.peaks, found.fresh_waits
    return {
        "jobs": found.jobs,
        "succeeded": found.succeeded,
        "dead": found.dead,
        "unfinished": found.unfinished,
        "attempts": found.attempts,
        "fresh_starts": found.fresh_starts,
        "retry_starts": found.retry_starts,
        "failures": found.failures,
        "drained_after": None if found.drained_after is None else _seconds(found.drained_after),
        "ended_after": _seconds(found.ended_after),
        "fresh_clear_after": _seconds(found.fresh_clear_after),
        "retry_clear_after": _seconds(found.retry_clear_after),
        "fresh_waits": {
            "mean": _seconds(waits.mean),
            "p99": _seconds(waits.p99),
            "greatest": _seconds(waits.greatest),
        },
        "peaks": {name: getattr(peaks, name) for name in peaks.__struct_fields__},
        "bound": {"at_once": found.bound.at_once, "in_all": found.bound.in_all, "is_kept": found.is_within_bound},
        "buckets": [_bucket_document(bucket) for bucket in found.buckets],
    }


def jitter_document(jittered: Simulation, bare: Simulation) -> dict[str, Any]:
    """Both runs for programs."""
    width, pairs = side_by_side(jittered, bare)
    return {
        "with_jitter": _ends_document(jittered),
        "without_jitter": _ends_document(bare),
        "span": width.total_seconds(),
        "attempts": [
            {"at": place * width.total_seconds(), "with_jitter": one, "without_jitter": other}
            for place, (one, other) in enumerate(pairs)
        ],
    }


def comparison_document(found: Sequence[Compared]) -> list[dict[str, Any]]:
    """All runs of a comparison for programs."""
    return [
        {"mechanism": one.mechanism, "jitter": one.is_jittered, **simulation_document(one.simulation)} for one in found
    ]


def scenario_document(scenario: Scenario) -> Document:
    """What was simulated, under the names of the arguments of `simulate`."""
    fairness = scenario.fairness
    return {
        "policy": str(scenario.policy),
        "max_attempts": scenario.max_attempts,
        "rate": scenario.rate,
        "duration": _seconds(scenario.duration),
        "batches": [[_seconds(batch.at), batch.jobs, batch.priority] for batch in scenario.batches],
        "workers": scenario.workers,
        "slots": scenario.slots,
        "prefetch": scenario.prefetch,
        "batch": scenario.batch,
        "run_time": _seconds(scenario.run_time),
        "run_times": "exponential" if scenario.is_exponential else "fixed",
        "failure_time": None if scenario.failure_time is None else _seconds(scenario.failure_time),
        "outage": None if scenario.outage is None else [_seconds(moment) for moment in scenario.outage],
        "outage_hits": scenario.outage_hits,
        "failure_rate": list(scenario.failure_rates),
        "capacity": scenario.capacity,
        "retry_share": fairness.retry_share,
        "strict": fairness.is_strict,
        "max_retries_running": fairness.max_retries_running,
        "retry_queue": fairness.retry_queue,
        "retry_workers": scenario.retry_workers if fairness.retry_queue else None,
        "retry_slots": scenario.retry_slots if fairness.retry_queue else None,
        "concurrency": scenario.fairness.concurrency,
        "lanes": scenario.has_lanes,
        "bucket": _seconds(scenario.bucket),
        "until": None if scenario.until is None else _seconds(scenario.until),
        "seed": scenario.seed,
    }


def _ends_document(run: Simulation) -> dict[str, Any]:
    return {
        "succeeded": run.succeeded,
        "dead": run.dead,
        "attempts": run.attempts,
        "peak_per_second": peak(run),
        "last_ended": run.ended_after.total_seconds(),
    }


def _bucket_document(bucket: Bucket) -> Document:
    document: Document = {name: getattr(bucket, name) for name in bucket.__struct_fields__}
    return document | {
        "at": _seconds(bucket.at),
        "attempts": bucket.attempts,
        "oldest_fresh": _seconds(bucket.oldest_fresh),
    }


def _seconds(duration: timedelta) -> float:
    return duration.total_seconds()
