"""How often a failing job runs, through the whole pipeline, whichever way its limit was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.http.target import Target, answering

from perdure import App, Retry, Settings, Task, current_job
from perdure.model.job import JobId
from perdure.testing import Harness

WITHOUT_RETRIES = ["one-shot", "never_retry()", "fixed(5s, max_attempts=1)", "exponential(1s, max_retries=0)"]
CAPPING = Retry.exponential("200ms", cap="10s", max_attempts=10, caps_jobs=True)


class Downstream(Exception):  # noqa: N818 - it reads as what failed
    """What a flaky service raises."""


def failing(app: App, **options: Any) -> Task[[], None]:
    @app.task(**options)
    def fail() -> None:
        raise Downstream

    return fail


def runs(t: Harness, job_id: JobId) -> int:
    """How often the job runs from now until it is dead."""
    before = len(t.history(job_id))
    t.advance("30d")
    assert t.job(job_id).state == "dead"
    return len(t.history(job_id)) - before


@pytest.mark.parametrize("options", [{"max_attempts": 5}, {"max_retries": 4}, {"max_attempts": "unlimited"}], ids=str)
@pytest.mark.parametrize("policy", WITHOUT_RETRIES)
def test_a_job_under_an_app_without_retries_runs_once_whatever_it_asks_for(policy: str, options: dict[str, Any]):
    app = App("sqlite://", retry=policy)
    fail = failing(app)
    with app.testing() as t:
        job_id = fail.options(**options).enqueue()
        assert runs(t, job_id) == 1
        job = t.job(job_id)
        assert (job.reason, job.failures) == ("exhausted", 1)
        assert app.explain_job(job).limit == 1


@pytest.mark.parametrize(
    ("app_options", "task_options", "job_options"),
    [
        ({"retry": "one-shot"}, {"max_attempts": 5}, {}),
        ({"retry": "one-shot"}, {"max_retries": 4}, {}),
        ({}, {"retry": "one-shot", "max_attempts": 5}, {}),
        ({}, {"retry": "one-shot"}, {"max_attempts": 5}),
        ({}, {}, {"retry": Retry.never_retry(), "max_attempts": 5}),
        ({"settings": Settings(retry="one-shot")}, {}, {"max_attempts": 5}),
        ({"retry": "one-shot", "max_attempts_cap": 10}, {}, {"max_attempts": 5}),
    ],
    ids=["task's limit", "task's retries", "task", "job and task", "job", "settings", "below the operator's cap"],
)
def test_a_policy_without_retries_holds_wherever_it_stands(
    app_options: dict[str, Any], task_options: dict[str, Any], job_options: dict[str, Any]
):
    app = App("sqlite://", **app_options)
    fail = failing(app, **task_options)
    with app.testing() as t:
        assert runs(t, fail.options(**job_options).enqueue()) == 1


def test_a_queue_without_retries_runs_its_jobs_once():
    app = App("sqlite://")
    app.queue("mail", retry="one-shot")
    fail = failing(app, queue="mail")
    with app.testing() as t:
        assert runs(t, fail.options(max_attempts=5).enqueue()) == 1


@pytest.mark.parametrize("text", ['retry = "one-shot"', '[queues.default]\nretry = "one-shot"'])
def test_a_configuration_file_without_retries_runs_jobs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
):
    (tmp_path / "perdure.toml").write_text(text)
    monkeypatch.setenv("PERDURE_CONFIG", str(tmp_path / "perdure.toml"))
    app = App("sqlite://")
    fail = failing(app)
    with app.testing() as t:
        assert runs(t, fail.options(max_attempts=5).enqueue()) == 1


def test_replays_and_retries_by_a_person_are_one_run_each():
    app = App("sqlite://", retry="one-shot")
    fail = failing(app)
    with app.testing() as t:
        client = app.client()
        job_id = fail.options(max_attempts=5).enqueue()
        assert runs(t, job_id) == 1
        client.replay(job_id)
        assert runs(t, job_id) == 1
        client.retry(job_id)
        assert runs(t, job_id) == 1
        assert t.job(job_id).attempt == 3


def test_a_limit_that_a_person_sets_later_is_bounded_too():
    app = App("sqlite://", retry="one-shot")
    fail = failing(app)
    with app.testing() as t:
        job_id = fail.options(delay="1h").enqueue()
        app.client().change(job_id, max_attempts=5)
        assert runs(t, job_id) == 1


def test_jobs_of_schedules_are_bounded_too():
    app = App("sqlite://", retry="one-shot")
    fail = failing(app)
    app.schedule("nightly", fail.options(max_attempts=5).bind(), cron="@hourly", overlap="queue")
    with app.testing() as t:
        app.client().add_schedule("by-hand", "fail", cron="@hourly", max_attempts=5, overlap="queue")
        t.advance("90m")
        jobs = t.jobs()
        assert {job.schedule for job in jobs} == {"nightly", "by-hand"}
        for job in jobs:
            assert job.max_attempts == 5
            assert (job.state, job.attempt) == ("dead", 1)


def test_a_handler_knows_that_its_only_run_is_the_last():
    app = App("sqlite://", retry="one-shot")
    seen = []

    @app.task
    def look() -> None:
        seen.append((current_job().is_last, current_job().max_attempts))

    with app.testing() as t:
        look.options(max_attempts=5).enqueue()
        t.drain()
    assert seen == [(True, 1)]


def test_an_error_whose_policy_has_no_retries_ends_the_job():
    app = App("sqlite://", retry=Retry.fixed("1s", max_attempts=9).on(Downstream, Retry.never_retry()))
    fail = failing(app)
    with app.testing() as t:
        assert runs(t, fail.options(max_attempts=5).enqueue()) == 1


@pytest.mark.parametrize(("asked", "times"), [(20, 10), (5, 5), ("unlimited", 10), (None, 10)])
@pytest.mark.parametrize("where", ["app", "queue", "task"])
def test_a_policy_that_caps_jobs_bounds_what_they_ask_for(where: str, asked: Any, times: int):
    app = App("sqlite://", retry=CAPPING if where == "app" else None)
    if where == "queue":
        app.queue("default", retry=CAPPING)
    fail = failing(app, retry=CAPPING if where == "task" else None)
    with app.testing() as t:
        assert runs(t, fail.options(max_attempts=asked).enqueue()) == times


def test_a_job_cannot_step_over_a_cap_with_a_policy_of_its_own():
    app = App("sqlite://", retry=CAPPING)
    fail = failing(app)
    with app.testing() as t:
        assert runs(t, fail.options(retry="fixed(1s, max_attempts=30)").enqueue()) == 10
        assert runs(t, fail.options(retry="fixed(1s, max_attempts=3)").enqueue()) == 3


def test_harbor_runs_a_job_that_asks_for_100_attempts_25_times():
    app = App("sqlite://", retry="harbor")
    fail = failing(app)
    with app.testing() as t:
        assert runs(t, fail.options(max_attempts=100).enqueue()) == 25
        assert runs(t, fail.options(max_attempts=5).enqueue()) == 5


@pytest.mark.parametrize(
    ("policy", "options", "times"),
    [
        ("one-shot", {"max_attempts": 5}, 1),
        ("standard", {"max_attempts": 5, "retry": "one-shot"}, 1),
        ("fixed(1s, max_attempts=3, caps_jobs=true)", {"max_attempts": 20}, 3),
        ("fixed(1s, max_attempts=3, caps_jobs=true)", {"max_attempts": 2}, 2),
    ],
)
def test_http_jobs_are_bounded_too(policy: str, options: dict[str, Any], times: int):
    target = Target()
    url = target.on("/down", answering("500 Oops", b"no"))
    app = App("sqlite://", settings=Settings(http_allow=("127.0.0.1",), retry=policy))
    try:
        with app.testing() as t:
            assert runs(t, app.http.post(url, **options).enqueue()) == times
        assert len(target.seen) == times
    finally:
        app.close()
        target.close()
