"""A key that holds a value of another type: no script stops half-way, whichever key it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any

import pytest
import redis
from tests.conformance.scene import SECOND, Scene, a_want, death, ended, failure, firing, success
from tests.conformance.test_forward import tried
from tests.servers.redis import RedisServer
from tests.servers.redis_books import audit

from perdure import App, Settings
from perdure.engines.opener import open_store
from perdure.engines.redis.fetch import set_aside
from perdure.engines.redis.keys import KEYS
from perdure.engines.redis.record import Record
from perdure.engines.redis.verb import Call
from perdure.engines.reply import Asked
from perdure.errors import EngineDamaged
from perdure.model.change import Change
from perdure.model.queue.settings import QueueSettings
from perdure.model.schedule.definition import Definition, new_schedule
from perdure.model.schedule.fire import plan
from perdure.store import Store
from perdure.store.audit import Fault
from perdure.store.reads import JobFilter
from perdure.store.reply import Reply
from perdure.store.schedules import Firing
from perdure.system.clock import VirtualClock

PREFIX = "{perdure}:"
DELIVERY = Record.__struct_fields__.index("delivery")
Verb = Callable[[], Any]
HIDE = """
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('RENAME', KEYS[1], 'kept')
end
redis.call('SET', KEYS[1], 'something else')
"""
SHOW = """
redis.call('DEL', KEYS[1])
if redis.call('EXISTS', 'kept') == 1 then
  redis.call('RENAME', 'kept', KEYS[1])
