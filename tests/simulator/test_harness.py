"""The harness with workers of the test's own: slots, queues, and handlers that take the test's time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure import App, BadOption, Retry, UsageError, current_job

S = timedelta(seconds=1)


@pytest.fixture
def app() -> App:
    return App("sqlite://")


def test_a_handler_that_sleeps_keeps_its_slot_and_others_run_beside_it(app: App) -> None:
    @app.task
    async def work(number: int) -> None:
        await t.sleep("10s")

    with app.testing() as t:
        t.worker(slots=2)
        began = t.now
        ids = [work.enqueue(number) for number in range(3)]
        assert t.drain() == 0
        assert [t.job(job_id).state for job_id in ids] == ["running", "running", "ready"]
        assert t.advance("20s") == 3
        assert [t.history(job_id)[0].started_at - began for job_id in ids] == [0 * S, 0 * S, 10 * S]
        assert [t.history(job_id)[0].ended_at - began for job_id in ids] == [10 * S, 10 * S, 20 * S]


def test_a_worker_serves_only_its_queues(app: App) -> None:
    @app.task(queue="mail")
    def mail() -> None: ...

    @app.task(queue="reports")
    def report() -> None: ...

    with app.testing() as t:
        t.worker(["mail"])
        sent, made = mail.enqueue(), report.enqueue()
        assert t.drain() == 1
        assert (t.job(sent).state, t.job(made).state) == ("succeeded", "ready")


def test_a_job_held_in_advance_is_running_but_not_entered(app: App) -> None:
    entered = []

    @app.task
    async def work(number: int) -> None:
        entered.append(number)
        await t.sleep("1s")

    with app.testing() as t:
        t.worker(slots=1, prefetch=1)
        ids = [work.enqueue(number) for number in range(3)]
        t.drain()
        assert [t.job(job_id).state for job_id in ids] == ["running", "running", "ready"]
        assert entered == [0]
        t.advance("3s")
        assert entered == [0, 1, 2]


def test_a_handler_may_sleep_for_longer_than_any_lease_and_fail_after_it(app: App) -> None:
    @app.task(retry=Retry.fixed("1d", jitter="none", max_attempts=2))
    async def work() -> None:
        await t.sleep("30d")
        raise ConnectionError

    with app.testing() as t:
        began = t.now
        job_id = work.enqueue()
        t.advance("100d")
        assert t.job(job_id).reason == "exhausted"
        assert [record.started_at - began for record in t.history(job_id)] == [timedelta(0), timedelta(days=31)]


def test_what_a_handler_enqueues_runs_beside_it_at_once(app: App) -> None:
    @app.task
    async def child() -> str:
        return str(t.now)

    @app.task
    async def parent() -> None:
        ids.append(child.enqueue())
        await t.sleep("1h")

    ids: list[str] = []
    with app.testing() as t:
        t.worker(slots=2)
        parent.enqueue()
        t.drain()
        assert t.job(ids[0]).state == "succeeded"


def test_several_sleeps_of_one_attempt_add_up(app: App) -> None:
    @app.task
    async def work() -> None:
        for _ in range(current_job().attempt + 2):
            await t.sleep("2s")

    with app.testing() as t:
        job_id = work.enqueue()
        t.advance("5s")
        assert t.job(job_id).state == "running"
        t.advance("1s")
        assert t.job(job_id).state == "succeeded"


async def test_sleeping_handlers_live_on_between_calls_inside_a_running_loop(app: App) -> None:
    @app.task
    async def work() -> None:
        await t.sleep("2s")

    with app.testing() as t:
        job_id = work.enqueue()
        t.advance("1s")
        assert t.job(job_id).state == "running"
        t.advance("1s")
        assert t.job(job_id).state == "succeeded"


def test_a_harness_that_is_left_while_a_handler_sleeps_ends_quietly(app: App) -> None:
    @app.task
    async def work() -> None:
        await t.sleep("2s")

    with app.testing() as t:
        work.enqueue()
        t.drain()


def test_a_strict_share_goes_on_at_the_next_poll(app: App) -> None:
    app.queue("default", strict=True, retry_share=0.5)

    @app.task
    def work() -> None: ...

    with app.testing() as t:
        ids = [work.enqueue() for _ in range(6)]
        t.advance("10s")
        assert {t.job(job_id).state for job_id in ids} == {"succeeded"}


def test_the_delays_of_a_seed_do_not_depend_on_other_jobs_ids(app: App) -> None:
    @app.task(retry=Retry.exponential("1s", max_attempts=3))
    def fail() -> None:
        raise ConnectionError

    def delays(others: int) -> list[timedelta | None]:
        with app.testing(seed=4) as t:
            for _ in range(others):
                fail.options(delay="100d").enqueue()
            job_id = fail.enqueue()
            t.advance("1h")
            return [record.delay for record in t.history(job_id)]

    assert delays(0) == delays(5)


def test_bad_workers_and_sleeps_are_refused(app: App) -> None:
    with app.testing() as t:
        for wrong in ({"slots": 0}, {"prefetch": -1}, {"batch": 0}, {"queues": []}):
            with pytest.raises(BadOption):
                t.worker(**wrong)
        with pytest.raises(UsageError, match="inside a handler"):
            t.sleep("1s").send(None)
