"""Random walks through the verbs of a store beside a small model of dicts: after each step both must tell the same."""

from __future__ import annotations

import shutil
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.conformance.conftest import ENGINES, Engine
from tests.conformance.scene import SECOND, Scene, death, ended, failure, success
from tests.conftest import examples

from perdure.engines.opener import open_store
from perdure.errors import LeaseLost
from perdure.model.change import Change
from perdure.model.job import Job, JobId, WorkerId
from perdure.model.queue.fairness import WHOLE
from perdure.model.queue.settings import QueueSettings
from perdure.store.jobs import Want
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock

LEASE = 300 * SECOND
LIVE = ("waiting", "ready", "running")
QUEUES = ("mail", "retries")
WORKERS = (WorkerId("worker-1"), WorkerId("worker-2"))
PROJECTED = (
    "task",
    "queue",
    "state",
    "lane",
    "priority",
    "run_at",
    "attempt",
    "failures",
    "recoveries",
    "created_at",
    "replayed_at",
    "origin",
    "unique",
    "reason",
    "worker",
    "ended_at",
    "is_cancelling",
)

queues = st.sampled_from(QUEUES)
workers = st.sampled_from(WORKERS)
picks = st.integers(min_value=0, max_value=10**6)
limits = st.sampled_from([None, None, "none", 1, 7])
delays = st.sampled_from([0, 0, 20])
endings = st.sampled_from(["success", "retry", "at once", "at once", "move", "death", "death", "cancel"])


