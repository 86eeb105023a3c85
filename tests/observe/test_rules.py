"""Alert rules and dashboard: well formed, and made of metrics and labels that are really exported."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
import yaml
from tests.docs.pages import page, section, table_names
from tests.observe.promql import used

from perdure.model.thresholds import Thresholds
from perdure.observe.catalogue import CATALOGUE, Metric
from perdure.observe.dashboard import dashboard
from perdure.observe.rules import rules, rules_text

EXPORTED: dict[str, Metric] = {sample: metric for metric in CATALOGUE for sample in metric.samples}
"""tests/observe/test_metrics.py proves that the catalogue is what is exported."""
FROM_PROMETHEUS = {"instance", "job"}

DASHBOARD = dashboard()
PANELS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
EXPRESSIONS = [rule.expression for rule in rules()] + PANELS


def prepared(expression: str) -> str:
    return expression.replace("$queue", "mail")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_expression_asks_for_exported_metrics_by_labels_that_they_have(expression: str) -> None:
    asked = used(prepared(expression))
    assert asked
    for name, labels in asked:
        assert name in EXPORTED, name
        metric = EXPORTED[name]
        known = {*metric.labels, *FROM_PROMETHEUS, *({"le"} if metric.kind == "histogram" else set())}
        assert labels <= known, (name, labels - known)


def test_the_check_sees_a_metric_that_was_renamed_and_a_label_that_is_gone() -> None:
    assert used('sum by (queue) (rate(perdure_gone_total{state="x"}[5m])) > 1') == {
        ("perdure_gone_total", frozenset({"queue", "state"}))
    }
    with pytest.raises(AssertionError):
        used("sum(rate(perdure_up[5m])")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_rates_are_taken_of_counters_and_quantiles_of_buckets(expression: str) -> None:
    for name in re.findall(r"(?:rate|increase)\((\w+)", expression):
        assert EXPORTED[name].kind != "gauge", name
    if "histogram_quantile" in expression:
        assert "_bucket[" in expression
        assert re.search(r"sum by \(le\b", expression)


def test_the_rules_are_a_file_that_prometheus_can_load() -> None:
    (group,) = yaml.safe_load(rules_text())["groups"]
    assert group["name"] == "perdure"
    assert [one["alert"] for one in group["rules"]] == [rule.name for rule in rules()]
    for one, rule in zip(group["rules"], rules(), strict=True):
        assert one["expr"] == rule.expression
        assert re.fullmatch(r"\d+[mh]", one["for"])
        assert one["labels"]["severity"] in ("critical", "warning", "info")
        assert set(one) == {"alert", "expr", "for", "labels", "annotations"}
        assert one["annotations"] == {"summary": rule.summary, "description": rule.action}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_a_rule_names_only_labels_that_its_alert_has(rule) -> None:
    shown = set(re.findall(r"\$labels\.(\w+)", rule.summary + rule.action))
    assert len(re.findall(r"\{\{", rule.summary)) == len(re.findall(r"\}\}", rule.summary))
    if "by (" in rule.expression:
        kept = {label for found in re.findall(r"by \(([^)]*)\)", rule.expression) for label in found.split(", ")}
        assert shown <= kept
    assert rule.action.endswith(".")


def test_the_wanted_alerts_exist() -> None:
    text = rules_text()
    for name in ("retries_total", "retry_exhausted_total", "retry_latency_seconds_bucket", "jobs_dlq_failed_total"):
        assert f"perdure_{name}" in text
    assert "> 0.1 " in next(rule.expression for rule in rules() if rule.name == "PerdureRetryRateHigh")


def test_thresholds_change_the_rules() -> None:
    strict = Thresholds(retry_rate=0.02, window=timedelta(minutes=30), oldest_ready=timedelta(seconds=90))
    text = "\n".join(rule.expression for rule in rules(strict))
    assert "> 0.02 " in text
    assert "[30m]" in text
    assert "perdure_queue_oldest_ready_age_seconds) > 90" in text


def test_the_dashboard_is_json_with_places_that_do_not_overlap() -> None:
    loaded = json.loads(json.dumps(DASHBOARD))
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in loaded["panels"]]
    assert len(set(places)) == len(places) >= 10
    assert len({panel["id"] for panel in loaded["panels"]}) == len(places)
    assert [one["name"] for one in loaded["templating"]["list"]] == ["datasource", "queue"]
    query = loaded["templating"]["list"][1]["query"]
    assert re.fullmatch(r"label_values\((\w+), queue\)", query)[1] in EXPORTED


def test_every_metric_stands_on_the_dashboard_or_in_a_rule() -> None:
    asked = {name for expression in EXPRESSIONS for name, _ in used(prepared(expression))}
    assert {metric.name for metric in CATALOGUE if not asked & set(metric.samples)} == set()


def test_every_metric_and_alert_is_documented_and_no_other() -> None:
    text = page("observability.md")
    rows = [
        f"| `{one.name}` | {one.kind} | {', '.join(one.labels)} | {one.meaning} |".replace("|  |", "|  |")
        for one in CATALOGUE
    ]
    assert [row for row in rows if row not in text.splitlines()] == []
    names = [name for name in table_names(section(text, "Metrics")) if name.startswith("perdure_")]
    assert names == [metric.name for metric in CATALOGUE]
    alerts = table_names(section(text, "Alerts and dashboard"))
    assert alerts == [rule.name for rule in rules()]
    severities = re.findall(r"\| (critical|warning|info) \|$", section(text, "Alerts and dashboard"), re.MULTILINE)
    assert severities == [rule.severity for rule in rules()]
