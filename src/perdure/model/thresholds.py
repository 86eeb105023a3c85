"""From when on something deserves attention: the numbers that `perdure health` and the alert rules share."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from perdure.errors import BadOption


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """What is still well."""

    window: timedelta = timedelta(minutes=15)
    """How far back counts."""
    retry_rate: float = 0.10
    """The most of all attempts that may be retries."""
    least_attempts: int = 10
    """From how many attempts on a rate says something."""
    exhausted: int = 0
    """How many jobs may reach their limit within the window."""
    oldest_ready: timedelta = timedelta(minutes=5)
    """How long a job that is due may wait for a slot."""
    wait: timedelta = timedelta(minutes=1)
    """How long 95 % of all attempts at most waited for their start."""
    retry_delay: timedelta = timedelta(minutes=5)
    """How long 95 % of all back-offs at most are."""
    schedule_lag: timedelta = timedelta(minutes=1)
    """How late 95 % of all ticks at most are fired."""

    def __post_init__(self) -> None:
        if not 0 <= self.retry_rate <= 1:
            raise BadOption(
                f"The retry rate {self.retry_rate:g} is no part of a whole.", "Give a number from 0 to 1, such as 0.1."
            )
        for name in ("window", "oldest_ready", "wait", "retry_delay", "schedule_lag"):
            if getattr(self, name) <= timedelta(0):
                raise BadOption(f"{name} must be longer than nothing.")
        for name in ("least_attempts", "exhausted"):
            if getattr(self, name) < 0:
                raise BadOption(f"{name} must not be negative.")
