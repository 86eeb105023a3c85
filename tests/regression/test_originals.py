"""The worst bugs of the systems that Perdure grew from, each by name: none of them may come back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from tests.conformance.conftest import ENGINES, Engine

from perdure import App, DeadLetter, GiveUp, Job, Retry, Settings, current_job
from perdure.application.identity import Ids
from perdure.engines.opener import open_store
from perdure.model.decide import decide
from perdure.model.event import AttemptEnded
from perdure.model.job import NewJob, WorkerId
from perdure.model.outcome import Returned
from perdure.runtime.backoff import Backoff
from perdure.runtime.committer import Committer
from perdure.runtime.outage import Outage
from perdure.store import Store
from perdure.store.jobs import Want
from perdure.system.clock import SystemClock

LEASE = timedelta(seconds=30)


@pytest.fixture
def app() -> App:
    return App("sqlite://")


def claim_and_vanish(store: Store, queue: str = "default") -> list[Job]:
    """A worker registers, claims everything, starts it and is never heard of again."""
    worker = WorkerId("00000000-0000-7000-8000-00000000dead")
    store.register(worker, host="gone", pid=1, queues=(queue,), concurrency=9, version="", lease=LEASE).wait()
    jobs = store.fetch(worker, [Want(queue=queue, count=100)], 100).wait().jobs
    assert all(store.start(worker, [(job.id, job.attempt) for job in jobs]).wait())
    return jobs


class Silent:
    def tell(self, event: object) -> None: ...


def test_a_single_result_is_committed_at_once_and_not_when_a_batch_is_full():
    """Was: a committer that flushes only full batches, so that idle results outlive their lease."""

    async def commit_one() -> str:
        clock = SystemClock()
        store = open_store("sqlite://", clock=clock)
        job_id = Ids(clock, Random(1)).job()
        store.enqueue([NewJob(id=job_id, task="t", queue="default", args=b"{}")]).wait()
        job = claim_and_vanish(store)[0]
        committed = asyncio.Event()
        committer = Committer(
            store=store,
            clock=clock,
            observer=Silent(),
            backoff=Backoff("committer", random=Random(1), outage=Outage("worker", clock=clock, observer=Silent())),
            is_trusted=lambda: True,
            done=lambda batch: committed.set(),
        )
        running = asyncio.create_task(committer.run())
        now = clock.now()
        outcome = decide(job, Returned(), App("sqlite://").registry.policy(job), now, Random(1))
        committer.put(AttemptEnded(job=job, outcome=outcome, limit=4, started_at=now, ended_at=now))
        async with asyncio.timeout(60):
            await committed.wait()
        committer.close()
        await running
        found = store.get([job_id]).wait()[0]
        store.close()
        assert found is not None
        return found.state

    assert asyncio.run(commit_one()) == "succeeded"


def starts_under_two_full_lanes(app: App, count: int) -> list[str]:
    """Both lanes full of ready work, fetched one by one: which lane each of the first `count` starts came from."""
    lanes: list[str] = []

    @app.task(retry=Retry.fixed(0, max_attempts=100_000))
    def fail() -> None:
        lanes.append("fresh" if current_job().attempt == 1 else "retry")
        if len(lanes) < count:
            raise ValueError

    with app.testing() as t:
        app.enqueue_many([fail.bind() for _ in range(count)])
        t.drain()
    return lanes[:count]


# Proves [INV-9].
def test_fresh_work_keeps_its_share_at_batch_size_1(app: App):
    """Was: share rounding that gives fresh work 0 % at batch size 1."""
    lanes = starts_under_two_full_lanes(app, 300)
    assert abs(lanes.count("fresh") - 240) <= 2


# Proves [INV-9].
def test_due_retries_keep_their_share_under_endless_fresh_work(app: App):
    """Was: fresh jobs always ranked first, so that due retries starve."""
    lanes = starts_under_two_full_lanes(app, 300)
    assert abs(lanes.count("retry") - 60) <= 2
    longest = max(len(run) for run in "".join(lane[0] for lane in lanes[5:]).split("r"))
    assert longest <= 5


def test_policies_on_every_level_do_not_multiply():
    """Was: two retry loops that multiply, so that 3 retries give 10 runs."""
    app = App("sqlite://", retry=Retry.fixed("1s", max_retries=3))
    app.queue("mail", retry=Retry.fixed("1s", max_retries=3))
    runs = []

    @app.task(queue="mail", retry=Retry.fixed("1s", max_retries=3))
    def fail() -> None:
        runs.append(1)
        raise ValueError

    with app.testing() as t:
        fail.options(retry=Retry.fixed("1s"), max_retries=3).enqueue()
        t.advance("1h")
    assert len(runs) == 4


def test_a_retry_does_not_reset_the_counter(app: App):
    """Was: a requeue that resets the counter, so that retries never end."""

    @app.task(retry=Retry.fixed("1s", max_attempts=5))
    def fail() -> None:
        raise ValueError

    with app.testing() as t:
        job_id = fail.enqueue()
        counts = []
        for _ in range(10):
            t.advance("2s")
            counts.append(t.job(job_id).failures)
        assert t.job(job_id).state == "dead"
    assert counts == sorted(counts)
    assert counts[-1] == 5


def test_back_off_holds_no_slot_and_the_delay_survives_the_requeue(app: App):
    """Was: back-off slept in the worker slot; and: the delay lost on requeue."""
    order = []

    @app.task(retry=Retry.fixed("1h", jitter="none", max_attempts=2))
    def work(name: str, is_broken: bool) -> None:
        order.append((name, t.now))
        if is_broken:
            raise ValueError

    with app.testing() as t:
        begin = t.now
        work.enqueue("broken", True)
        work.enqueue("next", False)
        t.drain()
        assert order == [("broken", begin), ("next", begin)]
        t.advance("59m")
        assert len(order) == 2
        t.advance("1m")
    assert order[2] == ("broken", begin + timedelta(hours=1))


def test_a_permanent_failure_is_never_stored_as_success_and_its_last_error_is_kept(app: App):
    """Was: permanent failure stored as success; and: final attempt and error not stored."""

    @app.task
    def hopeless() -> None:
        raise GiveUp("no such account")

    @app.task(max_attempts=2, retry=Retry.fixed(0, max_attempts=2))
    def fail() -> None:
        raise ValueError(f"attempt {current_job().attempt}")

    with app.testing() as t:
        first, second = hopeless.enqueue(), fail.enqueue()
        t.drain()
        assert t.job(first).state == t.job(second).state == "dead"
        assert "no such account" in str(t.job(first).error)
        assert "attempt 2" in str(t.job(second).error)
        assert [str(record.error) for record in t.history(second)] == ["ValueError: attempt 1", "ValueError: attempt 2"]


@pytest.mark.parametrize("n", [36, 37, 38, 63, 64, 65, 1000, 10**6])
def test_back_off_does_not_overflow_at_attempt_37(n: int):
    """Was: a shift that overflows, so that the delay becomes negative or zero."""
    assert Retry.preset("scheduler").ceiling(n) == timedelta(minutes=5)
    assert Retry.preset("quadrupling").ceiling(n) == timedelta(days=365)


def test_the_documented_default_limits_are_the_real_ones(app: App):
    """Was: a documented default limit of 25 that was missing in the code."""
    runs = {"plain": 0, "harbor": 0}

    @app.task
    def plain() -> None:
        runs["plain"] += 1
        raise ValueError

    @app.task(retry="harbor")
    def harbor() -> None:
        runs["harbor"] += 1
        raise ValueError

    with app.testing() as t:
        plain.enqueue()
        harbor.enqueue()
        t.advance("1h")
    assert runs == {"plain": 4, "harbor": 25}


# Proves [INV-6].
def test_a_job_whose_worker_vanishes_again_and_again_ends_dead(app: App):
    """Was: lease expiry was free, so that a worker-killing job loops for ever."""

    @app.task(retry=Retry.fixed("1s", jitter="none", max_attempts=3))
    def killer() -> None:
        raise AssertionError("only vanishing workers claim it here")

    with app.testing() as t:
        job_id = killer.enqueue()
        for _ in range(3):
            assert len(claim_and_vanish(t.store)) == 1
            t.clock.advance(LEASE)
            if t.job(job_id).failures < 2:
                # Reap by draining with nothing due: the retry waits for a second.
                t.drain()
                t.clock.advance(timedelta(seconds=1))
                t.store.promote(10).wait()
        t.drain()
        job = t.job(job_id)
        assert (job.state, job.reason, job.failures, job.recoveries) == ("dead", "lost", 3, 3)
        assert [record.outcome for record in t.history(job_id)] == ["lost"] * 3


def test_zero_retries_is_not_read_as_use_3():
    """Was: retry count 0 read as "use 3"."""
    assert Retry.fixed("5s", max_retries=0).max_attempts == 1


def test_the_first_delay_is_not_doubled_before_use():
    """Was: the first delay doubled before it was used."""
    assert Retry.preset("standard").ceiling(1) == timedelta(milliseconds=500)
    assert Retry.preset("scheduler").ceiling(1) == timedelta(seconds=1)


def test_an_at_least_once_job_is_not_lost_between_claim_and_run(app: App):
    """Was: an at-least-once job lost between pop and run."""
    runs = []

    @app.task
    def work() -> None:
        runs.append(1)

    with app.testing() as t:
        job_id = work.enqueue()
        assert len(claim_and_vanish(t.store)) == 1
        t.advance("10m")
        assert t.job(job_id).state == "succeeded"
    assert runs == [1]


# Proves [INV-5].
def test_an_at_most_once_job_is_not_run_again_after_a_crash(app: App):
    """Was: an at-most-once job run again after a crash."""
    runs = []

    @app.task(delivery="at_most_once", retry=Retry.fixed("1s", max_recoveries=None))
    def work() -> None:
        runs.append(1)

    with app.testing() as t:
        job_id = work.enqueue()
        assert len(claim_and_vanish(t.store)) == 1
        t.advance("10m")
        assert (t.job(job_id).state, t.job(job_id).reason) == ("dead", "outcome unknown")
    assert runs == []


def test_the_next_tick_follows_from_the_rule_and_the_last_tick_and_not_from_a_retry(app):
    """Was: a schedule's next time computed from the retry time, so that a failing schedule drifted."""

    @app.task(retry=Retry.fixed("3s", jitter="none", max_attempts=4))
    def work():
        raise ConnectionError("down")

    app.schedule("ten", work.bind(), cron="*/10 * * * * *")
    app.schedule("every", work.bind(), cron="@every 10s")
    with app.testing() as t:
        start = t.now
        t.advance("10s")
        for seconds in (3, 3, 3):  # the retries at 13, 16 and 19 seconds
            assert {t.store.get_schedules([name]).wait()[0].next_at for name in ("ten", "every")} == {
                start + timedelta(seconds=20)
            }
            t.advance(seconds)
        t.advance("51s")
        for name in ("ten", "every"):
            ticks = [(job.tick_at - start).total_seconds() for job in t.jobs(schedule=name)]
            assert ticks == [10, 20, 30, 40, 50, 60, 70]


