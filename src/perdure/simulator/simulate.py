"""`perdure.simulate`: what a retry policy and a queue's fairness would do under a load, before they do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from perdure.errors import BadOption
from perdure.model.policy.limit import Limit, read_limit
from perdure.model.policy.retry import Retry
from perdure.model.queue.fairness import Fairness
from perdure.simulator.result import Simulation
from perdure.simulator.run import run
from perdure.simulator.scenario import MOST_ATTEMPTS, BatchLike, Scenario, read_batches, read_chances, read_span
from perdure.text.duration import Duration, parse_duration
from perdure.text.shown import shown

RunTimes = Literal["fixed", "exponential"]


def simulate(
    policy: Retry | str = "standard",
    *,
    max_attempts: Limit | None = None,
    max_retries: Limit | None = None,
    rate: float = 0.0,
    duration: Duration = "60s",
    batches: Sequence[BatchLike] = (),
    workers: int = 1,
    slots: int = 10,
    prefetch: int = 0,
    batch: int = 1000,
    run_time: Duration = "100ms",
    run_times: RunTimes = "fixed",
    failure_time: Duration | None = None,
    outage: tuple[Duration, Duration] | None = None,
    outage_hits: float = 1.0,
    failure_rate: float | Sequence[float] = 0.0,
    capacity: int | None = None,
    retry_share: float = 0.2,
    strict: bool = False,
    max_retries_running: int | None = None,
    retry_queue: str | None = None,
    retry_workers: int = 1,
    retry_slots: int = 2,
    lanes: bool = True,
    concurrency: int | None = None,
    bucket: Duration = "1s",
    until: Duration | None = None,
    seed: int = 0,
    most_attempts: int = MOST_ATTEMPTS,
    trace: bool = False,
) -> Simulation:
    """Let jobs arrive, fail and be retried in virtual time, by the same decisions as in earnest.

    `max_attempts` or `max_retries` is the limit that every job asks for itself.
    """
    return run(
        Scenario(
            policy=Retry.coerce(policy),
            max_attempts=read_limit(max_attempts, max_retries),
            rate=rate,
            duration=parse_duration(duration, what="duration"),
            batches=read_batches(batches),
            workers=workers,
            slots=slots,
            prefetch=prefetch,
            batch=batch,
            run_time=parse_duration(run_time, what="run_time"),
            is_exponential=_is_exponential(run_times),
            failure_time=None if failure_time is None else parse_duration(failure_time, what="failure_time"),
            outage=read_span(outage, "outage"),
            outage_hits=outage_hits,
            failure_rates=read_chances(failure_rate),
            capacity=capacity,
            fairness=Fairness(
                retry_share=retry_share,
                is_strict=strict,
                retry_queue=retry_queue,
                max_retries_running=max_retries_running,
                concurrency=concurrency,
            ),
            has_lanes=lanes,
            retry_workers=retry_workers,
            retry_slots=retry_slots,
            bucket=parse_duration(bucket, what="bucket"),
            until=None if until is None else parse_duration(until, what="until"),
            seed=seed,
            most_attempts=most_attempts,
        ),
        is_traced=trace,
    )


def _is_exponential(run_times: object) -> bool:
    if run_times not in ("fixed", "exponential"):
        raise BadOption(f'run_times is {shown(run_times)}, and it is "fixed" or "exponential".')
    return run_times == "exponential"
