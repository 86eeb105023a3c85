"""Large batches in which some things are alike and some are not: each job gets what belongs to it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.conformance.scene import SECOND, Scene, ended, failure, success

from perdure.model.job import Job, NewJob
from perdure.store.jobs import Ended

MANY = 120


@pytest.fixture
def running(scene: Scene) -> list[Job]:
    """Many jobs at their first attempt, in an order that is not that of their ids."""
    worker = scene.worker()
    scene.store.enqueue([scene.new_job(priority=number % 7) for number in range(MANY)]).wait()
    return scene.fetch(worker, limit=MANY, fresh=MANY)


def test_each_of_many_successes_keeps_its_own_times_and_result(scene: Scene, running: list[Job]) -> None:
    started_at = scene.clock.now()
    batch = [
        ended(
            job,
            success(job, result=None if number % 3 == 0 else b'"\\\\ \xc3\xa9, %d {}"' % number),
            started_at=started_at + number * SECOND,
            ended_at=started_at + 2 * number * SECOND,
        )
        for number, job in enumerate(running)
    ]
    assert scene.store.commit(batch).wait() == [True] * MANY
    for one, job in zip(batch, scene.store.get([job.id for job in running]).wait(), strict=True):
        assert job is not None
        assert (job.state, job.result, job.worker) == ("succeeded", one.outcome.result, None)
        (attempt,) = scene.store.history(job.id, 5).wait()
        assert (attempt.started_at, attempt.ended_at) == (one.started_at, one.ended_at)


def test_of_many_successes_only_those_whose_fence_matches_are_accepted(scene: Scene, running: list[Job]) -> None:
    def wrong(number: int, job: Job) -> Ended:
        if number % 10 == 3:
            return ended(job, success(job), attempt=job.attempt + 1)
        if number % 10 == 6:
            return ended(job, success(job), worker="worker-2")
        return ended(job, success(job))

    accepted = scene.store.commit([wrong(number, job) for number, job in enumerate(running)]).wait()
    assert accepted == [number % 10 not in (3, 6) for number in range(MANY)]
    states = [job.state if job else None for job in scene.store.get([job.id for job in running]).wait()]
    assert states == ["succeeded" if answer else "running" for answer in accepted]
    again = scene.store.commit([ended(job, success(job)) for job in running]).wait()
    assert again == [not answer for answer in accepted]


@pytest.mark.parametrize("share", [2, 3, 10])
def test_failures_among_many_successes_are_written_as_failures(scene: Scene, running: list[Job], share: int) -> None:
    batch = [
        ended(job, failure(job) if number % share == 0 else success(job, note="odd" if number % share == 1 else None))
        for number, job in enumerate(running)
    ]
    assert scene.store.commit(batch).wait() == [True] * MANY
    for number, one in enumerate(batch):
        job = scene.get(one.job_id)
        assert job.state == ("waiting" if number % share == 0 else "succeeded")
        assert job.reason == ("failed" if number % share == 0 else "odd" if number % share == 1 else None)
        assert job.failures == (1 if number % share == 0 else 0)


def test_of_many_successes_of_which_one_comes_twice_the_first_stands(scene: Scene, running: list[Job]) -> None:
    batch = [ended(job, success(job)) for job in running]
    twice = [*batch, ended(running[5], failure(running[5])), batch[7]]
    assert scene.store.commit(twice).wait() == [True] * MANY + [False, False]
    assert scene.get(running[5].id).state == "succeeded"


def test_an_id_that_can_be_no_jobs_among_many_successes_is_not_accepted(scene: Scene, running: list[Job]) -> None:
    batch = [ended(job, success(job)) for job in running]
    odd = [*batch, ended(running[0], success(running[0]), job_id="nobody")]
    assert scene.store.commit(odd).wait() == [True] * MANY + [False]


def test_successes_at_later_attempts_keep_what_was_counted(scene: Scene, running: list[Job]) -> None:
    worker = running[0].worker
    assert worker is not None
    retries = [ended(job, failure(job, state="ready", delay=timedelta(0))) for job in running]
    assert scene.store.commit(retries).wait() == [True] * MANY
    again = scene.fetch(worker, limit=MANY, fresh=0, retry=MANY)
    assert scene.store.commit([ended(job, success(job)) for job in again]).wait() == [True] * MANY
    for job in scene.store.get([job.id for job in running]).wait():
        assert job is not None
        assert (job.state, job.attempt, job.failures, job.lane, job.error) == ("succeeded", 2, 1, "retry", None)


def test_a_batch_of_several_kinds_of_jobs_is_made_as_it_was_asked_for(scene: Scene) -> None:
    def new(number: int) -> NewJob:
        return scene.new_job(
            task=("send", "re\\nder", "a\0b")[number % 3],
            queue="mail" if number % 2 else "other",
            args=b'{"args":["\\\\x41, \xc3\xa9", %d]}' % number,
            delay=None if number % 4 else timedelta(minutes=number % 5 + 1),
            priority=number % 2,
            max_attempts=7 if number % 3 else None,
            timeout=timedelta(seconds=9) if number % 2 else None,
        )

    for kinds, count in ((1, 60), (2, 400), (60, 60)):
        asked = [new(number % kinds) for number in range(count)]
        assert scene.store.enqueue(asked).wait() == [job.id for job in asked]
        for wanted, job in zip(asked, scene.store.get([job.id for job in asked]).wait(), strict=True):
            assert job is not None
            for name in ("task", "queue", "args", "priority", "max_attempts", "timeout"):
                assert getattr(job, name) == getattr(wanted, name)
            assert job.state == ("ready" if wanted.delay is None else "waiting")
            assert job.run_at == scene.clock.now() + (wanted.delay or timedelta(0))


def test_a_batch_of_which_some_exist_leaves_those_as_they_are(scene: Scene) -> None:
    first = [scene.new_job(args=b"1") for _ in range(MANY)]
    scene.store.enqueue(first[::2]).wait()
    changed = [scene.new_job(id=job.id, args=b"2") for job in first]
    assert scene.store.enqueue(changed).wait() == [job.id for job in first]
    found = scene.store.get([job.id for job in first]).wait()
    assert [job.args if job else None for job in found] == [b"1", b"2"] * (MANY // 2)
