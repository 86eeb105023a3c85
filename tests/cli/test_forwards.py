"""`perdure dlq` on dead jobs with a sink: how far their forwarding is, and how it is tried again."""

from __future__ import annotations

import sys
import textwrap
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.admin.scene import Scene
from tests.cli.conftest import Runner

from perdure.model.forward import Tried
from perdure.model.job import JobId

HOUR = timedelta(hours=1)


def forwarding(scene: Scene, error: str | None = None, delay: timedelta | None = HOUR) -> JobId:
    """A dead job whose sink was asked once: refused with an error, else accepted."""
    job_id = scene.dead(sink="queue:graveyard")
    (forward,) = scene.store.forward(["default"], 1, HOUR).wait().forwards
    tried = Tried(
        job_id=job_id,
        attempt=forward.attempt,
        number=forward.tries,
        sink="queue:graveyard",
        error=error,
        delay=delay if error else None,
    )
    assert scene.store.forwarded([tried]).wait() == [True]
    return job_id


def test_ls_shows_how_far_the_forwarding_is(scene: Scene, perdure: Runner) -> None:
    failing, done, none = forwarding(scene, "the sink is down"), forwarding(scene), scene.dead()
    jobs = {job["id"]: job["forward"] for job in perdure.json("dlq", "ls")["jobs"]}
    assert jobs[none] is None
    assert (jobs[done]["state"], jobs[done]["sink"], jobs[done]["tries"]) == ("forwarded", "queue:graveyard", 1)
    assert (jobs[failing]["state"], jobs[failing]["error"]) == ("failing", "the sink is down")
    code, screen = perdure.terminal("dlq", "ls")
    assert code == 0
    assert "FORWARD" in screen
    assert "failing, 1 try" in screen
    assert "done 1m" in screen


def test_ls_has_no_column_where_nothing_is_forwarded(scene: Scene, perdure: Runner) -> None:
    scene.dead()
    assert "FORWARD" not in perdure("dlq", "ls").stdout


def test_the_filter_finds_those_that_are_so_far(scene: Scene, perdure: Runner) -> None:
    failing, done = forwarding(scene, "down"), forwarding(scene)
    stopped = forwarding(scene, "never", delay=None)
    scene.dead()
    for state, job_id in (("failing", failing), ("forwarded", done), ("stopped", stopped)):
        assert [job["id"] for job in perdure.json("dlq", "ls", "--forward", state)["jobs"]] == [job_id]
    assert perdure.json("dlq", "ls", "--forward", "pending")["jobs"] == []
    assert perdure("dlq", "ls", "--forward", "soon").exit_code == 2
    assert perdure.json("dlq", "discard", "--forward", "forwarded", "--yes")["count"] == 1
    assert (scene.state(done), scene.state(failing)) == ("cancelled", "dead")


def test_show_tells_sink_tries_error_and_next_try(scene: Scene, perdure: Runner) -> None:
    job_id = forwarding(scene, "503 Service Unavailable")
    text = perdure("dlq", "show", job_id).stdout
    for part in ("failing, 1 try so far", "queue:graveyard", "503 Service Unavailable", "next try", "dlq forward"):
        assert part in text
    shown = perdure.json("dlq", "show", job_id)
    assert shown["forward"]["next_at"] is not None
    assert f"perdure dlq forward {job_id}" in shown["next"]


def test_show_of_a_forwarded_job_tells_when(scene: Scene, perdure: Runner) -> None:
    job_id = forwarding(scene)
    assert "forwarded, 1 try so far" in perdure("dlq", "show", job_id).stdout
    assert perdure.json("dlq", "show", job_id)["forward"]["forwarded_at"] is not None


def test_forward_makes_them_due_now(scene: Scene, perdure: Runner) -> None:
    failing, done, none = forwarding(scene, "down"), forwarding(scene), scene.dead()
    assert scene.store.forward(["default"], 10, HOUR).wait().forwards == ()
    assert perdure.json("dlq", "forward", failing) == {"count": 1}
    assert perdure.json("dlq", "forward", done) == {"count": 0}
    assert perdure("dlq", "forward", "--all").stdout == "2 dead jobs due to be forwarded now.\n"
    scene.clock.advance(timedelta(minutes=5))
    due = scene.store.forward(["default"], 10, HOUR).wait().forwards
    assert {forward.job_id for forward in due} == {failing, none}