end
"""
DELETED = {"deregister": ["worker:worker-1"], "reap": ["worker:lost"]}
"""Keys that a script deletes whole, whatever they hold."""


class Stage:
    """A store in which every verb has something to do, the same in every run."""

    def __init__(self, server: RedisServer) -> None:
        server.ask("FLUSHALL")
        self.clock = VirtualClock()
        self.store: Store = open_store(server.url, clock=self.clock)
        self.scene = scene = Scene(self.store, self.clock)
        self.worker = worker = scene.worker()
        self.once = scene.running(worker, delivery="at_most_once")
        self.first = scene.running(worker, unique="first", args=b'"' + b"x" * 1000 + b'"')
        self.second = scene.running(worker)
        self.third = scene.running(worker)
        self.dead: list[Any] = []
        for sink in ("queue:graveyard", "queue:graveyard", None, None):
            job = scene.running(worker, unique=f"dead {len(self.dead)}")
            assert scene.end(job, death(job, sink=sink))
            self.dead.append(job.id)
        self.cancelled = scene.enqueue()
        self.store.cancel([self.cancelled], "unwanted").wait()
        lost = scene.worker("lost", lease=5 * SECOND)
        scene.running(lost)
        self.vanished = scene.running(scene.worker("vanished"))
        self.store.deregister(scene.worker("vanished")).wait()
        self.store.note("old", "a key", "a body", SECOND).wait()
        self.schedule = scene.schedule(overlap="queue")
        self.paused = "paused"
        self.store.pause(self.paused, "a reason", self.clock.now() + SECOND).wait()
        self.store.pause("mended", "a reason").wait()
        self.asked = scene.running(worker)
        retried = scene.running(worker)
        assert scene.end(retried, failure(retried, state="ready", delay=0 * SECOND))
        self.late = scene.enqueue(delay=8 * SECOND)
        scene.pass_time(20 * SECOND)
        self.store.beat(worker, 30 * SECOND).wait()
        self.ready = scene.enqueue(unique="ready")
        self.due = self.store.due(10).wait().schedules[0]
        self.damaged = scene.running(worker, queue="damaged", unique="damaged")
        record = server.ask("HGET", PREFIX + "records", self.damaged.id).split(b"\xff")
        record[DELIVERY] = b"some_day"
        server.ask("HSET", PREFIX + "records", self.damaged.id, b"\xff".join(record))
        self.parked = scene.running(worker, queue="parked")
        assert scene.end(self.parked, failure(self.parked, reason="parked", attempt="parked", lane="fresh"))
        self.forward = self.store.forwards(self.dead[:1]).wait()[self.dead[0]]

    def damage(self, server: RedisServer, verb: str) -> None:
        """Give the repairs something to do, whose scripts would otherwise write nothing."""
        if verb == "repair":
            server.ask("DEL", PREFIX + "waiting", PREFIX + "dead", PREFIX + "cancelled", PREFIX + "parked:parked")
            for job in (self.second, self.third):
                server.ask("SREM", PREFIX + "running:worker-1", job.id)
        elif verb == "repair_counters":
            server.ask("HSET", PREFIX + "counts", "ready:fresh:nowhere", 5)
            server.ask("HSET", PREFIX + "forward_counts", "failing", 5)

    def repaired(self, *kinds: str) -> Reply[list[bool]]:
        faults = [
            Fault(kind="job", name=job_id, problem="", repair="", detail="job")
            for job_id in (self.late, self.cancelled, *self.dead, self.second.id, self.third.id, self.parked.id)
        ]
        for key, field in (("counts", "ready:fresh:nowhere"), ("forward_counts", "failing")):
            detail = f'["{key}", "{field}", "5", "0"]'
            faults.append(Fault(kind="counter", name=f"{key} {field}", problem="", repair="set it to 0", detail=detail))
        return self.store.repair([fault for fault in faults if fault.kind in kinds])

    def verbs(self) -> dict[str, Verb]:
        store, scene, worker = self.store, self.scene, self.worker
        definition = Definition(name="other", task="send", args=b"{}", cron="@every 10s")
        other = new_schedule(definition, "operator", self.clock.now())
        many = [scene.new_job(unique="7", args=b"y" * 1000), scene.new_job(delay=SECOND)]
        return {
            "enqueue": lambda: store.enqueue(many),
            "enqueue_one": lambda: store.enqueue([scene.new_job()]),
            "fetch": lambda: store.fetch(worker, [a_want(), a_want("else", concurrency=1)], 10),
            "start": lambda: store.start(worker, [(self.once.id, self.once.attempt)]),
            "succeed": lambda: store.commit([ended(self.first, success(self.first, result=None))]),
            "commit": lambda: store.commit(
                [
                    ended(self.first, success(self.first, result=b"1" * 1000)),
                    ended(self.second, failure(self.second)),
                    ended(self.third, death(self.third, sink="queue:graveyard")),
                ]
            ),
            "promote": lambda: store.promote(10),
            "reap": lambda: store.reap(10),
            "prune": lambda: store.prune(timedelta(0), 10),
            "cancel": lambda: store.cancel([self.ready, self.asked.id, self.late], "unwanted"),
            "change": lambda: store.change([self.ready], Change(queue="else", delay=SECOND, args=b"z" * 1000)),
            "retry": lambda: store.retry([self.late, self.dead[0], self.cancelled]),
            "replay": lambda: store.replay(JobFilter(ids=(self.dead[0], self.dead[2])), 10, SECOND),
            "discard": lambda: store.discard(JobFilter(ids=(self.dead[0],)), 10),
            "forward": lambda: store.forward(["mail"], 10, 30 * SECOND),
            "forwarded": lambda: store.forwarded([tried(self.forward)]),
            "forward_now": lambda: store.forward_now(JobFilter(ids=(self.dead[0], self.dead[2]))),
            "register": lambda: store.register(
                worker, host="", pid=1, queues=(), concurrency=1, version="", lease=SECOND
            ),
            "beat": lambda: store.beat(worker, SECOND),
            "deregister": lambda: store.deregister(worker),
            "pause": lambda: store.pause("mail", "a reason", self.clock.now() + SECOND),
            "resume": lambda: store.resume("mended"),
            "configure": lambda: store.configure("mail", QueueSettings(concurrency=5)),
            "note": lambda: store.note("new", "key", "body", SECOND),
            "put_schedule": lambda: store.put_schedule(other, None),
            "remove_schedule": lambda: store.remove_schedule(self.schedule),
            "name_schedules": lambda: store.name_schedules([self.schedule]),
            "fire": lambda: store.fire([self.step()]),
            "unpark": lambda: store.unpark(worker, [a_want("parked")], ["send"], 10),
            "repair": lambda: self.repaired("job"),
            "repair_counters": lambda: self.repaired("counter"),
            "set_aside": lambda: self.played(set_aside(worker, [(self.damaged.id.encode(), b"")])),
        }

    def played(self, call: Call) -> Asked[Any]:
        """The reply of one script."""

        def verb() -> Generator[Call, Any, Any]:
            return (yield call)

        runner = self.store._runner  # type: ignore[attr-defined]
        return Asked(lambda: runner.run_verb(verb()), lambda: runner.run_verb_on_loop(verb()), lambda _: None)

    def step(self) -> Firing:
        return firing(self.due, plan(self.due, self.clock.now()))


READS = {
    b"string": ("GET",),
    b"hash": ("HGETALL",),
    b"list": ("LRANGE", 0, -1),
    b"set": ("SMEMBERS",),
    b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
}


def contents(client: redis.Redis) -> dict[bytes, Any]:
    """What every key holds, whatever the order in which the server keeps it."""
    keys = sorted(client.keys("*"))
    with client.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.type(key)
        kinds = pipeline.execute()
        for key, kind in zip(keys, kinds, strict=True):
            command, *rest = READS[kind]
            pipeline.execute_command(command, key, *rest)
        return dict(zip(keys, zip(kinds, pipeline.execute(), strict=True), strict=True))


class Snapshot:
    """Every key as the server writes it, to be put back."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self.keys = sorted(client.keys("*"))
        with client.pipeline(transaction=False) as pipeline:
            for key in self.keys:
                pipeline.dump(key)
            self._values = dict(zip(self.keys, pipeline.execute(), strict=True))

    def restore(self, only: bytes | None = None) -> None:
        with self._client.pipeline(transaction=False) as pipeline:
            pipeline.delete(only) if only is not None else pipeline.flushdb()
            for key, value in self._values.items():
                if only in (None, key):
                    pipeline.restore(key, 0, value)
            pipeline.execute()


