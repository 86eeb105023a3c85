"""`perdure dlq`: the dead letters are understood, brought back or dismissed, never by accident."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from tests.admin.scene import Scene
from tests.cli.conftest import Runner


def test_ls_lists_dead_jobs_only(scene: Scene, perdure: Runner) -> None:
    dead = scene.dead()
    scene.enqueue()
    assert [job["id"] for job in perdure.json("dlq", "ls")["jobs"]] == [dead]


def test_groups_count_like_failures_together(scene: Scene, perdure: Runner) -> None:
    for number in range(3):
        scene.dead(message=f"order {number} failed")
    scene.dead(error="ValueError")
    groups = perdure.json("dlq", "groups")["groups"]
    assert [group["count"] for group in groups] == [3, 1]
    ids = perdure.json("dlq", "ls", "--group", groups[0]["fingerprint"])["jobs"]
    assert len(ids) == 3
    assert {job["group"] for job in ids} == {groups[0]["fingerprint"]}
    assert groups[0]["fingerprint"] in perdure("dlq", "groups").stdout


def test_show_is_for_dead_jobs(scene: Scene, perdure: Runner) -> None:
    assert "failed as often as it may" in perdure("dlq", "show", scene.dead()).stdout
    result = perdure("dlq", "show", scene.succeeded())
    assert result.exit_code == 4
    assert "perdure jobs show" in result.stderr


@pytest.mark.parametrize("verb", ["replay", "discard"])
def test_a_dry_run_counts_exactly_and_changes_nothing(scene: Scene, perdure: Runner, verb: str) -> None:
    ids = [scene.dead("mail"), scene.dead("mail"), scene.dead("other")]
    answer = perdure.json("dlq", verb, "--task", "mail", "--dry-run")
    assert (answer["count"], answer["is_dry_run"]) == (2, True)
    assert {scene.state(job_id) for job_id in ids} == {"dead"}


@pytest.mark.parametrize(("verb", "after"), [("replay", "ready"), ("discard", "cancelled")])
def test_without_terminal_it_needs_yes(scene: Scene, perdure: Runner, verb: str, after: str) -> None:
    job_id = scene.dead()
    for args in ([job_id], ["--all"], ["--task", "send"]):
        result = perdure("dlq", verb, *args)
        assert result.exit_code == 4
        assert "--yes" in result.stderr
        assert scene.state(job_id) == "dead"
    assert perdure("dlq", verb, "--all", "--yes").stdout.startswith("1 dead job ")
    assert scene.state(job_id) == after


@pytest.mark.parametrize(("verb", "after"), [("replay", "ready"), ("discard", "cancelled")])
def test_on_a_terminal_it_asks(scene: Scene, perdure: Runner, verb: str, after: str) -> None:
    job_id = scene.dead()
    code, screen = perdure.terminal("dlq", verb, "--all", typed="n\n")
    assert (code, scene.state(job_id)) == (4, "dead")
    assert "1 dead job" in screen
    assert "Nothing was changed." in screen
    code, _ = perdure.terminal("dlq", verb, "--all", typed="y\n")
    assert (code, scene.state(job_id)) == (0, after)


def test_replay_of_nothing_asks_nothing(perdure: Runner) -> None:
    assert perdure.json("dlq", "replay", "--all") == {"count": 0, "matching": 0, "is_dry_run": False}


def test_replay_puts_canaries_back_first(scene: Scene, perdure: Runner) -> None:
    ids = [scene.dead() for _ in range(3)]
    answer = perdure.json("dlq", "replay", "--all", "--canary", "1", "--yes")
    assert answer == {"count": 1, "matching": 3, "left": 2, "is_dry_run": False}
    assert [scene.state(job_id) for job_id in ids] == ["ready", "dead", "dead"]


def test_replay_paces_by_rate(scene: Scene, perdure: Runner) -> None:
    ids = [scene.dead() for _ in range(2)]
    assert perdure("dlq", "replay", "--all", "--rate", "1/h", "--yes").exit_code == 0
    assert [scene.state(job_id) for job_id in ids] == ["ready", "waiting"]


def test_replay_says_which_jobs_stayed_dead(scene: Scene, perdure: Runner) -> None:
    scene.dead(unique="a")
    scene.enqueue(unique="a")
    result = perdure("dlq", "replay", "--all", "--yes")
    assert result.stdout == "0 dead jobs put back.\n"
    assert "unique key" in result.stderr


def test_export_writes_one_json_object_a_line(scene: Scene, perdure: Runner, tmp_path: Path) -> None:
    ids = [scene.dead("mail"), scene.dead("mail"), scene.dead("other")]
    lines = perdure("dlq", "export", "--task", "mail", "--history").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [ids[1], ids[0]]
    assert len(json.loads(lines[0])["attempts"]) == 1
    path = tmp_path / "dead.jsonl"
    assert perdure.json("dlq", "export", "-o", str(path)) == {"count": 3, "path": str(path)}
    assert len(path.read_text().splitlines()) == 3


def test_export_goes_on_over_pages(scene: Scene, perdure: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.cli.export._PAGE", 2)
    ids = {scene.dead() for _ in range(5)}
    assert {json.loads(line)["id"] for line in perdure("dlq", "export").stdout.splitlines()} == ids


def test_export_overwrites_only_with_yes(scene: Scene, perdure: Runner, tmp_path: Path) -> None:
    scene.dead()
    path = tmp_path / "dead.jsonl"
    path.write_text("precious")
    assert perdure("dlq", "export", "-o", str(path)).exit_code == 4
    assert path.read_text() == "precious"
    assert perdure("dlq", "export", "-o", str(path), "--yes").exit_code == 0
    assert path.read_text() != "precious"
    assert perdure("dlq", "export", "-o", str(tmp_path / "no" / "such" / "dir")).exit_code == 1


def test_a_terminal_shows_progress_of_long_work(scene: Scene, perdure: Runner, tmp_path: Path) -> None:
    for _ in range(5):
        scene.dead()
    code, screen = perdure.terminal("dlq", "export", "-o", str(tmp_path / "dead.jsonl"))
    assert code == 0
    assert "exporting" in screen
    assert "5 dead jobs written" in screen


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_an_export_can_be_read_by_its_user_only(scene: Scene, perdure: Runner, tmp_path: Path, umask: int) -> None:
    scene.dead(task="mail")
    new, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    old.write_text("mine")
    old.chmod(0o666)
    before = os.umask(umask)
    try:
        assert perdure("dlq", "export", "-o", str(new)).exit_code == 0
        assert perdure("dlq", "export", "-o", str(old), "--yes").exit_code == 0
    finally:
        os.umask(before)
    for file in (new, old):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert json.loads(file.read_text())["task"] == "mail"
    assert sorted(path.name for path in tmp_path.glob("*.jsonl*")) == ["new.jsonl", "old.jsonl"]


@pytest.mark.parametrize("yes", [[], ["--yes"]])
@pytest.mark.parametrize("is_dangling", [True, False])
def test_an_export_does_not_follow_a_link(
    scene: Scene, perdure: Runner, tmp_path: Path, yes: list[str], is_dangling: bool
) -> None:
    scene.dead(task="mail")
    target, link = tmp_path / "target", tmp_path / "dead.jsonl"
    if not is_dangling:
        target.write_text("theirs")
    link.symlink_to(target)
    ran = perdure("dlq", "export", "-o", str(link), *yes)
    assert ran.exit_code == 4
    assert "symbolic link" in ran.output
    assert not target.exists() if is_dangling else target.read_text() == "theirs"
    assert link.is_symlink()


def test_an_export_that_fails_leaves_the_old_file_and_nothing_beside_it(
    scene: Scene, perdure: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.dead(task="mail")
    old = tmp_path / "old.jsonl"
    old.write_text("mine")

    def fail(*given: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("perdure.cli.export.job_document", fail)
    assert perdure("dlq", "export", "-o", str(old), "--yes").exit_code == 1
    assert old.read_text() == "mine"
    assert [path.name for path in tmp_path.glob("*.jsonl*")] == ["old.jsonl"]


def test_an_export_goes_to_a_device_as_it_is(scene: Scene, perdure: Runner) -> None:
    scene.dead(task="mail")
    assert perdure("dlq", "export", "-o", "/dev/null").exit_code == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
