"""Which dead jobs have a sink, and what the id of their copy is."""

from __future__ import annotations

import uuid
from datetime import timedelta
from random import Random

import pytest
from tests.unit.test_decide import BOOM, FIVE_SECONDS, NOW, a_job, a_policy

from perdure.model.decide import decide
from perdure.model.forward import NOWHERE, Sink
from perdure.model.job import derive_id
from perdure.model.outcome import (
    Cancelled,
    Ending,
    GaveUp,
    Raised,
    Returned,
    ShutDown,
    Snoozed,
    Spent,
    TaskUnknown,
    TimedOut,
    Undecodable,
    Vanished,
)
from perdure.model.policy.resolve import AppPolicy, QueuePolicy, TaskPolicy, resolve

ENDINGS: list[Ending] = [
    Returned(),
    Raised(error=BOOM),
    GaveUp(error=BOOM),
    Snoozed(delay=timedelta(seconds=1)),
    Cancelled(),
    TimedOut(timeout=timedelta(seconds=1)),
    ShutDown(has_started=True),
    Vanished(detail="gone"),
    Spent(reason="exhausted"),
    TaskUnknown(),
    Undecodable(detail="no"),
]


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: type(ending).__name__)
@pytest.mark.parametrize("failures", [0, 3])
@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once"])
def test_exactly_the_jobs_that_die_have_a_sink(ending: Ending, failures: int, delivery: str) -> None:
    job = a_job(failures=failures, delivery=delivery)
    outcome = decide(job, ending, a_policy(sink=Sink("queue:graveyard", "graveyard")), NOW, Random(1))
    assert outcome.sink == ("queue:graveyard" if outcome.state == "dead" else None)
    plain = decide(job, ending, a_policy(), NOW, Random(1))
    assert plain.sink is None
    assert plain.state == outcome.state


def sink_of(of_queue: Sink | None, of_app: Sink | None, **job: object) -> Sink | None:
    policy = AppPolicy(retry=FIVE_SECONDS, sink=of_app)
    return resolve(a_job(**job), TaskPolicy(), QueuePolicy(sink=of_queue), policy).sink


def test_a_queues_sink_comes_before_the_apps_and_nowhere_is_a_sink_to_say() -> None:
    one, other = Sink("queue:one", "one"), Sink("https://example.com")
    assert sink_of(None, None) is None
    assert sink_of(None, one) == one
    assert sink_of(other, one) == other
    assert sink_of(NOWHERE, one) is None


def test_what_dies_where_copies_go_has_no_sink() -> None:
    mail = Sink("queue:mail", "mail")
    assert sink_of(None, mail, queue="mail") is None
    assert sink_of(None, mail, queue="mail-retries", origin="mail") is None
    assert sink_of(None, mail, queue="other") == mail


def test_an_id_is_derived_once_for_each_death_and_purpose() -> None:
    job = a_job(ended_at=NOW)
    assert derive_id(job, "a") == derive_id(job, "a")
    others = {
        derive_id(job, "b"),
        derive_id(a_job(ended_at=NOW, attempt=2), "a"),
        derive_id(a_job(ended_at=NOW, id="01900000-0000-7000-8000-000000000001"), "a"),
    }
    assert len(others | {derive_id(job, "a")}) == 4


def test_a_derived_id_is_a_uuid_of_version_7_that_sorts_by_the_death() -> None:
    ids = [derive_id(a_job(ended_at=NOW + timedelta(seconds=number)), "a") for number in range(20)]
    assert ids == sorted(ids)
    assert {uuid.UUID(job_id).version for job_id in ids} == {7}
