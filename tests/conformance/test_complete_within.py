"""complete_within: the end of an attempt and its handler's own data commit together, or neither does."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.scene import Scene, ended, failure, success

from perdure.errors import Unsupported
from perdure.model.job import WorkerId


def test_a_committed_transaction_ends_the_job(scene: Scene, connection: Any) -> None:
    job = scene.running()
    assert scene.store.complete_within(connection, ended(job, success(job, result=b"7")))
    assert scene.get(job.id).state == "running"
    connection.commit()
    kept = scene.get(job.id)
    assert (kept.state, kept.result, kept.worker) == ("succeeded", b"7", None)


def test_a_rolled_back_transaction_leaves_the_job_running(scene: Scene, connection: Any) -> None:
    job = scene.running()
    scene.store.complete_within(connection, ended(job, success(job)))
    connection.rollback()
    assert scene.get(job.id) == job


def test_the_ordinary_commit_of_a_completed_attempt_is_accepted_once(scene: Scene, connection: Any) -> None:
    job = scene.running()
    scene.store.complete_within(connection, ended(job, success(job, result=b"7")))
    connection.commit()
    assert scene.end(job, success(job, result=b"8"))
    assert scene.get(job.id).result == b"7"
    assert not scene.end(job, success(job))


def test_after_a_roll_back_the_ordinary_commit_counts(scene: Scene, connection: Any) -> None:
    job = scene.running()
    scene.store.complete_within(connection, ended(job, success(job)))
    connection.rollback()
    assert scene.end(job, failure(job))
    assert scene.get(job.id).state == "waiting"


def test_a_failure_that_follows_a_completion_changes_nothing(scene: Scene, connection: Any) -> None:
    job = scene.running()
    scene.store.complete_within(connection, ended(job, success(job)))
    connection.commit()
    assert not scene.end(job, failure(job))
    assert scene.get(job.id).state == "succeeded"


@pytest.mark.parametrize("broken", [{"attempt": 2}, {"worker": WorkerId("someone else")}])
def test_a_fence_that_does_not_match_completes_nothing(scene: Scene, connection: Any, broken: dict[str, Any]) -> None:
    job = scene.running()
    assert not scene.store.complete_within(connection, ended(job, success(job), **broken))
    connection.commit()
    assert scene.get(job.id) == job


async def test_a_connection_that_blocks_can_be_used_where_others_are_awaited(scene: Scene, connection: Any) -> None:
    job, other = scene.running(), scene.new_job()
    assert await scene.store.enqueue_within_async(connection, [other]) == [other.id]
    assert await scene.store.complete_within_async(connection, ended(job, success(job)))
    connection.commit()
    assert (scene.get(job.id).state, scene.get(other.id).state) == ("succeeded", "ready")


def test_something_that_is_no_connection_is_refused(scene: Scene) -> None:
    job = scene.running()
    with pytest.raises(Unsupported):
        scene.store.complete_within(object(), ended(job, success(job)))
