"""Batches: what arrives while one is on its way travels together, in few round trips."""

from __future__ import annotations

import asyncio

import pytest
from tests.conformance.scene import Scene, ended, success
from tests.servers.redis import RedisServer

from perdure.engines.opener import open_store
from perdure.engines.redis.store import RedisStore
from perdure.errors import BadOption, EngineUnreachable
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock


async def test_enqueues_at_once_share_a_few_scripts(store: RedisStore, scene: Scene) -> None:
    await asyncio.gather(*(store.enqueue([scene.new_job()]) for _ in range(500)))
    assert store._groups.enqueues().batches <= 3
    assert await store.count(JobFilter()) == 500


async def test_commits_at_once_share_a_few_scripts(store: RedisStore, scene: Scene) -> None:
    worker = await asyncio.to_thread(scene.worker)
    await store.enqueue([scene.new_job() for _ in range(200)])
    jobs = await asyncio.to_thread(scene.fetch, worker, fresh=200, limit=200)
    assert len(jobs) == 200
    answers = await asyncio.gather(*(store.commit([ended(job, success(job))]) for job in jobs))
    assert answers == [[True]] * 200
    assert store._groups.commits().batches <= 3


async def test_at_idle_an_enqueue_goes_at_once_and_alone(store: RedisStore, scene: Scene) -> None:
    for _ in range(5):
        await store.enqueue([scene.new_job()])
    assert store._groups.enqueues().batches == 5


async def test_a_job_that_cannot_be_stored_costs_its_own_enqueue_only(store: RedisStore, scene: Scene) -> None:
    batches = [[scene.new_job()], [scene.new_job(priority=1000)], [scene.new_job()]]
    answers = await asyncio.gather(*(store.enqueue(batch) for batch in batches), return_exceptions=True)
    assert answers[0] == [batches[0][0].id]
    assert isinstance(answers[1], BadOption)
    assert answers[2] == [batches[2][0].id]


async def test_when_the_server_is_gone_each_is_told_with_an_error_of_its_own(server: RedisServer) -> None:
    store = open_store(server.url, clock=VirtualClock())
    scene = Scene(store, VirtualClock())
    await store.enqueue([scene.new_job()])
    await asyncio.to_thread(server.kill)
    answers = await asyncio.gather(*(store.enqueue([scene.new_job()]) for _ in range(20)), return_exceptions=True)
    assert all(isinstance(answer, EngineUnreachable) for answer in answers)
    assert len({id(answer) for answer in answers}) == 20
    store.close()


@pytest.mark.parametrize("number", [1001, 2500])
def test_a_large_commit_is_answered_whole(scene: Scene, number: int) -> None:
    worker = scene.worker()
    scene.store.enqueue([scene.new_job() for _ in range(number)]).wait()
    jobs = []
    while page := scene.fetch(worker, fresh=1000, retry=0, limit=1000):
        jobs += page
    assert scene.store.commit([ended(job, success(job)) for job in jobs]).wait() == [True] * number
