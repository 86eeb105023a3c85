"""What a worker says of an outage of its store: one line when it begins and one when it is really over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from tests.chaos.crew import until
from tests.runtime.test_start import AWAY, BACK, Start, start
from tests.servers import postgres
from tests.servers.redis import RedisServer

from perdure.errors import EngineError, EngineFull, EngineUnreachable
from perdure.model.event import Event, StoreRecovered, StoreTrouble
from perdure.runtime.backoff import Backoff
from perdure.runtime.outage import Outage
from perdure.runtime.periodic.loop import Loop, NotAsked
from perdure.system.clock import VirtualClock

__all__ = ["start"]

GONE = EngineUnreachable("It is gone.")


class Told:
    """An observer that keeps what it was told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(self, event: Event) -> None:
        self.events.append(event)


class Scene:
    """The parts of a worker, a clock under control, and what was told."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.told = Told()
        self.outage = Outage("worker", clock=self.clock, observer=self.told)

    def part(self, name: str) -> Backoff:
        return Backoff(name, random=Random(1), outage=self.outage)

    @property
    def kinds(self) -> list[type]:
        return [type(event) for event in self.told.events]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_an_outage_of_many_parts_is_told_once_and_lasts_until_the_last_of_them_succeeds(scene: Scene) -> None:
    parts = [scene.part(name) for name in ("fetcher", "promoter", "tuner")]
    for part in parts * 3:
        part.failed(GONE)
    scene.clock.advance(timedelta(seconds=3))
    parts[0].succeeded()
    parts[2].succeeded()
    assert scene.kinds == [StoreTrouble]
    parts[0].failed(GONE)
    parts[1].succeeded()
    assert scene.kinds == [StoreTrouble]
    scene.clock.advance(timedelta(seconds=4))
    parts[0].succeeded()
    assert scene.kinds == [StoreTrouble, StoreRecovered]
    assert scene.told.events[-1] == StoreRecovered(part="worker", outage=timedelta(seconds=7))


def test_parts_that_can_read_do_not_end_the_outage_of_one_that_cannot_write(scene: Scene) -> None:
    writing, reading = scene.part("committer"), scene.part("tuner")
    for _ in range(5):
        writing.failed(EngineFull("No room."))
        reading.succeeded()
    assert scene.kinds == [StoreTrouble]
    writing.succeeded()
    assert scene.kinds == [StoreTrouble, StoreRecovered]


def test_a_part_that_gives_up_leaves_the_end_to_the_next_success(scene: Scene) -> None:
    committer, fetcher = scene.part("committer"), scene.part("fetcher")
    committer.failed(GONE)
    committer.gave_up()
    assert scene.kinds == [StoreTrouble]
    fetcher.succeeded()
    assert scene.kinds == [StoreTrouble, StoreRecovered]


def test_a_second_outage_is_told_again(scene: Scene) -> None:
    part = scene.part("fetcher")
    for _ in range(2):
        part.failed(GONE)
        part.succeeded()
        part.succeeded()
        # One that follows at once would count as the same outage.
        scene.clock.advance(timedelta(seconds=30))
    assert scene.kinds == [StoreTrouble, StoreRecovered] * 2


async def test_a_step_that_asked_nothing_does_not_end_an_outage(scene: Scene) -> None:
    """A scheduler in its quiet time, or a promoter that leaves its work to the fetcher, makes no call."""
    answers: list[EngineError | float] = [GONE, NotAsked(0.0), NotAsked(0.0), 0.0]
    kinds: list[list[type]] = []
    ended = asyncio.Event()

    async def step() -> float:
        kinds.append(scene.kinds)
        if not answers:
            ended.set()
            await asyncio.Event().wait()
        answer = answers.pop(0)
        if isinstance(answer, EngineError):
            raise answer
        return answer

    class Quick(VirtualClock):
        async def sleep(self, seconds: float) -> None: ...

    running = asyncio.create_task(Loop(step, clock=Quick(), random=Random(1), backoff=scene.part("scheduler")).run())
    await asyncio.wait_for(ended.wait(), 30)
    running.cancel()
    assert kinds == [[], [StoreTrouble], [StoreTrouble], [StoreTrouble], [StoreTrouble, StoreRecovered]]


@pytest.fixture(params=["postgres", "redis"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    if request.param == "redis":
        with closing(RedisServer(appendonly="yes", appendfsync="always")) as redis:
            yield Server(redis.url, redis.kill, redis.start)
    else:
        with closing(postgres.PostgresServer()) as made:
            yield Server(postgres.make_url(tmp_path, made.dsn), made.stop, made.start)


class Server:
    """A server that can be stopped and started again."""

    def __init__(self, url: str, stop: object, start: object) -> None:
        self.url = url
        self.stop = stop
        self.start = start


def test_a_worker_says_once_that_its_server_is_away_and_once_that_it_is_back(server: Server, start: Start) -> None:
    """Twice over: a server that comes and goes is told each time, and never said to be there while it is away."""
    started = start(server.url, "worker", "start_app:app", "--grace", "5s", "--lease", "60s")
    started.until_said("serves")
    for flap in (1, 2):
        server.stop()
        until(lambda flap=flap: started.count(AWAY) == flap, "it says that the store is away")
        assert started.count(BACK) == flap - 1
        server.start()
        until(lambda flap=flap: started.count(BACK) == flap, "it says that the store is back")
        started.works()
        assert (started.count(AWAY), started.count(BACK)) == (flap, flap)
    assert started.stop() == 0
    lines = [line for line in started.said().splitlines() if AWAY in line or BACK in line]
    assert [AWAY in line for line in lines] == [True, False] * 2
