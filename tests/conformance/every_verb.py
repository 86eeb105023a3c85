"""Uses every verb of a store, and a worker that is woken, for tests of what surrounds a store: rights, search path."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from tests.conformance.scene import SECOND, Scene, a_want, death, ended, failure, success
from tests.conformance.test_forward import tried

from perdure import App, Settings
from perdure.model.change import Change
from perdure.model.job import JobId
from perdure.model.queue.settings import QueueSettings
from perdure.store import Store
from perdure.store.audit import Fault
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock

DEAD = JobFilter(state="dead")
WITHIN = {"enqueue_within", "enqueue_within_async", "complete_within", "complete_within_async"}
"""The verbs that need a caller's connection."""
VERBS = {name for kind in Store.__mro__ for name in vars(kind) if not name.startswith("_")} - {"wakeups", "close"}


class Recorder:
    """A store that notes which of its verbs were used."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.used: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.used.add(name)
        return getattr(self._store, name)


def use_every_verb(store: Store, clock: VirtualClock) -> None:
    """Every verb that needs no connection of a caller; the store must be empty and open on the clock."""
    recorder: Any = Recorder(store)
    scene = Scene(recorder, clock)
    _make_and_end(scene)
    _replay_and_forward(scene)
    _operate(scene)
    _schedule(scene)
    _lose_a_worker(scene)
    asyncio.run(_await_some(recorder, scene))
    _look(scene)
    assert VERBS - recorder.used == WITHIN


async def wake_a_worker(url: str, producer_url: str | None = None, *, poll: timedelta = timedelta(hours=1)) -> None:
    """Have an idle worker that hardly ever polls do the jobs of another producer: it stands by and listens."""
    patience = 30.0
    app, other = App(url, settings=Settings(poll=poll)), App(producer_url or url)
    done: asyncio.Queue[int] = asyncio.Queue()

    @app.task
    async def work(number: int) -> None:
        done.put_nowait(number)

    worker = app.make_worker()
    running = asyncio.create_task(worker.run())
    try:
        for number in range(10):
            # The first jobs come while the worker begins, the others while it is idle.
            await asyncio.to_thread(other.enqueue_named, "work", [number], {})
            assert await asyncio.wait_for(done.get(), patience) == number
    finally:
        worker.stop()
        await asyncio.wait_for(running, patience)
        app.close()
        other.close()


def _make_and_end(scene: Scene) -> None:
    worker = scene.worker()
    first = scene.running(worker)
    assert scene.end(first, success(first))
    assert not scene.end(first, failure(first)), "the attempt has ended"
    retried = scene.running(worker, unique="7", max_attempts=3, retry="fixed(1s)", timeout=SECOND)
    assert scene.enqueue(unique="7") == retried.id
    assert scene.end(retried, failure(retried))
    scene.pass_time(10 * SECOND)
    assert scene.store.promote(10).wait().count == 1
    (again,) = scene.fetch(worker, max_retries_running=3, concurrency=4, is_strict=True)
    assert scene.end(again, success(again))
    scene.enqueue(delivery="at_most_once")
    (once,) = scene.store.fetch(worker, [a_want()], 10).wait().jobs
    assert scene.store.start(worker, [(once.id, once.attempt)]).wait() == [True]
    assert scene.end(once, success(once))
    made = scene.store.enqueue([scene.new_job() for _ in range(5)]).wait()
    jobs = scene.fetch(worker, limit=4)
    assert scene.store.commit([ended(job, success(job)) for job in jobs]).wait() == [True] * 4
    assert scene.store.cancel(made[4:], "no need").wait() == ["cancelled"]
    assert [one.state for one in scene.store.get(made).wait() if one] == ["succeeded"] * 4 + ["cancelled"]
    changed = scene.enqueue(delay=60 * SECOND)
    assert scene.store.change([changed], Change(queue="mail", priority=5, delay=timedelta(0))).wait() == ["changed"]
    (running,) = scene.fetch(worker)
    assert scene.store.cancel([changed], "stop it").wait() == ["asked"]
    assert scene.store.cancelling(worker).wait() == (changed,)
    assert scene.end(running, failure(running))
    assert scene.get(changed).state == "cancelled"
    assert len(scene.store.history(changed, 10).wait()) == 1
    parked = scene.running(worker)
    assert scene.end(parked, failure(parked, attempt="parked", reason="parked", lane="fresh", failures=0))
    (claimed,) = scene.store.unpark(worker, [a_want()], ["send"], 10).wait()
    assert scene.end(claimed, success(claimed))
    assert scene.store.prune(timedelta(0), 100).wait() > 5


def _replay_and_forward(scene: Scene) -> None:
    worker = scene.worker()
    ids: list[JobId] = []
    for sink in ("queue:graveyard", None, "queue:graveyard", None):
        job = scene.running(worker)
        assert scene.end(job, death(job, sink=sink))
        ids.append(job.id)
    due = scene.store.forward(["mail"], 10, 30 * SECOND).wait()
    assert {one.job_id for one in due.forwards} == {ids[0], ids[2]}
    assert scene.store.forwarded([tried(one) for one in due.forwards]).wait() == [True, True]
    assert scene.store.forward_now(JobFilter(ids=(ids[1],))).wait() == 1
    assert len(scene.store.forwards(ids).wait()) == 3
    assert scene.store.forward_counts().wait()["forwarded"] == 2
    (group,) = scene.store.groups(DEAD, 10).wait()
    assert group.count == 4
    assert len(scene.store.recent("dead", 10).wait()) == 4
    assert scene.store.retry(ids[:1]).wait() == ["replayed"]
    assert scene.store.replay(JobFilter(ids=(ids[1],)), 10, SECOND).wait() == 1
    assert scene.store.discard(JobFilter(ids=(ids[2],)), 10).wait() == 1
    for job in scene.fetch(worker):
        assert scene.end(job, success(job))


def _operate(scene: Scene) -> None:
    assert scene.store.pause("mail", "upgrade", scene.clock.now() + SECOND).wait()
    assert scene.store.pause("mail", "upgrade").wait()
    scene.enqueue()
    assert scene.fetch(scene.worker()) == []
    assert any(queue.is_paused for queue in scene.store.queues().wait())
    assert scene.store.resume("mail").wait()
    assert scene.store.configure("mail", QueueSettings(concurrency=3, retry_share=0.5)).wait().concurrency == 3
    assert scene.store.settings().wait()["mail"].concurrency == 3
    assert scene.store.note("once", "key", "body", 60 * SECOND).wait().body == "body"
    assert scene.store.note("once", "key", "other", 60 * SECOND, replaces=True).wait().body == "other"
    assert len(scene.store.notes("once", 10).wait()) == 1


def _schedule(scene: Scene) -> None:
    for name in ("hourly", "nightly"):
        scene.schedule(name, cron="@every 10s")
    scene.store.name_schedules(["hourly", "nightly"]).wait()
    assert [one.name for one in scene.store.schedules(limit=10).wait()] == ["hourly", "nightly"]
    scene.pass_time(10 * SECOND)
    assert len(scene.fire()) == 2
    assert scene.get_schedule("hourly").is_busy
    assert scene.store.remove_schedule("hourly").wait()


def _lose_a_worker(scene: Scene) -> None:
    worker = scene.worker("lost")
    held = scene.fetch(worker)
    assert held
    assert len(scene.store.beat(worker, 30 * SECOND).wait().held) == len(held)
    scene.pass_time(60 * SECOND)
    reaped = scene.store.reap(100).wait()
    assert worker in reaped.workers
    assert len(reaped.jobs) == len(held)
    assert scene.store.commit([ended(job, failure(job, attempt="lost")) for job in reaped.jobs]).wait()
    leaver = scene.worker("leaver")
    assert leaver in [one.id for one in scene.store.workers().wait()]
    scene.store.deregister(leaver).wait()


async def _await_some(store: Store, scene: Scene) -> None:
    made = await asyncio.gather(*(store.enqueue([scene.new_job(unique=str(one))]) for one in range(3)))
    assert len(made) == 3
    assert await store.count(JobFilter(state="ready")) >= 3


def _look(scene: Scene) -> None:
    where = JobFilter(
        state="ready",
        task="send",
        queue="mail",
        after=scene.clock.now() - 1000 * SECOND,
        before=scene.clock.now() + SECOND,
    )
    assert scene.store.list(where, limit=2).wait()
    cursor: str | None = None
    while (audited := scene.store.audit(cursor, 100).wait()).cursor is not None:
        cursor = audited.cursor
        assert audited.faults == ()
    assert scene.store.examine("job", "nobody").wait() is None
    unknown = Fault(kind="job", name=scene.new_id(), problem="it is in no queue", repair="put it back", detail="job")
    assert scene.store.repair([unknown]).wait() == [False]
    assert scene.store.list(JobFilter(error="broke", forward="pending", reason="exhausted"), limit=2).wait() == []
    for state in ("succeeded", "waiting"):
        scene.store.recent(state, 10).wait()  # type: ignore[arg-type] - both are states that recent takes
    assert scene.store.schema().wait().is_current
    assert scene.store.now().wait() == scene.clock.now()
    assert scene.store.capabilities.version