def names(kept: Snapshot, stage: Stage) -> list[str]:
    """The keys of the store that exist, and those that the scripts would make."""
    found = {key.decode().removeprefix(PREFIX) for key in kept.keys}
    found |= {key.name for key in KEYS if "<" not in key.name}
    found |= {"ready:fresh:mail", "ready:fresh:else", "ready:retry:mail", "notes_made:new", "notes_made:old"}
    for job in (stage.first.id, stage.second.id, stage.third.id, *stage.dead):
        found |= {f"attempts:{job}", f"forward:{job}"}
    found |= {"cancelling:worker-1", "running:worker-1", "worker:worker-1", "schedule:other"}
    return sorted(found - {"schema"})


WRITERS = sorted({writer for key in KEYS for writer in key.writers} - {"schema"})
"""Every script that writes; `schema` only when an empty store is opened."""
NOT_WRITTEN = {"fire": {"waiting"}}
"""Keys that a script only writes with jobs that the stage has none of."""


def refusal(verb: Verb) -> str | None:
    """What a verb says when it is refused because of a key; None when it is done."""
    try:
        verb().wait()
    except EngineDamaged as error:
        return str(error)
    return None


@pytest.mark.parametrize("verb", WRITERS)
def test_a_value_of_another_type_on_any_key_stops_a_script_before_its_first_write(
    server: RedisServer, verb: str
) -> None:
    stage = Stage(server)
    stage.damage(server, verb)
    refused: set[str] = set()
    with server.client() as client:
        kept, base = Snapshot(client), contents(client)
        for name in names(kept, stage):
            key = PREFIX + name
            client.set(key, "something else")
            before = {**base, key.encode(): (b"string", b"something else")}
            if (said := refusal(stage.verbs()[verb])) is not None:
                refused.add(name)
                assert "changed nothing" in said
                assert contents(client) == before, f"with a wrong {name}"
                kept.restore(key.encode())
            else:
                # The script does not need the key, needs it as a hint only, or deletes it whatever it holds.
                may_touch = name.startswith("bell:") or name in DELETED.get(verb, ())
                assert may_touch or client.get(key) == b"something else", f"{verb} took {name} for what it is not"
                kept.restore()
        written = {key.name for key in KEYS if verb in key.writers and "<" not in key.name}
        assert written - refused == NOT_WRITTEN.get(verb, set()), "keys that it writes"
        stage.verbs()[verb]().wait()
        assert audit(client, "{perdure}") == []
    stage.store.close()