async def work_until(app: App, is_done: Callable[[], Awaitable[bool]]) -> None:
    """Run a worker of the app until the condition holds."""
    worker = app.make_worker()
    running = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(60):
            while not await is_done():
                await asyncio.sleep(0.02)
    finally:
        worker.stop()
        await running


# Proves [INV-22].
@pytest.mark.parametrize("engine", ENGINES, ids=[engine.name for engine in ENGINES])
async def test_a_job_is_not_deleted_when_its_dead_letter_sink_refuses_it(engine: Engine, tmp_path: Path):
    """Was: the job removed from its queue although the dead letter queue had refused it."""
    offers: list[str] = []
    is_open = False

    def sink(job: Job) -> None:
        offers.append(job.id)
        if not is_open:
            raise ConnectionError("the dead letter queue is down")

    settings = Settings(auto_migrate=True, poll=timedelta(milliseconds=50))
    letter = DeadLetter.function(sink, retry=Retry.fixed("20ms", jitter="none", max_attempts="unlimited"))
    app = App(engine.make_url(tmp_path), settings=settings, dead_letter=letter)

    @app.task(retry=Retry.never_retry())
    def fail() -> None:
        raise ValueError("it broke")

    client = app.client_async()
    job_id = await fail.enqueue_async()

    async def is_refused_often() -> bool:
        return len(offers) >= 5

    await work_until(app, is_refused_often)
    job, forward = await client.get(job_id), (await client.forwards(job_id))[job_id]
    assert (job.state, str(job.error)) == ("dead", "ValueError: it broke")
    assert (forward.state, forward.error) == ("failing", "ConnectionError: the dead letter queue is down")
    assert forward.tries >= 5
    assert [found.id for found in await client.dead_letters(forward="failing")] == [job_id]
    is_open = True

    async def is_forwarded() -> bool:
        return (await client.forwards(job_id))[job_id].state == "forwarded"

    await work_until(app, is_forwarded)
    assert (await client.get(job_id)).state == "dead"
    assert set(offers) == {job_id}
    app.close()
    assert engine.find_damage(tmp_path) == []
