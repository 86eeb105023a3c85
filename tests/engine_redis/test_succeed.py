"""A batch of first attempts that succeeded is written by a script of its own, with the promises of any commit."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.scene import SECOND, Scene, ended, failure, success
from tests.servers.redis import RedisServer
from tests.servers.redis_books import keys_of

from perdure.errors import EngineError
from perdure.model.job import Job
from perdure.store.reads import JobFilter


def everything(server: RedisServer) -> dict[str, bytes]:
    with server.client() as client:
        return {key: client.dump(key) for key in keys_of(client, "{perdure}")}


def calls(server: RedisServer) -> int:
    """How many scripts were run since the figures were last set back."""
    with server.client() as client:
        stats = client.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha"))


def succeed(scene: Scene, *jobs: Job, **changes: Any) -> list[bool]:
    return scene.store.commit([ended(job, success(job, **changes)) for job in jobs]).wait()


def make(scene: Scene, **changes: Any) -> Job:
    """A running job of the one worker."""
    return scene.running(scene.worker(), **changes)


def test_plain_and_other_jobs_of_several_queues_succeed_in_one_step(own: Scene, server: RedisServer) -> None:
    succeed(own, make(own))  # from now on the server knows the script
    jobs = [
        make(own),
        make(own, unique="7"),
        make(own, queue="other", args=b"x" * 1000),
        make(own, queue="строка"),
        make(own, unique="8", queue="other"),
        make(own),
    ]
    own.schedule("often")
    own.pass_time(10 * SECOND)
    own.fire()
    jobs += own.fetch(own.worker())
    own.store.cancel([jobs[0].id], "unwanted").wait()
    server.ask("CONFIG", "RESETSTAT")
    assert succeed(own, *jobs) == [True] * 7
    assert calls(server) == 1
    for job in jobs:
        made = own.get(job.id)
        assert (made.state, made.result, made.worker, made.ended_at) == ("succeeded", b'"done"', None, own.clock.now())
        assert (made.queue, made.args, made.unique, made.schedule) == (job.queue, job.args, job.unique, job.schedule)
    assert own.store.beat(own.worker(), SECOND).wait().held == ()
    assert own.store.cancelling(own.worker()).wait() == ()
    assert own.enqueue(unique="7") != jobs[1].id
    own.pass_time(10 * SECOND)
    assert len(own.fire()) == 1


# Proves [INV-3].
def test_one_that_is_not_current_is_refused_and_the_others_are_not(own: Scene) -> None:
    jobs = [make(own) for _ in range(3)]
    own.end(jobs[1], failure(jobs[1]))
    assert succeed(own, *jobs) == [True, False, True]
    assert [own.get(job.id).state for job in jobs] == ["succeeded", "waiting", "succeeded"]


# Proves [INV-3].
def test_one_that_there_is_not_is_refused_and_the_others_are_not(own: Scene) -> None:
    job = make(own)
    stranger = ended(job, success(job), job_id="nobody")
    assert own.store.commit([stranger, ended(job, success(job))]).wait() == [False, True]


def test_a_job_that_comes_twice_is_accepted_once(own: Scene) -> None:
    job = make(own)
    assert succeed(own, job, job) == [True, False]


def test_second_attempts_and_other_workers_go_the_general_way(own: Scene) -> None:
    first = make(own)
    own.end(first, failure(first, state="ready", delay=0 * SECOND))
    (second,) = own.fetch(own.worker())
    other = own.running(own.worker("worker-2"))
    assert succeed(own, second) == [True]
    assert succeed(own, make(own), other) == [True, True]
    assert own.get(second.id).error is None


def test_a_long_result_is_kept_whole(own: Scene) -> None:
    job = make(own)
    assert succeed(own, job, result=b"1" * 1000) == [True]
    assert own.get(job.id).result == b"1" * 1000


def test_results_that_no_text_has_are_kept_as_they_are(own: Scene) -> None:
    jobs = [make(own) for _ in range(3)]
    results = [b"\xfe", b"\xff\xfe\xff", b'"\xfe\xfe"']
    outcomes = [ended(job, success(job, result=result)) for job, result in zip(jobs, results, strict=True)]
    assert own.store.commit(outcomes).wait() == [True] * 3
    assert [own.get(job.id).result for job in jobs] == results


def test_jobs_that_succeeded_together_share_places_among_those_that_ended(own: Scene, server: RedisServer) -> None:
    own.store.enqueue([own.new_job() for _ in range(250)]).wait()
    assert succeed(own, *own.fetch(own.worker(), fresh=250, limit=250)) == [True] * 250
    assert server.ask("ZCARD", "{perdure}:ended") == 3
    assert len(own.store.list(JobFilter(state="succeeded"), limit=1000).wait()) == 250


def test_a_full_server_takes_it(own: Scene, server: RedisServer) -> None:
    job = make(own)
    server.ask("CONFIG", "SET", "maxmemory", "1")
    assert succeed(own, job) == [True]
    server.ask("CONFIG", "SET", "maxmemory", "0")


def test_a_vanished_worker_that_holds_nothing_more_is_forgotten(own: Scene, server: RedisServer) -> None:
    jobs = [make(own), make(own)]
    own.store.deregister(own.worker()).wait()
    assert server.ask("SMEMBERS", "{perdure}:vanished") == {b"worker-1"}
    assert succeed(own, jobs[0]) == [True]
    assert server.ask("EXISTS", "{perdure}:vanished") == 1
    assert succeed(own, jobs[1]) == [True]
    assert server.ask("EXISTS", "{perdure}:vanished") == 0


@pytest.mark.parametrize("name", ["records", "ended", "counts", "running:worker-1", "cancelling:worker-1", "unique"])
def test_a_key_of_another_kind_stops_it_before_it_writes(own: Scene, server: RedisServer, name: str) -> None:
    jobs = [make(own), make(own, unique="7")]
    key = f"{{perdure}}:{name}"
    kept = server.ask("DUMP", key)
    server.ask("SET", key, "something else")
    before = everything(server)
    with pytest.raises(EngineError):
        succeed(own, *jobs)
    assert everything(server) == before
    server.ask("DEL", key)
    if kept is not None:
        server.ask("RESTORE", key, 0, kept)
    assert succeed(own, *jobs) == [True, True]
