"""The demo: its books are honest, its story short, and whatever happens to it, nothing is left behind."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from perdure.app import App
from perdure.cli.demo import workers as demo_crew
from perdure.cli.demo.balance import Books, check_books
from perdure.cli.demo.command import conclude
from perdure.cli.demo.jobs import make_cast
from perdure.cli.demo.ledger import Entry
from perdure.cli.demo.run import Played, Run
from perdure.cli.demo.story import MOST_LINES, Story
from perdure.cli.demo.tasks import CRASH_CODE, make_app
from perdure.cli.demo.view import PlainView, Standing, Tone, is_lively
from perdure.cli.demo.workers import Crew, Gone, Heard
from perdure.cli.main import root
from perdure.errors import PerdureError
from perdure.model.job import Job, JobId
from perdure.system.clock import SystemClock

from .conftest import Runner

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    made = make_app(tmp_path)
    yield made
    made.close()


# The books


def test_honest_books_balance() -> None:
    books = books_of()
    assert books.is_balanced
    assert (books.enqueued, books.succeeded, books.dead, books.cancelled, books.lost) == (4, 2, 1, 1, 0)
    assert books.dead_by_reason == {"outcome unknown": 1}
    assert (books.attempts, books.needed_retries, books.starts) == (5, 1, 4)


def test_a_job_that_has_not_ended_is_lost() -> None:
    books = books_of(jobs={"a": job("a", state="waiting")})
    assert books.lost == 1
    assert faults(books) == ["a is still waiting"]


def test_a_job_that_the_store_does_not_have_is_lost() -> None:
    books = books_of(without=("a",))
    assert books.lost == 1
    assert "a is not in the store" in faults(books)


def test_a_job_that_nobody_enqueued_is_noticed() -> None:
    assert faults(books_of(stored=5)) == ["the store has 5 jobs, and 4 were enqueued"]


def test_a_success_without_a_finish_of_that_attempt_is_noticed() -> None:
    ledger = [line for line in honest_ledger() if (line.kind, line.job_id) != ("finish", "b")]
    books = books_of(ledger=[*ledger, entry("finish", "b", 1)])
    assert faults(books) == ["b succeeded at attempt 2, but no handler finished that attempt"]


def test_a_start_above_the_limit_is_noticed() -> None:
    books = books_of(
        jobs={"b": job("b", attempt=4)},
        ledger=[*honest_ledger(), entry("start", "b", 3), entry("start", "b", 4), entry("finish", "b", 4)],
    )
    assert faults(books) == ["b was started 4 times, and its limit is 3"]


def test_a_second_start_at_most_once_is_noticed() -> None:
    books = books_of(jobs={"c": job("c", **CHARGE, attempt=2)}, ledger=[*honest_ledger(), entry("start", "c", 2)])
    assert "c was started 2 times" in faults(books)


def test_an_attempt_that_was_started_twice_is_noticed() -> None:
    books = books_of(ledger=[*honest_ledger(), entry("start", "b", 2)])
    assert faults(books) == ["attempt 2 of b was started 2 times"]


def test_a_start_that_the_store_does_not_know_is_noticed() -> None:
    books = books_of(ledger=[*honest_ledger(), entry("start", "a", 2)])
    assert faults(books) == ["attempt 2 of a was started, and the store knows nothing of it"]


def test_a_job_that_finished_twice_is_counted_and_allowed() -> None:
    books = books_of(ledger=[*honest_ledger(), entry("finish", "b", 1)])
    assert (books.is_balanced, books.repeated) == (True, 1)


@pytest.mark.parametrize("is_json", [True, False])
def test_books_that_do_not_balance_end_with_exit_code_1(
    app: App, capsys: pytest.CaptureFixture[str], is_json: bool
) -> None:
    played = Played(limits={}, asked=5, workers_lost=2, seconds=1.0)
    assert conclude(app, books_of(), played, seed=1, kept=None, is_json=is_json) == 0
    assert conclude(app, books_of(stored=5), played, seed=1, kept=None, is_json=is_json) == 1
    printed = capsys.readouterr().out
    assert "the store has 5 jobs, and 4 were enqueued" in printed
    assert ('"is_balanced": false' in printed) if is_json else ("do NOT balance" in printed)


# The jobs


@pytest.mark.parametrize("jobs", [20, 21, 300, 2000])
@pytest.mark.parametrize("seed", [0, 1, -7])
def test_the_cast_makes_exactly_the_jobs_that_were_asked_for(app: App, jobs: int, seed: int) -> None:
    cast = make_cast(app, jobs, seed)
    ids = app.enqueue_many([part.bound for part in (*cast.crowd, cast.photo, cast.charge, cast.export)])
    assert len(set(ids)) == cast.count == jobs
    assert len(ids) == jobs + 1
    assert len({part.label for part in cast.crowd}) == len(cast.crowd)


def test_the_same_seed_draws_the_same_jobs_and_another_one_others(app: App) -> None:
    assert make_cast(app, 300, 1) == make_cast(app, 300, 1) != make_cast(app, 300, 2)


# The story


class Lines:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str, tone: Tone) -> None:
        self.lines.append(text)


def test_a_failure_is_told_with_its_attempt_its_limit_and_what_follows() -> None:
    lines = Lines()
    Story({JobId("a"): "receipt 7"}, lines.say).hear(failure("a"))
    assert lines.lines == ["receipt 7: attempt 2 of 6 failed: ServiceDown: answered 503; next in 410ms"]


def test_a_thousand_events_become_at_most_forty_lines_and_the_rest_is_counted() -> None:
    lines = Lines()
    story = Story({}, lines.say)
    for number in range(1000):
        story.hear(failure(f"job {number % 50}", kind=("failed", "timeout", "lost")[number % 3]))
        story.hear(Heard(pid=1, record={"event": "lease_lost", "worker": "w", "held": 3}))
    assert len(lines.lines) <= MOST_LINES
    assert len(lines.lines) + story.untold == 2000


def test_the_crash_and_the_recovery_name_the_process_and_its_jobs() -> None:
    lines = Lines()
    story = Story({}, lines.say)
    story.hear(Heard(pid=71, record={"event": "worker_started", "worker": "w1"}))
    story.gone(Gone(pid=71, code=CRASH_CODE), 7)
    story.killed(72, 1)
    story.hear(Heard(pid=73, record={"event": "worker_reaped", "worker": "w1", "jobs": 7}))
    assert lines.lines[1:] == [
        "a job took the whole process down: worker 71 exited with code 70 while it held 7 jobs",
        "worker 72 was killed with SIGKILL while it held 1 job",
        "the lease of worker 71 ran out: worker 73 recovered its 7 jobs",
    ]


def test_a_followed_job_is_told_to_its_end() -> None:
    lines = Lines()
    story = Story({JobId("a"): "photo 1"}, lines.say)
    story.follow(JobId("a"))
    for _ in range(5):
        story.hear(failure("a"))
    assert len(lines.lines) == 5
    story.hear(failure("a", state="dead", reason="lost"))
    assert lines.lines[-1].startswith("photo 1 is dead (lost) after 2 attempts")
    assert story.followed == set()


def test_the_plain_view_tells_each_quarter_once() -> None:
    stream = io.StringIO()
    view = PlainView(stream)
    for ended in (0, 10, 26, 27, 51, 99, 100):
        view.show(Standing(total=100, ended=ended, states={}, workers=2, seconds=1.0))
    assert [line.split("  ")[-1] for line in stream.getvalue().splitlines()] == [
        "26 of 100 jobs have ended",
        "51 of 100 jobs have ended",
        "99 of 100 jobs have ended",
    ]


def test_the_plain_view_lets_no_control_code_through() -> None:
    stream = io.StringIO()
    PlainView(stream).say("a\x1b[31mred\x07 one", at=1.0)
    assert stream.getvalue() == "  1.0 s  ared one\n"


def test_a_stream_that_is_no_terminal_gets_no_live_view() -> None:
    assert not is_lively(io.StringIO())


# The whole


@pytest.mark.crash
def test_without_a_terminal_it_prints_plain_lines_and_the_books(nowhere: Runner, tmp_path: Path) -> None:
    done = run(nowhere, tmp_path, "--jobs", "40")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert not CONTROL.search(done.stdout)
    told = done.stdout.partition("The books")[0]
    assert len(told.splitlines()) <= MOST_LINES + 10
    for part in (
        "exited with code 70 while it held",
        "was killed with SIGKILL while it held",
        "is dead (unrecoverable)",
        "is dead (outcome unknown)",
        "recovered its",
        "was cancelled while it waited",
        "all 40 jobs have ended",
    ):
        assert part in told
    assert "The books balance." in done.stdout
    assert os.listdir(tmp_path / "tmp") == []


@pytest.mark.crash
def test_as_json_it_prints_the_books_alone_and_kept_jobs_can_be_looked_at(nowhere: Runner, tmp_path: Path) -> None:
    done = run(nowhere, tmp_path, "--jobs", "20", "--json", "--keep", "--seed", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    books = json.loads(done.stdout)
    assert books["is_balanced"] is True
    assert books["enqueued"] == 20 == books["succeeded"] + books["dead"] + books["cancelled"]
    assert books["asked_for"] == 21
    assert books["lost"] == 0
    assert books["workers_lost"] >= 2
    assert sum(books["dead_by_reason"].values()) == books["dead"]
    assert books["dead_by_reason"]["outcome unknown"] >= 1
    assert "is dead" in done.stderr
    stats = json.loads(nowhere.process("stats", "--json", "--url", books["url"]).stdout)
    assert stats["states"]["dead"] == books["dead"]
    assert stats["workers"] == 0


@pytest.mark.crash
def test_on_a_terminal_it_draws_and_every_suggested_command_works(nowhere: Runner, tmp_path: Path) -> None:
    temporary = make_temporary(tmp_path)
    code, screen = nowhere.terminal("demo", "--jobs", "20", "--keep", env={"TMPDIR": str(temporary)})
    assert code == 0, screen
    assert "━" in screen
    assert "\x1b[?25h" in screen.rpartition("\x1b[?25l")[2], "the cursor is shown again"
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen)
    commands = re.findall(r"^  (\S.*?)\r?$", plain.partition("What to try next")[2], re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        done = subprocess.run(
            shlex.split(command), cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert os.listdir(temporary) == []


@pytest.mark.crash
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_an_interrupt_stops_the_workers_and_removes_the_files(
    nowhere: Runner, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process, workers = start_until_at_work(nowhere, tmp_path)
    process.send_signal(number)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == code
    assert ("interrupted" in said) == (number == signal.SIGINT)
    assert not [pid for pid in workers if is_alive(pid)]
    assert os.listdir(tmp_path / "tmp") == []


@pytest.mark.crash
def test_workers_end_when_the_demo_itself_is_killed(nowhere: Runner, tmp_path: Path) -> None:
    process, workers = start_until_at_work(nowhere, tmp_path)
    process.kill()
    process.communicate(timeout=300)
    wait_until(lambda: not [pid for pid in workers if is_alive(pid)])


@pytest.mark.crash
def test_a_run_that_takes_too_long_says_how_far_it_came(app: App, tmp_path: Path) -> None:
    stream = io.StringIO()
    run = Run(
        app=app,
        folder=tmp_path,
        cast=make_cast(app, 20, 1),
        view=PlainView(stream),
        clock=SystemClock(),
        within=0.0,
    )
    with pytest.raises(
        PerdureError, match=r"stopped after 0 s: 0 of 20 jobs had ended; of the others 1 waiting, 16 ready"
    ):
        run.play()


@pytest.mark.crash
def test_a_stopped_crew_leaves_no_process_even_if_it_would_not_stop_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubborn = (
        "import signal, sys, time; signal.signal(15, signal.SIG_IGN); print('{}', file=sys.stderr); time.sleep(99)"
    )
    monkeypatch.setattr(demo_crew, "_COMMAND", stubborn)
    crew = Crew(tmp_path, clock=SystemClock())
    pid = crew.start()
    wait_until(lambda: crew.hear(0.1))
    began = time.monotonic()
    crew.stop(0.2)
    assert not is_alive(pid)
    assert time.monotonic() - began < 60, "it was killed, not waited for"


@pytest.mark.crash
def test_workers_that_cannot_start_are_not_replaced_for_ever(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_crew, "_COMMAND", "raise SystemExit('no such luck')")
    run = Run(
        app=app,
        folder=tmp_path,
        cast=make_cast(app, 20, 1),
        view=PlainView(io.StringIO()),
        clock=SystemClock(),
        within=60.0,
    )
    with pytest.raises(PerdureError, match="no such luck"):
        run.play()


def test_it_refuses_a_number_of_jobs_that_makes_no_story() -> None:
    result = CliRunner().invoke(root, ["demo", "--jobs", "3"])
    assert result.exit_code == 2
    assert "20<=x<=2000" in result.stderr


# Scenery

CHARGE: dict[str, Any] = {"state": "dead", "reason": "outcome unknown", "delivery": "at_most_once"}
LIMITS = {JobId("a"): 3, JobId("b"): 3, JobId("c"): 1, JobId("d"): 3}


def job(name: str, *, state: Any = "succeeded", attempt: int = 1, **more: Any) -> Job:
    fields = {"delivery": "at_least_once", **more}
    return Job(
        id=JobId(name),
        task="task",
        queue="shop",
        state=state,
        lane="fresh",
        args=b"{}",
        priority=0,
        run_at=NOW,
        attempt=attempt,
        failures=0,
        recoveries=0,
        created_at=NOW,
        **fields,
    )


def entry(kind: str, name: str, attempt: int) -> Entry:
    return Entry(kind=kind, job_id=JobId(name), attempt=attempt, pid=1)


def honest_ledger() -> list[Entry]:
    return [
        entry("start", "a", 1),
        entry("finish", "a", 1),
        entry("start", "b", 1),
        entry("start", "b", 2),
        entry("finish", "b", 2),
        entry("start", "c", 1),
    ]


def books_of(
    *,
    jobs: dict[str, Job] | None = None,
    without: tuple[str, ...] = (),
    stored: int = 4,
    ledger: list[Entry] | None = None,
) -> Books:
    """The books of four jobs: a success, one after a retry, a dead one, a cancelled one; with changes."""
    honest = {
        "a": job("a"),
        "b": job("b", attempt=2),
        "c": job("c", **CHARGE),
        "d": job("d", state="cancelled"),
    }
    found = {**honest, **(jobs or {})}
    return check_books(
        limits=LIMITS,
        found=[found[name] for name in found if name not in without],
        stored=stored,
        ledger=honest_ledger() if ledger is None else ledger,
        workers_lost=2,
    )


def faults(books: Books) -> list[str]:
    assert not books.is_balanced
    return [fault for check in books.checks for fault in check.faults]


def failure(name: str, *, kind: str = "failed", state: str = "waiting", reason: str = "failed") -> Heard:
    record = {
        "event": f"attempt_{kind}",
        "job": name,
        "attempt": 2,
        "max_attempts": 6,
        "state": state,
        "reason": reason,
        "delay": 0.41,
        "error": "shop.errors.ServiceDown: answered 503",
    }
    return Heard(pid=1, record=record)


def make_temporary(tmp_path: Path) -> Path:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    return temporary


def run(perdure: Runner, tmp_path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    temporary = make_temporary(tmp_path)
    # Settings of whoever runs the demo must not reach it.
    env = {"TMPDIR": str(temporary), "PERDURE_MAX_ATTEMPTS_CAP": "1", "PERDURE_LEASE": "nonsense"}
    return subprocess.run(
        [sys.executable, "-m", "perdure", "demo", *args],
        env={**os.environ, **env},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def start_until_at_work(perdure: Runner, tmp_path: Path) -> tuple[subprocess.Popen[str], list[int]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "perdure", "demo"],
        env={**os.environ, "TMPDIR": str(make_temporary(tmp_path)), "PYTHONUNBUFFERED": "1"},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    workers: list[int] = []
    for line in process.stdout:
        found = re.search(r"worker (\d+) is at work", line)
        workers += [int(found[1])] if found else []
        if len(workers) == 2:
            break
    assert len(workers) == 2
    return process, workers


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(is_true: Any) -> None:
    until = time.monotonic() + 120
    while not is_true():
        assert time.monotonic() < until, "it did not come true in time"
        time.sleep(0.05)
