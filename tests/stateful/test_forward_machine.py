"""Random walks through the verbs of forwarding: a dead job with a sink is forwarded at least once, or still due."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace
from tests.conformance.conftest import ENGINES, Engine
from tests.conformance.scene import SECOND, Scene, death, ended, failure, success
from tests.conftest import examples

from perdure.engines.opener import open_store
from perdure.model.forward import Forward, Tried
from perdure.model.job import Job, JobId, WorkerId
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock

LEASE = 30 * SECOND
SINK = "queue:graveyard"
QUEUES = ("mail", "letters")
queues = st.sampled_from([("mail",), ("letters",), QUEUES])
picks = st.integers(min_value=0, max_value=10**6)
hows = st.sampled_from(["accept", "refuse", "refuse", "refuse", "stop", "vanish"])


class ForwardMachine(RuleBasedStateMachine):
    """A store's forwards beside what is known of them, and what the sink has got; subclasses name the engine."""

    engine: Engine

    @initialize()
    def open(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.clock = VirtualClock()
        self.url = self.engine.make_url(self.directory)
        self.store = open_store(self.url, clock=self.clock)
        self.scene = Scene(self.store, self.clock)
        self.worker = WorkerId(self.scene.worker(lease=10**6 * SECOND))
        self.known: dict[JobId, Forward] = {}
        self.dead: dict[JobId, Job] = {}
        """Every dead job as it was when it ran for the last time."""
        self.claims: list[Forward] = []
        """Every claim that was ever made: whoever made it may come back late."""
        self.delivered: set[tuple[JobId, int]] = set()
        """The deaths that the sink has got, whether or not the store was told."""
        self.make("mail", 2)
        self.run([SINK, None])

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        try:
            self.let_all_arrive()
        finally:
            self.store.close()
            damage = self.engine.find_damage(self.directory)
            shutil.rmtree(self.directory)
        assert damage == []

    # ── jobs live and die ──

    @rule(queue=st.sampled_from(QUEUES), count=st.integers(1, 3))
    def make(self, queue: str, count: int) -> None:
        for _ in range(count):
            self.scene.enqueue(queue=queue)

    @rule(sinks=st.lists(st.sampled_from([SINK, SINK, None]), min_size=1, max_size=4), is_moved=st.booleans())
    def run(self, sinks: list[str | None], is_moved: bool = False) -> None:
        """Let jobs that are ready die in one batch, with or without a sink; some after a turn in a retry queue."""
        for queue in QUEUES:
            jobs = self.scene.fetch(self.worker, queue=queue, limit=len(sinks))
            if is_moved and jobs:
                moved = [failure(job, state="ready", delay=0 * SECOND, queue="retries") for job in jobs]
                self.store.commit([ended(*pair) for pair in zip(jobs, moved, strict=True)]).wait()
                jobs = self.scene.fetch(self.worker, queue="retries")
            dying = [(job, sink) for job, sink in zip(jobs, sinks, strict=False)]
            assert all(self.store.commit([ended(job, death(job, sink=sink)) for job, sink in dying]).wait())
            for job, sink in dying:
                self.dead[job.id] = job
                if sink is not None:
                    self.known[job.id] = self.due(job, sink)

    @rule()
    def run_well(self) -> None:
        for queue in QUEUES:
            for job in self.scene.fetch(self.worker, queue=queue, limit=1):
                assert self.scene.end(job, success(job))

    @rule(number=picks, way=st.sampled_from(["retry", "replay", "discard"]))
    def leave_death(self, number: int, way: str) -> None:
        if not self.dead:
            return
        job_id = sorted(self.dead)[number % len(self.dead)]
        if way == "retry":
            assert self.store.retry([job_id]).wait() == ["replayed"]
        else:
            verb = (
                self.store.discard(JobFilter(), 1)
                if way == "discard"
                else self.store.replay(JobFilter(), 1, 0 * SECOND)
            )
            assert verb.wait() == 1
            job_id = min(self.dead)
        del self.dead[job_id]
        self.known.pop(job_id, None)

    # ── forwarding ──

    def due(self, job: Job, sink: str | None) -> Forward:
        home = job.origin or job.queue
        now = self.clock.now()
        return Forward(job_id=job.id, attempt=job.attempt, queue=home, state="pending", sink=sink, next_at=now)

    @rule(names=queues, limit=st.integers(0, 4))
    def claim(self, names: tuple[str, ...], limit: int) -> None:
        now = self.clock.now()
        mine = [one for one in self.known.values() if one.queue in names and one.next_at is not None]
        moments = sorted(one.next_at for one in mine if one.next_at <= now)[:limit]
        found = self.store.forward(names, limit, LEASE).wait()
        # Of those that came due at one moment the store may take any.
        assert sorted(self.known[one.job_id].next_at for one in found.forwards) == moments
        for one in found.forwards:
            before = self.known[one.job_id]
            assert one == replace(before, tries=before.tries + 1, tried_at=now, next_at=now + LEASE)
            self.known[one.job_id] = one
            self.claims.append(one)
        left = [self.known[one.job_id].next_at for one in mine]
        assert found.next_at == min(left, default=None)

    @rule(ways=st.lists(hows, min_size=1, max_size=3), late=st.lists(hows, max_size=2), dies_again=st.booleans())
    def work(self, ways: list[str], late: list[str], dies_again: bool) -> None:
        """Claim again and again, so that walks get past the first try; between that somebody comes late."""
        for way in ways:
            self.pass_time(30)
            self.claim(QUEUES, 4)
            for number, how in enumerate([way, *ways]):
                self.settle(-1 - number, how, is_late=False)
            if dies_again:
                self.leave_death(0, "retry")
                self.run([SINK] * 4)
                self.claim(QUEUES, 4)
            for number, how in enumerate(late):
                self.settle(-1 - number, how, is_late=True)

    def is_late(self, claim: Forward) -> bool:
        now = self.known.get(claim.job_id)
        return now is None or (now.attempt, now.tries) != (claim.attempt, claim.tries) or now.state == "forwarded"

    @rule(number=picks, how=hows, is_late=st.booleans())
    def settle(self, number: int, how: str, is_late: bool) -> None:
        """Let a claim end, the newest of its job or one that others have taken over."""
        among = [claim for claim in self.claims if self.is_late(claim) is is_late]
        if among:
            self.end(among[number % len(among)], how)

    def end(self, claim: Forward, how: str) -> None:
        """Of one that vanishes the store never hears."""
        if how in ("accept", "vanish"):
            self.delivered.add((claim.job_id, claim.attempt))
        if how == "vanish":
            return
        error = None if how == "accept" else "the sink is shut"
        delay = 10 * SECOND if how == "refuse" else None
        tried = Tried(
            job_id=claim.job_id, attempt=claim.attempt, number=claim.tries, sink=SINK, error=error, delay=delay
        )
        before = self.known.get(claim.job_id)
        counts = before is not None and before.attempt == claim.attempt
        if error is not None and before is not None:
            counts = counts and before.tries == claim.tries and before.state != "forwarded"
        assert self.store.forwarded([tried]).wait() == [counts]
        if not counts or before is None:
            return
        now = self.clock.now()
        self.known[claim.job_id] = replace(
            before,
            state=tried.state,
            sink=SINK,
            error=error,
            next_at=now + delay if delay is not None else None,
            forwarded_at=(before.forwarded_at or now) if error is None else None,
        )

    @rule(queue=st.sampled_from([None, *QUEUES]))
    def forward_now(self, queue: str | None) -> None:
        now, count = self.clock.now(), 0
        for job_id, job in self.dead.items():
            if queue not in (None, job.queue, job.origin):
                continue
            before = self.known.get(job_id)
            if before is None:
                self.known[job_id] = self.due(job, None)
            elif before.state == "forwarded":
                continue
            else:
                state = "failing" if before.state == "stopped" else before.state
                self.known[job_id] = replace(before, state=state, next_at=now)
            count += 1
        assert self.store.forward_now(JobFilter(queue=queue)).wait() == count

    @rule(seconds=st.sampled_from([1, 10, 30]))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds * SECOND)

    @rule()
    def reopen(self) -> None:
        if self.store.capabilities.is_shared:
            self.store.close()
            self.store = self.scene.store = open_store(self.url, clock=self.clock)

    # ── what must hold ──

    @invariant()
    def the_store_tells_what_is_known(self) -> None:
        if not hasattr(self, "store"):
            return
        listed = self.store.list(JobFilter(), limit=10_000).wait()
        assert {job.id for job in listed if job.state == "dead"} == set(self.dead)
        assert self.store.forwards([job.id for job in listed]).wait() == self.known
        assert self.store.forward_counts().wait() == Counter(one.state for one in self.known.values())

    def let_all_arrive(self) -> None:
        """[INV-22] When the sink accepts again, and a person asks for what was stopped, nothing is missing."""
        self.forward_now(None)
        due = {(job_id, one.attempt) for job_id, one in self.known.items() if one.state != "forwarded"}
        self.claims.clear()
        while len(self.claims) < len(due):
            before = len(self.claims)
            self.claim(QUEUES, 3)
            assert len(self.claims) > before, "a dead job is neither forwarded nor due"
        for claim in self.claims:
            self.end(claim, "accept")
        self.the_store_tells_what_is_known()
        assert {one.state for one in self.known.values()} <= {"forwarded"}
        assert {(job_id, one.attempt) for job_id, one in self.known.items()} <= self.delivered
        assert set(self.known) == set(self.dead)


@pytest.mark.hypothesis
@pytest.mark.parametrize("engine", ENGINES, ids=[engine.name for engine in ENGINES])
def test_every_death_with_a_sink_is_forwarded_or_due(engine: Engine) -> None:
    """Proves [INV-22]."""
    machine = type("Machine", (ForwardMachine,), {"engine": engine})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(12),
            stateful_step_count=30,
            suppress_health_check=list(HealthCheck),
        ),
    )
