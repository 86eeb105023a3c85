"""Claims that read ranges of the index keep every promise of a fetch: the conformance tests, with such claims only."""

# The tests of these modules are collected here once more, with the fixtures below.
# ruff: noqa: F403
from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conformance import conftest as conformance
from tests.conformance.conftest import ENGINES, Engine, clock, connection, scene, url
from tests.conformance.test_fetch import *
from tests.conformance.test_limits import *
from tests.conformance.test_shares import *

from perdure.engines.opener import open_store
from perdure.engines.postgres import claim_ranges
from perdure.engines.postgres import store as stores
from perdure.engines.postgres.claim_ranges import QueueRanges, Reading
from perdure.engines.postgres.slow_claims import SlowClaims
from perdure.store import Store
from perdure.system.clock import VirtualClock

__all__ = ["clock", "connection", "open_again", "scene", "url"]

open_again = conformance.open_again


class RangesOnly(SlowClaims):
    """Takes the claims of every queue for slow, whatever clock the store has."""

    def __init__(self, *, is_enabled: bool = True) -> None:
        super().__init__(is_enabled=True)

    def __contains__(self, queue: str) -> bool:
        return True

    def next(self, queue: str) -> Reading | None:
        self._queues.setdefault(queue, QueueRanges())
        return super().next(queue)


@pytest.fixture(autouse=True)
def ranges_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "SlowClaims", RangesOnly)
    # Never quick enough to read from the beginning in the ordinary way; and the whole index is swept with each claim,
    # because these tests look at once for jobs that they put in places that were passed.
    monkeypatch.setattr(claim_ranges, "SLOW", -(10**12))
    monkeypatch.setattr(claim_ranges, "CONFIRMED", 1)
    monkeypatch.setattr(claim_ranges, "PAUSE", 0.0)
    monkeypatch.setattr(claim_ranges, "URGENT_PAUSE", 0.0)
    monkeypatch.setattr(claim_ranges, "NEAR_JOBS", 1)
    monkeypatch.setattr(claim_ranges, "FIRST_SPAN", claim_ranges.MARKS)
    monkeypatch.setattr(claim_ranges, "DEAR", 10**12)


@pytest.fixture
def engine() -> Engine:
    (postgres,) = [engine for engine in ENGINES if engine.name == "postgres"]
    return postgres


@pytest.fixture
def store(url: str, clock: VirtualClock) -> Iterator[Store]:
    opened = open_store(url, clock=clock)
    yield opened
    opened.close()