def test_running_jobs_are_reaped_after_the_key_workers_was_deleted(own: Scene, server: RedisServer) -> None:
    job = own.running()
    server.ask("DEL", PREFIX + "workers")
    assert own.store.reap(10).wait().jobs == (), "by its last beat the lease still holds"
    assert [worker.id for worker in own.store.workers().wait()] == [job.worker]
    own.pass_time(31 * SECOND)
    server.ask("DEL", PREFIX + "workers")
    reaped = own.store.reap(10).wait()
    assert reaped.workers == (job.worker,)
    assert [lost.id for lost in reaped.jobs] == [job.id]
    assert own.end(job, failure(job, attempt="lost", reason="lost"))


def test_a_living_worker_keeps_its_jobs_when_the_key_workers_was_deleted(own: Scene, server: RedisServer) -> None:
    worker = own.worker()
    job = own.running(worker)
    server.ask("DEL", PREFIX + "workers")
    assert own.store.beat(worker, 30 * SECOND).wait().held == (job.fence,)
    own.enqueue()
    server.ask("DEL", PREFIX + "workers")
    assert len(own.fetch(worker)) == 1
    assert own.end(job, success(job))
    own.store.beat(worker, 30 * SECOND).wait()


def test_a_counter_that_holds_no_number_stops_nobody_and_is_counted_as_nothing(own: Scene, server: RedisServer) -> None:
    server.ask("HSET", PREFIX + "counts", "ready:fresh:mail", "many")
    one, two = own.enqueue(), own.store.enqueue([own.new_job(unique="7"), own.new_job(delay=SECOND)]).wait()[0]
    worker = own.worker()
    assert {job.id for job in own.fetch(worker, concurrency=5)} == {one, two}
    for job_id in (one, two):
        job = own.get(job_id)
        assert own.end(job, success(job))
    assert server.ask("HGET", PREFIX + "counts", "ready:fresh:mail") == b"many"
    assert [queue.ready for queue in own.store.queues().wait()] == [0]
    assert own.store.count(JobFilter(state="ready")).wait() == 0
    server.ask("HDEL", PREFIX + "counts", "ready:fresh:mail")


@pytest.mark.parametrize("name", ["vanished", "running", "counts", "ended"])
async def test_no_job_is_lost_while_a_key_holds_something_else_for_a_moment(server: RedisServer, name: str) -> None:
    app = App(server.url, settings=Settings(poll=timedelta(seconds=0.1)))
    jobs = 300

    @app.task
    async def work() -> None:
        await asyncio.sleep(0.01)

    await app.enqueue_many_async([work.bind() for _ in range(jobs)])
    worker = app.make_worker(concurrency=20)
    running = asyncio.create_task(worker.run())

    async def until(is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not is_so():
                await asyncio.sleep(0.005)

    def done() -> int:
        return app.store.count(JobFilter(state="succeeded")).wait()

    try:
        await until(lambda: done() > 20)
        key = PREFIX + name
        if name == "running":
            key = server.ask("KEYS", PREFIX + "running:*")[0].decode()
        with server.client() as client:
            # In one step each, so that no change of the worker falls between.
            client.eval(HIDE, 1, key)
            await until(lambda: bool(worker.problems()))
            client.eval(SHOW, 1, key)
        await until(lambda: done() == jobs)
    finally:
        worker.stop()
        await asyncio.wait_for(running, 60)
        app.close()
    with server.client() as client:
        assert audit(client, "{perdure}") == []
