"""enqueue_within: the job and the caller's data commit together, or neither does."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import pytest
from tests.conformance.scene import Scene

from perdure.errors import Unsupported
from perdure.store.reads import JobFilter


def test_a_committed_transaction_leaves_the_job(scene: Scene, connection: Any) -> None:
    job = scene.new_job()
    assert scene.store.enqueue_within(connection, [job]) == [job.id]
    connection.commit()
    assert scene.get(job.id).state == "ready"


def test_a_job_is_not_seen_before_the_commit(scene: Scene, connection: Any) -> None:
    job = scene.new_job()
    scene.store.enqueue_within(connection, [job])
    assert scene.store.get([job.id]).wait() == [None]
    connection.rollback()


def test_a_rolled_back_transaction_leaves_no_job(scene: Scene, connection: Any) -> None:
    job = scene.new_job()
    scene.store.enqueue_within(connection, [job])
    connection.rollback()
    assert scene.store.get([job.id]).wait() == [None]


def test_the_callers_data_and_the_job_share_their_fate(scene: Scene, connection: Any) -> None:
    connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.commit()
    with contextlib.suppress(ZeroDivisionError), connection:
        connection.execute("INSERT INTO orders VALUES (1)")
        scene.store.enqueue_within(connection, [scene.new_job()])
        raise ZeroDivisionError
    assert connection.execute("SELECT COUNT(*) FROM orders").fetchone()[0] == 0
    assert scene.store.count(JobFilter()).wait() == 0


def test_a_taken_unique_key_gives_the_live_jobs_id(scene: Scene, connection: Any) -> None:
    first = scene.enqueue(unique="7")
    assert scene.store.enqueue_within(connection, [scene.new_job(unique="7")]) == [first]
    connection.rollback()


def test_a_delay_counts_from_the_stores_now(scene: Scene, connection: Any) -> None:
    job = scene.new_job(delay=timedelta(hours=1))
    scene.store.enqueue_within(connection, [job])
    connection.commit()
    kept = scene.get(job.id)
    assert (kept.state, kept.run_at) == ("waiting", scene.clock.now() + timedelta(hours=1))


def test_something_that_is_no_connection_is_refused_with_what_is_supported(scene: Scene) -> None:
    with pytest.raises(Unsupported):
        scene.store.enqueue_within(object(), [scene.new_job()])


def test_an_engine_without_callers_transactions_says_so(scene: Scene) -> None:
    if scene.store.capabilities.has_caller_transactions:
        pytest.skip("the engine can enqueue inside a caller's transaction")
    with pytest.raises(Unsupported):
        scene.store.enqueue_within(object(), [scene.new_job()])
