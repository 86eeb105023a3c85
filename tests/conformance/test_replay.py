"""replay: matching dead jobs go back, oldest first and paced."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.conformance.scene import SECOND, Scene, an_error, death, failure

from perdure.model.job import JobId
from perdure.store.reads import JobFilter

AT_ONCE = timedelta(0)


def states(scene: Scene, ids: list[JobId]) -> list[str]:
    return [scene.get(job_id).state for job_id in ids]


def test_dead_jobs_are_ready_again(scene: Scene) -> None:
    worker = scene.worker()
    ids = [scene.dead(worker) for _ in range(3)]
    assert scene.store.replay(JobFilter(), 10, AT_ONCE).wait() == 3
    assert states(scene, ids) == ["ready"] * 3


def test_failures_start_again_and_history_stays(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, death(job, failures=4, recoveries=1, queue="elsewhere"))
    scene.store.replay(JobFilter(), 10, AT_ONCE).wait()
    kept = scene.get(job.id)
    assert (kept.failures, kept.recoveries, kept.queue, kept.origin, kept.lane) == (0, 0, "mail", None, "retry")
    assert (kept.reason, kept.ended_at) == (None, None)
    assert [record.outcome for record in scene.store.history(job.id, 10).wait()] == ["failed"]


def test_only_dead_jobs_are_put_back(scene: Scene) -> None:
    cancelled = scene.enqueue()
    scene.store.cancel([cancelled], "cancelled").wait()
    assert scene.store.replay(JobFilter(), 10, AT_ONCE).wait() == 0
    assert scene.store.replay(JobFilter(state="cancelled"), 10, AT_ONCE).wait() == 0
    assert scene.store.replay(JobFilter(ids=(cancelled,)), 10, AT_ONCE).wait() == 0
    assert scene.get(cancelled).state == "cancelled"


def test_the_oldest_go_first_up_to_the_limit(scene: Scene) -> None:
    worker = scene.worker()
    ids = [scene.dead(worker) for _ in range(4)]
    assert scene.store.replay(JobFilter(), 2, AT_ONCE).wait() == 2
    assert states(scene, ids) == ["ready", "ready", "dead", "dead"]
    assert scene.store.replay(JobFilter(), 0, AT_ONCE).wait() == 0


def test_paced_jobs_come_due_one_after_the_other(scene: Scene) -> None:
    worker = scene.worker()
    ids = [scene.dead(worker) for _ in range(3)]
    scene.store.replay(JobFilter(), 10, 2 * SECOND).wait()
    now = scene.clock.now()
    assert [scene.get(job_id).run_at for job_id in ids] == [now, now + 2 * SECOND, now + 4 * SECOND]
    assert states(scene, ids) == ["ready", "waiting", "waiting"]


def test_a_job_remembers_when_it_was_due_after_it_was_put_back(scene: Scene) -> None:
    worker = scene.worker()
    ids = [scene.dead(worker) for _ in range(2)]
    assert scene.get(ids[0]).replayed_at is None
    scene.pass_time(SECOND)
    scene.store.replay(JobFilter(), 10, 2 * SECOND).wait()
    now = scene.clock.now()
    assert [scene.get(job_id).replayed_at for job_id in ids] == [now, now + 2 * SECOND]
    (job,) = scene.fetch(worker)
    assert job.replayed_at == now


def test_a_busy_unique_key_is_skipped_and_costs_no_turn(scene: Scene) -> None:
    worker = scene.worker()
    busy = scene.dead(worker, unique="7")
    free = [scene.dead(worker) for _ in range(3)]
    scene.enqueue(unique="7", delay=SECOND)
    assert scene.store.replay(JobFilter(), 2, SECOND).wait() == 2
    assert states(scene, [busy, *free]) == ["dead", "ready", "waiting", "dead"]
    assert scene.get(free[0]).run_at == scene.clock.now()


def test_of_dead_jobs_with_one_key_the_oldest_goes_back(scene: Scene) -> None:
    worker = scene.worker()
    ids = [scene.dead(worker, unique="7") for _ in range(3)]
    assert scene.store.replay(JobFilter(), 10, AT_ONCE).wait() == 1
    assert states(scene, ids) == ["ready", "dead", "dead"]


def test_a_replayed_job_can_die_again_and_be_replayed_again(scene: Scene) -> None:
    worker = scene.worker()
    job_id = scene.dead(worker)
    for attempt in (2, 3):
        assert scene.store.replay(JobFilter(), 10, AT_ONCE).wait() == 1
        (job,) = scene.fetch(worker)
        assert (job.id, job.attempt, job.failures) == (job_id, attempt, 0)
        scene.end(job, death(job))


@pytest.mark.parametrize("verb", ["replay", "discard"])
@pytest.mark.parametrize(
    ("matching", "other"),
    [
        ({"task": "bill"}, {"task": "send"}),
        ({"queue": "money"}, {"queue": "mail"}),
        ({"reason": "unrecoverable"}, {"reason": "exhausted"}),
        ({"error": "time"}, {"error": "nothing like it"}),
        ({"before": "late"}, {"before": "early"}),
        ({"after": "early"}, {"after": "late"}),
        ({"state": "dead"}, {"state": "ready"}),
        ({"ids": "its own"}, {"ids": "another's"}),
        ({"group": "its own"}, {"group": "another's"}),
        ({"task": "bill", "queue": "money"}, {"task": "bill", "queue": "mail"}),
    ],
)
def test_each_field_of_the_filter_must_hold(
    scene: Scene, verb: str, matching: dict[str, str], other: dict[str, str]
) -> None:
    job = scene.running(task="bill", queue="money")
    scene.end(job, death(job, reason="unrecoverable", error=an_error("Timed out", "TimeoutError")))
    (group,) = scene.store.groups(JobFilter(), 1).wait()
    now = scene.clock.now()
    meant = {
        "late": now + SECOND,
        "early": now - SECOND,
        "its own": {"ids": (job.id,), "group": group.fingerprint},
        "another's": {"ids": (JobId("nobody"),), "group": "0123456789abcdef"},
    }

    def read(fields: dict[str, str]) -> JobFilter:
        given = {}
        for field, word in fields.items():
            value = meant.get(word, word)
            given[field] = value[field] if isinstance(value, dict) else value
        return JobFilter(**given)

    def use(where: JobFilter) -> int:
        if verb == "replay":
            return scene.store.replay(where, 10, AT_ONCE).wait()
        return scene.store.discard(where, 10).wait()

    assert use(read(other)) == 0
    assert scene.get(job.id).state == "dead"
    assert use(read(matching)) == 1
    assert scene.get(job.id).state == ("ready" if verb == "replay" else "cancelled")


def test_a_moved_job_is_found_by_its_queue_and_by_its_origin(scene: Scene) -> None:
    worker = scene.worker()
    job = scene.running(worker)
    scene.end(job, failure(job, queue="mail-retries", state="ready", delay=AT_ONCE))
    (again,) = scene.fetch(worker, queue="mail-retries")
    scene.end(again, death(again))
    for queue in ("mail", "mail-retries"):
        assert scene.store.count(JobFilter(state="dead", queue=queue)).wait() == 1
    assert scene.store.replay(JobFilter(queue="mail"), 10, AT_ONCE).wait() == 1
    assert scene.get(job.id).queue == "mail"
