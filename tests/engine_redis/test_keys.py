"""Keys: all of them listed, typed, in one slot, and gone when nothing is left."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from redis.crc import key_slot
from tests.conformance.scene import SECOND, Scene, death, failure, success
from tests.servers.redis_books import keys_of, patterns

from perdure.engines.redis.keys import KEYS
from perdure.engines.redis.record import WITHIN
from perdure.engines.redis.store import RedisStore
from perdure.model.queue.settings import QueueSettings
from perdure.store.reads import JobFilter

LUA = Path(__file__).parents[2] / "src" / "perdure" / "engines" / "redis" / "lua"
WRITES = r"write_job\(|'(HSET|HSETNX|HDEL|HINCRBY|ZADD|ZREM|ZREMRANGEBYRANK|SADD|SREM|RPUSH|DEL|SETNX)'"


def fill(scene: Scene) -> None:
    """A job in every state, workers living and vanished, a pause and a setting."""
    worker = scene.worker()
    done = scene.running(worker, unique="done", args=b'"' + b"x" * 1000 + b'"')
    scene.end(done, success(done, result=b"1" * 1000))
    scene.dead(worker, unique="dead")
    forwarded = scene.running(worker)
    scene.end(forwarded, death(forwarded, sink="queue:graveyard"))
    scene.store.cancel([scene.enqueue()], "unwanted").wait()
    retried = scene.running(worker, queue="mail:retry:fresh")
    scene.end(retried, failure(retried, queue="elsewhere"))
    parked = scene.running(worker)
    scene.end(parked, failure(parked, attempt="parked", reason="parked", delay=60 * SECOND))
    asked = scene.running(scene.worker("worker-2"))
    scene.store.cancel([asked.id], "unwanted").wait()
    scene.running(scene.worker("worker-3"))
    scene.store.deregister(scene.worker("worker-3")).wait()
    scene.enqueue(unique="ready")
    scene.enqueue(delay=SECOND)
    scene.store.pause("mail", "a reason", scene.clock.now() + SECOND).wait()
    scene.store.configure("mail", QueueSettings(concurrency=5)).wait()
    queued = scene.schedule("queued", overlap="queue")
    scene.pass_time(10 * SECOND)
    scene.fire()
    scene.pass_time(10 * SECOND)
    scene.fire()
    assert scene.get_schedule(queued).backlog
    scene.store.note("request", "a key", "a body", SECOND).wait()


def test_every_key_that_exists_is_listed_and_every_key_that_is_listed_exists(
    scene: Scene, client: redis.Redis, tag: str
) -> None:
    fill(scene)
    found = keys_of(client, tag)
    for name, (pattern, kind) in patterns(tag).items():
        matching = [key for key in found if pattern.fullmatch(key)]
        assert matching, f"nothing made a key {name}"
        assert {client.type(key).decode() for key in matching} == {kind}


def test_all_keys_are_in_one_slot_of_a_cluster(scene: Scene, client: redis.Redis, tag: str) -> None:
    fill(scene)
    slots = {key_slot(key.encode()) for key in keys_of(client, tag)}
    assert slots == {key_slot(tag.encode())}


def test_each_key_is_written_by_the_scripts_that_are_listed_as_its_writers() -> None:
    named = {path.stem for path in LUA.glob("*.lua")}
    for key in KEYS:
        assert set(key.writers) <= named
    for script in named:
        text = (LUA / f"{script}.lua").read_text(encoding="utf-8")
        fragments = re.findall(r"^--\+ (\w+)$", text, re.MULTILINE)
        writes = re.search(WRITES, text) or {"put_back", "make", "schedule", "forwards"} & set(fragments)
        assert bool(writes) == any(script in key.writers for key in KEYS), script


@pytest.mark.parametrize("size", [0, 1, WITHIN, WITHIN + 1, 100_000])
def test_args_and_results_come_back_whole_whether_or_not_the_record_has_room_for_them(scene: Scene, size: int) -> None:
    text = bytes(range(97, 107)) * (size // 10 + 1)
    args, result = text[:size], text[:size][::-1]
    worker = scene.worker()
    scene.enqueue(args=args)
    (job,) = scene.fetch(worker)
    assert job.args == args
    scene.end(job, failure(job, state="ready", delay=0 * SECOND))
    (again,) = scene.fetch(worker)
    assert again.args == args
    scene.end(again, success(again, result=result))
    (listed,) = scene.store.list(JobFilter(), limit=10).wait()
    assert (listed.args, listed.result) == (args, result)
    assert scene.get(job.id) == listed


def test_bytes_that_no_text_has_are_kept_apart_from_the_record(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue(args=b"\xff\xff=\xff")
    (job,) = scene.fetch(worker)
    scene.end(job, success(job, result=b"\xff"))
    ended = scene.get(job.id)
    assert (ended.state, ended.args, ended.result) == ("succeeded", b"\xff\xff=\xff", b"\xff")


def test_two_prefixes_on_one_server_are_two_stores(
    store: RedisStore, scene: Scene, open_one, url: str, client: redis.Redis
) -> None:
    job_id = scene.enqueue()
    other = open_one(f"{url}-other")
    assert other.get([job_id]).wait() == [None]
    assert other.count(JobFilter()).wait() == 0
    client.delete(f"{other._address.tag}:schema")


@pytest.mark.parametrize("queue", ["a:b", "{x}", "*", "", "retry:mail", "строка", "line\nbreak", "x" * 10_000])
def test_an_odd_queue_name_meets_no_other_key(scene: Scene, queue: str) -> None:
    worker = scene.worker()
    job_id = scene.enqueue(queue=queue, unique=queue, task=f"task:{queue}")
    assert [job.id for job in scene.fetch(worker, queue=queue)] == [job_id]
    (found,) = scene.store.queues().wait()
    assert (found.name, found.running) == (queue, 1)


@pytest.mark.parametrize("worker", ["a:b", "{x}", "*", "строка"])
def test_an_odd_worker_name_meets_no_other_key(scene: Scene, worker: str) -> None:
    job = scene.running(scene.worker(worker))
    assert scene.store.beat(scene.worker(worker), SECOND).wait().held == (job.fence,)


def test_unique_keys_of_tasks_that_look_alike_are_kept_apart(scene: Scene) -> None:
    ids = {
        scene.enqueue(task=task, unique=unique)
        for task, unique in [("a", "b:c"), ("a:b", "c"), ("1:a", "b"), ("a", "")]
    }
    assert len(ids) == 4


def test_a_finished_job_leaves_no_key_when_it_is_pruned(scene: Scene, client: redis.Redis, tag: str) -> None:
    worker = scene.worker()
    job = scene.running(worker, unique="7")
    scene.end(job, failure(job, state="ready", delay=0 * SECOND))
    (again,) = scene.fetch(worker)
    scene.end(again, success(again))
    scene.store.deregister(worker).wait()
    assert len(keys_of(client, tag)) > 1
    assert scene.store.prune(timedelta(0), 10).wait() == 1
    assert keys_of(client, tag) == [f"{tag}:schema"]


def test_a_dismissed_job_leaves_no_key_when_it_is_pruned(scene: Scene, client: redis.Redis, tag: str) -> None:
    job = scene.running()
    scene.end(job, death(job))
    scene.store.deregister(job.worker).wait()
    scene.store.discard(JobFilter(), 10).wait()
    scene.store.prune(timedelta(0), 10).wait()
    assert keys_of(client, tag) == [f"{tag}:schema"]


@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_a_removed_schedule_leaves_no_key_once_its_job_is_pruned(
    scene: Scene, client: redis.Redis, tag: str, overlap: str
) -> None:
    scene.schedule("a:b", overlap=overlap)
    for _ in range(2):
        scene.pass_time(10 * SECOND)
        scene.fire()
    (job,) = scene.fetch(scene.worker())
    scene.store.remove_schedule("a:b").wait()
    scene.end(job, success(job))
    scene.store.deregister(job.worker).wait()
    scene.store.prune(timedelta(0), 10).wait()
    assert keys_of(client, tag) == [f"{tag}:schema"]


def test_the_docs_list_every_key_with_its_type_members_and_score() -> None:
    text = (Path(__file__).parents[2] / "docs" / "redis.md").read_text(encoding="utf-8")
    rows = [line for line in text.partition("## Keys")[2].partition("## ")[0].splitlines() if line.startswith("| `")]
    wanted = []
    for key in KEYS:
        holds = key.holds.replace("|", r"\|")
        wanted.append(f"| `{key.name}` | {key.type} | {holds} | {key.score} |".replace("|  |", "| |"))
    assert rows == wanted
