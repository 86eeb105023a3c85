"""Health: each check by itself, and the sample that its rates rest on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.admin.scene import LEASE, Scene

from perdure.admin.health import Finding, Health, health, health_document
from perdure.admin.recent_rates import measure
from perdure.errors import BadOption
from perdure.model.forward import Tried
from perdure.model.outcome import Outcome
from perdure.model.thresholds import Thresholds
from perdure.store.reads import MOST_RECENT, JobFilter, Recent

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "jobs.db")
    yield made
    made.close()


def look(scene: Scene, queue: str | None = None, **limits: Any) -> Health:
    return health(scene.store, Thresholds(**limits), queue=queue).wait()


def finding(found: Health, check: str) -> Finding:
    return next(one for one in found.findings if one.check == check)


def succeed(scene: Scene, count: int, failures: int = 0, queue: str = "default") -> None:
    """So many jobs that succeeded after so many failures."""
    for _ in range(count):
        scene.enqueue(queue=queue)
    for job in scene.run(queue, count):
        outcome = Outcome(
            verb="succeed", state="succeeded", attempt="succeeded", failures=failures, recoveries=0, lane=job.lane
        )
        scene.end(job, outcome)


def test_an_empty_store_is_well(scene: Scene) -> None:
    assert look(scene).status == "ok"


def test_ten_percent_of_retries_are_well_and_more_are_not(scene: Scene) -> None:
    succeed(scene, 8)
    succeed(scene, 1, failures=1)
    assert finding(look(scene), "retry rate").level == "ok", "1 of 10 attempts"
    succeed(scene, 1, failures=1)
    found = look(scene)
    assert finding(found, "retry rate").level == "degraded", "2 of 12 attempts"
    assert (found.pulse.attempts, found.pulse.retries) == (12, 2)
    assert look(scene, retry_rate=0.2).status == "ok"


def test_a_rate_of_few_attempts_says_nothing(scene: Scene) -> None:
    succeed(scene, 1, failures=3)
    assert finding(look(scene), "retry rate").level == "ok"
    assert finding(look(scene, least_attempts=4), "retry rate").level == "degraded"


def test_what_is_older_than_the_window_does_not_count(scene: Scene) -> None:
    succeed(scene, 10, failures=1)
    scene.clock.advance(16 * MINUTE)
    scene.register()
    assert look(scene).pulse.attempts == 0
    assert look(scene, window=timedelta(hours=1)).pulse.attempts == 20


def test_another_queues_retries_do_not_count_when_one_is_asked_about(scene: Scene) -> None:
    succeed(scene, 10, failures=1, queue="noisy")
    assert look(scene).status == "degraded"
    assert look(scene, queue="quiet").status == "ok"
    assert look(scene, queue="noisy").status == "degraded"


def test_jobs_that_reached_their_limit_are_told_unless_allowed(scene: Scene) -> None:
    scene.dead()
    assert finding(look(scene), "limits").level == "degraded"
    assert finding(look(scene, exhausted=1), "limits").level == "ok"


def test_a_job_that_died_without_retries_reached_no_limit(scene: Scene) -> None:
    scene.dead(reason="unrecoverable")
    assert finding(look(scene), "limits").level == "ok"


def test_ready_jobs_that_nobody_serves_are_a_failure(scene: Scene) -> None:
    scene.enqueue()
    found = look(scene)
    assert (found.status, finding(found, "workers").level) == ("failed", "failed")
    scene.register(("other",))
    assert look(scene).status == "failed"
    scene.register(("default",))
    assert look(scene).status == "ok"


def test_waiting_jobs_that_are_due_and_that_nobody_makes_ready_are_a_failure_too(scene: Scene) -> None:
    scene.enqueue(delay=MINUTE)
    assert look(scene).status == "ok"
    scene.clock.advance(2 * MINUTE)
    assert finding(look(scene), "workers").level == "failed"
    scene.clock.advance(10 * MINUTE)
    assert finding(look(scene), "oldest ready").level == "degraded"


def test_a_job_that_has_been_due_for_long_is_told(scene: Scene) -> None:
    scene.enqueue()
    scene.clock.advance(6 * MINUTE)
    scene.register()
    assert finding(look(scene), "oldest ready").level == "degraded"
    assert look(scene, oldest_ready=timedelta(hours=1)).status == "ok"


def test_a_paused_queue_is_a_note_and_with_ready_jobs_degraded(scene: Scene) -> None:
    scene.register()
    scene.store.pause("default", "holiday").wait()
    assert (look(scene).status, finding(look(scene), "queues").level) == ("ok", "note")
    scene.enqueue()
    scene.clock.advance(MINUTE / 4)
    assert (look(scene).status, finding(look(scene), "queues").level) == ("degraded", "degraded")
    assert "holiday" in finding(look(scene), "queues").text


def test_a_lease_that_ran_out_is_told(scene: Scene) -> None:
    scene.register()
    scene.clock.advance(LEASE + MINUTE)
    assert finding(look(scene), "leases").level == "degraded"


def test_a_failed_forward_is_a_failure(scene: Scene) -> None:
    job_id = scene.dead()
    scene.store.forward_now(JobFilter(ids=(job_id,))).wait()
    assert finding(look(scene), "forwarding").level == "ok"
    (due,) = scene.store.forward(("default",), 1, LEASE).wait().forwards
    refused = Tried(
        job_id=due.job_id, attempt=due.attempt, number=due.tries, sink=due.sink, error="no", delay=timedelta(hours=1)
    )
    assert scene.store.forwarded([refused]).wait() == [True]
    found = look(scene)
    assert finding(found, "forwarding").level == "failed"
    assert (found.status, found.forwards_failed) == ("failed", 1)


def test_the_document_has_the_numbers_as_plain_data(scene: Scene) -> None:
    succeed(scene, 10, failures=1)
    found = health_document(look(scene))
    assert (found["status"], found["attempts"], found["retry_rate"], found["window"]) == ("degraded", 20, 0.5, 900.0)


def a_recent(**changes: Any) -> Recent:
    given: dict[str, Any] = {
        "task": "send",
        "queue": "mail",
        "state": "succeeded",
        "lane": "fresh",
        "attempt": 1,
        "failures": 0,
        "run_at": NOW - MINUTE,
        "started_at": NOW - MINUTE,
        "ended_at": NOW,
    }
    return Recent(**{**given, **changes})


def test_the_wait_is_that_of_the_slowest_but_five_percent() -> None:
    slow = [a_recent(started_at=NOW - MINUTE + 30 * timedelta(seconds=1)) for _ in range(6)]
    assert measure([[a_recent() for _ in range(94)] + slow], NOW, 15 * MINUTE, None).wait == timedelta(seconds=30)
    assert measure([[a_recent() for _ in range(96)] + slow[:4]], NOW, 15 * MINUTE, None).wait == timedelta(0)


def test_waiting_retries_count_with_their_failures_and_delays() -> None:
    waiting = a_recent(state="waiting", lane="retry", attempt=5, failures=3, delay=MINUTE, ended_at=None)
    found = measure([[], [], [waiting]], NOW, 15 * MINUTE, None)
    assert (found.attempts, found.retries, found.retry_delay) == (3, 2, MINUTE)


def test_a_full_look_is_a_sample_only_if_it_does_not_reach_back_to_the_window() -> None:
    full = [a_recent() for _ in range(MOST_RECENT)]
    assert measure([full], NOW, 15 * MINUTE, None).is_sample
    old = a_recent(ended_at=NOW - timedelta(hours=1))
    assert not measure([[*full[1:], old]], NOW, 15 * MINUTE, None).is_sample


@pytest.mark.parametrize("wrong", [{"retry_rate": 2.0}, {"window": timedelta(0)}, {"exhausted": -1}])
def test_thresholds_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadOption):
        Thresholds(**wrong)
