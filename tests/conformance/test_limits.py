"""Limits on what runs: exact over all workers, and no crash leaks a place."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from random import Random

from tests.conformance.scene import LEASE, SECOND, Scene, ended, failure, success

from perdure.model.decide import decide
from perdure.model.job import Job, WorkerId
from perdure.model.outcome import Vanished
from perdure.model.policy.resolve import AppPolicy, QueuePolicy, TaskPolicy, resolve
from perdure.model.policy.retry import Retry
from perdure.store import Store
from perdure.store.jobs import Want
from perdure.system.clock import Clock

DEATHS = 1_000
CREW = 20


# Proves [INV-17].
def test_a_queue_runs_no_more_than_its_limit_over_all_workers(scene: Scene) -> None:
    one, two = scene.worker("one"), scene.worker("two")
    scene.make_retries(one, 4)
    scene.store.enqueue([scene.new_job() for _ in range(10)]).wait()
    assert len(scene.fetch(one, fresh=2, retry=1, concurrency=5)) == 3
    assert len(scene.fetch(two, concurrency=5)) == 2
    assert scene.fetch(one, concurrency=5) == []


def test_a_place_is_free_when_a_job_ends_or_goes_back(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.enqueue([scene.new_job() for _ in range(10)]).wait()
    first, second = scene.fetch(worker, concurrency=2)
    scene.end(first, success(first))
    (third,) = scene.fetch(worker, concurrency=2)
    scene.end(second, failure(second))
    scene.end(third, failure(third, queue="elsewhere"))
    assert len(scene.fetch(worker, concurrency=2)) == 2


def test_a_limit_counts_its_own_queue_only(scene: Scene) -> None:
    worker = scene.worker()
    for queue in ("mail", "other"):
        scene.store.enqueue([scene.new_job(queue=queue) for _ in range(5)]).wait()
    assert len(scene.fetch(worker, queue="other")) == 5
    assert len(scene.fetch(worker, concurrency=3)) == 3


def test_a_lowered_limit_lets_nothing_start_until_enough_have_ended(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.enqueue([scene.new_job() for _ in range(10)]).wait()
    jobs = scene.fetch(worker, concurrency=5)
    assert scene.fetch(worker, concurrency=2) == []
    scene.store.commit([ended(job, success(job)) for job in jobs[:4]]).wait()
    assert len(scene.fetch(worker, concurrency=2)) == 1


def test_the_room_under_a_limit_is_shared_by_the_lanes(scene: Scene) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 10)
    scene.store.enqueue([scene.new_job() for _ in range(10)]).wait()
    want = Want(queue="mail", count=20, retry_share=500_000, concurrency=6)
    fetched = scene.store.fetch(worker, [want], 20).wait()
    assert (Counter(job.lane for job in fetched.jobs), fetched.rooms) == ({"fresh": 3, "retry": 3}, (6,))


def test_two_wants_of_one_queue_share_its_limit(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.enqueue([scene.new_job() for _ in range(10)]).wait()
    want = Want(queue="mail", count=3, concurrency=4)
    fetched = scene.store.fetch(worker, [want, want, want], 10).wait()
    assert (len(fetched.jobs), fetched.rooms) == (4, (3, 1, 0))


def test_both_limits_hold_at_once(scene: Scene) -> None:
    worker = scene.worker()
    scene.make_retries(worker, 10)
    scene.store.enqueue([scene.new_job() for _ in range(10)]).wait()
    jobs = scene.fetch(worker, concurrency=5, max_retries_running=2, fresh=0, retry=20)
    assert Counter(job.lane for job in jobs) == {"fresh": 3, "retry": 2}


def test_many_who_fetch_at_once_never_pass_a_limit(scene: Scene, open_again: Callable[[Clock], Store]) -> None:
    scene.store.enqueue([scene.new_job() for _ in range(200)]).wait()
    stores = [scene.store, open_again(scene.clock), open_again(scene.clock), open_again(scene.clock)]
    workers = [scene.worker(f"worker-{number}") for number in range(len(stores))]
    lock = threading.Lock()
    done: list[Job] = []
    most = 0

    def work(store: Store, worker: WorkerId) -> None:
        nonlocal most
        while len(done) < 200:
            want = Want(queue="mail", count=3, concurrency=5)
            jobs = store.fetch(worker, [want], 3).wait().jobs
            (mail,) = store.queues().wait()
            with lock:
                most = max(most, mail.running)
                done.extend(jobs)
            store.commit([ended(job, success(job)) for job in jobs]).wait()

    threads = [threading.Thread(target=work, args=pair) for pair in zip(stores, workers, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most <= 5
    assert Counter(job.id for job in done) == Counter({job.id: 1 for job in done})
    assert len(done) == 200


# Proves [INV-10] and [INV-17].
def test_a_thousand_deaths_of_workers_leak_no_place(scene: Scene) -> None:
    policy = AppPolicy(retry=Retry.fixed(0, jitter="none", max_attempts=10**6))
    random = Random(1)
    started: set[str] = set()
    scene.store.enqueue([scene.new_job() for _ in range(20)]).wait()
    want = Want(queue="mail", count=2, retry_share=500_000, max_retries_running=3, concurrency=5)
    for cycle in range(DEATHS // CREW):
        held: list[Job] = []
        for number in range(CREW):
            worker = scene.worker(f"worker-{cycle}-{number}")
            held += scene.store.fetch(worker, [want], 2).wait().jobs
        # Every place was taken that fresh jobs and retries under their cap could take, and none more.
        assert len(held) == min(5, 20 - len(started) + min(3, len(started)))
        assert sum(job.lane == "retry" for job in held) <= 3
        started.update(job.id for job in held)
        # Their places are held until somebody notices that they are gone, and no longer.
        scene.pass_time(LEASE + SECOND)
        heir = scene.worker("heir")
        assert scene.store.fetch(heir, [want], 2).wait().jobs == []
        reaped = scene.store.reap(100).wait()
        assert len(reaped.workers) == CREW
        assert {job.fence for job in reaped.jobs} == {job.fence for job in held}
        ends = []
        for job in reaped.jobs:
            rules = resolve(job, TaskPolicy(), QueuePolicy(), policy)
            ends.append(ended(job, decide(job, Vanished(detail="gone"), rules, scene.clock.now(), random)))
        assert all(scene.store.commit(ends).wait())
        scene.store.promote(100).wait()
        scene.store.deregister(heir).wait()
        (mail,) = scene.store.queues().wait()
        assert mail.running == 0
