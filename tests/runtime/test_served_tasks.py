"""What a worker says at its start about queues that look like a mistake."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from perdure import App


@pytest.fixture
def app() -> App:
    app = App("sqlite://")

    @app.task(queue="mail")
    def send() -> None: ...

    @app.task
    def report() -> None: ...

    app.queue("mail", retry_queue="mail-retries", dead_letter="queue:graves")
    return app


def said(app: App, queues: Sequence[str] | None, caplog: pytest.LogCaptureFixture) -> list[str]:
    with caplog.at_level(logging.WARNING, "perdure"):
        app.make_worker(queues)
    app.close()
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize("queues", [None, ["mail"], ["default"], ["mail", "default"], ["mail-retries"]])
async def test_queues_with_tasks_are_nothing_to_mention(
    app: App, caplog: pytest.LogCaptureFixture, queues: list[str] | None
) -> None:
    assert said(app, queues, caplog) == []


async def test_queues_without_any_task_are_told_with_the_tasks_there_are(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = said(app, ["mial"], caplog)
    assert first == (
        "This worker serves mial, and none of the app's tasks is in there. The tasks by queue are: default: report;"
        " mail: send. Serve one of these queues (--queues default,mail), or leave --queues out to serve all."
    )
    assert "No task and no app.queue() names the queue 'mial' (did you mean 'mail'?)" in second


async def test_a_mistyped_queue_among_right_ones_is_told(app: App, caplog: pytest.LogCaptureFixture) -> None:
    (only,) = said(app, ["default", "mials"], caplog)
    assert "'mials' (did you mean 'mail'?)" in only


async def test_a_queue_of_dead_letters_alone_has_no_task(app: App, caplog: pytest.LogCaptureFixture) -> None:
    (only,) = said(app, ["graves"], caplog)
    assert "none of the app's tasks is in there" in only


async def test_an_app_without_tasks_is_told_what_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    (only,) = said(App("sqlite://"), None, caplog)
    assert "knows no task but HTTP jobs: the app has none" in only
    assert "import the modules that define them" in only


async def test_many_tasks_are_not_all_listed(caplog: pytest.LogCaptureFixture) -> None:
    app = App("sqlite://")
    for number in range(100):
        app.task(name=f"task{number}", queue=f"queue{number % 20}")(lambda: None)
    first, _ = said(app, ["nothing"], caplog)
    assert len(first) < 1500
