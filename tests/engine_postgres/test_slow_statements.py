"""What a store measures of its statements decides where they begin, and which of them it leaves out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.engine_postgres.scene import RealScene

from perdure.engines.postgres.scan_start import BEGINNING, PAUSE, SLOW, ScanStart
from perdure.engines.postgres.store import PostgresStore
from perdure.engines.postgres.workers import LIST_PAUSE, SLOW_LIST, HeldListings
from perdure.model.job import WorkerId
from perdure.system.clock import VirtualClock

LEASE = timedelta(seconds=30)
WORKER = WorkerId("one")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def test_a_quick_statement_always_reads_from_the_beginning(clock: VirtualClock) -> None:
    start = ScanStart(clock=clock)
    for _ in range(3):
        assert start.next() == BEGINNING
        start.observe(BEGINNING, 7, 10, SLOW)


def test_a_slow_statement_goes_on_where_it_was_for_most_of_the_time(clock: VirtualClock) -> None:
    start = ScanStart(clock=clock)
    start.observe(BEGINNING, 7, 0, 100_000)
    assert start.next() == 7
    start.observe(7, 9, 5, 100)
    assert start.next() == 9
    start.observe(9, None, 0, 100)
    assert start.next() == 9
    clock.advance(timedelta(seconds=0.1 * PAUSE))
    assert start.next() == BEGINNING
    start.observe(BEGINNING, 9, 0, 100)
    assert start.next() == BEGINNING, "it is quick again"


def test_under_a_clock_of_its_own_a_store_measures_nothing(clock: VirtualClock) -> None:
    start = ScanStart(is_enabled=False, clock=clock)
    start.observe(BEGINNING, 7, 0, 10**9)
    assert start.next() == BEGINNING


def test_beats_go_without_a_list_after_a_slow_one(clock: VirtualClock) -> None:
    listings = HeldListings(clock)
    assert listings.is_due(WORKER)
    listings.took(WORKER, SLOW_LIST)
    assert listings.is_due(WORKER)
    listings.took(WORKER, 1.0)
    assert not listings.is_due(WORKER)
    assert listings.is_due(WorkerId("another"))
    clock.advance(timedelta(seconds=LIST_PAUSE))
    assert listings.is_due(WORKER)


def test_a_beat_without_a_list_renews_the_lease(store: PostgresStore) -> None:
    scene = RealScene(store)
    worker = scene.worker()
    job = scene.running(worker)
    before = store.workers().wait()[0].lease_until
    store._slow.listings.took(worker, 1000.0)
    assert store.beat(worker, LEASE).wait().held is None
    assert store.workers().wait()[0].lease_until > before
    store._slow.listings.took(worker, 0.0)
    assert store.beat(worker, LEASE).wait().held == (job.fence,)
