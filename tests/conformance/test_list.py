"""list and count: filters, newest first, pages that jobs made meanwhile do not shift."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.conformance.scene import SECOND, Scene, an_error, death, failure, success

from perdure.model.job import JobId
from perdure.model.state import STATES
from perdure.store.reads import JobFilter


def listed(scene: Scene, where: JobFilter, limit: int = 100) -> list[JobId]:
    return [job.id for job in scene.store.list(where, limit=limit).wait()]


@pytest.fixture
def by_state(scene: Scene) -> dict[str, JobId]:
    """One job in each state."""
    worker = scene.worker()
    job = scene.running(worker)
    scene.end(job, success(job))
    found = {"succeeded": job.id, "dead": scene.dead(worker)}
    found["running"] = scene.running(worker).id
    found["cancelled"] = scene.enqueue()
    scene.store.cancel([found["cancelled"]], "cancelled").wait()
    found["waiting"] = scene.enqueue(delay=SECOND)
    found["ready"] = scene.enqueue()
    return found


def test_jobs_come_newest_first(scene: Scene) -> None:
    ids = [scene.enqueue() for _ in range(5)]
    assert listed(scene, JobFilter()) == ids[::-1]


def test_no_more_than_the_limit_is_listed(scene: Scene) -> None:
    ids = [scene.enqueue() for _ in range(5)]
    assert listed(scene, JobFilter(), limit=2) == ids[:2:-1]
    assert listed(scene, JobFilter(), limit=0) == []


def test_listed_jobs_are_whole(scene: Scene) -> None:
    job_id = scene.dead(args=b"[1]", unique="7", priority=3)
    assert scene.store.list(JobFilter(), limit=1).wait() == [scene.get(job_id)]


def test_pages_follow_each_other_without_gap_or_overlap(scene: Scene) -> None:
    ids = [scene.enqueue() for _ in range(10)]
    seen: list[JobId] = []
    after = None
    while page := scene.store.list(JobFilter(), limit=3, after=after).wait():
        seen += [job.id for job in page]
        after = page[-1].id
        scene.enqueue()  # a job made meanwhile is newer, and shifts nothing
    assert seen == ids[::-1]


@pytest.mark.parametrize("state", STATES)
def test_each_state_is_found_alone(scene: Scene, by_state: dict[str, JobId], state: str) -> None:
    assert listed(scene, JobFilter(state=state)) == [by_state[state]]
    assert scene.store.count(JobFilter(state=state)).wait() == 1


@pytest.mark.parametrize("state", STATES)
def test_pages_of_one_state_are_in_order_too(scene: Scene, state: str) -> None:
    worker = scene.worker()
    ids = [scene.enqueue(delay=SECOND if state == "waiting" else None, priority=number) for number in (1, 3, 2, 0)]
    if state in ("running", "succeeded", "dead"):
        jobs = scene.fetch(worker)
        for job in jobs:
            if state != "running":
                scene.end(job, success(job) if state == "succeeded" else death(job))
    elif state == "cancelled":
        scene.store.cancel(ids, "cancelled").wait()
    assert listed(scene, JobFilter(state=state)) == ids[::-1]
    page = scene.store.list(JobFilter(state=state), limit=2, after=ids[3]).wait()
    assert [job.id for job in page] == [ids[2], ids[1]]


def test_without_a_filter_all_are_counted(scene: Scene, by_state: dict[str, JobId]) -> None:
    assert scene.store.count(JobFilter()).wait() == len(by_state)


def test_ids_are_found_in_order_and_only_those(scene: Scene) -> None:
    ids = [scene.enqueue() for _ in range(4)]
    assert listed(scene, JobFilter(ids=(ids[1], ids[3], JobId("nobody")))) == [ids[3], ids[1]]
    assert listed(scene, JobFilter(ids=())) == []
    assert scene.store.count(JobFilter(ids=(ids[0], ids[0]))).wait() == 1


def test_ids_and_state_must_both_hold(scene: Scene, by_state: dict[str, JobId]) -> None:
    everyone = tuple(by_state.values())
    assert listed(scene, JobFilter(ids=everyone, state="dead")) == [by_state["dead"]]


def test_task_and_queue_are_matched_exactly(scene: Scene) -> None:
    job_id = scene.enqueue(task="bill", queue="money")
    scene.enqueue(task="billing", queue="money2")
    assert listed(scene, JobFilter(task="bill")) == [job_id]
    assert listed(scene, JobFilter(queue="money")) == [job_id]
    assert listed(scene, JobFilter(task="%")) == []


def test_a_reason_is_matched_exactly(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, failure(job))
    assert listed(scene, JobFilter(reason="failed")) == [job.id]
    assert listed(scene, JobFilter(reason="fail")) == []


@pytest.mark.parametrize("part", ["Timeout", "timeouterror", "BROKE", "ошибк", "ОШИБК", '50% of "it"'])
def test_an_error_is_found_by_a_part_of_its_type_or_message_in_any_case(scene: Scene, part: str) -> None:
    worker = scene.worker()
    job_id = scene.dead(worker, error=an_error('it broke: Ошибка, 50% of "it"', "app.TimeoutError"))
    scene.dead(worker, error=an_error("something else", "ValueError"))
    scene.enqueue()
    assert listed(scene, JobFilter(error=part)) == [job_id]


@pytest.mark.parametrize("part", ["somewhere", "handler", "lineage", "Exception", "t_o"])
def test_an_error_is_not_found_by_anything_else(scene: Scene, part: str) -> None:
    scene.dead(error=an_error("it broke", "ValueError"))
    assert listed(scene, JobFilter(error=part)) == []


def test_ended_jobs_are_dated_by_their_end_and_others_by_their_making(scene: Scene) -> None:
    worker = scene.worker(lease=timedelta(days=1))
    made = scene.clock.now()
    old = scene.running(worker)
    scene.pass_time(60 * SECOND)
    scene.end(old, death(old))
    new = scene.enqueue()
    scene.pass_time(60 * SECOND)
    now = scene.clock.now()
    assert listed(scene, JobFilter(before=made + 60 * SECOND)) == []
    assert listed(scene, JobFilter(before=now)) == [new, old.id]
    assert listed(scene, JobFilter(after=made + 60 * SECOND)) == [new, old.id]
    assert listed(scene, JobFilter(after=made + 61 * SECOND)) == []


def test_a_group_is_found_by_its_fingerprint(scene: Scene) -> None:
    worker = scene.worker()
    one = scene.dead(worker, error=an_error("no such user"))
    scene.dead(worker, error=an_error("no such order"))
    fingerprint = an_error("no such user").fingerprint("send")
    assert listed(scene, JobFilter(group=fingerprint)) == [one]
