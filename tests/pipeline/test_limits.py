"""How often a failing job runs, through the whole pipeline, whichever way its limit was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from perdure import App, Retry, Settings, current_job
from perdure.testing import Harness

ONE_SHOT = ["one-shot", "never_retry()", "fixed(5s, max_attempts=1)", "exponential(1s, max_retries=0)"]


class Downstream(Exception):  # noqa: N818 - it reads as what failed
    """What a flaky service raises."""


def failing(app: App, **options: Any) -> Any:
    @app.task(**options)
    def fail() -> None:
        raise Downstream

    return fail


def runs(t: Harness, job_id: str) -> int:
    t.advance("30d")
    assert t.job(job_id).state == "dead"
    return len(t.history(job_id))


@pytest.mark.parametrize("policy", ONE_SHOT)
def test_a_job_under_an_app_without_retries_runs_once_whatever_it_asks_for(policy: str) -> None:
    app = App("sqlite://", retry=policy)
    fail = failing(app)
    with app.testing() as t:
        for options in ({"max_attempts": 5}, {"max_retries": 4}, {"max_attempts": "unlimited"}):
            job_id = fail.options(**options).enqueue()
            assert runs(t, job_id) == 1
            assert app.explain_job(t.job(job_id)).limit == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: failing(App("sqlite://", retry=Retry.never_retry()), max_attempts=5),
        lambda: failing(App("sqlite://"), retry="one-shot", max_retries=4),
        lambda: failing(App("sqlite://", settings=Settings(retry="one-shot"))).options(max_attempts=5),
        lambda: failing(App("sqlite://")).options(retry="one-shot", max_attempts=5),
        lambda: failing(App("sqlite://", max_attempts_cap=10), retry="one-shot").options(max_attempts=5),
    ],
    ids=["task's limit", "task", "settings", "job", "below the operator's cap"],
)
def test_a_policy_without_retries_holds_wherever_it_stands(make: Callable[[], Any]) -> None:
    fail = make()
    app = fail.producer if hasattr(fail, "producer") else fail._task._producer
    with app.testing() as t:
        assert runs(t, fail.enqueue()) == 1
