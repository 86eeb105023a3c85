"""The numbers: every metric counts what it says, names stay bounded, and a scrape survives a store that is down."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import timedelta

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families
from tests.observe.told import JOB, NOW, SECOND, a_job, a_new_job, attempt, raised

from perdure import App, Retry
from perdure.errors import EngineUnreachable
from perdure.model.event import CommitLost, Event, ForwardFailed, JobsEnqueued, LeaseExpired, TicksFired
from perdure.model.job import JobId
from perdure.model.outcome import ShutDown, TaskUnknown, Vanished
from perdure.observe.catalogue import BUCKETS, CATALOGUE
from perdure.observe.exposition import Exposition
from perdure.observe.look import Look
from perdure.observe.metrics import MOST_PAIRS, MOST_TASKS, Cell, Histogram, MetricsObserver
from perdure.system.clock import SystemClock, VirtualClock


def unreachable():
    raise EngineUnreachable("The store is gone.")


class Page:
    """What a scrape shows."""

    def __init__(self, text: bytes) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text.decode())}
        self.samples = [sample for family in self.families.values() for sample in family.samples]

    def value(self, name: str, **labels: str) -> float | None:
        found = [sample.value for sample in self.samples if sample.name == name and sample.labels == labels]
        return found[0] if found else None

    def of_send(self, name: str, **labels: str) -> float | None:
        return self.value(name, queue="mail", task="send", **labels)


def scrape(metrics: MetricsObserver, look: Look | None = None) -> Page:
    look = look or Look(unreachable, SystemClock())
    return Page(Exposition(metrics, look, "1.0").render()[0])


def after(*events: Event) -> Page:
    metrics = MetricsObserver()
    for event in events:
        metrics.tell(event)
    return scrape(metrics)


def test_a_success_is_one_attempt_with_its_wait_and_duration() -> None:
    page = after(attempt(wait=timedelta(seconds=3), took=timedelta(milliseconds=200)))
    assert page.of_send("perdure_attempts_total", outcome="succeeded") == 1
    assert page.of_send("perdure_job_wait_seconds_sum") == 3
    assert page.of_send("perdure_job_wait_seconds_bucket", le="2.5") == 0
    assert page.of_send("perdure_job_wait_seconds_bucket", le="5.0") == 1
    assert page.of_send("perdure_attempt_duration_seconds_sum") == pytest.approx(0.2)
    for name in ("retries", "retry_exhausted", "jobs_failed", "jobs_requeued", "jobs_failed_permanently"):
        assert page.of_send(f"perdure_{name}_total") == 0


def test_a_failure_with_a_retry_is_failed_and_requeued_with_its_delay() -> None:
    page = after(attempt(raised(), attempt=2, failures=1))
    assert page.of_send("perdure_attempts_total", outcome="failed") == 1
    assert page.of_send("perdure_jobs_failed_total") == 1
    assert page.of_send("perdure_jobs_requeued_total") == 1
    assert page.of_send("perdure_retries_total") == 1
    assert page.of_send("perdure_retry_latency_seconds_sum") == 2
    assert page.of_send("perdure_jobs_failed_permanently_total") == 0


def test_the_last_failure_is_permanent_and_exhausted_and_not_requeued() -> None:
    page = after(attempt(raised(), attempt=4, failures=3))
    assert page.of_send("perdure_jobs_failed_total") == 1
    assert page.of_send("perdure_jobs_requeued_total") == 0
    assert page.of_send("perdure_jobs_failed_permanently_total") == 1
    assert page.of_send("perdure_retry_exhausted_total") == 1


def test_a_job_that_may_not_be_retried_dies_without_having_reached_a_limit() -> None:
    page = after(
        attempt(raised(), retry=Retry.preset("standard").never(ValueError)),
        attempt(raised(), delivery="at_most_once"),
    )
    assert page.of_send("perdure_jobs_failed_permanently_total") == 2
    assert page.of_send("perdure_retry_exhausted_total") == 0


def test_what_was_given_back_or_lost_is_no_run_and_measures_nothing() -> None:
    page = after(attempt(ShutDown(has_started=False)), attempt(Vanished(detail="gone")))
    assert page.of_send("perdure_attempts_total", outcome="released") == 1
    assert page.of_send("perdure_attempts_total", outcome="lost") == 1
    assert page.of_send("perdure_attempt_duration_seconds_count") == 0
    assert page.of_send("perdure_jobs_failed_total") == 1


def test_a_clock_that_is_behind_the_stores_makes_no_negative_wait() -> None:
    page = after(attempt(wait=-SECOND))
    assert page.of_send("perdure_job_wait_seconds_sum") == 0
    assert page.of_send("perdure_job_wait_seconds_count") == 1


def test_a_job_whose_unique_key_was_taken_was_not_enqueued() -> None:
    other = JobId("01890a5d-ac96-774b-bcce-b302099a8058")
    jobs = [a_new_job(), a_new_job(id=other)]
    page = after(JobsEnqueued(jobs=jobs, ids=[JOB, JOB], started_at=NOW, ended_at=NOW))
    assert page.of_send("perdure_jobs_enqueued_total") == 1


def test_lost_commits_lost_leases_and_failed_forwards_are_counted() -> None:
    page = after(
        CommitLost(job=a_job(), outcome=attempt().outcome),
        LeaseExpired(worker="worker-1", held=3),
        LeaseExpired(worker="worker-2", held=0),
        ForwardFailed(job=JOB, task="send", queue="mail", sink="archive", error="refused"),
    )
    assert page.of_send("perdure_commits_lost_total") == 1
    assert page.value("perdure_lease_lost_total") == 2
    assert page.of_send("perdure_jobs_dlq_failed_total") == 1


def test_ticks_are_measured_by_how_late_they_were_fired() -> None:
    metrics = MetricsObserver()
    ticks = (NOW, NOW + SECOND)
    metrics.tell(TicksFired(schedule="nightly", ticks=ticks, skipped=0, fired_at=NOW + 2 * SECOND))
    page = scrape(metrics)
    assert page.value("perdure_schedule_lag_seconds_count") == 2
    assert page.value("perdure_schedule_lag_seconds_sum") == 3


def test_a_task_that_the_worker_does_not_know_gets_no_label_of_its_own() -> None:
    page = after(attempt(TaskUnknown(), task="from-elsewhere"))
    assert page.value("perdure_attempts_total", queue="mail", task="other", outcome="parked") == 1
    assert page.value("perdure_attempts_total", queue="mail", task="from-elsewhere", outcome="parked") is None


def test_names_are_bounded_and_nothing_is_left_uncounted() -> None:
    metrics = MetricsObserver()
    for number in range(1_000):
        metrics.tell(attempt(task=f"task-{number}", queue=f"queue-{number % 150}"))
    samples = [one for one in scrape(metrics).samples if one.name == "perdure_attempts_total"]
    assert len(samples) <= MOST_PAIRS + 1
    assert len({sample.labels["task"] for sample in samples}) <= MOST_TASKS + 1
    assert sum(sample.value for sample in samples) == 1_000


def test_no_count_is_lost_when_threads_count_at_once() -> None:
    metrics, event = MetricsObserver(), attempt()
    threads = [threading.Thread(target=lambda: [metrics.tell(event) for _ in range(2_000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scrape(metrics).of_send("perdure_attempts_total", outcome="succeeded") == 8_000


def test_what_is_expected_is_shown_at_0_before_anything_happens() -> None:
    metrics = MetricsObserver()
    metrics.expect([("mail", "send")])
    assert scrape(metrics).of_send("perdure_retry_exhausted_total") == 0


@pytest.fixture
def app():
    made = App("sqlite://")
    yield made
    made.close()


def test_every_metric_of_the_catalogue_is_exported_with_its_kind_and_labels(app: App) -> None:
    @app.task(queue="mail")
    def send() -> None: ...

    send.enqueue()
    metrics = app.observer._observers[0]
    metrics.tell(attempt(raised()))
    worker = type("Worker", (), {"slots": (1, 5)})()
    metrics.attach(worker)
    page = Page(app.render_metrics()[0])
    exported = {}
    for family in page.families.values():
        labels = {name for sample in family.samples for name in sample.labels} - {"le"}
        name = f"{family.name}_total" if family.type == "counter" else family.name
        exported[name] = (family.type, labels)
    assert exported == {metric.name: (metric.kind, set(metric.labels)) for metric in CATALOGUE}
    names = {sample.name for sample in page.samples}
    assert names == {name for metric in CATALOGUE for name in metric.samples}


def test_the_stores_numbers_are_shown_by_queue_and_state(app: App) -> None:
    @app.task(queue="mail")
    def send() -> None: ...

    app.enqueue_many([send.bind(), send.bind(), send.options(delay="1h").bind()])
    app.client().pause("mail", reason="holiday")
    page = Page(app.render_metrics()[0])
    assert page.value("perdure_up") == 1
    assert page.value("perdure_queue_jobs", queue="mail", state="ready") == 2
    assert page.value("perdure_queue_jobs", queue="mail", state="waiting") == 1
    assert page.value("perdure_queue_paused", queue="mail") == 1
    assert page.value("perdure_workers") == 0
    assert page.of_send("perdure_jobs_enqueued_total") == 3
    age = page.value("perdure_queue_oldest_ready_age_seconds", queue="mail")
    assert age is not None
    assert 0 <= age < 60


def test_enqueuing_on_an_event_loop_counts_too(app: App) -> None:
    import asyncio

    @app.task(queue="mail")
    def send() -> None: ...

    asyncio.run(send.enqueue_async())
    assert Page(app.render_metrics()[0]).of_send("perdure_jobs_enqueued_total") == 1


def test_a_scrape_of_a_store_that_is_down_says_so_and_still_has_the_numbers() -> None:
    page = after(attempt())
    assert page.value("perdure_up") == 0
    assert page.of_send("perdure_attempts_total", outcome="succeeded") == 1
    assert page.value("perdure_workers") is None


def test_a_store_that_hangs_costs_a_scrape_a_moment_and_counts_as_down() -> None:
    released = threading.Event()
    look = Look(lambda: released.wait(30) and unreachable(), SystemClock(), patience=0.05)
    assert scrape(MetricsObserver(), look).value("perdure_up") == 0
    assert sum(thread.name == "perdure-look" for thread in threading.enumerate()) == 1
    scrape(MetricsObserver(), look)
    assert sum(thread.name == "perdure-look" for thread in threading.enumerate()) == 1, "one look at a time"
    released.set()


class Asked:
    """A store that counts how often it is asked for its queues, and can be switched off."""

    def __init__(self, store) -> None:
        self._store = store
        self.times = 0
        self.is_down = False

    def __getattr__(self, name: str):
        if self.is_down:
            unreachable()
        self.times += name == "queues"
        return getattr(self._store, name)


def test_a_look_at_the_store_is_good_for_some_seconds(app: App) -> None:
    clock, asked = VirtualClock(), Asked(app.store)
    look = Look(lambda: asked, clock)
    for _ in range(3):
        assert look.take()[0]
    assert asked.times == 1
    clock.advance(timedelta(seconds=6))
    look.take()
    assert asked.times == 2


def test_what_the_store_held_is_not_shown_once_it_is_down_and_comes_back_with_it(app: App) -> None:
    clock, asked = VirtualClock(), Asked(app.store)
    look = Look(lambda: asked, clock)
    assert look.take()[1] is not None
    asked.is_down = True
    clock.advance(timedelta(seconds=6))
    assert look.take() == (False, None)
    asked.is_down = False
    clock.advance(timedelta(seconds=6))
    is_up, seen = look.take()
    assert is_up
    assert seen is not None


def test_nothing_is_registered_in_the_registry_that_all_programs_share(app: App) -> None:
    app.render_metrics()
    assert not [family.name for family in REGISTRY.collect() if family.name.startswith("perdure")]


def test_buckets_go_up() -> None:
    assert list(BUCKETS) == sorted(set(BUCKETS))


def test_many_durations_at_once_fall_into_the_buckets_that_each_falls_into() -> None:
    ends = [timedelta(seconds=end) for end in BUCKETS]
    near = [end + step * timedelta(microseconds=1) for end in ends for step in (-1, 0, 1)]
    durations = [*near, *near[::2], -SECOND, timedelta(0), timedelta(days=2)]
    at_once, each = Histogram(), [0] * (len(BUCKETS) + 1)
    at_once.observe(durations)
    for duration in durations:
        each[next((number for number, end in enumerate(ends) if duration <= end), len(BUCKETS))] += 1
    assert at_once.buckets == each
    assert at_once.sum == pytest.approx(sum(one.total_seconds() for one in durations) + 1)
    at_once.observe([])
    assert at_once.buckets == each


def test_a_batch_counts_the_same_as_its_events_one_after_the_other() -> None:
    events: list[Event] = [
        attempt(),
        attempt(raised()),
        attempt(failures=1, took=timedelta(minutes=1)),
        attempt(TaskUnknown()),
        attempt(raised(), queue="other", failures=1000),
        LeaseExpired(worker="w", held=1),
        CommitLost(job=a_job(), outcome=attempt().outcome),
    ]
    together, apart = MetricsObserver(), MetricsObserver()
    together.tell_all(events)
    for event in events:
        apart.tell(event)
    assert numbers(together) == numbers(apart)


def numbers(observer: MetricsObserver) -> dict[object, object]:
    found: dict[object, object] = {"lost": observer.lease_lost}

    def read(cells: Mapping[tuple[str, str], Cell]) -> None:
        for name, cell in cells.items():
            for field in Cell.__slots__:
                value = getattr(cell, field)
                if isinstance(value, Histogram):
                    value = (tuple(value.buckets), round(value.sum, 9))
                found[name, field] = dict(value) if isinstance(value, dict) else value

    observer.read(read)
    return found
