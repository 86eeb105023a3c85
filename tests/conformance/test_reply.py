"""Replies and closing: awaited or waited for, nothing before that, and a clear refusal afterwards."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.conformance.scene import SECOND, Scene

from perdure.errors import EngineError, LeaseLost
from perdure.model.job import WorkerId
from perdure.store.reads import JobFilter


def test_nothing_happens_before_a_reply_is_waited_for(scene: Scene) -> None:
    scene.store.enqueue([scene.new_job()])
    assert scene.store.count(JobFilter()).wait() == 0


async def test_a_reply_can_be_awaited(scene: Scene) -> None:
    job = scene.new_job()
    assert await scene.store.enqueue([job]) == [job.id]
    (found,) = await scene.store.get([job.id])
    assert found is not None


async def test_an_error_reaches_the_one_who_awaits(scene: Scene) -> None:
    with pytest.raises(LeaseLost):
        await scene.store.beat(WorkerId("stranger"), SECOND)


async def test_a_failing_request_does_not_harm_those_beside_it(scene: Scene) -> None:
    worker = scene.worker()

    async def enqueue() -> str:
        return (await scene.store.enqueue([scene.new_job()]))[0]

    async def fail() -> str:
        with pytest.raises(LeaseLost):
            await scene.store.beat(WorkerId("stranger"), SECOND)
        return "failed"

    async def beat() -> str:
        await scene.store.beat(worker, 30 * SECOND)
        return "beat"

    answers = await asyncio.gather(*(turn() for _ in range(30) for turn in (enqueue, fail, beat)))
    assert answers.count("failed") == answers.count("beat") == 30
    assert await scene.store.count(JobFilter()) == 30


async def test_a_cancelled_waiter_does_not_harm_those_beside_it(scene: Scene) -> None:
    jobs = [scene.new_job() for _ in range(40)]

    async def enqueue(number: int) -> list[str]:
        return await scene.store.enqueue([jobs[number]])

    tasks = [asyncio.ensure_future(enqueue(number)) for number in range(40)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert answers[1::2] == [[job.id] for job in jobs[1::2]]
    assert all(isinstance(answer, asyncio.CancelledError | list) for answer in answers[::2])


def test_threads_and_loops_can_use_one_store_at_once(scene: Scene) -> None:
    jobs = [[scene.new_job() for _ in range(50)] for _ in range(6)]

    def block(mine: list) -> None:
        for job in mine:
            scene.store.enqueue([job]).wait()

    def loop(mine: list) -> None:
        async def main() -> None:
            await asyncio.gather(*(scene.store.enqueue([job]) for job in mine))

        asyncio.run(main())

    threads = [threading.Thread(target=(block, loop)[number % 2], args=(mine,)) for number, mine in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scene.store.count(JobFilter()).wait() == 300


def test_a_closed_store_says_so(scene: Scene) -> None:
    scene.store.close()
    for reply in (scene.store.enqueue([scene.new_job()]), scene.store.get([]), scene.store.now()):
        with pytest.raises(EngineError, match="closed"):
            reply.wait()


async def test_a_closed_store_says_so_on_a_loop_too(scene: Scene) -> None:
    scene.store.close()
    with pytest.raises(EngineError, match="closed"):
        await scene.store.enqueue([scene.new_job()])


def test_closing_twice_is_fine(scene: Scene) -> None:
    scene.store.close()
    scene.store.close()


def test_closing_leaves_no_thread_behind(scene: Scene) -> None:
    stop = scene.store.wakeups.subscribe(lambda: None)
    scene.store.count(JobFilter()).wait()
    scene.enqueue()
    scene.store.close()
    stop()
    assert [thread.name for thread in threading.enumerate() if "perdure" in thread.name] == []


def test_the_store_has_its_own_clock(scene: Scene) -> None:
    assert scene.store.now().wait() == scene.clock.now()
    scene.pass_time(SECOND)
    assert scene.store.now().wait() == scene.clock.now()


def test_an_open_store_has_the_schema_that_is_wanted(scene: Scene) -> None:
    status = scene.store.schema().wait()
    assert status.is_current
    assert status.wanted >= 1


def test_the_engine_tells_what_it_can_do(scene: Scene) -> None:
    told = scene.store.capabilities
    assert told.engine
    assert told.version
    assert told.durability.endswith(".")
