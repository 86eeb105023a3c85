"""enqueue: durable, all or none, idempotent by id, one live job per (task, unique key)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.conformance.scene import Scene, death, success

from perdure.errors import PerdureError
from perdure.store import Store
from perdure.store.reads import JobFilter
from perdure.system.clock import Clock

HOUR = timedelta(hours=1)


def test_ids_come_back_in_the_order_of_the_jobs(scene: Scene) -> None:
    jobs = [scene.new_job() for _ in range(300)]
    assert scene.store.enqueue(jobs[::-1]).wait() == [job.id for job in jobs[::-1]]


def test_everything_that_was_asked_is_kept(scene: Scene) -> None:
    job = scene.new_job(
        task="bill",
        queue="money",
        args=b'{"args":[1]}',
        delay=HOUR,
        priority=-7,
        unique="order-7",
        max_attempts=3,
        retry="standard",
        delivery="at_most_once",
        timeout=timedelta(milliseconds=1500),
    )
    scene.store.enqueue([job]).wait()
    kept = scene.get(job.id)
    asked = (job.task, job.queue, job.args, job.priority, job.unique, job.max_attempts, job.retry)
    assert (kept.task, kept.queue, kept.args, kept.priority, kept.unique, kept.max_attempts, kept.retry) == asked
    assert (kept.delivery, kept.timeout) == (job.delivery, job.timeout)
    assert (kept.state, kept.lane, kept.run_at) == ("waiting", "fresh", scene.clock.now() + HOUR)
    assert kept.created_at == scene.clock.now()


def test_a_new_job_has_nothing_behind_it(scene: Scene) -> None:
    job = scene.get(scene.enqueue())
    assert (job.attempt, job.failures, job.recoveries, job.is_cancelling) == (0, 0, 0, False)
    assert (job.origin, job.delay, job.reason, job.error, job.result, job.worker) == (None,) * 6
    assert (job.started_at, job.ended_at, job.parked_at) == (None, None, None)


def test_a_job_without_a_time_is_ready_now(scene: Scene) -> None:
    job = scene.get(scene.enqueue())
    assert (job.state, job.run_at) == ("ready", scene.clock.now())


def test_a_job_with_a_delay_waits_for_it(scene: Scene) -> None:
    job = scene.get(scene.enqueue(delay=HOUR))
    assert (job.state, job.run_at) == ("waiting", scene.clock.now() + HOUR)


def test_a_delay_of_nothing_means_ready(scene: Scene) -> None:
    assert scene.get(scene.enqueue(delay=timedelta(0))).state == "ready"


def test_a_run_at_in_the_future_waits_and_one_in_the_past_is_ready(scene: Scene) -> None:
    later, earlier = scene.clock.now() + HOUR, scene.clock.now() - HOUR
    waiting = scene.get(scene.enqueue(run_at=later))
    ready = scene.get(scene.enqueue(run_at=earlier))
    assert (waiting.state, waiting.run_at) == ("waiting", later)
    assert (ready.state, ready.run_at) == ("ready", earlier)


def test_a_run_at_is_kept_to_the_microsecond(scene: Scene) -> None:
    moment = scene.clock.now() + timedelta(days=20_000, microseconds=1)
    assert scene.get(scene.enqueue(run_at=moment)).run_at == moment


def test_an_id_that_exists_is_left_as_it_is(scene: Scene) -> None:
    job = scene.new_job(args=b'"first"')
    scene.store.enqueue([job]).wait()
    again = scene.new_job(id=job.id, args=b'"second"', queue="other")
    assert scene.store.enqueue([again]).wait() == [job.id]
    assert scene.get(job.id).args == b'"first"'
    assert scene.store.count(JobFilter()).wait() == 1


def test_a_repeated_enqueue_does_not_bring_an_ended_job_back(scene: Scene) -> None:
    job = scene.new_job(unique="once")
    scene.store.enqueue([job]).wait()
    (running,) = scene.fetch(scene.worker())
    scene.end(running, success(running))
    assert scene.store.enqueue([job]).wait() == [job.id]
    assert scene.get(job.id).state == "succeeded"


def test_an_id_twice_in_one_batch_is_one_job(scene: Scene) -> None:
    job = scene.new_job()
    assert scene.store.enqueue([job, job]).wait() == [job.id, job.id]
    assert scene.store.count(JobFilter()).wait() == 1


def test_a_unique_key_that_is_taken_gives_the_live_jobs_id(scene: Scene) -> None:
    first = scene.enqueue(unique="order-7")
    assert scene.enqueue(unique="order-7") == first
    assert scene.store.count(JobFilter()).wait() == 1


@pytest.mark.parametrize("state", ["waiting", "ready", "running"])
def test_a_unique_key_is_taken_in_every_live_state(scene: Scene, state: str) -> None:
    first = scene.enqueue(unique="order-7", delay=HOUR if state == "waiting" else None)
    if state == "running":
        scene.fetch(scene.worker())
    assert scene.get(first).state == state
    assert scene.enqueue(unique="order-7") == first


@pytest.mark.parametrize("ending", ["succeeded", "dead", "cancelled"])
def test_a_unique_key_is_free_again_once_its_job_has_ended(scene: Scene, ending: str) -> None:
    job = scene.running(unique="order-7")
    if ending == "cancelled":
        outcome = death(job, verb="cancel", state="cancelled", attempt="cancelled", reason="cancelled")
    else:
        outcome = success(job) if ending == "succeeded" else death(job)
    assert scene.end(job, outcome)
    assert scene.get(job.id).state == ending
    assert scene.enqueue(unique="order-7") != job.id


def test_a_unique_key_belongs_to_its_task(scene: Scene) -> None:
    assert scene.enqueue(task="send", unique="7") != scene.enqueue(task="bill", unique="7")
    assert scene.store.count(JobFilter()).wait() == 2


def test_a_unique_key_twice_in_one_batch_is_one_job(scene: Scene) -> None:
    jobs = [scene.new_job(unique="7"), scene.new_job(), scene.new_job(unique="7")]
    assert scene.store.enqueue(jobs).wait() == [jobs[0].id, jobs[1].id, jobs[0].id]


def test_jobs_without_a_key_never_stand_for_each_other(scene: Scene) -> None:
    assert scene.enqueue(unique=None) != scene.enqueue(unique=None)


def test_an_empty_batch_makes_nothing(scene: Scene) -> None:
    assert scene.store.enqueue([]).wait() == []


# Proves [INV-15].
def test_a_batch_with_a_job_that_cannot_be_stored_makes_none(scene: Scene) -> None:
    jobs = [*(scene.new_job() for _ in range(20)), scene.new_job(priority=1000)]
    with pytest.raises(PerdureError):
        scene.store.enqueue(jobs).wait()
    assert scene.store.count(JobFilter()).wait() == 0


def test_a_text_that_cannot_be_stored_is_refused_with_a_perdure_error(scene: Scene) -> None:
    with pytest.raises(PerdureError):
        scene.enqueue(unique="\ud800")


@pytest.mark.parametrize(
    "args",
    [
        b"",
        b'{"a":"\xe2\x80\xa8\xf0\x9f\x98\x80"}',
        b'"\\u0000 \\ud800 \\""',
        b"\x00\x01\x02",
        b"\xff\xfe not text",
        b'["' + b"x" * 1_000_000 + b'"]',
        b"12345678901234567890123",
        b'{"a":1,"a":2}',
        b"'; DROP TABLE perdure_jobs; --",
    ],
)
def test_args_come_back_byte_for_byte(scene: Scene, args: bytes) -> None:
    job_id = scene.enqueue(args=args)
    assert scene.get(job_id).args == args
    (job,) = scene.fetch(scene.worker())
    assert job.args == args


def test_names_in_any_script_are_kept(scene: Scene) -> None:
    job_id = scene.enqueue(task="отправить-'\"", queue="почта 📮", unique="ключ\x00\n")
    job = scene.get(job_id)
    assert (job.task, job.queue, job.unique) == ("отправить-'\"", "почта 📮", "ключ\x00\n")


def test_what_was_answered_is_seen_by_others(scene: Scene, open_again: Callable[[Clock], Store]) -> None:
    job_id = scene.enqueue()
    (seen,) = open_again(scene.clock).get([job_id]).wait()
    assert seen == scene.get(job_id)


# Proves [INV-1].
def test_what_was_answered_survives_closing(scene: Scene, open_again: Callable[[Clock], Store]) -> None:
    job_id = scene.enqueue()
    scene.store.close()
    (seen,) = open_again(scene.clock).get([job_id]).wait()
    assert seen is not None


async def test_many_enqueues_at_once_are_each_answered_with_their_own_ids(scene: Scene) -> None:
    batches = [[scene.new_job() for _ in range(count % 4)] for count in range(200)]
    answers = await asyncio.gather(*(scene.store.enqueue(batch) for batch in batches))
    assert answers == [[job.id for job in batch] for batch in batches]
    assert await scene.store.count(JobFilter()) == sum(map(len, batches))


# Proves [INV-12].
async def test_of_many_enqueues_of_a_key_at_once_one_makes_the_job(scene: Scene) -> None:
    answers = await asyncio.gather(*(scene.store.enqueue([scene.new_job(unique="7")]) for _ in range(50)))
    assert len({ids[0] for ids in answers}) == 1
    assert await scene.store.count(JobFilter()) == 1
