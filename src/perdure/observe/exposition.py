"""Renders the numbers of a process and of its store in the format that Prometheus reads, from a registry of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import (
    Metric as Family,
)
from prometheus_client.registry import Collector

from perdure.model.state import STATES
from perdure.observe import catalogue as named
from perdure.observe.catalogue import BUCKETS, COUNTED, Metric
from perdure.observe.look import Look, Seen
from perdure.observe.metrics import MOST_QUEUES, OTHER, Cell, Histogram, MetricsObserver

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The oldest version of the format, which every scraper reads; newer ones differ in names that we do not use."""

_MEASURED = {named.JOB_WAIT: "wait", named.ATTEMPT_DURATION: "duration", named.RETRY_LATENCY: "latency"}


class Exposition:
    """The metrics of one process, ready to be scraped."""

    def __init__(self, metrics: MetricsObserver, look: Look, version: str) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Collector(metrics, look, version))

    def render(self) -> tuple[bytes, str]:
        """The text and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE


class _Collector(Collector):
    def __init__(self, metrics: MetricsObserver, look: Look, version: str) -> None:
        self._metrics = metrics
        self._look = look
        self._version = version

    def describe(self) -> list[Family]:
        """Nothing: registering must not look at the store."""
        return []

    def collect(self) -> Iterator[Family]:
        found: list[Family] = []
        self._metrics.read(lambda cells: found.extend(_families(cells)))
        yield from found
        yield _plain(named.LEASE_LOST, self._metrics.lease_lost)
        lag = HistogramMetricFamily(named.SCHEDULE_LAG.name, named.SCHEDULE_LAG.meaning, labels=[])
        _add_histogram(lag, [], self._metrics.schedule_lag)
        yield lag
        slots = self._metrics.slots
        if slots is not None:
            busy, count = slots
            family = _gauge(named.WORKER_SLOTS)
            family.add_metric(["busy"], busy)
            family.add_metric(["free"], max(0, count - busy))
            yield family
        is_up, seen = self._look.take()
        yield _plain(named.UP, int(is_up))
        engine = "" if seen is None else seen.engine
        info = _gauge(named.BUILD_INFO)
        info.add_metric([self._version, engine], 1)
        yield info
        if seen is not None:
            yield from _store_families(seen)


def _families(cells: Mapping[tuple[str, str], Cell]) -> Iterator[Family]:
    """The families of all that is counted by queue and task."""
    attempts = CounterMetricFamily(*_about(named.ATTEMPTS), labels=named.ATTEMPTS.labels)
    for (queue, task), cell in cells.items():
        for outcome, count in cell.attempts.items():
            attempts.add_metric([queue, task, outcome], count)
    yield attempts
    for metric, field in COUNTED.items():
        counter = CounterMetricFamily(*_about(metric), labels=metric.labels)
        for (queue, task), cell in cells.items():
            # A counter that stands at 0 from the first is one whose first increase can be seen.
            counter.add_metric([queue, task], getattr(cell, field))
        yield counter
    for metric, field in _MEASURED.items():
        histogram = HistogramMetricFamily(*_about(metric), labels=metric.labels)
        for (queue, task), cell in cells.items():
            _add_histogram(histogram, [queue, task], getattr(cell, field))
        yield histogram


def _store_families(seen: Seen) -> Iterator[Family]:
    jobs, oldest, paused = _gauge(named.QUEUE_JOBS), _gauge(named.QUEUE_OLDEST), _gauge(named.QUEUE_PAUSED)
    rest = dict.fromkeys(STATES, 0)
    for place, queue in enumerate(seen.queues):
        if place >= MOST_QUEUES:
            rest = {state: rest[state] + getattr(queue, state) for state in STATES}
            continue
        for state in STATES:
            jobs.add_metric([queue.name, state], getattr(queue, state))
        age = 0.0 if queue.oldest_ready_at is None else (seen.at - queue.oldest_ready_at).total_seconds()
        oldest.add_metric([queue.name], max(0.0, age))
        paused.add_metric([queue.name], int(queue.is_paused))
    if len(seen.queues) > MOST_QUEUES:
        for state in STATES:
            jobs.add_metric([OTHER, state], rest[state])
    yield from (jobs, oldest, paused, _plain(named.WORKERS, seen.workers))


def _about(metric: Metric) -> tuple[str, str]:
    # The library puts the suffix of a counter back itself.
    return metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name, metric.meaning


def _gauge(metric: Metric) -> GaugeMetricFamily:
    return GaugeMetricFamily(*_about(metric), labels=metric.labels)


def _plain(metric: Metric, value: float) -> Family:
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return kind(*_about(metric), value=value)


def _add_histogram(family: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> None:
    running, buckets = 0, []
    for end, count in zip((*map(str, map(float, BUCKETS)), "+Inf"), histogram.buckets, strict=True):
        running += count
        buckets.append((end, float(running)))
    family.add_metric(labels, buckets, histogram.sum)
