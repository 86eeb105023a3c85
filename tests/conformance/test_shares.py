"""Shares under load: with both lanes full each gets its part, at every batch size, whoever else fetches."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from itertools import accumulate

import pytest
from tests.conformance.scene import SECOND, Scene, ended, failure

from perdure.model.job import Job, WorkerId
from perdure.model.queue.fairness import Fairness
from perdure.runtime.claims import Claims
from perdure.store import Store
from perdure.system.clock import Clock

IS_LONG = os.environ.get("PERDURE_CHAOS") == "long"
BACKLOG = 100_000 if IS_LONG else 1_200
SIZES = (1, 2, 3, 10, 100)
WINDOW = 1_000
STARTS = 1_030


def claims_of(store: Store, queues: Mapping[str, int] | None = None, **fairness: object) -> Claims:
    fair = Fairness(**fairness)  # type: ignore[arg-type]
    return Claims(store=store, fairness=lambda queue: fair, queues=queues or {"mail": 1})


async def keep_full(scene: Scene, fresh: int) -> None:
    await scene.store.enqueue([scene.new_job() for _ in range(fresh)])


async def start(claims: Claims, worker: WorkerId, size: int, starts: int) -> list[list[Job]]:
    """The jobs of each fetch until so many were started; every fetch must fill its room."""
    fetches: list[list[Job]] = []
    while sum(map(len, fetches)) < starts:
        fetches.append(await claims.fetch(worker, size))
        assert len(fetches[-1]) == size
    return fetches


def check_windows(fetches: list[list[Job]], share: float, slack: float = 1.0) -> None:
    """Over every window of at least 1,000 starts the retries are within one job of their share."""
    retries = [0, *accumulate(sum(job.lane == "retry" for job in jobs) for jobs in fetches)]
    totals = [0, *accumulate(map(len, fetches))]
    windows = [
        (begin, end)
        for begin in range(len(totals))
        for end in range(begin + 1, len(totals))
        if totals[end] - totals[begin] >= WINDOW
    ]
    assert windows
    for begin, end in windows:
        wanted = share * (totals[end] - totals[begin])
        assert abs(retries[end] - retries[begin] - wanted) <= slack


# Proves [INV-9].
async def test_fresh_work_keeps_its_share_beside_a_mass_of_due_retries_at_every_batch_size(scene: Scene) -> None:
    worker = scene.worker()
    await asyncio.to_thread(scene.make_retries, worker, BACKLOG)
    claims = claims_of(scene.store)
    for size in SIZES:
        await keep_full(scene, STARTS + size)
        check_windows(await start(claims, worker, size, STARTS), 0.2)


async def test_due_retries_keep_their_share_beside_a_mass_of_fresh_work_at_every_batch_size(scene: Scene) -> None:
    """The share is turned round: retries come in slowly, are never short of their part, and fresh work is endless."""
    worker = scene.worker()
    await keep_full(scene, 2 * STARTS)
    claims = claims_of(scene.store, retry_share=0.3)
    failing = scene.worker("failing")
    for size in SIZES if IS_LONG else (1, 100):
        await asyncio.to_thread(make_retries_beside, scene, failing, 420)
        check_windows(await start(claims, worker, size, STARTS), 0.3)
        await keep_full(scene, STARTS)


def make_retries_beside(scene: Scene, worker: WorkerId, count: int) -> None:
    """Ready retries beside fresh work that is ready already."""
    jobs = scene.fetch(worker, fresh=count, retry=0, limit=count, is_strict=True)
    scene.store.commit([ended(job, failure(job, state="ready", delay=0 * SECOND)) for job in jobs]).wait()


@pytest.mark.parametrize("size", SIZES)
async def test_a_lane_alone_gets_everything(scene: Scene, size: int) -> None:
    worker = scene.worker()
    claims = claims_of(scene.store, retry_share=0.9)
    await keep_full(scene, 6 * size)
    fresh = await start(claims, worker, size, 6 * size)
    assert {job.lane for jobs in fresh for job in jobs} == {"fresh"}
    await asyncio.to_thread(scene.make_retries, worker, 6 * size)
    claims = claims_of(scene.store, retry_share=0)
    retries = await start(claims, worker, size, 6 * size)
    assert {job.lane for jobs in retries for job in jobs} == {"retry"}


@pytest.mark.parametrize("size", [1, 3, 10])
async def test_a_strict_queue_gives_a_lane_no_more_than_its_share(scene: Scene, size: int) -> None:
    worker = scene.worker()
    await keep_full(scene, 200)
    claims = claims_of(scene.store, retry_share=0.25, is_strict=True)
    started = 0
    for offered in range(size, 121, size):
        jobs = await claims.fetch(worker, size)
        started += len(jobs)
        assert abs(started - 0.75 * offered) <= 1


async def test_two_workers_at_once_each_keep_the_share(scene: Scene, open_again: Callable[[Clock], Store]) -> None:
    one, two = scene.worker("one"), scene.worker("two")
    await asyncio.to_thread(scene.make_retries, one, 600)
    await keep_full(scene, 2_300)
    other = claims_of(open_again(scene.clock))
    fetches = await asyncio.gather(start(claims_of(scene.store), one, 3, 1_050), start(other, two, 10, 1_050))
    for part in fetches:
        # A fetch may meet jobs that the other is about to claim, and is then given some of the other lane.
        check_windows(part, 0.2, slack=10)
    fences = [job.fence for part in fetches for jobs in part for job in jobs]
    assert len(set(fences)) == len(fences)


async def test_inside_each_lane_higher_priority_comes_first(scene: Scene) -> None:
    worker = scene.worker()
    for priority in (1, 3, 2):
        await asyncio.to_thread(scene.make_retries, worker, 10, priority=priority)
    for priority in (5, 4, 6):
        await scene.store.enqueue([scene.new_job(priority=priority) for _ in range(10)])
    claims = claims_of(scene.store, retry_share=0.5)
    jobs = [job for _ in range(20) for job in await claims.fetch(worker, 3)]
    for lane, wanted in (("fresh", [6, 5, 4]), ("retry", [3, 2, 1])):
        priorities = [job.priority for job in jobs if job.lane == lane]
        assert priorities == [priority for priority in wanted for _ in range(10)]


# Proves [INV-18].
@pytest.mark.parametrize("size", SIZES)
async def test_busy_queues_of_a_worker_get_the_parts_of_their_weights(scene: Scene, size: int) -> None:
    worker = scene.worker()
    weights = {"mail": 3, "default": 1, "slow": 2, "empty": 5}
    for queue in ("mail", "default", "slow"):
        await scene.store.enqueue([scene.new_job(queue=queue) for _ in range(400)])
    claims = claims_of(scene.store, weights)
    jobs = [job for fetch in await start(claims, worker, size, max(120, 6 * size)) for job in fetch]
    counts = {queue: sum(job.queue == queue for job in jobs) for queue in weights}
    # What the empty queue cannot use is shared out anew with the next fetch.
    slack = 2 + size * 5 // 11 if size > 1 else 2
    for queue in ("mail", "default", "slow"):
        assert abs(counts[queue] - len(jobs) * weights[queue] / 6) <= slack


async def test_the_only_queue_with_work_gets_every_place(scene: Scene) -> None:
    worker = scene.worker()
    await scene.store.enqueue([scene.new_job(queue="slow") for _ in range(100)])
    claims = claims_of(scene.store, {"mail": 9, "slow": 1})
    for size in (1, 7, 50):
        assert len(await claims.fetch(worker, size)) == size


async def test_a_queue_that_was_empty_for_long_gets_its_part_and_no_burst(scene: Scene) -> None:
    worker = scene.worker()
    await scene.store.enqueue([scene.new_job() for _ in range(150)])
    claims = claims_of(scene.store, {"mail": 1, "slow": 1})
    assert len(await start(claims, worker, 2, 60)) == 30
    await scene.store.enqueue([scene.new_job(queue="slow") for _ in range(60)])
    jobs = [job for fetch in await start(claims, worker, 2, 40) for job in fetch]
    assert abs(sum(job.queue == "slow" for job in jobs) - 20) <= 2


async def test_a_queue_at_its_limit_leaves_its_part_to_the_others(scene: Scene) -> None:
    worker = scene.worker()
    for queue in ("mail", "slow"):
        await scene.store.enqueue([scene.new_job(queue=queue) for _ in range(50)])
    limited, free = Fairness(concurrency=3), Fairness()
    claims = Claims(
        store=scene.store, fairness=lambda queue: limited if queue == "mail" else free, queues={"mail": 9, "slow": 1}
    )
    jobs = [job for _ in range(4) for job in await claims.fetch(worker, 10)]
    assert len(jobs) == 40
    assert sum(job.queue == "mail" for job in jobs) == 3
