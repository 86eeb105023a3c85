"""get: jobs by id, in order."""

from __future__ import annotations

from tests.conformance.scene import Scene

from perdure.model.job import JobId


def test_jobs_come_in_the_order_asked_for_with_none_for_those_that_are_not_there(scene: Scene) -> None:
    one, two = scene.enqueue(), scene.enqueue()
    found = scene.store.get([two, JobId("nobody"), one, two]).wait()
    assert [job and job.id for job in found] == [two, None, one, two]


def test_no_ids_give_no_jobs(scene: Scene) -> None:
    scene.enqueue()
    assert scene.store.get([]).wait() == []


def test_many_ids_are_found_at_once(scene: Scene) -> None:
    ids = scene.store.enqueue([scene.new_job() for _ in range(2000)]).wait()
    assert [job and job.id for job in scene.store.get(ids).wait()] == ids


def test_an_odd_id_is_just_not_there(scene: Scene) -> None:
    assert scene.store.get([JobId("'\"; --"), JobId("")]).wait() == [None, None]