def test_forward_wants_to_know_which(scene: Scene, perdure: Runner) -> None:
    forwarding(scene, "down")
    assert perdure("dlq", "forward").exit_code == 2
    assert perdure("dlq", "forward", "--all", "--task", "send").exit_code == 2
    assert perdure("dlq", "forward", scene.succeeded()).exit_code == 4
    assert perdure("dlq", "forward", "01890a5d-ac96-774b-bcce-b302099a8057").exit_code == 3


def test_export_has_the_forwarding(scene: Scene, perdure: Runner) -> None:
    forwarding(scene, "down")
    assert '"forward": {"state": "failing"' in perdure("dlq", "export").stdout


def test_doctor_calls_refused_jobs_a_problem(scene: Scene, perdure: Runner) -> None:
    forwarding(scene)
    assert "1 forwarded, 0 pending, none refused" in perdure("doctor").stdout
    forwarding(scene, "down")
    forwarding(scene, "never", delay=None)
    result = perdure("doctor", "--json")
    assert result.exit_code == 1
    assert "1 dead job refused by the sink and tried again" in result.stdout
    assert "1 dead job refused by the sink and not tried again by itself" in result.stdout


def test_stats_count_forwards(scene: Scene, perdure: Runner) -> None:
    forwarding(scene)
    forwarding(scene, "down")
    assert perdure.json("stats")["forwards"] == {"pending": 0, "failing": 1, "stopped": 0, "forwarded": 1}
    assert "1 failing, 1 forwarded" in perdure("stats").stdout


def values(shown: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {line["name"]: (line["value"], line["origin"]) for line in shown["values"]}


@pytest.fixture
def buried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An app whose dead jobs have sinks; its name."""
    source = """
        from perdure import App

        app = App(dead_letter="queue:graveyard")
        app.queue("quiet", dead_letter="none")
        app.queue("mail", dead_letter="https://example.com/dead?key=secret")
        for queue in ("default", "quiet", "mail", "graveyard"):
            app.task(name=queue, queue=queue)(lambda: None)
        """
    (tmp_path / "buried_app.py").write_text(textwrap.dedent(source))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "buried_app:app"
    sys.modules.pop("buried_app", None)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("default", ("queue:graveyard", "app")),
        ("mail", ("https://example.com", "queue")),
        ("quiet", ("none: dead jobs stay", "queue")),
        ("graveyard", ("none: dead jobs stay", "app")),
    ],
)
def test_explain_names_the_sink_and_who_said_it(perdure: Runner, buried: str, task: str, said: tuple[str, str]) -> None:
    shown = perdure.json("explain", task, "--app", buried)
    assert values(shown)["dead_letter"] == said
    assert shown["forward"] is None
    text = perdure("explain", task, "--app", buried).stdout
    assert said[0] in text
    assert "secret" not in text


def test_explain_names_no_sink_where_there_is_none(scene: Scene, perdure: Runner) -> None:
    job_id = scene.dead()
    assert values(perdure.json("explain", job_id))["dead_letter"] == ("none: dead jobs stay", "unset")
    assert "forwarding" not in perdure("explain", job_id).stdout


def test_explain_of_a_dead_job_tells_how_far_its_forwarding_is(scene: Scene, perdure: Runner, buried: str) -> None:
    failing = forwarding(scene, "503 Service Unavailable")
    text = perdure("explain", failing, "--app", buried).stdout
    for part in ("failing, 1 try so far", "503 Service Unavailable", "next try", f"perdure dlq forward {failing}"):
        assert part in text
    shown = perdure.json("explain", failing)["forward"]
    assert (shown["state"], shown["tries"], shown["error"]) == ("failing", 1, "503 Service Unavailable")
    assert shown["next_at"] is not None
    stopped, done = forwarding(scene, "never", delay=None), forwarding(scene)
    pending = scene.dead(sink="queue:graveyard")
    for job_id, state in ((stopped, "stopped, 1 try"), (done, "forwarded, 1 try"), (pending, "pending, 0 tries")):
        assert state in perdure("explain", job_id, "--app", buried).stdout
    assert "dlq forward" not in perdure("explain", done, "--app", buried).stdout


def test_explain_of_a_job_that_died_before_there_was_a_sink_says_so(scene: Scene, perdure: Runner, buried: str) -> None:
    job_id = scene.dead()
    text = perdure("explain", job_id, "--app", buried).stdout
    assert "It died when it had no sink" in text
    assert f"perdure dlq forward {job_id}" in text
