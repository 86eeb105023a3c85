"""`perdure jobs`: what it lists, shows, cancels and retries."""

from __future__ import annotations

from datetime import timedelta

from tests.admin.scene import Scene
from tests.cli.conftest import Runner

NOBODY = "01890a5d-ac96-774b-bcce-b302099a8057"


def test_ls_lists_jobs_newest_first(scene: Scene, perdure: Runner) -> None:
    ids = [scene.enqueue("mail"), scene.dead("other")]
    heading, *lines = perdure("jobs", "ls").stdout.splitlines()
    assert heading.split()[:4] == ["ID", "TASK", "QUEUE", "STATE"]
    assert [line.split()[0] for line in lines] == list(reversed(ids))
    assert "exhausted: TimeoutError: too slow" in lines[0]


def test_ls_filters_and_pages(scene: Scene, perdure: Runner) -> None:
    ids = [scene.enqueue("mail") for _ in range(3)]
    scene.enqueue("other")
    first = perdure.json("jobs", "ls", "--task", "mail", "--limit", "2")
    rest = perdure.json("jobs", "ls", "--task", "mail", "--limit", "2", "--cursor", first["next_cursor"])
    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == list(reversed(ids))
    assert rest["next_cursor"] is None


def test_ls_of_nothing_says_so_on_stderr_and_is_ok(perdure: Runner) -> None:
    result = perdure("jobs", "ls")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No job matches." in result.stderr


def test_ls_points_to_the_next_page(scene: Scene, perdure: Runner) -> None:
    _, second = scene.enqueue(), scene.enqueue()
    assert f"--cursor {second}" in perdure("jobs", "ls", "--limit", "1").stderr


def test_a_job_in_json_has_stable_names(scene: Scene, perdure: Runner) -> None:
    job_id = scene.dead(args=b'{"kwargs":{"to":"a@b.c","n":9007199254740993}}')
    job = perdure.json("jobs", "show", job_id)
    assert {
        "id",
        "task",
        "queue",
        "origin",
        "state",
        "lane",
        "reason",
        "args",
        "result",
        "priority",
        "delivery",
        "unique",
        "retry",
        "max_attempts",
        "timeout",
        "attempt",
        "failures",
        "recoveries",
        "delay",
        "error",
        "group",
        "worker",
        "is_cancelling",
        "created_at",
        "run_at",
        "started_at",
        "ended_at",
        "forward",
        "parked_at",
        "schedule",
        "tick_at",
        "why",
        "attempts",
        "next",
    } == job.keys()
    assert job["args"] == {"kwargs": {"to": "a@b.c", "n": 9007199254740993}}
    assert job["created_at"].endswith("Z")
    assert job["error"]["type"] == "TimeoutError"
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["failed"]


def test_show_says_why_a_job_waits_and_until_when(scene: Scene, perdure: Runner) -> None:
    shown = perdure("jobs", "show", scene.failing(delay=timedelta(hours=1))).stdout
    assert "Attempt 1 failed; it waits for its retry." in shown
    assert "until" in shown
    assert "(in 5" in shown
    assert "ConnectionError: refused" in shown
    assert "a wait of 1h was chosen" in shown


def test_show_says_what_can_be_done(scene: Scene, perdure: Runner) -> None:
    job_id = scene.dead(args=b'{"args":[1]}')
    shown = perdure("jobs", "show", job_id).stdout
    assert f"perdure dlq replay {job_id}" in shown
    assert '"args": [' in shown
    assert 'File "x.py", line 1' in shown
    assert f"perdure jobs cancel {scene.enqueue()}"[:20] in perdure("jobs", "show", scene.enqueue()).stdout


def test_show_survives_arguments_that_are_no_json(scene: Scene, perdure: Runner) -> None:
    assert "not json" in perdure("jobs", "show", scene.enqueue(args=b"not json")).stdout


def test_cancel_of_one_job_does_not_ask(scene: Scene, perdure: Runner) -> None:
    job_id = scene.enqueue()
    result = perdure("jobs", "cancel", job_id)
    assert (result.exit_code, result.stdout) == (0, f"{job_id}  cancelled\n")
    assert scene.state(job_id) == "cancelled"


def test_cancel_of_a_running_job_asks_its_worker(scene: Scene, perdure: Runner) -> None:
    scene.enqueue()
    [job] = scene.run()
    assert perdure.json("jobs", "cancel", job.id) == {"answers": [{"id": job.id, "answer": "asked"}]}


