"""No text from outside makes a line of the log of its own, commands a terminal, or turns the text of a line round."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Literal

import pytest
from click.testing import CliRunner
from tests.admin.scene import Scene
from tests.cli.conftest import Runner
from tests.observe.told import NOW, attempt, raised
from tests.web.conftest import connected, make_app
from tests.web.test_auth import HOST, raw

from perdure.cli import faults, output
from perdure.errors import EngineUnreachable
from perdure.model.event import (
    Event,
    Forwarded,
    ForwardFailed,
    LeaseExpired,
    ScheduleBroken,
    StoreTrouble,
    TicksFired,
    WorkerReaped,
    WorkerStarted,
    WorkerStopped,
)
from perdure.model.job import JobId
from perdure.observe.log import LogObserver
from perdure.observe.log_stream import configure
from perdure.system.clock import SystemClock, VirtualClock
from perdure.text.printable import json_escaped, one_line
from perdure.web.app import create_app

Form = Literal["console", "json"]
MARKS = [*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u061c\u200e\u200f\u2028\u2029\ufeff"]
MARKS += [*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))]
FORGED = "x\n2026-01-01 00:00:00,000 ERROR   forged\r\x1b[2J\x9b1m\u202eevil\u2066\u2028\u2029\x85\x00\x0b\x0c\u200f"
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
LOGGER = logging.getLogger("perdure")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    kept = (LOGGER.handlers[:], LOGGER.level, LOGGER.propagate)
    yield
    LOGGER.handlers[:], LOGGER.propagate = kept[0], kept[2]
    LOGGER.setLevel(kept[1])


@pytest.mark.parametrize("mark", MARKS, ids=[f"U+{ord(mark):04X}" for mark in MARKS])
def test_every_unsafe_character_is_escaped(mark: str) -> None:
    line = one_line(f"a{mark}b")
    assert line.isprintable()
    assert line.startswith("a\\")
    assert line.endswith("b")
    assert json.loads(json_escaped(json.dumps(f"a{mark}b", ensure_ascii=False))) == f"a{mark}b"
    assert not UNSAFE.search(output.harmless(f"a{mark}b").replace("\t", ""))


def test_what_is_safe_is_left_as_it_is() -> None:
    for text in ("", "plain", "Grüße 🎉 日本語 שלום", "a\\nb", "a\u00a0b", "e\u0301", "👩\u200d💻"):
        assert one_line(text) == text
    assert one_line("x" * 50, 10) == "x" * 10 + "…"
    assert one_line("half\ud800") == "half\\ud800"


def _events() -> list[Event]:
    name = FORGED
    return [
        attempt(raised(message=FORGED)),
        attempt(raised(FORGED), attempt=4, failures=3),
        ForwardFailed(job=JobId("j"), task=name, queue=name, sink=name, tries=1, error=name, retry_in=None),
        Forwarded(job=JobId("j"), task=name, queue=name, sink=name, tries=1),
        WorkerStarted(worker=name, queues=(name,), concurrency=1),
        WorkerStopped(worker=name, released=0),
        LeaseExpired(worker=name, held=1),
        WorkerReaped(worker=name, jobs=1),
        StoreTrouble(part=name, error=name, retry_in=timedelta(seconds=1)),
        TicksFired(schedule=name, ticks=(), skipped=2, fired_at=NOW),
        ScheduleBroken(schedule=name, problem=name),
    ]


def _written(form: Form, write: Any) -> list[str]:
    stream = io.StringIO(newline="")
    configure(form, stream)
    write()
    text = stream.getvalue()
    assert not UNSAFE.search(text)
    return text.split("\n")[:-1]


@pytest.mark.parametrize("form", ["console", "json"])
def test_each_event_is_one_line_whatever_its_texts_are(form: Form) -> None:
    for event in _events():
        (line,) = _written(form, lambda event=event: LogObserver().tell_all([event]))
        if form == "json":
            json.loads(line)


def test_other_listeners_get_messages_without_line_breaks() -> None:
    seen: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.getMessage())

    configure("console", io.StringIO())
    LOGGER.addHandler(Kept())
    LogObserver().tell_all(_events())
    assert len(seen) == len(_events())
    assert [text for text in seen if not text.isprintable()] == []


def _fail(message: str) -> None:
    try:
        raise ValueError(message)
    except ValueError:
        LOGGER.exception("request %s failed", message)


def test_a_traceback_follows_its_line_indented_so_that_none_of_it_passes_for_a_line() -> None:
    first, *rest = _written("console", lambda: _fail(FORGED))
    assert "forged" in first
    assert any("ValueError" in line for line in rest)
    assert all(line.startswith("    ") for line in rest)


def test_json_lines_have_the_traceback_as_a_field() -> None:
    (line,) = _written("json", lambda: _fail(FORGED))
    found = json.loads(line)
    assert "in _fail" in found["traceback"]
    assert f"ValueError: {FORGED.partition(chr(10))[0]}" in found["traceback"]
    assert found["level"] == "error"
    (line,) = _written("json", lambda: LOGGER.error("half \ud800"))
    assert "half" in json.loads(line)["message"]


def test_a_record_without_an_exception_has_no_traceback() -> None:
    (line,) = _written("json", lambda: LOGGER.error("plain", exc_info=False))
    assert "traceback" not in json.loads(line)
    (line,) = _written("json", lambda: LOGGER.error("plain", exc_info=True))
    assert "traceback" not in json.loads(line)


PATHS = (
    "/x\nforged",
    "/x\r\n2026-01-01 ERROR forged",
    "/\x1b[31mred",
    "/\u202eevil",
    "/\u2028\u2029\x85",
    "/\x00",
    "/\ud800",
)


@pytest.mark.parametrize("form", ["console", "json"])
@pytest.mark.parametrize("path", PATHS)
async def test_a_request_path_forges_no_line_when_its_request_fails(
    tmp_path, monkeypatch: pytest.MonkeyPatch, path: str, form: Form
) -> None:
    app = make_app(f"sqlite:///{tmp_path}/jobs.db")
    api = create_app(app)

    async def broken(*_: object) -> None:
        raise RuntimeError(f"broken by {FORGED}")

    monkeypatch.setattr(api._guard, "_inner", broken)
    stream = io.StringIO(newline="")
    configure(form, stream)
    status = await raw(api, path=path, raw_path=b"/", method="G\nE\x1bT", headers=[HOST])
    text = stream.getvalue()
    app.close()
    assert status == 500
    assert not UNSAFE.search(text)
    records = [line for line in text.split("\n")[:-1] if not line.startswith("    ")]
    assert len(records) == 1
    assert "request " in records[0]


async def test_problems_answer_a_hostile_path_as_valid_json(tmp_path) -> None:
    app = make_app(f"sqlite:///{tmp_path}/jobs.db")
    async with connected(create_app(app)) as client:
        for path in ("/%0Aforged", "/%1B[31m", "/%E2%80%AE", "/%FF", "/%00"):
            response = await client.get(path)
            assert response.status_code == 404
            assert json.loads(response.content)["instance"].isprintable()
    app.close()


@pytest.fixture
def scene(tmp_path) -> Iterator[Scene]:
    made = Scene(tmp_path / "jobs.db", VirtualClock(SystemClock().now() - timedelta(minutes=1)))
    yield made
    made.close()


def test_no_command_prints_what_commands_a_terminal(scene: Scene, tmp_path) -> None:
    scene.dead(message=FORGED.replace("\x00", ""))
    perdure = Runner(scene.url, tmp_path)
    job_id = perdure.json("dlq", "ls")["jobs"][0]["id"]
    commands = (
        ("jobs", "ls"),
        ("jobs", "show", job_id),
        ("dlq", "ls"),
        ("dlq", "groups"),
        ("dlq", "show", job_id),
        ("dlq", "export"),
        ("explain", job_id),
    )
    for command in commands:
        for form in ((), ("--json",)):
            result = perdure(*command, *form)
            assert result.exit_code == 0, result.output
            assert "evil" in result.output or command[0] == "explain" or "groups" in command, command
            assert not UNSAFE.search(result.output), (command, form)


@pytest.mark.parametrize("command", [("jobs", "show", FORGED), ("jobs", "ls", "--state", FORGED), (FORGED,)])
def test_errors_of_commands_quote_nothing_that_commands_a_terminal(scene: Scene, tmp_path, command) -> None:
    found = Runner(scene.url, tmp_path).process(*(part.replace("\x00", "") for part in command))
    assert found.returncode != 0
    assert not UNSAFE.search(found.stderr)
    assert not UNSAFE.search(found.stdout)


def test_faults_are_told_without_what_commands_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    @click.command()
    def fail() -> None:
        monkeypatch.setenv(faults.DEBUG_VARIABLE, "1")
        faults.warn(FORGED)
        faults.tell(EngineUnreachable(FORGED, FORGED), as_json=False)
        faults.tell(RuntimeError(FORGED), as_json=False)
        faults.tell(RuntimeError(FORGED), as_json=True)

    result = CliRunner().invoke(fail)
    assert result.exit_code == 0
    assert not UNSAFE.search(result.output)


def test_the_log_is_written_while_requests_run(tmp_path) -> None:
    """A stream that is broken by a hostile text must not cost the requests after it."""
    stream = io.StringIO()
    configure("json", stream)
    for text in (FORGED, "half\ud800", "\U0010ffff"):
        _fail(text)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert all(json.loads(line)["traceback"] for line in lines)
