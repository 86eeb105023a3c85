"""A worker that runs out of descriptors waits, and goes on when they are back; no job and no part of it is lost."""

from __future__ import annotations

import contextvars
import errno
import os
import threading
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest
from tests.chaos.crew import Crew
from tests.hostile.attack import IS_LONG, Process, until

from perdure import App
from perdure.engines import statements
from perdure.engines.sqlite.fault import to_perdure_error
from perdure.errors import EngineUnreachable
from perdure.model.event import Event, StoreRecovered, StoreTrouble
from perdure.model.schedule.definition import read_zone
from perdure.runtime.backoff import Backoff, is_outage
from perdure.runtime.outage import Outage
from perdure.runtime.threads import Threads
from perdure.system.clock import VirtualClock
from perdure.system.exhaustion import is_exhaustion
from perdure.web.live import Live

SECONDS = 5.0 if IS_LONG else 1.5
LOG = 20_000
WORKER = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (160, 160))
from tests.hostile.exhausting import app
app.run_worker()
"""


@pytest.mark.every_engine
def test_a_worker_without_descriptors_for_a_while_finishes_every_job(crew: Crew, tmp_path: Path) -> None:
    worker = crew.start("-c", WORKER, lease="20s", poll="100ms", concurrency=8, grace="20s")
    until(lambda: len(crew.registered()) == 1, "the worker is there")
    registered = crew.registered()
    # A warm worker and a cold one differ in what they have open; this one has only just begun.
    done = tmp_path / "done"
    jobs = [crew.enqueue_named("take_all", SECONDS, str(done))]
    jobs += [crew.enqueue_named("in_child", number) for number in range(10 if IS_LONG else 1)]
    for number in range(20):
        jobs.append(crew.enqueue_named(("in_thread", "on_loop")[number % 2], number))
        jobs.append(crew.enqueue_named("on_loop", number, delay=timedelta(milliseconds=50 * number)))
    until(lambda: crew.is_drained() or worker.poll() is not None, "all jobs have ended")
    assert worker.poll() is None, crew.output()
    assert {crew.state(job_id) for job_id in jobs} == {"succeeded"}, crew.output()
    assert {outcome for job_id in jobs for outcome in crew.outcomes(job_id)} <= {"succeeded"}
    assert int(crew.job(jobs[0]).result or b"") > 50
    assert done.read_text() == "", "while descriptors are gone nothing of Perdure's own is read"
    assert crew.registered() == registered, "it kept its lease"
    later = crew.enqueue_named("in_child", 1)
    until(lambda: crew.state(later) == "succeeded", "it works on")
    output = crew.output()
    assert "Traceback" not in output
    assert len(output) - output.count("succeeded") * 200 < LOG, output[-2000:]
    assert crew.stop(worker) == [0]


def test_an_api_without_descriptors_answers_those_who_are_connected_and_later_everybody(tmp_path: Path) -> None:
    up = Process(tmp_path, "up", "tests.hostile.exhausting:app", "--port", "0", "--json", open_files=160)
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    try:
        url = up.announced()["url"]
        with httpx2.Client(base_url=url, timeout=60) as client:
            until(lambda: client.get("/api/v1/workers").json()["workers"], "the worker is there")
            client.get("/api/v1/stats")
            job = app.enqueue_named("take_all", [SECONDS, str(tmp_path / "done")], {})
            until(lambda: app.client().get(job).state == "running", "the descriptors are being taken")
            while app.client().get(job).state == "running":
                for path in ("/healthz/live", "/api/v1/stats", "/api/v1/jobs", "/openapi.json", "/metrics"):
                    assert client.get(path).status_code == 200, up.log.read_text()
            until(lambda: app.client().get(job).state == "succeeded", "it is over")
        assert httpx2.get(f"{url}/healthz/live", timeout=60).status_code == 200
        log = up.log.read_text()
        assert "Traceback" not in log
        assert len(log) < LOG
        assert up.stop() == 0
    finally:
        app.close()
        up.close()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_errors_of_the_system_are_outages(number: int) -> None:
    assert is_exhaustion(OSError(number, os.strerror(number)))
    assert is_outage(OSError(number, os.strerror(number)))
    seen = to_perdure_error(OSError(number, os.strerror(number)), "jobs.db")
    assert isinstance(seen, EngineUnreachable)
    assert os.strerror(number) in str(seen)


def test_a_lack_of_memory_or_threads_is_an_outage_and_a_defect_is_none() -> None:
    assert is_outage(MemoryError())
    assert is_outage(RuntimeError("can't start new thread"))
    assert not is_outage(RuntimeError("a bug"))
    assert not is_outage(KeyError("a bug"))


class Told:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(self, event: Event) -> None:
        self.events.append(event)


def make_trouble(told: Told, clock: VirtualClock) -> Backoff:
    return Backoff("fetcher", random=Random(1), outage=Outage("worker", clock=clock, observer=told))


def test_an_outage_that_comes_and_goes_many_times_a_second_is_told_once() -> None:
    told, clock = Told(), VirtualClock()
    backoff = make_trouble(told, clock)
    for _ in range(100):
        backoff.failed(OSError(errno.EMFILE, "Too many open files"))
        backoff.succeeded()
        clock.advance(timedelta(milliseconds=50))
    assert [type(event) for event in told.events] == [StoreTrouble, StoreRecovered]
    # One that lasts is told, however soon it follows.
    backoff.failed(OSError(errno.EMFILE, "Too many open files"))
    clock.advance(timedelta(seconds=1.5))
    backoff.failed(OSError(errno.EMFILE, "Too many open files"))
    assert len(told.events) == 3


def test_a_defect_is_not_waited_out() -> None:
    with pytest.raises(KeyError):
        make_trouble(Told(), VirtualClock()).failed(KeyError("a bug"))


def test_a_time_zone_that_cannot_be_read_now_is_not_taken_for_an_unknown_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("perdure.model.schedule.definition.ZoneInfo", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        read_zone("Europe/Berlin")


async def test_the_live_events_survive_a_shortage_and_log_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse() -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    live = Live(refuse, interval=0.001)
    subscription = live.subscribe(None)
    assert subscription is not None
    event = await subscription.next(60.0)
    assert event is not None
    assert event.kind == "trouble"
    assert await subscription.next(0.2) is None, "it is told once"
    assert [record.message for record in caplog.records] == [
        "The live events cannot be read at present: [Errno 24] Too many open files"
    ]
    live.unsubscribe(subscription)


async def test_a_call_waits_for_its_thread_where_none_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    real, refusals = threading.Thread.start, iter(range(3))

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith("perdure-handler") and next(refusals, None) is not None:
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    threads = Threads()
    calls = [threads.start(lambda: 7, contextvars.copy_context()) for _ in range(2)]
    assert [await call.future for call in calls] == [(7, None), (7, None)]
    threads.close()


def test_a_statement_file_is_read_with_the_first_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statements.load.cache_clear()
    statements._texts.cache_clear()
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    app.client().stats()

    def refuse(*args: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    monkeypatch.setattr("pathlib.Path.read_text", refuse)
    # None of these has been used in this process; each has a file of its own.
    assert app.client().list() == []
    assert app.client().groups() == []
    assert app.client().schedules() == []
    app.close()
