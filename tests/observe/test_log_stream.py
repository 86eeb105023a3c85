"""Log lines on their way out: a batch at once to our own stream, one by one to whoever else listens."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Literal

import pytest
from tests.observe.told import JOB, attempt, raised

from perdure.model.event import WorkerStarted
from perdure.observe.log import LogObserver
from perdure.observe.log_stream import configure

LOGGER = logging.getLogger("perdure")
EVENTS = (
    attempt(raised()),
    attempt(),
    WorkerStarted(worker="w", queues=("mail",), concurrency=5),
    attempt(raised(message="100 % broken"), attempt=4, failures=3),
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    kept = (LOGGER.handlers[:], LOGGER.filters[:], LOGGER.level, LOGGER.propagate)
    yield
    LOGGER.handlers[:], LOGGER.filters[:], LOGGER.propagate = kept[0], kept[1], kept[3]
    LOGGER.setLevel(kept[2])


class Stream(io.StringIO):
    """Counts how often it is written to."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


class Kept(logging.Handler):
    """Another listener."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def without_time(line: str) -> object:
    if line.startswith("{"):
        return {name: value for name, value in json.loads(line).items() if name != "time"}
    return line.split(" ", 2)[2]


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_batch_is_one_write_and_says_what_single_lines_say(form: Literal["console", "json"]) -> None:
    together, apart = Stream(), Stream()
    configure(form, together)
    LogObserver().tell_all(EVENTS)
    configure(form, apart)
    for event in EVENTS:
        LogObserver().tell(event)
    assert (together.writes, apart.writes) == (1, 3)
    lines = [without_time(line) for line in together.getvalue().splitlines()]
    assert lines == [without_time(line) for line in apart.getvalue().splitlines()]
    assert len(lines) == 3


def test_each_line_has_its_own_level_and_words() -> None:
    stream = Stream()
    configure("console", stream)
    LogObserver().tell_all(EVENTS)
    first, second, third = stream.getvalue().splitlines()
    assert f" WARNING Job {JOB} failed, scheduling retry 1/3" in first
    assert " INFO    Worker w serves mail" in second
    assert third.endswith(f" ERROR   Job {JOB} failed after 3 retries, dead (exhausted): ValueError: 100 % broken")


def test_another_listener_gets_a_record_of_its_own_for_each_line() -> None:
    stream, kept = Stream(), Kept()
    configure("console", stream)
    LOGGER.addHandler(kept)
    LogObserver().tell_all(EVENTS)
    assert [record.levelname for record in kept.records] == ["WARNING", "INFO", "ERROR"]
    assert [vars(record)["perdure"]["event"] for record in kept.records] == [
        "attempt_failed",
        "worker_started",
        "attempt_failed",
    ]
    assert len(stream.getvalue().splitlines()) == 3


def test_lines_are_passed_up_to_the_root_when_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    configure("console", Stream())
    LOGGER.propagate = True
    LogObserver().tell_all(EVENTS)
    assert len(caplog.records) == 3


@pytest.mark.parametrize("where", ["logger", "handler"])
def test_filters_and_levels_hold_for_each_line_of_a_batch(where: str) -> None:
    stream = Stream()
    configure("console", stream)
    place: logging.Filterer = LOGGER if where == "logger" else LOGGER.handlers[0]
    place.addFilter(lambda record: "Worker" not in record.getMessage())
    LogObserver().tell_all(EVENTS)
    assert len(stream.getvalue().splitlines()) == 2


@pytest.mark.parametrize("where", ["logger", "handler"])
def test_what_is_below_the_level_is_not_written(where: str) -> None:
    stream = Stream()
    configure("console", stream)
    (LOGGER if where == "logger" else LOGGER.handlers[0]).setLevel(logging.ERROR)
    LogObserver().tell_all(EVENTS)
    (line,) = stream.getvalue().splitlines()
    assert " ERROR " in line


def test_a_stream_that_breaks_costs_nobody_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    stream = io.StringIO()
    configure("console", stream)
    stream.close()
    LogObserver().tell_all(EVENTS)


def test_what_others_say_to_the_logger_is_written_too() -> None:
    stream = Stream()
    configure("console", stream)
    LOGGER.error("request %s failed", 7)
    assert stream.getvalue().endswith(" ERROR   request 7 failed\n")
