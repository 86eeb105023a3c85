"""What is due and claimed where it waits: the books stay right, and nothing is written before everything was seen."""

from __future__ import annotations

import pytest
from tests.conformance.scene import SECOND, Scene, a_want, success
from tests.servers.redis import RedisServer

from perdure.errors import EngineError
from perdure.store.jobs import Fetched, Want


def take_due(scene: Scene, *wants: Want, limit: int = 10) -> Fetched:
    return scene.store.fetch(scene.worker(), wants or [a_want()], limit, takes_due=True).wait()


def test_the_books_are_right_after_ready_and_due_jobs_were_claimed_together(own: Scene) -> None:
    for number in range(4):
        own.enqueue(delay=SECOND, queue="mail" if number % 2 else "other", priority=number, args=b"x" * 1000)
    own.pass_time(SECOND)
    own.enqueue()
    fetched = take_due(own, a_want("other", fresh=1, retry=0), a_want())
    assert (len(fetched.jobs), fetched.due) == (4, 3)
    assert {job.args for job in fetched.jobs[:2]} == {b"x" * 1000}


@pytest.mark.parametrize("queues", [("a", "b", "c", "a"), ("b", "a", "c", "a", "b"), ("c", "a", "b"), ("a", "b", "c")])
def test_only_what_is_claimed_leaves_the_waiting_line(own: Scene, queues: tuple[str, ...]) -> None:
    made = [own.enqueue(delay=SECOND, queue=queue) for queue in queues]
    own.pass_time(SECOND)
    fetched = take_due(own, a_want("a"), a_want("b"))
    assert {job.id for job in fetched.jobs} == {job for job, queue in zip(made, queues, strict=True) if queue != "c"}
    left = [job for job, queue in zip(made, queues, strict=True) if queue == "c"]
    assert [own.get(job).state for job in left] == ["waiting"] * len(left)
    assert own.store.promote(10).wait().count == len(left)


def test_a_full_server_gives_what_is_due(own: Scene, server: RedisServer) -> None:
    own.worker()
    own.enqueue(delay=SECOND)
    own.pass_time(SECOND)
    server.ask("CONFIG", "SET", "maxmemory", "1")
    assert take_due(own).due == 1
    server.ask("CONFIG", "SET", "maxmemory", "0")


@pytest.mark.parametrize("name", ["waiting", "counts", "records", "running:worker-1"])
def test_a_key_of_another_kind_stops_the_claim_before_it_writes(own: Scene, server: RedisServer, name: str) -> None:
    job_id = own.enqueue(delay=SECOND)
    own.enqueue()
    own.pass_time(SECOND)
    own.worker()
    key = f"{{perdure}}:{name}"
    kept = server.ask("DUMP", key)
    server.ask("SET", key, "something else")
    with pytest.raises(EngineError):
        take_due(own)
    server.ask("DEL", key)
    if kept is not None:
        server.ask("RESTORE", key, 0, kept)
    assert own.get(job_id).state == "waiting"
    assert take_due(own).due == 1


def test_a_place_without_a_waiting_job_is_passed_over(own: Scene, server: RedisServer) -> None:
    own.enqueue(delay=2 * SECOND)
    own.pass_time(2 * SECOND)
    server.ask("ZADD", "{perdure}:waiting", 0, "000000000000000001:nobody")
    assert take_due(own).due == 1
    assert server.ask("ZCARD", "{perdure}:waiting") == 1
    assert own.store.promote(10).wait().count == 0
    assert server.ask("EXISTS", "{perdure}:waiting") == 0


def test_a_fetch_that_does_not_take_what_is_due_does_not_look_at_what_waits(own: Scene, server: RedisServer) -> None:
    own.enqueue(delay=SECOND)
    own.pass_time(SECOND)
    server.ask("CONFIG", "RESETSTAT")
    assert own.fetch(own.worker()) == []
    with server.client() as client:
        assert "cmdstat_zrangebylex" not in client.info("commandstats")


# Proves [INV-17].
def test_what_an_earlier_want_took_counts_against_the_limit_of_its_queue(own: Scene) -> None:
    for _ in range(5):
        own.enqueue(delay=SECOND)
    own.pass_time(SECOND)
    fetched = take_due(own, a_want(fresh=2, retry=0, concurrency=3), a_want(concurrency=3))
    assert (fetched.due, fetched.rooms) == (3, (2, 1))


def test_a_place_in_line_that_no_ready_job_has_is_passed_over(own: Scene, server: RedisServer) -> None:
    over = own.running(own.worker())
    own.end(over, success(over))
    job_id = own.enqueue()
    for stranger in ("nobody", over.id):
        server.ask("ZADD", "{perdure}:ready:fresh:mail", 0, f"000000000000000001:{stranger}")
    assert [job.id for job in own.fetch(own.worker())] == [job_id]
    assert own.get(over.id).state == "succeeded"
    assert server.ask("SMEMBERS", "{perdure}:running:worker-1") == {job_id.encode()}
