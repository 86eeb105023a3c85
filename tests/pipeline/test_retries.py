"""What follows when work fails, through the whole pipeline on a clock that the test moves."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from perdure import App, BadArguments, Cancel, GiveUp, Retry, RetryAfter, Settings, Snooze, current_job
from perdure.model.policy.presets import PRESETS


class Downstream(Exception):  # noqa: N818 - it reads as what failed
    """What a flaky service raises."""


@pytest.fixture
def app() -> App:
    return App("sqlite://")


def test_max_retries_3_runs_exactly_4_times_with_the_delays_of_its_policy(app: App):
    starts = []

    @app.task(retry=Retry.exponential("1s", jitter="none", max_retries=3))
    def fail() -> None:
        starts.append(t.now)
        raise Downstream("no")

    with app.testing() as t:
        job_id = fail.enqueue()
        begin = t.now
        t.advance("1h")
        job, history = t.job(job_id), t.history(job_id)
    assert [(start - begin).total_seconds() for start in starts] == [0, 1, 3, 7]
    assert (job.state, job.reason, job.failures, job.attempt) == ("dead", "exhausted", 4, 4)
    assert [record.attempt for record in history] == [1, 2, 3, 4]
    assert [record.outcome for record in history] == ["failed"] * 4
    assert [record.delay for record in history] == [
        timedelta(seconds=1),
        timedelta(seconds=2),
        timedelta(seconds=4),
        None,
    ]
    assert all("no" in str(record.error) for record in history)


@pytest.mark.parametrize("name", PRESETS)
def test_an_always_failing_job_runs_as_often_as_its_preset_says(app: App, name: str):
    policy = Retry.preset(name)
    runs = []

    @app.task(retry=name)
    def fail() -> None:
        runs.append(1)
        raise Downstream

    with app.testing(seed=3) as t:
        job_id = fail.enqueue()
        t.advance("30d")
        assert t.job(job_id).state == "dead"
        history = t.history(job_id)
    assert len(runs) == len(history) == policy.max_attempts
    for n, record in enumerate(history[:-1], start=1):
        low, high = policy.bounds(n)
        assert record.delay is not None
        assert low <= record.delay <= high


def test_an_hour_of_retries_takes_no_time(app: App):
    @app.task(retry=Retry.fixed("10s", max_attempts=360))
    async def fail() -> None:
        raise Downstream

    with app.testing() as t:
        job_id = fail.enqueue()
        began = time.monotonic()
        attempts = t.advance("1h")
        elapsed = time.monotonic() - began
        assert attempts > 300
        assert t.job(job_id).failures == attempts
    assert elapsed < 1800, "it waited in real time"


def test_the_same_seed_gives_the_same_delays_and_another_seed_others(app: App):
    @app.task(retry="standard")
    def fail() -> None:
        raise Downstream

    def delays(seed: int) -> list[timedelta | None]:
        with app.testing(seed=seed) as t:
            job_id = fail.enqueue()
            t.advance("10m")
            return [record.delay for record in t.history(job_id)]

    assert delays(1) == delays(1)
    assert delays(1) != delays(2)


def test_a_job_that_recovers_keeps_the_record_of_its_failures(app: App):
    @app.task(retry="scheduler")
    async def flaky() -> str:
        if current_job().attempt < 3:
            raise Downstream("not yet")
        return "done"

    with app.testing() as t:
        job_id = flaky.enqueue()
        t.advance("1m")
        assert t.job(job_id).state == "succeeded"
        assert t.job(job_id).result == b'"done"'
        assert [record.outcome for record in t.history(job_id)] == ["failed", "failed", "succeeded"]


# Proves [INV-16].
def test_nothing_runs_before_its_time(app: App):
    runs = []

    @app.task
    def note() -> None:
        runs.append(t.now)

    with app.testing() as t:
        begin = t.now
        note.options(delay="5m").enqueue()
        note.options(run_at=begin + timedelta(minutes=1)).enqueue()
        assert t.drain() == 0
        t.advance("59.999999s")
        assert runs == []
        t.advance("1h")
    assert runs == [begin + timedelta(minutes=1), begin + timedelta(minutes=5)]


def test_snooze_waits_without_counting(app: App):
    @app.task(max_attempts=1)
    def wait_for_it() -> None:
        if current_job().attempt < 4:
            raise Snooze("10s")

    with app.testing() as t:
        job_id = wait_for_it.enqueue()
        t.advance("1m")
        assert (t.job(job_id).state, t.job(job_id).failures) == ("succeeded", 0)
        assert [record.outcome for record in t.history(job_id)] == ["snoozed"] * 3 + ["succeeded"]


def test_retry_after_is_honoured_and_counted(app: App):
    @app.task(retry=Retry.fixed("1s", jitter="none", max_attempts=3))
    def limited() -> None:
        raise RetryAfter("40s")

    with app.testing() as t:
        job_id = limited.enqueue()
        t.advance("39s")
        assert t.job(job_id).attempt == 1
        t.advance("1s")
        assert t.job(job_id).attempt == 2
        t.advance("40s")
        assert (t.job(job_id).state, t.job(job_id).reason) == ("dead", "exhausted")


def test_cancel_and_give_up_end_a_job_at_once(app: App):
    @app.task
    def cancelled() -> None:
        raise Cancel("not wanted")

    @app.task
    def hopeless() -> None:
        raise GiveUp("never")

    with app.testing() as t:
        first, second = cancelled.enqueue(), hopeless.enqueue()
        t.drain()
        assert t.job(first).state == "cancelled"
        assert (t.job(second).state, t.job(second).reason) == ("dead", "unrecoverable")


def test_per_job_policy_and_limit_win_over_the_tasks(app: App):
    @app.task(retry="harbor")
    def fail() -> None:
        raise Downstream

    with app.testing() as t:
        own_limit = fail.options(max_retries=1).enqueue()
        own_policy = fail.options(retry=Retry.delays(["3s", "4s"], max_attempts=3)).enqueue()
        t.advance("1h")
        assert t.job(own_limit).attempt == 2
        assert [record.delay for record in t.history(own_policy)] == [timedelta(seconds=3), timedelta(seconds=4), None]


def test_zero_retries_means_one_run_and_never_unset(app: App):
    @app.task
    def fail() -> None:
        raise Downstream

    with app.testing() as t:
        job_id = fail.options(max_retries=0).enqueue()
        t.advance("1h")
        assert t.job(job_id).attempt == 1


def test_the_operators_cap_bounds_what_a_job_asks_for():
    app = App("sqlite://", max_attempts_cap=2)

    @app.task(retry=Retry.fixed("1s", max_attempts=50))
    def fail() -> None:
        raise Downstream

    with app.testing() as t:
        job_id = fail.options(max_attempts=20).enqueue()
        t.advance("1h")
        assert t.job(job_id).attempt == 2
        assert app.explain_job(t.job(job_id)).limit == 2


def test_at_most_once_runs_once_whatever_its_policy_says(app: App):
    runs = []

    @app.task(delivery="at_most_once", retry="harbor")
    def once() -> None:
        runs.append(1)
        raise Downstream

    with app.testing() as t:
        job_id = once.enqueue()
        t.advance("1h")
        assert (t.job(job_id).state, t.job(job_id).reason) == ("dead", "failed")
    assert runs == [1]


def test_an_unknown_task_is_parked_and_then_run_by_who_knows_it(app: App):
    with app.testing() as t:
        job_id = app.enqueue_named("later", [], {})
        t.advance("10s")
        assert (t.job(job_id).state, t.job(job_id).reason, t.job(job_id).failures) == ("waiting", "parked", 0)

        @app.task
        def later() -> None:
            pass

        t.advance("10m")
        assert t.job(job_id).state == "succeeded"


def test_an_unknown_task_is_dead_after_its_time():
    app = App("sqlite://", settings=Settings(unknown_task_ttl=timedelta(hours=1)))
    with app.testing() as t:
        job_id = app.enqueue_named("nobody_knows", [], {})
        t.advance("2h")
        assert (t.job(job_id).state, t.job(job_id).reason) == ("dead", "unknown task")


def test_arguments_that_no_longer_fit_end_the_job_dead_without_a_run(app: App):
    @app.task(name="grown")
    def before(a: int) -> None: ...

    with app.testing() as t:
        job_id = before.enqueue(1)

        grown = App("sqlite://")

        @grown.task(name="grown")
        def after(a: int, b: int) -> None: ...

        app.registry._handlers["grown"] = grown.registry._handlers["grown"]
        t.drain()
        assert (t.job(job_id).state, t.job(job_id).reason) == ("dead", "bad payload")


def test_wrong_arguments_are_refused_when_enqueued(app: App):
    @app.task
    def send(to: str, body: str) -> None: ...

    with app.testing() as t:
        with pytest.raises(BadArguments, match="send"):
            send.enqueue("a@b.c")  # type: ignore[call-arg]
        assert t.jobs() == []


def test_priority_is_kept_on_retry_and_orders_within_a_lane(app: App):
    order = []

    @app.task(retry=Retry.fixed("1s", jitter="none"))
    def work(name: str) -> None:
        order.append(name)
        if current_job().attempt == 1:
            raise Downstream

    with app.testing() as t:
        for name, priority in (("low", -10), ("high", 10), ("usual", 0)):
            work.options(priority=priority).enqueue(name)
        t.advance("1s")
    assert order == ["high", "usual", "low"] * 2


def test_a_unique_key_stands_for_the_live_job_and_is_free_afterwards(app: App):
    @app.task
    def order() -> None: ...

    with app.testing() as t:
        first = order.options(unique="order-7").enqueue()
        assert order.options(unique="order-7").enqueue() == first
        t.drain()
        assert order.options(unique="order-7").enqueue() != first


def test_a_paused_queue_starts_nothing_until_resumed(app: App):
    @app.task(queue="mail")
    def send() -> None: ...

    with app.testing() as t, app.client() as client:
        client.pause("mail")
        job_id = send.enqueue()
        t.advance("1h")
        assert t.job(job_id).state == "ready"
        client.resume("mail")
        t.drain()
        assert t.job(job_id).state == "succeeded"


def test_replayed_dead_jobs_start_again_with_no_failures_and_keep_their_history(app: App):
    is_broken = True

    @app.task(retry=Retry.fixed("1s", max_attempts=2))
    def send() -> None:
        if is_broken:
            raise Downstream

    with app.testing() as t, app.client() as client:
        job_id = send.enqueue()
        t.advance("1m")
        assert t.job(job_id).state == "dead"
        is_broken = False
        assert client.replay(task="send").count == 1
        t.drain()
        assert (t.job(job_id).state, t.job(job_id).failures) == ("succeeded", 0)
        assert [record.outcome for record in t.history(job_id)] == ["failed", "failed", "succeeded"]


def test_a_replayed_job_has_its_whole_time_again(app: App):
    is_broken = True

    @app.task(retry=Retry.fixed("1s", jitter="none", within="10s", max_attempts=100))
    def send() -> None:
        if is_broken:
            raise Downstream

    with app.testing() as t, app.client() as client:
        job_id = send.enqueue()
        t.advance("1m")
        assert (t.job(job_id).state, t.job(job_id).reason) == ("dead", "expired")
        client.replay(job_id)
        t.advance("5s")
        assert t.job(job_id).state == "waiting"
        is_broken = False
        t.advance("5s")
        assert t.job(job_id).state == "succeeded"


def test_after_its_first_failure_a_job_moves_to_the_retry_queue_and_keeps_its_origin(app: App):
    app.queue("mail", retry_queue="mail-retries")

    @app.task(queue="mail", retry=Retry.fixed("1s", max_attempts=3))
    def send() -> None:
        raise Downstream

    with app.testing() as t, app.client() as client:
        job_id = send.enqueue()
        t.drain()
        assert (t.job(job_id).queue, t.job(job_id).origin) == ("mail-retries", "mail")
        t.advance("1m")
        assert (t.job(job_id).state, t.job(job_id).attempt) == ("dead", 3)
        client.retry(job_id)
        assert (t.job(job_id).queue, t.job(job_id).origin) == ("mail", None)


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"x", "x" * 100_000])
def test_a_result_that_cannot_be_stored_costs_the_result_only(app: App, value: object):
    @app.task
    def work() -> object:
        return value

    with app.testing() as t:
        job_id = work.enqueue()
        t.drain()
        job = t.job(job_id)
        assert (job.state, job.result) == ("succeeded", None)
        assert "result not stored" in str(job.reason)


def test_handlers_of_all_kinds_learn_their_fence_and_idempotency_key(app: App):
    seen = []

    @app.task
    async def on_the_loop() -> None:
        seen.append(current_job())

    @app.task
    def in_a_thread() -> None:
        seen.append(current_job())

    with app.testing() as t:
        ids = [on_the_loop.enqueue(), in_a_thread.enqueue()]
        t.drain()
    assert [job.fence for job in seen] == [(ids[0], 1), (ids[1], 1)]
    assert [job.idempotency_key for job in seen] == ids


def test_the_harness_works_inside_a_running_loop_too(app: App):
    import asyncio

    @app.task
    async def work() -> None: ...

    async def inside() -> str:
        with app.testing() as t:
            job_id = await work.enqueue_async()
            t.drain()
            return t.job(job_id).state

    assert asyncio.run(inside()) == "succeeded"
