"""Schedules through the whole pipeline: ticks and retries in order, time zones, restarts, log lines."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from msgspec import structs

from perdure import App, BadCron, BadOption, Retry, current_job
from perdure.model.schedule.definition import ORPHANED_AFTER, Definition, new_schedule, redefined
from perdure.system.clock import SystemClock
from perdure.testing import Harness

TEN = timedelta(seconds=10)


@pytest.fixture
def app() -> App:
    return App("sqlite://")


def ticks(t: Harness, name: str) -> list[datetime]:
    return [job.tick_at for job in t.jobs(schedule=name) if job.tick_at]


def test_ticks_and_retries_run_in_order(app: App) -> None:
    seen = []

    @app.task(retry=Retry.fixed("4s", jitter="none", max_attempts=2))
    def work(name: str) -> None:
        seen.append((name, t.now.second))
        if current_job().attempt == 1:
            raise ConnectionError

    app.schedule("ten", work.bind("ten"), cron="*/10 * * * * *")
    app.schedule("seven", work.bind("seven"), cron="@every 7s")
    with app.testing() as t:
        assert t.advance("13s") == 3
        assert t.advance("7s") == 4
    assert seen[:3] == [("seven", 7), ("ten", 10), ("seven", 11)]
    assert sorted(seen[3:5]) == [("seven", 14), ("ten", 14)], "both are due at once"
    assert sorted(seen[5:]) == [("seven", 18), ("ten", 20)]


def test_while_a_job_is_retried_the_ticks_of_its_schedule_are_skipped(app: App) -> None:
    @app.task(retry=Retry.fixed("12s", jitter="none", max_attempts=3))
    def work() -> None:
        raise ConnectionError

    app.schedule("ten", work.bind(), cron="*/10 * * * * *")
    with app.testing() as t:
        start = t.now
        t.advance("60s")
        assert ticks(t, "ten") == [start + TEN, start + 4 * TEN]
        schedule = t.store.get_schedules(["ten"]).wait()[0]
        assert schedule is not None
        assert (schedule.fired, schedule.skipped) == (2, 4)


def test_queued_ticks_run_one_after_the_other(app: App) -> None:
    runs = []

    @app.task(retry=Retry.fixed("25s", jitter="none", max_attempts=2))
    def work() -> None:
        runs.append((current_job().id, t.now - start))
        raise ConnectionError

    app.schedule("ten", work.bind(), cron="*/10 * * * * *", overlap="queue")
    with app.testing() as t:
        start = t.now
        t.advance("65s")
        assert ticks(t, "ten") == [start + TEN, start + 2 * TEN, start + 3 * TEN]
    assert [after.total_seconds() for _, after in runs] == [10, 35, 35, 60, 60]


def test_a_daily_time_runs_once_on_each_day_on_which_the_clocks_change(app: App) -> None:
    """In Berlin 02:30 is missing on one day of March, and comes twice on one of October."""
    berlin = ZoneInfo("Europe/Berlin")

    @app.task
    def work() -> None: ...

    app.schedule("daily", work.bind(), cron="0 30 2 * * *", tz="Europe/Berlin")
    with app.testing() as t:
        t.advance("366d")
        found = [tick.astimezone(berlin) for tick in ticks(t, "daily")]
    days = [tick.date() for tick in found]
    assert days == sorted(set(days))
    assert len(days) == 366
    odd = [tick for tick in found if (tick.hour, tick.minute) != (2, 30)]
    assert [str(tick) for tick in odd] == ["2030-03-31 03:00:00+02:00"]
    assert "2030-10-27 02:30:00+02:00" in [str(tick) for tick in found], "the first of the two"


def test_a_schedule_that_fires_once_is_gone_though_its_job_died(app: App) -> None:
    @app.task(max_attempts=1)
    def work() -> None:
        raise ConnectionError

    with app.testing() as t:
        app.client().add_schedule("once", "work", cron="*/10 * * * * *", recurring=False)
        t.advance("60s")
        assert [(job.state, job.schedule) for job in t.jobs()] == [("dead", "once")]
        assert app.client().schedules() == []


def test_a_schedule_from_code_that_fires_once_does_so_once(app: App) -> None:
    @app.task
    def work() -> None: ...

    app.schedule("once", work.bind(), cron="*/10 * * * * *", recurring=False)
    with app.testing() as t:
        t.advance("60s")
        assert len(t.jobs()) == 1
        assert app.client().schedule("once").standing == "done"


def test_a_schedule_from_code_keeps_firing_for_days(app: App) -> None:
    @app.task
    def work() -> None: ...

    app.schedule("hourly", work.bind(), cron="@hourly")
    with app.testing() as t:
        t.advance(3 * ORPHANED_AFTER + timedelta(days=2))
        assert len(t.jobs()) == 48


def test_a_schedule_that_only_the_code_of_the_past_names_stops(app: App) -> None:
    @app.task
    def work() -> None: ...

    app.schedule("named", work.bind(), cron="* * * * *")
    with app.testing() as t:
        forgotten = Definition(name="forgotten", task="work", args=b"{}", cron="* * * * *")
        assert t.store.put_schedule(new_schedule(forgotten, "code", t.now), None).wait()
        t.store.name_schedules(["forgotten"]).wait()
        t.advance("30m")
        assert app.client().schedule("named").named_at == t.now
        assert len(t.jobs(schedule="named")) == 30
        assert len(t.jobs(schedule="forgotten")) == ORPHANED_AFTER // timedelta(minutes=1)
        assert app.client().schedule("forgotten").standing == "orphaned"


def test_a_schedule_whose_job_cannot_be_stored_is_broken_and_costs_no_other(app: App) -> None:
    @app.task
    def work() -> None: ...

    app.schedule("good", work.bind(), cron="*/10 * * * * *")
    with app.testing() as t:
        bad = Definition(name="bad", task="work", args=b"{}", cron="*/10 * * * * *", priority=1000)
        assert t.store.put_schedule(new_schedule(bad, "operator", t.now), None).wait()
        t.advance("30s")
        assert len(t.jobs(schedule="good")) == 3
        found = app.client().schedule("bad")
        assert (found.standing, found.fired) == ("broken", 0)
        t.store.put_schedule(
            redefined(found, structs.replace(bad, priority=1), "operator", t.now), found.revision
        ).wait()
        mended_at = t.now
        t.advance("10s")
        assert ticks(t, "bad") == [mended_at, mended_at + TEN], "the latest that was missed, and the next"


def test_a_schedule_that_is_added_while_the_harness_is_open_is_fired_too(app: App) -> None:
    @app.task
    def work() -> None: ...

    with app.testing() as t:
        t.advance("10s")
        app.schedule("late", work.bind(), cron="*/10 * * * * *")
        t.advance("10s")
        assert len(t.jobs(schedule="late")) == 1


def test_the_options_of_the_task_and_of_the_schedule_reach_its_jobs(app: App) -> None:
    @app.task(queue="slow", priority=5, delivery="at_most_once")
    def work(x: int) -> None: ...

    app.schedule("plain", work.bind(1), cron="*/10 * * * * *")
    app.schedule("other", work.options(queue="mail", priority=-1, max_retries=0).bind(2), cron="*/10 * * * * *")
    with app.testing() as t:
        t.advance("10s")
        (plain,), (other,) = t.jobs(schedule="plain"), t.jobs(schedule="other")
    assert (plain.queue, plain.priority, plain.delivery, plain.args) == ("slow", 5, "at_most_once", b'{"args":[1]}')
    assert (other.queue, other.priority, other.max_attempts, other.args) == ("mail", -1, 1, b'{"args":[2]}')


def test_a_worker_serves_the_queues_of_its_schedules(app: App) -> None:
    @app.task
    def work() -> None: ...

    app.schedule("elsewhere", work.options(queue="elsewhere").bind(), cron="@hourly")
    assert "elsewhere" in app.registry.queue_names()


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"cron": "0 0 25 * * *"}, BadCron, "hour"),
        ({"tz": "Mars/Base"}, BadOption, "Mars/Base"),
        ({"overlap": "never"}, BadOption, "overlap is 'never'; it must be one of skip, queue, allow"),
        ({"missed": "some"}, BadOption, "missed is 'some'"),
        ({"name": "a b"}, BadOption, "The schedule name 'a b'"),
    ],
)
def test_what_is_wrong_with_a_schedule_is_said_when_it_is_defined(
    app: App, changes: dict[str, str], error: type[Exception], said: str
) -> None:
    @app.task
    def work() -> None: ...

    given = {"name": "nightly", "cron": "@daily", **changes}
    with pytest.raises(error, match=said):
        app.schedule(given.pop("name"), work.bind(), **given)


@pytest.mark.parametrize("options", [{"delay": "1s"}, {"unique": "x"}, {"run_at": datetime(2030, 1, 1, tzinfo=UTC)}])
def test_options_that_make_no_sense_for_a_schedule_are_refused(app: App, options: dict[str, object]) -> None:
    @app.task
    def work() -> None: ...

    with pytest.raises(BadOption, match=f"cannot have the option {next(iter(options))}"):
        app.schedule("nightly", work.options(**options).bind(), cron="@daily")


def test_a_name_is_given_to_one_schedule(app: App) -> None:
    @app.task
    def work() -> None: ...

    app.schedule("nightly", work.bind(), cron="@daily")
    with pytest.raises(BadOption, match="registered already"):
        app.schedule("nightly", work.bind(), cron="@hourly")


def test_a_task_without_arguments_bound_is_refused_with_the_way_to_do_it(app: App) -> None:
    @app.task
    def work() -> None: ...

    with pytest.raises(BadOption, match="bind"):
        app.schedule("nightly", work, cron="@daily")  # type: ignore[arg-type]


async def run_for_a_moment(app: App, until: str) -> None:
    """A real worker on a real clock, until a job is in a state."""
    worker = app.make_worker(concurrency=2)
    working = asyncio.create_task(worker.run())
    async with asyncio.timeout(30):
        while not app.client().count(state=until):
            await asyncio.sleep(0.01)
    worker.stop()
    await working


async def test_a_job_that_died_says_when_its_schedule_goes_on(tmp_path, caplog: pytest.LogCaptureFixture) -> None:
    app = App(f"sqlite:///{tmp_path}/perdure.db")

    @app.task(retry=Retry.fixed("1ms", jitter="none", max_attempts=4))
    async def work() -> None:
        raise ConnectionError("refused")

    app.schedule("often", work.bind(), cron="* * * * * *")
    with caplog.at_level(logging.INFO, logger="perdure"):
        await run_for_a_moment(app, "dead")
    schedule = app.client().schedule("often")
    app.close()
    line = next(line for line in caplog.messages if "rescheduled" in line)
    assert "failed after 3 retries, rescheduled for next occurrence: " in line
    said = datetime.fromisoformat(line.partition("occurrence: ")[2][:19]).replace(tzinfo=UTC)
    assert said <= SystemClock().now() + timedelta(seconds=1)
    assert schedule.fired >= 1


async def test_a_restart_touches_no_schedule_that_has_not_changed(tmp_path) -> None:
    def an_app(cron: str) -> App:
        app = App(f"sqlite:///{tmp_path}/perdure.db")

        @app.task
        async def work() -> None: ...

        app.schedule("rare", work.bind(), cron=cron)
        work.enqueue()
        return app

    async def start(app: App) -> tuple[str, datetime | None]:
        worker = app.make_worker()
        working = asyncio.create_task(worker.run())
        async with asyncio.timeout(30):
            while not app.client().schedules() or app.client().schedule("rare").definition.cron != cron_of(app):
                await asyncio.sleep(0.01)
        worker.stop()
        await working
        found = app.client().schedule("rare")
        app.close()
        return found.revision, found.next_at

    def cron_of(app: App) -> str:
        return app.registry.schedules["rare"].cron

    first = await start(an_app("0 0 3 1 1 *"))
    assert await start(an_app("0 0 3 1 1 *")) == first
    changed = await start(an_app("0 0 4 1 1 *"))
    assert changed[0] != first[0]
    assert changed[1] == first[1] + timedelta(hours=1)
