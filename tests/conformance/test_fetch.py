"""fetch: claims ready jobs in order, by lane, under a lease, within the cap, and each attempt once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.conformance.scene import LEASE, SECOND, Scene, a_want, an_error, ended, failure, success

from perdure.errors import LeaseLost
from perdure.model.job import Job, WorkerId
from perdure.model.queue.fairness import split
from perdure.store import Store
from perdure.store.jobs import Want
from perdure.system.clock import Clock


def lanes(jobs: list[Job]) -> Counter[str]:
    return Counter(job.lane for job in jobs)


def test_a_claimed_job_runs_under_its_worker_in_a_new_attempt(scene: Scene) -> None:
    worker = scene.worker()
    job_id = scene.enqueue()
    scene.pass_time(SECOND)
    (job,) = scene.fetch(worker)
    assert (job.id, job.state, job.worker, job.attempt) == (job_id, "running", worker, 1)
    assert job.started_at == scene.clock.now()
    assert scene.get(job_id) == job


# Jobs that have most in common are read together; each has something of its own.
OWN: tuple[dict[str, Any], ...] = (
    {},
    {"args": b'{"args":[1]}'},
    {"args": b'"' + b"x" * 1000 + b'"'},
    {"task": "report"},
    {"task": "a\\0b"},
    {"priority": 5},
    {"priority": -5},
    {"unique": "1"},
    {"unique": ""},
    {"max_attempts": 1},
    {"max_attempts": 7},
    {"retry": "fixed(1s)"},
    {"retry": "1"},
    {"delivery": "at_most_once"},
    {"timeout": SECOND},
    {"timeout": 7 * SECOND},
    {"run_at": datetime(2029, 12, 31, tzinfo=UTC)},
    {"run_at": datetime(2029, 12, 30, tzinfo=UTC)},
)


def test_each_of_many_claimed_jobs_is_told_as_it_is(scene: Scene) -> None:
    worker = scene.worker(lease=100 * LEASE)
    for _ in range(2):
        for own in OWN:
            scene.enqueue(**own)
            scene.pass_time(SECOND)
        jobs = scene.fetch(worker)
        assert len(jobs) == len(OWN)
        assert jobs == [scene.get(job.id) for job in jobs]
        assert {getattr(job, name) for job in jobs for name in ("max_attempts", "timeout", "retry", "unique")} == {
            None,
            1,
            7,
            SECOND,
            7 * SECOND,
            "fixed(1s)",
            "1",
            "",
        }
        for job in jobs:
            scene.end(job, success(job))


def test_each_of_many_retries_is_told_as_it_is(scene: Scene) -> None:
    worker = scene.worker()
    for own in OWN:
        scene.enqueue(**own)
    again = [
        ended(
            job,
            failure(job, state="ready", delay=number % 3 * SECOND, failures=number % 2, error=an_error(f"no {number}")),
        )
        for number, job in enumerate(scene.fetch(worker))
    ]
    assert scene.store.commit(again).wait() == [True] * len(OWN)
    scene.pass_time(SECOND)
    jobs = scene.fetch(worker)
    assert len(jobs) == len(OWN)
    assert jobs == [scene.get(job.id) for job in jobs]
    assert {job.error.message for job in jobs if job.error} == {f"no {number}" for number in range(len(OWN))}
    assert {(job.attempt, job.failures, job.delay) for job in jobs} == {
        (2, failures, seconds * SECOND) for failures in (0, 1) for seconds in (0, 1, 2)
    }


def test_a_job_is_claimed_once(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue()
    assert len(scene.fetch(worker)) == 1
    assert scene.fetch(worker) == []


# Proves [INV-4].
def test_attempts_go_up_and_never_back(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue()
    for attempt in range(1, 4):
        (job,) = scene.fetch(worker)
        assert job.attempt == attempt
        scene.end(job, failure(job, verb="release", attempt="released", state="ready", delay=None, failures=0))


def test_waiting_and_ended_jobs_are_not_claimed(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue(delay=SECOND)
    scene.store.cancel([scene.enqueue()], "cancelled").wait()
    scene.dead(worker)
    assert scene.fetch(worker) == []


def test_a_waiting_job_is_not_claimed_even_when_it_is_due_before_it_was_promoted(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue(delay=SECOND)
    scene.pass_time(2 * SECOND)
    assert scene.fetch(worker) == []
    scene.store.promote(10).wait()
    assert len(scene.fetch(worker)) == 1


def test_higher_priority_comes_first_then_run_at_then_id(scene: Scene) -> None:
    worker = scene.worker()
    now = scene.clock.now()
    late = scene.enqueue(priority=0, run_at=now - SECOND)
    early = scene.enqueue(priority=0, run_at=now - 2 * SECOND)
    high = scene.enqueue(priority=100)
    low = scene.enqueue(priority=-100, run_at=now - timedelta(hours=1))
    first_id, second_id = scene.new_id(), scene.new_id()
    second = scene.enqueue(id=second_id, priority=5, run_at=now)
    first = scene.enqueue(id=first_id, priority=5, run_at=now)
    wanted = [high, first, second, early, late, low]
    assert [job.id for job in scene.fetch(worker)] == wanted


def test_a_small_limit_takes_the_first_in_that_order(scene: Scene) -> None:
    worker = scene.worker()
    ids = [scene.enqueue(priority=priority) for priority in (1, 3, 2, 5, 4)]
    got = [scene.fetch(worker, limit=1)[0].id for _ in range(5)]
    assert got == [ids[3], ids[4], ids[1], ids[2], ids[0]]


def test_a_small_limit_takes_the_earliest_due_of_one_priority(scene: Scene) -> None:
    worker = scene.worker()
    now = scene.clock.now()
    ids = [scene.enqueue(run_at=now - seconds * SECOND) for seconds in (1, 3, 2)]
    got = [scene.fetch(worker, limit=1)[0].id for _ in range(3)]
    assert got == [ids[1], ids[2], ids[0]]


def test_retries_of_one_priority_are_claimed_earliest_due_first(scene: Scene) -> None:
    worker = scene.worker()
    jobs = []
    for _ in range(3):
        scene.enqueue()
        jobs += scene.fetch(worker, limit=1)
    for job, delay in zip(jobs, (3, 1, 2), strict=True):
        scene.end(job, failure(job, delay=delay * SECOND))
    scene.pass_time(5 * SECOND)
    scene.store.promote(10).wait()
    got = [scene.fetch(worker, limit=1)[0].id for _ in range(3)]
    assert got == [jobs[1].id, jobs[2].id, jobs[0].id]


def test_no_more_than_the_limit_is_claimed(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.enqueue([scene.new_job() for _ in range(10)]).wait()
    assert len(scene.fetch(worker, limit=3)) == 3
    assert scene.fetch(worker, limit=0) == []


def test_no_more_than_a_want_asks_for_is_claimed(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.enqueue([scene.new_job() for _ in range(10)]).wait()
    assert len(scene.fetch(worker, fresh=2, retry=1)) == 3
    assert scene.fetch(worker, fresh=0, retry=0) == []


def test_a_queue_gives_only_its_own_jobs(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue(queue="other")
    mine = scene.enqueue(queue="mail")
    assert [job.id for job in scene.fetch(worker, queue="mail")] == [mine]


def test_wants_are_served_in_their_order_until_the_limit(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.enqueue([scene.new_job(queue=queue, priority=9) for queue in "aaabbb"]).wait()
    scene.store.enqueue([scene.new_job(queue="c") for _ in range(3)]).wait()
    wants = [a_want(queue, fresh=2, retry=0) for queue in "cab"]
    got = [job.queue for job in scene.store.fetch(worker, wants, 5).wait().jobs]
    assert got == ["c", "c", "a", "a", "b"]


def test_a_queue_wanted_twice_gives_each_job_once(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.enqueue([scene.new_job() for _ in range(3)]).wait()
    want = a_want(fresh=2, retry=0)
    jobs = scene.store.fetch(worker, [want, want], 10).wait().jobs
    assert len({job.id for job in jobs}) == len(jobs)
    assert all(job.attempt == 1 for job in jobs)


def test_both_lanes_get_what_was_wanted(scene: Scene) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 10)
    scene.store.enqueue([scene.new_job(priority=50) for _ in range(10)]).wait()
    assert lanes(scene.fetch(worker, fresh=4, retry=1)) == {"fresh": 4, "retry": 1}
    assert lanes(scene.fetch(worker, fresh=0, retry=3)) == {"retry": 3}


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_a_single_lane_can_be_asked_for_even_at_a_small_limit(scene: Scene, limit: int) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 10)
    scene.store.enqueue([scene.new_job() for _ in range(10)]).wait()
    assert lanes(scene.fetch(worker, limit=limit, fresh=0, retry=limit)) == {"retry": limit}
    assert lanes(scene.fetch(worker, limit=limit, fresh=limit, retry=0)) == {"fresh": limit}


def test_when_the_limit_is_less_than_wanted_both_lanes_give_way(scene: Scene) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 20)
    scene.store.enqueue([scene.new_job() for _ in range(20)]).wait()
    assert lanes(scene.fetch(worker, limit=10, fresh=16, retry=4)) == {"fresh": 8, "retry": 2}


def test_what_the_fresh_lane_cannot_fill_goes_to_retries(scene: Scene) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 10)
    scene.enqueue()
    assert lanes(scene.fetch(worker, fresh=4, retry=1)) == {"fresh": 1, "retry": 4}


def test_what_the_retry_lane_cannot_fill_goes_to_fresh_jobs(scene: Scene) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 1)
    scene.store.enqueue([scene.new_job() for _ in range(10)]).wait()
    assert lanes(scene.fetch(worker, fresh=1, retry=4)) == {"fresh": 4, "retry": 1}


def test_a_strict_want_leaves_room_unused(scene: Scene) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 10)
    assert lanes(scene.fetch(worker, fresh=4, retry=1, is_strict=True)) == {"retry": 1}
    scene.store.enqueue([scene.new_job() for _ in range(10)]).wait()
    assert lanes(scene.fetch(worker, fresh=2, retry=0, is_strict=True)) == {"fresh": 2}


# Proves [INV-10].
def test_the_cap_counts_running_retries_of_all_workers(scene: Scene) -> None:
    one, two = scene.worker("one"), scene.worker("two")
    scene.make_retries(one, 10)
    assert len(scene.fetch(one, fresh=0, retry=2, max_retries_running=5)) == 2
    assert len(scene.fetch(two, fresh=0, retry=9, max_retries_running=5)) == 3
    assert scene.fetch(one, fresh=0, retry=9, max_retries_running=5) == []


def test_the_cap_is_free_again_when_a_retry_ends(scene: Scene) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 5)
    jobs = scene.fetch(worker, fresh=0, retry=9, max_retries_running=2)
    scene.end(jobs[0], success(jobs[0]))
    assert len(scene.fetch(worker, fresh=0, retry=9, max_retries_running=2)) == 1


def test_retries_that_fill_the_room_of_fresh_jobs_obey_the_cap_too(scene: Scene) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 10)
    assert len(scene.fetch(worker, fresh=8, retry=2, max_retries_running=3)) == 3


def test_what_the_cap_keeps_back_is_room_for_fresh_jobs(scene: Scene) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 10)
    scene.store.enqueue([scene.new_job() for _ in range(10)]).wait()
    assert lanes(scene.fetch(worker, fresh=2, retry=6, max_retries_running=1)) == {"fresh": 7, "retry": 1}


def test_the_cap_counts_one_queue_and_not_fresh_jobs(scene: Scene) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 1)
    scene.store.enqueue([scene.new_job() for _ in range(3)]).wait()
    assert len(scene.fetch(worker, fresh=3, retry=0)) == 3
    other = scene.running(worker, queue="other")
    scene.end(other, failure(other, state="ready", delay=0 * SECOND))
    assert lanes(scene.fetch(worker, queue="other")) == {"retry": 1}
    assert len(scene.fetch(worker, fresh=0, retry=1, max_retries_running=1)) == 1


def test_a_cap_of_zero_keeps_all_retries_back(scene: Scene) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 3)
    assert scene.fetch(worker, max_retries_running=0) == []


# Proves [INV-13].
def test_a_paused_queue_gives_nothing_and_others_go_on(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue(queue="mail")
    other = scene.enqueue(queue="other")
    scene.store.pause("mail", "deploy").wait()
    wants = [a_want(queue, fresh=5, retry=5) for queue in ("mail", "other")]
    assert [job.id for job in scene.store.fetch(worker, wants, 10).wait().jobs] == [other]


def test_a_fetch_tells_the_room_that_each_want_was_offered(scene: Scene) -> None:
    worker = scene.worker()
    for queue in ("busy", "paused", "full", "late"):
        scene.store.enqueue([scene.new_job(queue=queue) for _ in range(5)]).wait()
    scene.fetch(worker, queue="full", limit=2)
    scene.store.pause("paused", None).wait()
    wants = [
        a_want("busy", fresh=2, retry=1),
        a_want("empty", fresh=2, retry=1),
        a_want("paused", fresh=2, retry=1),
        a_want("full", fresh=2, retry=1, concurrency=2),
        a_want("full", fresh=9, retry=0, concurrency=3),
        a_want("busy", fresh=9, retry=0),
        a_want("late", fresh=2, retry=1),
    ]
    fetched = scene.store.fetch(worker, wants, 6).wait()
    assert fetched.rooms == (3, 0, 0, 0, 1, 2, 0)
    assert Counter(job.queue for job in fetched.jobs) == {"busy": 5, "full": 1}


def test_a_queue_that_could_not_fill_its_room_is_not_asked_again(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.enqueue([scene.new_job() for _ in range(9)]).wait()
    strict = a_want(fresh=1, retry=1, is_strict=True)
    fetched = scene.store.fetch(worker, [strict, strict], 10).wait()
    assert (len(fetched.jobs), fetched.rooms) == (1, (2, 0))


def test_a_strict_want_whose_turn_finds_an_empty_lane_was_offered_its_room(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue()
    fetched = scene.store.fetch(worker, [a_want(fresh=0, retry=1, is_strict=True)], 1).wait()
    assert (fetched.jobs, fetched.rooms) == ([], (1,))
    nothing = scene.store.fetch(worker, [a_want("empty", fresh=0, retry=1, is_strict=True)], 1).wait()
    assert (nothing.jobs, nothing.rooms) == ([], (0,))


def test_a_second_queue_with_little_room_left_serves_its_retries_too(scene: Scene) -> None:
    """A share that is cut with the room would round the retries of the second queue away for ever."""
    worker = scene.worker()
    scene.store.enqueue([scene.new_job(queue="first") for _ in range(100)]).wait()
    scene.make_retries(worker, 50)
    scene.store.enqueue([scene.new_job() for _ in range(50)]).wait()
    carry, got = 0, Counter[str]()
    for _ in range(20):
        first = Want(queue="first", count=3)
        second = Want(queue="mail", count=4, retry_share=200_000, carry=carry)
        fetched = scene.store.fetch(worker, [first, second], 4).wait()
        assert fetched.rooms == (3, 1)
        carry = split(fetched.rooms[1], 200_000, carry).carry
        got += lanes([job for job in fetched.jobs if job.queue == "mail"])
    assert got == {"fresh": 16, "retry": 4}


def test_a_worker_that_never_registered_gets_lease_lost(scene: Scene) -> None:
    scene.enqueue()
    with pytest.raises(LeaseLost):
        scene.fetch(WorkerId("stranger"))


@pytest.mark.parametrize("has_work", [True, False])
def test_a_worker_may_fetch_until_it_is_struck_off(scene: Scene, has_work: bool) -> None:
    worker = scene.worker()
    if has_work:
        scene.enqueue()
    scene.pass_time(2 * LEASE)
    # The store's clock may have jumped: it takes nobody's lease away by itself.
    scene.fetch(worker, limit=0)
    scene.store.reap(10).wait()
    with pytest.raises(LeaseLost):
        scene.fetch(worker)


def test_a_refused_fetch_claims_nothing(scene: Scene) -> None:
    job_id = scene.enqueue()
    with pytest.raises(LeaseLost):
        scene.fetch(WorkerId("stranger"))
    assert scene.get(job_id).state == "ready"


def test_a_retry_shows_what_happened_before(scene: Scene) -> None:
    worker = scene.worker()
    first = scene.running(worker, max_attempts=9)
    scene.end(first, failure(first, state="ready", delay=0 * SECOND))
    (job,) = scene.fetch(worker)
    assert (job.lane, job.failures, job.max_attempts, job.reason) == ("retry", 1, 9, "failed")
    assert job.error is not None
    assert job.error.message == "it broke"


def test_many_threads_never_get_the_same_attempt(scene: Scene) -> None:
    scene.store.enqueue([scene.new_job() for _ in range(600)]).wait()
    workers = [scene.worker(f"worker-{number}") for number in range(8)]
    claimed: list[Job] = []

    def claim(worker: WorkerId) -> None:
        while jobs := scene.fetch(worker, limit=7):
            claimed.extend(jobs)

    threads = [threading.Thread(target=claim, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claimed) == 600
    assert len({job.fence for job in claimed}) == 600


def test_two_openings_never_get_the_same_attempt(scene: Scene, open_again: Callable[[Clock], Store]) -> None:
    scene.store.enqueue([scene.new_job() for _ in range(300)]).wait()
    stores = [scene.store, open_again(scene.clock), open_again(scene.clock)]
    workers = [scene.worker(f"worker-{number}") for number in range(3)]
    claimed: list[Job] = []

    def claim(store: Store, worker: WorkerId) -> None:
        while jobs := store.fetch(worker, [a_want(fresh=5, retry=0)], 5).wait().jobs:
            claimed.extend(jobs)

    threads = [threading.Thread(target=claim, args=pair) for pair in zip(stores, workers, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(job.id for job in claimed) == Counter({job.id: 1 for job in claimed})
    assert len(claimed) == 300