def test_cancel_of_an_ended_job_is_refused_with_the_states_it_takes(scene: Scene, perdure: Runner) -> None:
    result = perdure("jobs", "cancel", scene.dead())
    assert result.exit_code == 4
    assert "is dead" in result.stderr
    assert "waiting, ready and running" in result.stderr


def test_cancel_of_several_is_refused_where_nobody_can_be_asked(scene: Scene, perdure: Runner) -> None:
    ids = [scene.enqueue(), scene.enqueue()]
    result = perdure("jobs", "cancel", *ids)
    assert result.exit_code == 4
    assert "--yes" in result.stderr
    assert {scene.state(job_id) for job_id in ids} == {"ready"}
    assert perdure("jobs", "cancel", *ids, "--yes").exit_code == 0
    assert {scene.state(job_id) for job_id in ids} == {"cancelled"}


def test_cancel_by_filter_counts_first_and_spares_the_rest(scene: Scene, perdure: Runner) -> None:
    wanted, other, ended = scene.enqueue("mail"), scene.enqueue("other"), scene.dead("mail")
    assert perdure.json("jobs", "cancel", "--task", "mail", "--dry-run") == {"count": 1, "is_dry_run": True}
    assert scene.state(wanted) == "ready"
    assert perdure("jobs", "cancel", "--task", "mail", "--yes").exit_code == 0
    assert [scene.state(job_id) for job_id in (wanted, other, ended)] == ["cancelled", "ready", "dead"]


def test_cancel_of_several_tells_the_worst_answer_by_its_code(scene: Scene, perdure: Runner) -> None:
    live, ended = scene.enqueue(), scene.dead()
    assert perdure("jobs", "cancel", live, NOBODY, "--yes").exit_code == 3
    assert scene.state(live) == "cancelled"
    assert perdure("jobs", "cancel", scene.enqueue(), ended, "--yes").exit_code == 4


def test_retry_makes_jobs_ready(scene: Scene, perdure: Runner) -> None:
    dead, waiting = scene.dead(), scene.failing()
    assert perdure("jobs", "retry", dead, waiting).exit_code == 0
    assert {scene.state(dead), scene.state(waiting)} == {"ready"}


def test_retry_tells_what_it_could_not_do_and_does_the_rest(scene: Scene, perdure: Runner) -> None:
    done, dead = scene.succeeded(), scene.dead()
    result = perdure("jobs", "retry", done, dead)
    assert result.exit_code == 4
    assert "is succeeded" in result.stdout
    assert scene.state(dead) == "ready"
    assert perdure("jobs", "retry", done).exit_code == 4
    assert perdure("jobs", "retry", NOBODY).exit_code == 3


def test_set_changes_jobs_that_have_not_started(scene: Scene, perdure: Runner) -> None:
    one, two = scene.enqueue(), scene.failing()
    result = perdure("jobs", "set", one, "--at", "2040-01-31T18:00", "--priority", "-7", "--queue", "other")
    assert (result.exit_code, result.stdout) == (0, f"{one}  waiting\n")
    job = perdure.json("jobs", "show", one)
    assert (job["run_at"], job["priority"], job["queue"]) == ("2040-01-31T18:00:00Z", -7, "other")
    answers = perdure.json("jobs", "set", one, two, "--delay", "0", "--max-retries", "9")["answers"]
    assert answers == [{"id": one, "answer": "ready"}, {"id": two, "answer": "ready"}]
    assert perdure.json("jobs", "show", two)["max_attempts"] == 10
    perdure.json("jobs", "set", two, "--unset", "max-attempts")
    assert perdure.json("jobs", "show", two)["max_attempts"] is None


def test_set_tells_what_it_could_not_do_and_does_the_rest(scene: Scene, perdure: Runner) -> None:
    live, dead = scene.enqueue(), scene.dead()
    refused = perdure("jobs", "set", dead, "--priority", "5")
    assert refused.exit_code == 4
    assert "waiting and ready" in refused.stderr
    assert perdure("jobs", "set", dead, live, "--priority", "5").exit_code == 4
    assert perdure.json("jobs", "show", live)["priority"] == 5
    assert perdure("jobs", "set", NOBODY, "--priority", "5").exit_code == 3


def test_set_wants_to_know_what_is_to_be_different(scene: Scene, perdure: Runner) -> None:
    job_id = scene.enqueue()
    assert "What is to be different?" in perdure("jobs", "set", job_id).stderr
    wrong = (
        ["--delay", "1h", "--at", "2040-01-31"],
        ["--unset", "priority"],
        ["--priority", "101"],
        ["--delay", "soon"],
    )
    for options in wrong:
        assert perdure("jobs", "set", job_id, *options).exit_code == 2
