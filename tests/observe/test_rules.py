"""Alert rules and dashboard: well formed, and made of metrics and labels that are really exported."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.docs.pages import page, section, table_names
from tests.observe.promql import NotPromQL, read
from tests.observe.told import attempt, raised

from perdure import App
from perdure.model.thresholds import Thresholds
from perdure.observe.catalogue import CATALOGUE, Metric
from perdure.observe.dashboard import dashboard
from perdure.observe.rules import rules, rules_text

FROM_PROMETHEUS = frozenset({"instance", "job"})
"""The labels that Prometheus gives every series itself."""
KINDS: dict[str, Metric] = {sample: metric for metric in CATALOGUE for sample in metric.samples}

DASHBOARD = dashboard()
TARGETS = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
EXPRESSIONS = [rule.expression for rule in rules()] + [target["expr"] for target in TARGETS]
DURATION = re.compile(r"(?=\d)(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?|0")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
SHOWN = re.compile(r"\{\{ ?\$labels\.([a-zA-Z_]\w*) ?\}\}")


@pytest.fixture(scope="module")
def exported() -> dict[str, frozenset[str]]:
    """Every sample of a real scrape and the labels that it has."""
    app = App("sqlite://")
    app.task(name="send", queue="mail")(lambda: None).enqueue()
    app.observer.tell(attempt(raised()))
    worker = type("Worker", (), {"slots": (1, 5)})()
    app._observing.metrics.attach(worker)
    try:
        text = app.render_metrics()[0].decode()
    finally:
        app.close()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {sample.name: frozenset(sample.labels) | FROM_PROMETHEUS for sample in samples}


def prepared(expression: str) -> str:
    """The expression as Grafana sends it, its variables filled in."""
    return expression.replace("$queue", "mail").replace("$__rate_interval", "1m")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_expression_gives_something_from_what_is_scraped(
    exported: dict[str, frozenset[str]], expression: str
) -> None:
    value = read(prepared(expression), exported)
    assert value.kind == "vector"
    assert value.metrics


@pytest.mark.parametrize(
    "wrong",
    [
        "sum(rate(perdure_up[5m])",
        "perdure_up == 0)",
        "perdure_gone_total",
        "rate(perdure_retries_total)",
        "rate(perdure_retries_total[soon])",
        "sum(perdure_retries_total[5m])",
        "sum by (flavour) (perdure_retries_total)",
        'perdure_retries_total{outcome="failed"}',
        "perdure_queue_jobs{state=ready}",
        "sum by (queue) (perdure_queue_jobs) / sum by (state) (perdure_queue_jobs)",
        "perdure_up and 1",
        "perdure_up unless on (queue) perdure_up",
        "histogram_quantile(0.5, sum by (queue) (rate(perdure_job_wait_seconds_bucket[5m])))",
        "histogram_quantile(rate(perdure_job_wait_seconds_bucket[5m]), 0.5)",
        "perdure_up offset soon",
        "perdure_up perdure_up",
        "perdure_up >",
        "perdure_up == $limit",
    ],
)
def test_the_reader_refuses_what_prometheus_refuses_or_what_gives_nothing(
    exported: dict[str, frozenset[str]], wrong: str
) -> None:
    with pytest.raises(NotPromQL):
        read(wrong, exported)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_rates_are_taken_of_counters_and_quantiles_of_buckets(expression: str) -> None:
    for name in re.findall(r"(?:rate|increase)\((\w+)", expression):
        assert KINDS[name].kind != "gauge", name
    if "histogram_quantile" in expression:
        assert "_bucket[" in expression
        assert re.search(r"sum by \(le\b", expression)


LIMITS = (
    None,
    Thresholds(window=timedelta(seconds=20), retry_delay=timedelta(milliseconds=1), schedule_lag=timedelta(days=1)),
    Thresholds(window=timedelta(days=2), retry_rate=0.0000001, least_attempts=10**9, exhausted=0),
)


@pytest.mark.parametrize("limits", LIMITS)
def test_the_rules_are_a_file_that_prometheus_can_load(limits: Thresholds | None) -> None:
    (group,) = yaml.safe_load(rules_text(limits))["groups"]
    assert group["name"] == "perdure"
    names = [one["alert"] for one in group["rules"]]
    assert names == [rule.name for rule in rules(limits)]
    assert len(set(names)) == len(names)
    for one, rule in zip(group["rules"], rules(limits), strict=True):
        assert set(one) == {"alert", "expr", "for", "labels", "annotations"}
        assert one["expr"] == rule.expression
        assert DURATION.fullmatch(one["for"]), one["for"]
        assert one["labels"] in [{"severity": severity} for severity in ("critical", "warning", "info")]
        assert one["annotations"] == {"summary": rule.summary, "description": rule.action}
        texts = [*one["labels"].items(), *one["annotations"].items()]
        assert all(LABEL.fullmatch(name) and isinstance(text, str) and text for name, text in texts)


@pytest.mark.parametrize("limits", LIMITS)
def test_whatever_the_thresholds_are_the_rules_can_be_read(
    exported: dict[str, frozenset[str]], limits: Thresholds | None
) -> None:
    for rule in rules(limits):
        assert read(rule.expression, exported).kind == "vector"


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_a_rule_names_only_labels_that_its_alert_has(exported: dict[str, frozenset[str]], rule) -> None:
    text = rule.summary + rule.action
    assert set(SHOWN.findall(text)) <= read(rule.expression, exported).labels
    assert not re.search(r"[{}$]", SHOWN.sub("", text)), "nothing else is a template"
    assert rule.action.endswith(".")


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target["expr"][:40])
def test_a_legend_names_only_labels_that_its_lines_have(exported: dict[str, frozenset[str]], target) -> None:
    labels = read(prepared(target["expr"]), exported).labels
    named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    assert named <= labels
    assert labels <= named | FROM_PROMETHEUS, "lines that differ are told apart"


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


def test_the_dashboard_is_json_whose_panels_stand_side_by_side() -> None:
    loaded = json.loads(json.dumps(DASHBOARD))
    taken = [
        (place["x"] + x, place["y"] + y)
        for place in (panel["gridPos"] for panel in loaded["panels"])
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24, "a dashboard of Grafana has 24 columns"
    assert len({panel["id"] for panel in loaded["panels"]}) == len(loaded["panels"]) >= 10
    for panel in loaded["panels"]:
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in ("ops", "percentunit", "short", "s")
        names = [target["refId"] for target in panel["targets"]]
        assert names == [chr(ord("A") + number) for number in range(len(names))]


def test_the_dashboard_uses_only_variables_that_it_has() -> None:
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    assert list(variables) == ["datasource", "queue"]
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD)))
    assert used - {"__rate_interval", "__all"} == set(variables)
    assert re.fullmatch(r"label_values\((\w+), queue\)", variables["queue"]["query"])[1] in KINDS


def test_every_metric_stands_on_the_dashboard_or_in_a_rule(exported: dict[str, frozenset[str]]) -> None:
    asked = {name for expression in EXPRESSIONS for name in read(prepared(expression), exported).metrics}
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
