"""What was answered survives a killed server as the store says: all of it with appendfsync always."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.chaos.checker import check
from tests.chaos.crew import Crew, Engine, until
from tests.servers.redis import RedisServer
from tests.servers.redis_books import audit

from perdure.engines.opener import open_store
from perdure.errors import EngineError
from perdure.model.job import JobId, NewJob, format_id, make_id
from perdure.model.payload.codec import encode_args
from perdure.store import Store
from perdure.system.clock import SystemClock

KILLS = 6
BEHAVIOURS = ("returns", "returns", "returns", "fails once", "fails always")


class Producer(threading.Thread):
    """Enqueues batches until it is stopped; one that was not answered is asked for again until it is."""

    def __init__(self, number: int, crew: Crew, url: str) -> None:
        super().__init__(daemon=True)
        self._number = number
        self._crew = crew
        self._url = url
        self._rng = random.Random(number)
        self._last = 0
        self.stopped = threading.Event()
        self.answered = 0
        self.asked_again = 0

    def run(self) -> None:
        with closing(open_store(self._url, clock=SystemClock())) as store:
            for batch in itertools.count():
                if self.stopped.is_set():
                    return
                self._enqueue(store, f"producer-{self._number}-{batch}")

    def _enqueue(self, store: Store, name: str) -> None:
        jobs = [self._job(f"{name}-{at}", name) for at in range(self._rng.randint(1, 20))]
        while True:
            try:
                ids = store.enqueue(jobs).wait()
            except EngineError:
                self.asked_again += 1
                time.sleep(0.05)
                continue
            for at, job_id in enumerate(ids):
                self._crew.ledger.write("enq_ok", key=f"{name}-{at}", job=job_id)
            self.answered += len(ids)
            return

    def _job(self, key: str, batch: str) -> NewJob:
        limit = self._rng.randint(2, 4)
        self._crew.ledger.write("enq_invoke", key=key, batch=batch, limit=limit)
        self._last = make_id(SystemClock().now(), self._rng.getrandbits(62), self._last)
        args = encode_args((key, self._rng.choice(BEHAVIOURS), 0.002), {}, 10_000)
        return NewJob(id=format_id(self._last), task="on_loop", queue="default", args=args, max_attempts=limit)


@pytest.fixture
def durable() -> Iterator[RedisServer]:
    with closing(RedisServer(appendonly="yes", appendfsync="always")) as server:
        yield server


@pytest.fixture
def crew(durable: RedisServer, tmp_path: Path) -> Iterator[Crew]:
    crew = Crew(Engine(url=durable.url, find_damage=list, is_free=lambda: True), tmp_path)
    yield crew
    crew.close()
    print(crew.output()[-10_000:])


# Proves [INV-1].
@pytest.mark.crash
def test_nothing_is_lost_when_the_server_is_killed_again_and_again(
    durable: RedisServer, crew: Crew, record_property: pytest.RecordProperty
) -> None:
    workers = [crew.worker(concurrency=16, lease="3s") for _ in range(2)]
    producers = [Producer(number, crew, durable.url) for number in range(2)]
    for producer in producers:
        producer.start()
    until(lambda: len(crew.registered()) == 2, "both workers are there")
    for _ in range(KILLS):
        answered = sum(producer.answered for producer in producers)
        until(
            lambda wanted=answered + 100: sum(producer.answered for producer in producers) >= wanted, "it is under load"
        )
        durable.restart()
    for producer in producers:
        producer.stopped.set()
        producer.join(60)
    until(crew.is_drained, "every job has ended")
    assert crew.stop(*workers) == [0, 0]
    verdict = check(crew.events(), crew.jobs())
    asked_again = sum(producer.asked_again for producer in producers)
    figures = f"{KILLS} kills of the server, {asked_again} enqueues asked for again; {verdict.figures()}"
    record_property("server kills", figures)
    print(figures)
    assert verdict.problems() == {}
    assert verdict.accepted == sum(producer.answered for producer in producers) >= KILLS * 100
    assert asked_again > 0, "no kill met an enqueue"
    with durable.client() as client:
        assert audit(client, "{perdure}") == []


def test_how_much_a_killed_server_loses_with_one_fsync_a_second_is_measured(
    record_property: pytest.RecordProperty,
) -> None:
    with closing(RedisServer(appendonly="yes", appendfsync="everysec")) as server:
        answered: dict[JobId, float] = {}
        with closing(open_store(server.url, clock=SystemClock())) as store:
            last, began = 0, time.monotonic()
            while time.monotonic() - began < 1.5 or len(answered) < 200:
                last = make_id(SystemClock().now(), 0, last)
                store.enqueue([NewJob(id=format_id(last), task="send", queue="mail", args=b"{}")]).wait()
                answered[format_id(last)] = time.monotonic()
            server.kill()
            killed_at = time.monotonic()
        server.start()
        with closing(open_store(server.url, clock=SystemClock())) as store:
            ids = list(answered)
            lost = [job_id for job_id, job in zip(ids, store.get(ids).wait(), strict=True) if job is None]
    window = max((killed_at - answered[job_id] for job_id in lost), default=0.0)
    figures = f"everysec: {len(answered)} answered, {len(lost)} lost to kill -9, those of the last {window:.3f} s"
    record_property("everysec", figures)
    print(figures)
    assert len(answered) > 100
    assert window < 10, "the server holds back what it writes for two seconds; a busy machine adds to that"
