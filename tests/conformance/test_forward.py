"""forward, forwarded, forward_now, forwards, forward_counts: a dead job is due to its sink until the sink has it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.conformance.scene import SECOND, Scene, an_error, death, ended, failure, success

from perdure.model.forward import Forward, Tried
from perdure.model.job import Job, JobId
from perdure.store import Store
from perdure.store.reads import JobFilter
from perdure.system.clock import Clock

LEASE = 30 * SECOND
DEAD = JobFilter(state="dead")
NOTHING = timedelta(0)


def dead(scene: Scene, sink: str | None = "queue:graveyard", **options: Any) -> Job:
    """A job that has died and is due to its sink."""
    job = scene.running(scene.worker(), **options)
    scene.end(job, death(job, sink=sink))
    return job


def claim(scene: Scene, limit: int = 10, queues: tuple[str, ...] = ("mail",)) -> list[Forward]:
    return list(scene.store.forward(queues, limit, LEASE).wait().forwards)


def tried(forward: Forward, error: str | None = None, **changes: Any) -> Tried:
    given: dict[str, Any] = {
        "job_id": forward.job_id,
        "attempt": forward.attempt,
        "number": forward.tries,
        "sink": "queue:graveyard",
        "error": error,
        "delay": 10 * SECOND if error else None,
    }
    return Tried(**{**given, **changes})


def settle(scene: Scene, *ended: Tried) -> list[bool]:
    return scene.store.forwarded(ended).wait()


def forward_of(scene: Scene, job_id: JobId) -> Forward | None:
    return scene.store.forwards([job_id]).wait().get(job_id)


# Proves [INV-22].
def test_a_job_that_dies_with_a_sink_is_dead_and_due_in_one_step(scene: Scene) -> None:
    job = dead(scene)
    assert scene.get(job.id).state == "dead"
    assert forward_of(scene, job.id) == Forward(
        job_id=job.id,
        attempt=1,
        queue="mail",
        state="pending",
        sink="queue:graveyard",
        next_at=scene.clock.now(),
    )


def test_a_job_that_dies_without_a_sink_is_not_due(scene: Scene) -> None:
    job = dead(scene, sink=None)
    assert forward_of(scene, job.id) is None
    assert claim(scene) == []


def test_only_a_commit_that_is_accepted_makes_a_job_due(scene: Scene) -> None:
    job = scene.running(scene.worker())
    assert not scene.end(job, death(job, sink="queue:graveyard"), attempt=7)
    assert forward_of(scene, job.id) is None


def test_jobs_of_one_batch_are_due_if_they_die_with_a_sink(scene: Scene) -> None:
    jobs = [scene.running(scene.worker()) for _ in range(4)]
    outcomes = [death(jobs[0], sink="a"), success(jobs[1]), failure(jobs[2]), death(jobs[3])]
    batch = [ended(job, outcome) for job, outcome in zip(jobs, outcomes, strict=True)]
    assert scene.store.commit(batch).wait() == [True] * 4
    assert list(scene.store.forwards([job.id for job in jobs]).wait()) == [jobs[0].id]


def test_the_queue_of_a_forward_is_the_one_that_its_job_was_enqueued_to(scene: Scene) -> None:
    worker = scene.worker()
    job = scene.running(worker)
    scene.end(job, failure(job, state="ready", delay=NOTHING, queue="mail-retries"))
    (again,) = scene.fetch(worker, queue="mail-retries")
    scene.end(again, death(again, sink="queue:graveyard"))
    (forward,) = claim(scene)
    assert (forward.queue, forward.attempt) == ("mail", 2)


def test_a_claim_counts_a_try_and_keeps_others_away_until_it_runs_out(scene: Scene) -> None:
    job = dead(scene)
    (first,) = claim(scene)
    assert (first.job_id, first.tries, first.next_at) == (job.id, 1, scene.clock.now() + LEASE)
    assert first.tried_at == scene.clock.now()
    assert claim(scene) == []
    scene.clock.advance(LEASE)
    (second,) = claim(scene)
    assert second.tries == 2


def test_what_has_been_due_for_longest_is_claimed_first_and_no_more_than_asked_for(scene: Scene) -> None:
    ids = []
    for _ in range(5):
        ids.append(dead(scene).id)
        scene.clock.advance(SECOND)
    assert {forward.job_id for forward in claim(scene, 2)} == set(ids[:2])
    assert {forward.job_id for forward in claim(scene, 2)} == set(ids[2:4])
    assert claim(scene, 0) == []


def test_only_forwards_of_the_queues_asked_for_are_claimed(scene: Scene) -> None:
    mine, others = dead(scene, queue="mine"), dead(scene, queue="others")
    assert [forward.job_id for forward in claim(scene, queues=("mine", "elsewhere"))] == [mine.id]
    assert claim(scene, queues=()) == []
    assert [forward.job_id for forward in claim(scene, queues=("others",))] == [others.id]


def test_a_look_tells_when_the_next_forward_of_its_queues_is_due(scene: Scene) -> None:
    assert scene.store.forward(["mail"], 10, LEASE).wait().next_at is None
    dead(scene)
    dead(scene, queue="others")
    due = scene.store.forward(["mail"], 10, LEASE).wait()
    assert due.next_at == scene.clock.now() + LEASE
    settle(scene, tried(due.forwards[0], "no"))
    assert scene.store.forward(["mail"], 10, LEASE).wait().next_at == scene.clock.now() + 10 * SECOND


def test_of_two_workers_one_claims(scene: Scene, open_again: Callable[[Clock], Store]) -> None:
    dead(scene)
    other = open_again(scene.clock)
    assert len(claim(scene)) + len(other.forward(["mail"], 10, LEASE).wait().forwards) == 1


# Proves [INV-22].
def test_what_the_sink_accepted_stays_dead_and_is_not_tried_again(scene: Scene) -> None:
    job = dead(scene)
    (forward,) = claim(scene)
    scene.clock.advance(SECOND)
    assert settle(scene, tried(forward)) == [True]
    found = forward_of(scene, job.id)
    assert found is not None
    assert (found.state, found.forwarded_at, found.next_at) == ("forwarded", scene.clock.now(), None)
    scene.clock.advance(1000 * LEASE)
    assert claim(scene) == []
    assert scene.get(job.id).state == "dead"


# Proves [INV-22].
def test_what_the_sink_refused_is_due_again_after_the_delay(scene: Scene) -> None:
    job = dead(scene)
    (forward,) = claim(scene)
    assert settle(scene, tried(forward, "503 Service Unavailable", sink="https://example.com")) == [True]
    found = forward_of(scene, job.id)
    assert found is not None
    assert (found.state, found.tries, found.error) == ("failing", 1, "503 Service Unavailable")
    assert (found.sink, found.next_at) == ("https://example.com", scene.clock.now() + 10 * SECOND)
    scene.clock.advance(9 * SECOND)
    assert claim(scene) == []
    scene.clock.advance(SECOND)
    (again,) = claim(scene)
    assert settle(scene, tried(again)) == [True]
    found = forward_of(scene, job.id)
    assert found is not None
    assert (found.state, found.tries, found.error) == ("forwarded", 2, None)


def test_a_failure_without_a_delay_stops_the_forwarding_until_a_person_asks_for_it(scene: Scene) -> None:
    job = dead(scene)
    (forward,) = claim(scene)
    settle(scene, tried(forward, "never", delay=None))
    found = forward_of(scene, job.id)
    assert found is not None
    assert (found.state, found.next_at, found.error) == ("stopped", None, "never")
    scene.clock.advance(1000 * LEASE)
    assert claim(scene) == []
    assert scene.store.forward_now(DEAD).wait() == 1
    (again,) = claim(scene)
    assert (again.state, again.tries, again.error) == ("failing", 2, "never")


def test_a_failure_of_an_older_try_changes_nothing(scene: Scene) -> None:
    job = dead(scene)
    (first,) = claim(scene)
    scene.clock.advance(LEASE)
    (second,) = claim(scene)
    assert settle(scene, tried(first, "late")) == [False]
    assert forward_of(scene, job.id) == second


def test_a_success_of_an_older_try_counts_for_the_sink_has_the_job(scene: Scene) -> None:
    job = dead(scene)
    (first,) = claim(scene)
    scene.clock.advance(LEASE)
    (second,) = claim(scene)
    assert settle(scene, tried(first)) == [True]
    assert settle(scene, tried(second, "busy")) == [False]
    found = forward_of(scene, job.id)
    assert found is not None
    assert found.state == "forwarded"


def test_a_success_that_is_told_twice_keeps_its_moment(scene: Scene) -> None:
    job = dead(scene)
    (forward,) = claim(scene)
    settle(scene, tried(forward))
    moment = scene.clock.now()
    scene.clock.advance(SECOND)
    assert settle(scene, tried(forward)) == [True]
    found = forward_of(scene, job.id)
    assert found is not None
    assert found.forwarded_at == moment


def test_tries_of_one_batch_count_one_after_the_other(scene: Scene) -> None:
    one, other = dead(scene), dead(scene)
    forwards = {forward.job_id: forward for forward in claim(scene)}
    answers = settle(
        scene,
        tried(forwards[one.id]),
        tried(forwards[other.id], "no"),
        tried(forwards[one.id], "too late"),
        tried(forwards[one.id], job_id=JobId("00000000-0000-7000-8000-00000000abcd")),
        tried(forwards[one.id], job_id=JobId("no id at all")),
    )
    assert answers == [True, True, False, False, False]
    assert scene.store.forward_counts().wait() == {"forwarded": 1, "failing": 1}


@pytest.mark.parametrize("way", ["replay", "retry", "discard"])
@pytest.mark.parametrize("state", ["pending", "failing", "forwarded", "stopped"])
def test_a_job_that_leaves_the_dead_is_forwarded_no_more(scene: Scene, way: str, state: str) -> None:
    job = dead(scene)
    (forward,) = claim(scene)
    if state == "failing":
        settle(scene, tried(forward, "no"))
    elif state == "stopped":
        settle(scene, tried(forward, "no", delay=None))
    elif state == "forwarded":
        settle(scene, tried(forward))
    if way == "replay":
        assert scene.store.replay(DEAD, 10, NOTHING).wait() == 1
    elif way == "retry":
        assert scene.store.retry([job.id]).wait() == ["replayed"]
    else:
        assert scene.store.discard(DEAD, 10).wait() == 1
    assert forward_of(scene, job.id) is None
    assert scene.store.forward_counts().wait() == {}
    scene.clock.advance(1000 * LEASE)
    assert claim(scene) == []
    assert settle(scene, tried(forward)) == [False]


def test_a_job_that_stays_dead_on_replay_stays_due(scene: Scene) -> None:
    job = dead(scene, unique="7")
    scene.enqueue(unique="7")
    assert scene.store.replay(DEAD, 10, NOTHING).wait() == 0
    assert forward_of(scene, job.id) is not None


def test_a_job_that_dies_again_is_due_again_and_the_try_before_means_nothing(scene: Scene) -> None:
    job = dead(scene)
    (before,) = claim(scene)
    scene.store.retry([job.id]).wait()
    (again,) = scene.fetch(scene.worker())
    scene.end(again, death(again, sink="queue:graveyard"))
    assert settle(scene, tried(before)) == [False]
    (forward,) = claim(scene)
    assert (forward.attempt, forward.tries, forward.state) == (2, 1, "pending")


def test_forward_now_hastens_what_fails_and_spares_what_is_forwarded(scene: Scene) -> None:
    failing, done = dead(scene), dead(scene)
    forwards = {forward.job_id: forward for forward in claim(scene)}
    settle(scene, tried(forwards[failing.id], "no"), tried(forwards[done.id]))
    assert scene.store.forward_now(JobFilter()).wait() == 1
    assert [forward.job_id for forward in claim(scene)] == [failing.id]


def test_forward_now_takes_ids_and_filters(scene: Scene) -> None:
    one, other = dead(scene), dead(scene, task="other")
    assert scene.store.forward_now(JobFilter(ids=(one.id,))).wait() == 1
    assert scene.store.forward_now(JobFilter(task="other", state="dead")).wait() == 1
    assert scene.store.forward_now(JobFilter(task="none")).wait() == 0
    assert scene.store.forward_now(JobFilter(state="succeeded")).wait() == 0
    assert {forward.job_id for forward in claim(scene)} == {one.id, other.id}


def test_forward_now_makes_a_job_due_that_died_without_a_sink(scene: Scene) -> None:
    job = dead(scene, sink=None)
    live = scene.enqueue()
    assert scene.store.forward_now(JobFilter()).wait() == 1
    (forward,) = claim(scene)
    assert (forward.job_id, forward.sink, forward.attempt, forward.queue) == (job.id, None, 1, "mail")
    assert forward_of(scene, live) is None


def test_jobs_are_found_and_counted_by_how_far_their_forwarding_is(scene: Scene) -> None:
    pending, failing, done, none = dead(scene), dead(scene), dead(scene), dead(scene, sink=None)
    settle(scene, *(tried(one, None if one.job_id == done.id else "no") for one in _claim_only(scene, failing, done)))
    for state, job in (("pending", pending), ("failing", failing), ("forwarded", done)):
        where = JobFilter(forward=state)
        assert [found.id for found in scene.store.list(where, limit=10).wait()] == [job.id]
        assert scene.store.count(JobFilter(forward=state, state="dead")).wait() == 1
    assert scene.store.list(JobFilter(forward="stopped"), limit=10).wait() == []
    assert scene.store.count(DEAD).wait() == 4
    assert scene.store.forward_counts().wait() == {"pending": 1, "failing": 1, "forwarded": 1}
    assert scene.store.discard(JobFilter(forward="forwarded"), 10).wait() == 1
    assert (scene.get(done.id).state, scene.get(none.id).state) == ("cancelled", "dead")


def _claim_only(scene: Scene, *jobs: Job) -> list[Forward]:
    """Claims all and lets the claims of the others be forgotten."""
    wanted = {job.id for job in jobs}
    return [forward for forward in claim(scene) if forward.job_id in wanted]


def test_a_hostile_error_and_sink_are_kept_as_they_are(scene: Scene) -> None:
    job = dead(scene, sink="it's \\ ; \x00 {}")
    (forward,) = claim(scene)
    text = "a \x00 NUL, a \\0, 'quotes', a line\nbreak and ünïcode"
    assert settle(scene, tried(forward, text, sink=None)) == [True]
    found = forward_of(scene, job.id)
    assert found is not None
    assert (found.error, found.sink) == (text, "it's \\ ; \x00 {}")


# Proves [INV-14].
def test_neither_a_due_nor_a_forwarded_job_is_pruned(scene: Scene) -> None:
    jobs = [dead(scene), dead(scene)]
    settle(scene, tried(claim(scene)[0]))
    scene.clock.advance(timedelta(days=400))
    assert scene.store.prune(NOTHING, 100).wait() == 0
    assert [scene.get(job.id).state for job in jobs] == ["dead", "dead"]
    assert len(scene.store.forwards([job.id for job in jobs]).wait()) == 2


def test_a_discarded_job_leaves_nothing_when_it_is_pruned(scene: Scene) -> None:
    dead(scene)
    scene.store.discard(DEAD, 10).wait()
    assert scene.store.prune(NOTHING, 100).wait() == 1
    assert scene.store.forward_counts().wait() == {}


def test_an_error_that_is_no_failure_of_a_job_is_not_its_error(scene: Scene) -> None:
    job = dead(scene)
    (forward,) = claim(scene)
    settle(scene, tried(forward, "the sink is down"))
    (found,) = scene.store.get([job.id]).wait()
    assert found is not None
    assert found.error == an_error()