class StoreMachine(RuleBasedStateMachine):
    """The store beside the model; subclasses name the engine."""

    engine: Engine

    @initialize()
    def open(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.clock = VirtualClock()
        self.url = self.engine.make_url(self.directory)
        self.store = open_store(self.url, clock=self.clock)
        self.scene = Scene(self.store, self.clock)
        self.jobs: dict[JobId, dict[str, Any]] = {}
        self.attempts: dict[JobId, list[str]] = {}
        self.leases: dict[WorkerId, datetime] = {}
        self.pauses: dict[str, datetime | None] = {}
        self.settings: dict[str, dict[str, Any]] = {}
        self.stale: list[Job] = []
        for worker in WORKERS:
            self.register(worker)
        for number in range(4):
            self.enqueue("mail", 0, None, number % 2)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.directory)

    # ── the model ──

    def pick(self, number: int, *states: str) -> JobId | None:
        among = sorted(job_id for job_id, job in self.jobs.items() if job["state"] in states)
        return among[number % len(among)] if among else None

    def holder_of(self, task: str, unique: str | None) -> JobId | None:
        if unique is None:
            return None
        for job_id, job in self.jobs.items():
            if (job["task"], job["unique"]) == (task, unique) and job["state"] in LIVE:
                return job_id
        return None

    def is_living(self, worker: WorkerId) -> bool:
        return worker in self.leases

    def is_paused(self, queue: str) -> bool:
        return queue in self.pauses and (self.pauses[queue] is None or self.pauses[queue] > self.clock.now())

    def claim(self, want: Want, limit: int) -> tuple[list[JobId], int]:
        """What a want gets, and the room that it is offered."""
        if self.is_paused(want.queue):
            return [], 0
        running = [job for job in self.jobs.values() if (job["queue"], job["state"]) == (want.queue, "running")]
        room = min(want.count, limit)
        if want.concurrency is not None:
            room = min(room, max(0, want.concurrency - len(running)))
        ready = [job_id for job_id, job in self.jobs.items() if (job["queue"], job["state"]) == (want.queue, "ready")]
        ready.sort(key=lambda job_id: (-self.jobs[job_id]["priority"], self.jobs[job_id]["run_at"], job_id))
        lanes = {lane: [one for one in ready if self.jobs[one]["lane"] == lane] for lane in ("fresh", "retry")}
        if want.max_retries_running is not None:
            busy = sum(job["lane"] == "retry" for job in running)
            lanes["retry"] = lanes["retry"][: max(0, want.max_retries_running - busy)]
        retry = (want.carry + room * want.retry_share) // WHOLE
        fresh = room - retry
        if not want.is_strict:
            retry = min(retry, len(lanes["retry"]))
            fresh = min(room - retry, len(lanes["fresh"]))
            retry = min(room - fresh, len(lanes["retry"]))
        got = lanes["fresh"][:fresh] + lanes["retry"][:retry]
        return got, room if lanes["fresh"] or lanes["retry"] else 0

    def put_back(self, job: dict[str, Any], run_at: datetime) -> None:
        job.update(
            state="ready" if run_at <= self.clock.now() else "waiting",
            run_at=run_at,
            queue=job["origin"] or job["queue"],
            origin=None,
            lane="retry" if job["attempt"] else "fresh",
            failures=0,
            recoveries=0,
            reason=None,
            ended_at=None,
            replayed_at=run_at,
        )

    def end_cancelled(self, job: dict[str, Any], reason: str) -> None:
        job.update(state="cancelled", reason=reason, ended_at=self.clock.now(), worker=None, is_cancelling=False)

    # ── the verbs ──

    @rule(queue=queues, delay=delays, unique=st.sampled_from([None, "a", "a", "b"]), priority=st.integers(-2, 2))
    def enqueue(self, queue: str, delay: int, unique: str | None, priority: int) -> None:
        job = self.scene.new_job(queue=queue, delay=delay * SECOND, unique=unique, priority=priority)
        standing = self.holder_of(job.task, unique) or job.id
        assert self.store.enqueue([job]).wait() == [standing]
        if standing == job.id:
            now = self.clock.now()
            self.attempts[job.id] = []
            self.jobs[job.id] = dict.fromkeys(PROJECTED) | {
                "task": job.task,
                "queue": queue,
                "state": "waiting" if delay else "ready",
                "lane": "fresh",
                "priority": priority,
                "run_at": now + delay * SECOND,
                "attempt": 0,
                "failures": 0,
                "recoveries": 0,
                "created_at": now,
                "unique": unique,
                "is_cancelling": False,
            }

    @rule(number=picks)
    def enqueue_again(self, number: int) -> None:
        if job_id := self.pick(number, *LIVE, "succeeded", "dead", "cancelled"):
            assert self.store.enqueue([self.scene.new_job(id=job_id, queue="elsewhere")]).wait() == [job_id]

    @rule(worker=workers)
    def register(self, worker: WorkerId) -> None:
        self.scene.worker(worker, LEASE)
        self.leases[worker] = self.clock.now() + LEASE

    @rule(worker=workers)
    def beat(self, worker: WorkerId) -> None:
        if not self.is_living(worker):
            with pytest.raises(LeaseLost):
                self.store.beat(worker, LEASE).wait()
            return
        held = self.store.beat(worker, LEASE).wait().held
        self.leases[worker] = self.clock.now() + LEASE
        mine = [(job_id, job["attempt"]) for job_id, job in self.jobs.items() if job["worker"] == worker]
        assert sorted(held) == sorted(mine)

    @rule(
        worker=workers,
        queue=queues,
        count=st.integers(0, 5),
        share=st.sampled_from([0, 200_000, 333_333, 500_000, WHOLE]),
        carry=st.sampled_from([0, 500_000, 999_999]),
        is_strict=st.booleans(),
        cap=st.sampled_from([None, None, 0, 1, 2]),
        concurrency=st.sampled_from([None, None, 0, 1, 3]),
    )
    def fetch(
        self,
        worker: WorkerId,
        queue: str,
        count: int,
        share: int,
        carry: int,
        is_strict: bool,
        cap: int | None,
        concurrency: int | None,
    ) -> None:
        want = Want(
            queue=queue,
            count=count,
            retry_share=share,
            carry=carry,
            is_strict=is_strict,
            max_retries_running=cap,
            concurrency=concurrency,
        )
        if not self.is_living(worker):
            with pytest.raises(LeaseLost):
                self.store.fetch(worker, [want], 4).wait()
            return
        wanted, room = self.claim(want, 4)
        got = self.store.fetch(worker, [want], 4).wait()
        assert sorted(job.id for job in got.jobs) == sorted(wanted)
        assert got.rooms == (room,)
        for job in got.jobs:
            known = self.jobs[job.id]
            known.update(state="running", worker=worker, attempt=known["attempt"] + 1)
            assert job.attempt == known["attempt"]
            self.attempts[job.id].append("running")
            self.stale.append(job)

    @rule(worker=workers, several=st.lists(endings, min_size=1, max_size=3), is_cancelled=st.booleans())
    def work(self, worker: WorkerId, several: list[str], is_cancelled: bool) -> None:
        """Fetch and end again and again, so that walks get past the first attempt."""
        for ending in several:
            for queue in QUEUES:
                self.fetch(worker, queue, 4, 500_000, 0, False, None, None)
            self.commit_stale(len(self.stale) // 2, success)
            if is_cancelled:
                self.cancel(0, ("running",))
            for number in range(4):
                self.commit(number, ending)

    @rule(number=picks, ending=endings)
    def commit(self, number: int, ending: str) -> None:
        job_id = self.pick(number, "running")
        if job_id is None:
            return
        job, known = self.scene.get(job_id), self.jobs[job_id]
        outcome = {
            "success": success(job),
            "retry": failure(job),
            "at once": failure(job, state="ready", delay=0 * SECOND),
            "move": failure(
                job, queue="mail" if job.queue == "retries" else "retries", state="ready", delay=0 * SECOND
            ),
            "death": death(job),
            "cancel": failure(
                job, verb="cancel", state="cancelled", attempt="cancelled", reason="cancelled", delay=None
            ),
        }[ending]
        assert self.store.commit([ended(job, outcome)]).wait() == [True]
        asked, reason = known["is_cancelling"], known["reason"]
        self.attempts[job_id][-1] = outcome.attempt
        known.update(state=outcome.state, worker=None, is_cancelling=False, failures=outcome.failures)
        if ending == "success":
            known.update(reason=None, ended_at=self.clock.now())
            return
        known.update(lane="retry", reason=outcome.reason)
        if outcome.queue and outcome.queue != known["queue"]:
            known.update(origin=known["origin"] or known["queue"], queue=outcome.queue)
        if outcome.state in LIVE:
            known["run_at"] = self.clock.now() + (outcome.delay or 0 * SECOND)
            if asked:
                self.end_cancelled(known, reason)
        else:
            known["ended_at"] = self.clock.now()
            if asked and outcome.state == "cancelled":
                known["reason"] = reason

    @rule(number=picks, outcome_of=st.sampled_from([success, failure, death]))
    def commit_stale(self, number: int, outcome_of: Any) -> None:
        running = {(job_id, job["attempt"]) for job_id, job in self.jobs.items() if job["state"] == "running"}
        old = [job for job in self.stale if job.fence not in running]
        # Those whose job runs again are the ones that a weaker fence would let through.
        again = [job for job in old if job.id in dict(running)]
        if among := again or old:
            job = among[number % len(among)]
            assert self.store.commit([ended(job, outcome_of(job))]).wait() == [False]

    @rule(limit=st.integers(0, 4))
    def promote(self, limit: int) -> None:
        now = self.clock.now()
        waiting = [job_id for job_id, job in self.jobs.items() if job["state"] == "waiting"]
        due = sorted(self.jobs[one]["run_at"] for one in waiting if self.jobs[one]["run_at"] <= now)[:limit]
        promoted = self.store.promote(limit).wait()
        # Of jobs that came due at one moment the store may take any; the moments are what counts.
        ready = [one for one in waiting if self.scene.get(one).state == "ready"]
        assert sorted(self.jobs[one]["run_at"] for one in ready) == due
        for job_id in ready:
            self.jobs[job_id]["state"] = "ready"
        rest = [self.jobs[one]["run_at"] for one in waiting if one not in ready]
        assert (promoted.count, promoted.next_run_at) == (len(due), min(rest, default=None))

    @rule()
    def reap(self) -> None:
        expired = {worker for worker, until in self.leases.items() if until <= self.clock.now()}
        for worker in expired:
            del self.leases[worker]
        reaped = self.store.reap(100).wait()
        assert set(reaped.workers) == expired
        orphans = {
            job_id
            for job_id, job in self.jobs.items()
            if job["state"] == "running" and job["worker"] not in self.leases
        }
        assert {job.id for job in reaped.jobs} == orphans

    @rule(number=picks, states=st.sampled_from([("running",), (*LIVE, "succeeded", "dead", "cancelled")]))
    def cancel(self, number: int, states: tuple[str, ...]) -> None:
        job_id = self.pick(number, *states)
        if job_id is None:
            assert self.store.cancel([JobId("nobody")], "unwanted").wait() == ["not found"]
            return
        (answer,) = self.store.cancel([job_id], "unwanted").wait()
        known = self.jobs[job_id]
        if known["state"] == "running":
            assert answer == "asked"
            known.update(is_cancelling=True, reason=known["reason"] if known["is_cancelling"] else "unwanted")
        elif known["state"] in LIVE:
            assert answer == "cancelled"
            self.end_cancelled(known, "unwanted")
        else:
            assert answer == ("already cancelled" if known["state"] == "cancelled" else "already ended")

    @rule(number=picks, states=st.sampled_from([("dead", "cancelled"), (*LIVE, "succeeded", "dead", "cancelled")]))
    def retry(self, number: int, states: tuple[str, ...]) -> None:
        job_id = self.pick(number, *states)
        if job_id is None:
            return
        (answer,) = self.store.retry([job_id]).wait()
        known = self.jobs[job_id]
        if known["state"] == "waiting":
            assert answer == "replayed"
            known.update(state="ready", run_at=self.clock.now())
        elif known["state"] not in ("dead", "cancelled"):
            assert answer == "wrong state"
        elif self.holder_of(known["task"], known["unique"]):
            assert answer == "unique key busy"
        else:
            assert answer == "replayed"
            self.put_back(known, self.clock.now())

    @rule(
        number=picks,
        delay=st.sampled_from([None, None, 0, 20]),
        priority=st.sampled_from([None, -1, 0, 3]),
        queue=st.sampled_from([None, *QUEUES]),
        states=st.sampled_from([("waiting", "ready"), ("waiting", "ready"), (*LIVE, "succeeded", "dead", "cancelled")]),
    )
    def change(
        self, number: int, delay: int | None, priority: int | None, queue: str | None, states: tuple[str, ...]
    ) -> None:
        job_id = self.pick(number, *states)
        if job_id is None:
            return
        wanted = Change(delay=None if delay is None else delay * SECOND, priority=priority, queue=queue)
        (answer,) = self.store.change([job_id], wanted).wait()
        known = self.jobs[job_id]
        if known["state"] not in ("waiting", "ready"):
            assert answer == "wrong state"
            return
        assert answer == "changed"
        if delay is not None:
            known.update(state="waiting" if delay else "ready", run_at=self.clock.now() + delay * SECOND)
        if priority is not None:
            known["priority"] = priority
        if queue not in (None, known["queue"]):
            known.update(queue=queue, origin=None)

    @rule(limit=st.integers(0, 3), every=st.sampled_from([0, 5]), queue=st.sampled_from([None, *QUEUES]))
    def replay(self, limit: int, every: int, queue: str | None) -> None:
        count = self.store.replay(JobFilter(queue=queue), limit, every * SECOND).wait()
        done = 0
        for job_id in sorted(self.jobs):
            known = self.jobs[job_id]
            if done == limit or known["state"] != "dead" or queue not in (None, known["queue"], known["origin"]):
                continue
            if not self.holder_of(known["task"], known["unique"]):
                self.put_back(known, self.clock.now() + done * every * SECOND)
                done += 1
        assert count == done

    @rule(limit=st.integers(0, 2))
    def discard(self, limit: int) -> None:
        dead = sorted(job_id for job_id, job in self.jobs.items() if job["state"] == "dead")[:limit]
        assert self.store.discard(JobFilter(), limit).wait() == len(dead)
        for job_id in dead:
            self.end_cancelled(self.jobs[job_id], "discarded")

    @rule(age=st.sampled_from([0, 60]))
    def prune(self, age: int) -> None:
        old = [
            job_id
            for job_id, job in self.jobs.items()
            if job["state"] in ("succeeded", "cancelled") and job["ended_at"] <= self.clock.now() - age * SECOND
        ]
        assert self.store.prune(age * SECOND, 1000).wait() == len(old)
        for job_id in old:
            del self.jobs[job_id], self.attempts[job_id]

    @rule(queue=queues, end=st.sampled_from([None, 5, 30]))
    def pause(self, queue: str, end: int | None) -> None:
        until = None if end is None else self.clock.now() + end * SECOND
        changes = not self.is_paused(queue) or self.pauses[queue] != until
        assert self.store.pause(queue, None, until).wait() is changes
        self.pauses[queue] = until

    @rule(queue=queues)
    def resume(self, queue: str) -> None:
        assert self.store.resume(queue).wait() is self.is_paused(queue)
        self.pauses.pop(queue, None)

    @rule(queue=queues, name=st.sampled_from(["concurrency", "max_retries_running"]), limit=limits)
    def configure(self, queue: str, name: str, limit: Any) -> None:
        self.settings.setdefault(queue, {})[name] = limit
        now_set = self.store.configure(queue, QueueSettings(**{name: limit}), [name]).wait()
        assert now_set == QueueSettings(**self.settings[queue])

    @rule(seconds=st.sampled_from([1, 20, 20, 301]))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(timedelta(seconds=seconds))

    @rule()
    def reopen(self) -> None:
        if self.store.capabilities.is_shared:
            self.store.close()
            self.store = self.scene.store = open_store(self.url, clock=self.clock)

    # ── what must hold after each step ──

    @invariant()
    def the_store_tells_what_the_model_tells(self) -> None:
        if not hasattr(self, "store"):
            return
        listed = self.store.list(JobFilter(), limit=10_000).wait()
        told = {job.id: {name: getattr(job, name) for name in PROJECTED} for job in listed}
        assert told == self.jobs

    @invariant()
    def the_queues_are_told_as_the_model_tells_them(self) -> None:
        if not hasattr(self, "store"):
            return
        said = {queue: QueueSettings(**values) for queue, values in self.settings.items()}
        said = {queue: settings for queue, settings in said.items() if settings != QueueSettings()}
        assert self.store.settings().wait() == said
        told = {queue.name: queue for queue in self.store.queues().wait()}
        assert set(told) == {*said, *filter(self.is_paused, QUEUES), *(job["queue"] for job in self.jobs.values())}
        for name, queue in told.items():
            is_paused = self.is_paused(name)
            assert (queue.is_paused, queue.settings) == (is_paused, said.get(name, QueueSettings()))
            assert queue.paused_until == (self.pauses[name] if is_paused else None)

    @invariant()
    def every_attempt_has_one_record(self) -> None:
        for job_id, outcomes in list(getattr(self, "attempts", {}).items())[-3:]:
            records = self.store.history(job_id, 1000).wait()
            assert [record.outcome for record in records] == outcomes
            assert [record.attempt for record in records] == list(range(1, len(outcomes) + 1))


@pytest.mark.hypothesis
@pytest.mark.parametrize("engine", ENGINES, ids=[engine.name for engine in ENGINES])
def test_the_store_agrees_with_the_model(engine: Engine) -> None:
    machine = type("Machine", (StoreMachine,), {"engine": engine})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(40),
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )
