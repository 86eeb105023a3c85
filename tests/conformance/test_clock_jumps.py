"""The store's clock jumps by an hour: leases do not follow it, delayed jobs and schedules do, and nothing stalls."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from tests.conformance.scene import LEASE, SECOND, Scene, success

from perdure import App
from perdure.errors import LeaseLost
from perdure.model.event import Event
from perdure.model.job import JobId, WorkerId
from perdure.model.schedule.definition import Definition
from perdure.runtime.liveness.lease_watch import LeaseWatch
from perdure.runtime.periodic.promoter import Promoter
from perdure.runtime.periodic.pruner import Pruner
from perdure.runtime.periodic.reaper import Reaper
from perdure.runtime.periodic.scheduler import Scheduler
from perdure.store.reads import JobFilter
from perdure.system.clock import LOOK_EVERY, VirtualClock

HOUR = timedelta(hours=1)
JUMPS = pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "backward"])


class JumpingClock(VirtualClock):
    """A clock whose wall time can be set, while its monotonic time goes on as ever."""

    def __init__(self) -> None:
        super().__init__()
        self._passed = timedelta(0)

    def monotonic(self) -> float:
        return self._passed.total_seconds()

    def advance(self, by: timedelta) -> None:
        super().advance(by)
        self._passed += by

    def jump(self, by: timedelta) -> None:
        """Set the wall clock by so much."""
        self._now += by


class Silence:
    """Listens to events and does nothing."""

    def tell(self, event: Event) -> None:
        pass


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


def reaper(scene: Scene, clock: JumpingClock) -> Reaper:
    return Reaper(
        store=scene.store,
        registry=App("sqlite://").registry,
        clock=clock,
        random=Random(1),
        observer=Silence(),
        every=5.0,
        watch=LeaseWatch(clock),
    )


def scheduler(scene: Scene, clock: JumpingClock, *definitions: Definition) -> Scheduler:
    return Scheduler(
        store=scene.store,
        clock=clock,
        random=Random(1),
        observer=Silence(),
        poll=60.0,
        quiet=0.0,
        definitions=definitions,
    )


async def fire_for(tested: Scheduler, clock: JumpingClock, span: timedelta) -> None:
    """Let a scheduler work for so long, waiting as it says."""
    left = span.total_seconds()
    while left > 0:
        pause = await tested.step()
        assert pause <= LOOK_EVERY
        pause = max(pause, 0.001)
        clock.advance(timedelta(seconds=pause))
        left -= pause


def definition(cron: str, **changes: object) -> Definition:
    given = {"name": cron, "task": "send", "queue": "mail", "args": b"{}", "cron": cron, "overlap": "allow", **changes}
    return Definition(**given)  # type: ignore[arg-type]


@JUMPS
async def test_no_worker_that_renews_its_lease_loses_it(scene: Scene, clock: JumpingClock, jump: timedelta) -> None:
    living = scene.worker("living")
    job = scene.running(living)
    tested = reaper(scene, clock)
    for second in range(100):
        if second == 45:
            clock.jump(jump)
        if second % 5 == 0:
            await tested.step()
            # Between two renewals nothing is refused either.
            scene.fetch(living)
        if second % 10 == 0:
            assert scene.store.beat(living, LEASE).wait().held == (job.fence,)
        clock.advance(SECOND)
    assert scene.end(job, success(job))


@JUMPS
async def test_a_reaper_that_starts_after_the_jump_spares_living_workers(
    scene: Scene, clock: JumpingClock, jump: timedelta
) -> None:
    living = scene.worker("living")
    clock.advance(9 * SECOND)
    clock.jump(jump)
    tested = reaper(scene, clock)
    await tested.step()
    clock.advance(SECOND)
    scene.store.beat(living, LEASE).wait()
    for _ in range(5):
        await tested.step()
        clock.advance(5 * SECOND)
    scene.store.beat(living, LEASE).wait()


@JUMPS
@pytest.mark.parametrize("jumps_at", [0, 1, 12, 29])
async def test_a_vanished_worker_is_reaped_after_its_lease(
    scene: Scene, clock: JumpingClock, jump: timedelta, jumps_at: int
) -> None:
    job = scene.running(scene.worker("vanished"))
    tested = reaper(scene, clock)
    await tested.step()
    passed = 0
    while scene.get(job.id).state == "running":
        if passed == jumps_at:
            clock.jump(jump)
        clock.advance(SECOND)
        passed += 1
        await tested.step()
        assert passed <= LEASE.total_seconds() + 1
    assert passed >= LEASE.total_seconds()
    with pytest.raises(LeaseLost):
        scene.store.beat(WorkerId("vanished"), LEASE).wait()


async def test_delayed_jobs_are_due_at_once_after_a_jump_forward(scene: Scene, clock: JumpingClock) -> None:
    soon, later = scene.enqueue(run_at=clock.now() + HOUR / 2), scene.enqueue(run_at=clock.now() + 2 * HOUR)
    tested = Promoter(store=scene.store, poll=600.0)
    # Whatever the poll is, the clock is looked at again soon.
    assert await tested.step() <= LOOK_EVERY
    clock.jump(HOUR)
    await tested.step()
    assert (scene.get(soon).state, scene.get(later).state) == ("ready", "waiting")


async def test_jobs_are_enqueued_delayed_and_fetched_after_a_jump_backward(scene: Scene, clock: JumpingClock) -> None:
    worker = scene.worker()
    before = scene.enqueue()
    clock.jump(-HOUR)
    after, delayed = scene.enqueue(), scene.enqueue(run_at=clock.now() + 2 * SECOND)
    tested = Promoter(store=scene.store, poll=600.0)
    assert await tested.step() <= 2.0
    assert {job.id for job in scene.fetch(worker)} == {before, after}
    clock.advance(2 * SECOND)
    await tested.step()
    assert [job.id for job in scene.fetch(worker)] == [delayed]


@JUMPS
@pytest.mark.parametrize("cron", ["@every 10s", "*/10 * * * * *"])
async def test_a_schedule_keeps_its_rhythm(scene: Scene, clock: JumpingClock, jump: timedelta, cron: str) -> None:
    tested = scheduler(scene, clock, definition(cron))
    await fire_for(tested, clock, 25 * SECOND)
    before = tested.fired
    assert before in (2, 3)
    clock.jump(jump)
    await fire_for(tested, clock, 30 * SECOND)
    # Ticks missed by a jump forward count as one, as if the worker had been away.
    assert tested.fired - before in (2, 3, 4)
    assert scene.store.count(JobFilter(queue="mail")).wait() == tested.fired
    (schedule,) = scene.store.get_schedules([cron]).wait()
    assert schedule is not None
    assert schedule.standing == "active"


async def test_a_scheduler_that_starts_after_a_jump_backward_goes_on_at_once(scene: Scene, clock: JumpingClock) -> None:
    await fire_for(scheduler(scene, clock, definition("@every 10s")), clock, 11 * SECOND)
    clock.jump(-HOUR)
    tested = scheduler(scene, clock, definition("@every 10s"))
    await fire_for(tested, clock, 21 * SECOND)
    assert tested.fired == 2


async def test_a_tick_of_a_rare_schedule_does_not_fire_again_when_the_clock_is_set_back(
    scene: Scene, clock: JumpingClock
) -> None:
    tested = scheduler(scene, clock, definition("5 0 * * *"))
    await tested.step()
    clock.advance(timedelta(minutes=6))
    await fire_for(tested, clock, 3 * SECOND)
    assert tested.fired == 1
    clock.jump(timedelta(minutes=-3))
    clock.advance(timedelta(minutes=4))
    await fire_for(tested, clock, 3 * SECOND)
    assert tested.fired == 1


async def test_a_small_adjustment_of_the_clock_fires_no_tick_twice(scene: Scene, clock: JumpingClock) -> None:
    tested = scheduler(scene, clock, definition("@every 1s"))
    await fire_for(tested, clock, 10.5 * SECOND)
    fired = tested.fired
    clock.jump(-2 * SECOND)
    await fire_for(tested, clock, SECOND)
    assert tested.fired == fired
    await fire_for(tested, clock, 5 * SECOND)
    assert tested.fired > fired


async def test_schedules_of_living_workers_are_not_orphaned_by_a_jump_forward(
    scene: Scene, clock: JumpingClock
) -> None:
    naming, other = scheduler(scene, clock, definition("@every 10s")), scheduler(scene, clock)
    await fire_for(naming, clock, 15 * SECOND)
    await other.step()
    clock.jump(HOUR)
    # The other one looks first, and its code does not name the schedule.
    await fire_for(other, clock, 5 * SECOND)
    (schedule,) = scene.store.get_schedules(["@every 10s"]).wait()
    assert schedule is not None
    assert schedule.problem is None
    await fire_for(naming, clock, 2 * SECOND)
    assert naming.fired + other.fired == 2


async def test_a_jump_forward_deletes_no_history_early(scene: Scene, clock: JumpingClock) -> None:
    def finish() -> JobId:
        job = scene.running()
        scene.end(job, success(job))
        return job.id

    def is_kept(job_id: JobId) -> bool:
        return scene.store.get([job_id]).wait()[0] is not None

    tested = Pruner(store=scene.store, clock=clock, retention=HOUR)
    await tested.step()
    before = finish()
    clock.advance(HOUR / 3)
    clock.jump(HOUR)
    await tested.step()
    assert is_kept(before)
    clock.advance(HOUR / 3)
    await tested.step()
    assert is_kept(before)
    after = finish()
    clock.advance(HOUR / 2)
    await tested.step()
    assert (is_kept(before), is_kept(after)) == (False, True)
    # The jump is forgotten when all jobs of before are past the retention time.
    clock.advance(HOUR / 2 + SECOND)
    await tested.step()
    assert not is_kept(after)


async def test_a_jump_backward_deletes_no_history_early(scene: Scene, clock: JumpingClock) -> None:
    tested = Pruner(store=scene.store, clock=clock, retention=HOUR)
    await tested.step()
    job = scene.running()
    scene.end(job, success(job))
    clock.jump(-HOUR)
    await tested.step()
    clock.jump(HOUR)
    await tested.step()
    clock.advance(HOUR / 2)
    await tested.step()
    assert scene.store.get([job.id]).wait()[0] is not None
    clock.advance(HOUR / 2 + SECOND)
    await tested.step()
    assert scene.store.get([job.id]).wait()[0] is None
