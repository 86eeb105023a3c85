"""The fate of each simulated attempt: whether it fails and how long it runs, by job, attempt and seed alone.

It does not depend on the order in which attempts start, so a job has the same luck whatever policy, share or cap it
is simulated under, and two runs can be compared job by job.
"""

from __future__ import annotations

import math
from hashlib import blake2b

from perdure.simulator.scenario import MICROSECOND, SECOND, Scenario


class Fate:
    """What happens to attempts; times are microseconds since the start."""

    def __init__(self, scenario: Scenario) -> None:
        self._seed = scenario.seed
        self._rates = scenario.failure_rates
        self._is_lucky = any(scenario.failure_rates)
        self._capacity = scenario.capacity
        self._run_time = scenario.run_time // MICROSECOND
        failing = scenario.failure_time
        self._failure_time = self._run_time if failing is None else failing // MICROSECOND
        self._is_exponential = scenario.is_exponential
        begin, end = scenario.outage or (MICROSECOND * 0, MICROSECOND * 0)
        self._outage = (begin // MICROSECOND, end // MICROSECOND)
        self._hits = scenario.outage_hits
        self._second = -1
        self._served = 0

    def fails(self, job: int, attempt: int, now: int) -> bool:
        """Whether the attempt that starts now fails; to be asked once for each attempt, in the order of starts."""
        if self._outage[0] <= now < self._outage[1] and self._is_hit(job):
            return True
        if self._capacity is not None and self._is_overloaded(now):
            return True
        if not self._is_lucky:
            return False
        rate = self._rates[min(attempt, len(self._rates)) - 1]
        return rate > 0 and self._luck(job, attempt, b"f") < rate

    def takes(self, job: int, attempt: int, is_failing: bool) -> int:
        """How long the attempt runs."""
        mean = self._failure_time if is_failing else self._run_time
        if not self._is_exponential:
            return mean
        return round(-mean * math.log1p(-self._luck(job, attempt, b"t")))

    def _is_hit(self, job: int) -> bool:
        return self._hits == 1 or self._luck(job, 0, b"o") < self._hits

    def _is_overloaded(self, now: int) -> bool:
        second = now // SECOND
        if second != self._second:
            self._second, self._served = second, 0
        self._served += 1
        assert self._capacity is not None
        return self._served > self._capacity

    def _luck(self, job: int, attempt: int, what: bytes) -> float:
        """A number from 0 up to 1 that belongs to this attempt."""
        text = b"%d/%d/%d/%b" % (self._seed, job, attempt, what)
        # The upper 53 bits, as a float holds no more and the value must stay below 1.
        return (int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 11) * 2.0**-53
