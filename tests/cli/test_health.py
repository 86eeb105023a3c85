"""health, metrics and top: exit codes, JSON, and output that other programs can load."""

from __future__ import annotations

import json
from datetime import timedelta

import yaml
from tests.admin.scene import Scene
from tests.cli.conftest import Runner


def test_health_exits_with_0_when_all_is_well(perdure: Runner) -> None:
    result = perdure("health")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "status: ok"


def test_health_exits_with_1_when_something_is_degraded_and_says_what_to_do(perdure: Runner, scene: Scene) -> None:
    scene.dead()
    result = perdure("health")
    assert result.exit_code == 1
    assert "1 job reached its limit" in result.stdout
    assert "perdure dlq groups" in result.stdout
    scene.register(lease=timedelta(hours=1))
    assert perdure("health", "--exhausted", "1").exit_code == 0


def test_health_prints_json_with_either_exit_code(perdure: Runner, scene: Scene) -> None:
    assert perdure.json("health")["status"] == "ok"
    scene.dead()
    result = perdure("health", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["status"], document["exhausted"]) == (1, "degraded", 1)


def test_health_of_another_queue_is_not_touched(perdure: Runner, scene: Scene) -> None:
    scene.dead(queue="noisy")
    assert perdure("health", "--queue", "noisy").exit_code == 1
    assert perdure("health", "--queue", "quiet").exit_code == 0


def test_health_exits_with_5_when_there_is_no_store(nowhere: Runner) -> None:
    assert nowhere("health").exit_code == 5


def test_health_refuses_a_threshold_that_means_nothing(perdure: Runner) -> None:
    assert perdure("health", "--retry-rate", "7").exit_code == 2
    assert perdure("health", "--window", "soon").exit_code == 2


def test_rules_and_dashboard_can_be_loaded_and_need_no_store(nowhere: Runner) -> None:
    rules = nowhere("metrics", "rules")
    assert rules.exit_code == 0
    assert yaml.safe_load(rules.stdout)["groups"][0]["name"] == "perdure"
    assert json.loads(nowhere("metrics", "dashboard").stdout)["title"] == "Perdure"
    named = {rule["name"] for rule in nowhere.json("metrics", "rules")["rules"]}
    assert {one["alert"] for one in yaml.safe_load(rules.stdout)["groups"][0]["rules"]} == named


def test_names_lists_every_metric(nowhere: Runner) -> None:
    listed = [metric["name"] for metric in nowhere.json("metrics", "names")["metrics"]]
    assert "perdure_retries_total" in listed
    assert all(name in nowhere("metrics", "names").stdout for name in listed)


def test_show_prints_the_stores_metrics(perdure: Runner, scene: Scene, nowhere: Runner) -> None:
    scene.enqueue(queue="mail")
    text = perdure("metrics", "show").stdout
    assert 'perdure_queue_jobs{queue="mail",state="ready"} 1.0' in text
    assert "perdure_up 1.0" in text
    assert perdure.json("metrics", "show")["content_type"].startswith("text/plain")
    assert nowhere("metrics", "show").exit_code == 5


def test_top_prints_one_look_where_there_is_no_terminal(perdure: Runner, scene: Scene) -> None:
    scene.enqueue(queue="mail")
    scene.register(("mail",))
    for args in (("top",), ("top", "--once")):
        text = perdure(*args).stdout
        assert "1 ready" in text
        assert "mail" in text
        assert scene.worker in text
    document = perdure.json("top")
    assert document["states"]["ready"] == 1
    assert [worker["id"] for worker in document["workers"]] == [scene.worker]


def test_top_draws_on_a_terminal(perdure: Runner, scene: Scene) -> None:
    scene.enqueue(queue="mail")
    code, screen = perdure.terminal("top", "--once")
    assert code == 0
    assert "mail" in screen
