"""Random walks through the verbs of schedules: no tick has two jobs, and what is due and busy is what the jobs say."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.conformance.conftest import ENGINES, Engine
from tests.conformance.scene import SECOND, Scene, death, failure, firing, success
from tests.conftest import examples

from perdure.engines.opener import open_store
from perdure.model.job import WorkerId
from perdure.model.schedule.definition import MISSED, OVERLAPS, Schedule, paused, resumed
from perdure.model.schedule.fire import plan
from perdure.model.state import LIVE
from perdure.store.reads import JobFilter
from perdure.store.schedules import Firing
from perdure.system.clock import VirtualClock

NAMES = ("a", "a:b", "b")
names = st.sampled_from(NAMES)


class ScheduleMachine(RuleBasedStateMachine):
    """A store's schedules beside what is known of them; subclasses name the engine."""

    engine: Engine

    @initialize(overlaps=st.tuples(*[st.sampled_from(OVERLAPS)] * 3), missed=st.sampled_from(MISSED))
    def open(self, overlaps: tuple[str, ...], missed: str) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.clock = VirtualClock()
        self.store = open_store(self.engine.make_url(self.directory), clock=self.clock)
        self.scene = Scene(self.store, self.clock)
        self.worker = WorkerId(self.scene.worker(lease=10**6 * SECOND))
        self.known: dict[str, Schedule] = {}
        self.late: list[Firing] = []
        self.salt = 0
        for name, overlap, period in zip(NAMES, overlaps, (1, 3, 10), strict=True):
            self.add(name, overlap, missed, period, is_recurring=True)

    @rule(
        name=names,
        overlap=st.sampled_from(OVERLAPS),
        missed=st.sampled_from(MISSED),
        period=st.sampled_from([1, 3, 10]),
        is_recurring=st.sampled_from([True, True, True, False]),
    )
    def add(self, name: str, overlap: str, missed: str, period: int, is_recurring: bool) -> None:
        if name not in self.known:
            rule = f"@every {period}s"
            self.scene.schedule(name, overlap=overlap, missed=missed, cron=rule, is_recurring=is_recurring)
            self.known[name] = self.scene.get_schedule(name)

    @rule(name=names)
    def switch(self, name: str) -> None:
        if name in self.known:
            before = self.known[name]
            after = resumed(before, self.clock.now()) if before.is_paused else paused(before)
            assert self.store.put_schedule(after, before.revision).wait()
            self.known[name] = after

    @rule(name=names)
    def remove(self, name: str) -> None:
        assert self.store.remove_schedule(name).wait() == (name in self.known)
        self.known.pop(name, None)

    @rule(seconds=st.sampled_from([0, 0.5, 1, 3, 9, 40]), is_late=st.booleans())
    def fire(self, seconds: float, is_late: bool) -> None:
        """After a while a scheduler looks and takes its steps, at once or, when others may have been faster, later."""
        self.clock.advance(seconds * SECOND)
        due = self.store.due(10).wait()
        assert {one.name for one in due.schedules} == self.due()
        self.salt += 1
        steps = [firing(one, plan(one, due.now), salt=str(self.salt)) for one in due.schedules]
        if is_late:
            self.late += steps
        else:
            self.take(steps)

    @rule(seconds=st.sampled_from([1, 3, 9]))
    def fire_twice(self, seconds: float) -> None:
        """Two schedulers look at the same moment, and both take their steps."""
        self.fire(seconds, is_late=True)
        self.fire(0, is_late=False)
        steps, self.late = self.late, []
        for step in steps:
            self.take([step])

    @rule(ending=st.sampled_from(["retry", "success", "retry", "death", "cancel"]), limit=st.sampled_from([50, 1]))
    def work(self, ending: str, limit: int) -> None:
        self.store.promote(10).wait()
        for job in self.scene.fetch(self.worker, limit=limit):
            match ending:
                case "success":
                    self.scene.end(job, success(job))
                case "retry":
                    self.scene.end(job, failure(job, delay=2 * SECOND))
                case "death":
                    self.scene.end(job, death(job))
                case "cancel":
                    self.store.cancel([job.id], "unwanted").wait()
                    self.scene.end(job, failure(job))

    @rule()
    def finish(self) -> None:
        for job in self.store.list(JobFilter(state="running"), limit=100).wait():
            self.scene.end(job, success(job))

    @rule()
    def replay(self) -> None:
        self.store.replay(JobFilter(), 1, 0 * SECOND).wait()

    @rule()
    def cancel(self) -> None:
        for job in self.store.list(JobFilter(state="ready"), limit=1).wait():
            self.store.cancel([job.id], "unwanted").wait()

    def take(self, steps: list[Firing]) -> None:
        for step, is_taken in zip(steps, self.store.fire(steps).wait() if steps else [], strict=True):
            seen = self.known.get(step.name)
            is_wanted = seen is not None and seen.revision == step.replaces
            assert is_taken == is_wanted or (is_wanted and step.needs_idle and self.busy(step.name, step))
            if is_taken and step.schedule is None:
                del self.known[step.name]
            elif is_taken and step.schedule is not None:
                self.known[step.name] = step.schedule

    def busy(self, name: str, step: Firing | None = None) -> bool:
        mine = {job.id for job in step.jobs} if step else set()
        jobs = self.store.list(JobFilter(schedule=name), limit=1000).wait()
        return any(job.state in LIVE and job.id not in mine for job in jobs)

    def due(self) -> set[str]:
        now = self.clock.now()
        return {
            name
            for name, one in self.known.items()
            if (one.next_at is not None and one.next_at <= now) or (one.backlog and not self.busy(name))
        }

    @invariant()
    def no_tick_has_two_jobs(self) -> None:
        jobs = self.store.list(JobFilter(), limit=10_000).wait()
        ticks = [(job.schedule, job.tick_at) for job in jobs]
        assert len(ticks) == len(set(ticks))
        assert all(job.tick_at is not None and job.tick_at <= job.created_at for job in jobs)

    @invariant()
    def the_store_tells_what_is_known(self) -> None:
        found = {one.name: one for one in self.store.schedules(limit=10).wait()}
        assert {name: one.revision for name, one in found.items()} == {
            name: one.revision for name, one in self.known.items()
        }
        for name, one in found.items():
            assert one.is_busy == self.busy(name)
            assert one.fired == self.known[name].fired

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            assert self.engine.find_damage(self.directory) == []
            shutil.rmtree(self.directory)


@pytest.mark.hypothesis
@pytest.mark.parametrize("engine", ENGINES, ids=[engine.name for engine in ENGINES])
def test_every_walk_ends_with_one_job_per_tick(engine: Engine) -> None:
    """Proves [INV-21]."""
    machine = type("Machine", (ScheduleMachine,), {"engine": engine})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(60 if engine.name == "sqlite-memory" else 8),
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )
