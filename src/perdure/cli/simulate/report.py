"""Simulations for people: a line for each span of time with its bar, the sums, and comparisons side by side."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from perdure.cli import output
from perdure.cli.output import Column, plural, rough
from perdure.cli.plot import bar, double_bar
from perdure.simulator.ready import ReadyScenario
from perdure.simulator.result import Simulation
from perdure.simulator.scenario import Scenario
from perdure.simulator.variants import Compared
from perdure.simulator.view import fit, peak, side_by_side
from perdure.text.duration import format_duration

_BAR_WIDTH = 28
_SMALL_BAR_WIDTH = 14
_COLUMNS = (
    Column("FROM", is_number=True),
    Column("ARRIVED", is_number=True),
    Column("FRESH", is_number=True),
    Column("RETRY", is_number=True),
    Column("OK", is_number=True),
    Column("DEAD", is_number=True),
    Column("FRESH BACKLOG", is_number=True),
    Column("OLDEST", is_number=True),
    Column("RETRIES DUE", is_number=True),
    Column("WAITING", is_number=True),
    Column("STARTS: FRESH, RETRY"),
)
_COMPARED = (
    Column("MECHANISM"),
    Column("JITTER"),
    Column("FRESH WAIT: MEAN", is_number=True),
    Column("P99", is_number=True),
    Column("MOST", is_number=True),
    Column("PEAK BACKLOG", is_number=True),
    Column("RETRIES DUE", is_number=True),
    Column("ATTEMPTS", is_number=True),
    Column("DEAD", is_number=True),
    Column("RETRIES CLEAR", is_number=True),
    Column("DRAINED", is_number=True),
)


def print_simulation(found: Simulation, ready: ReadyScenario | None) -> None:
    """Print one run: what it was, what happened over time, and the sums."""
    _print_scenario(found.scenario, ready)
    width, count = fit(found)
    spans = found.spans(width, count)
    highest = max(span.attempts for span in spans)
    rows = [
        [
            rough(span.at),
            str(span.arrived),
            str(span.fresh_starts),
            str(span.retry_starts),
            str(span.succeeded),
            str(span.dead),
            str(span.fresh_backlog),
            rough(span.oldest_fresh),
            str(span.retry_due),
            str(span.retry_waiting),
            double_bar(span.fresh_starts, span.retry_starts, highest, _BAR_WIDTH),
        ]
        for span in spans
    ]
    output.say(f"Each line is {rough(width)}; backlogs and ages are those at its end.")
    output.table(_COLUMNS, rows)
    output.say("")
    output.fields(_sums(found))


def print_comparison(scenario: Scenario, found: Sequence[Compared], ready: ReadyScenario | None) -> None:
    """Print a line for each mechanism, then how long fresh jobs waited over time, side by side."""
    _print_scenario(scenario, ready, has_fairness=False)
    output.table(_COMPARED, [_compared_row(one) for one in found])
    output.say("")
    shown = [one for one in found if one.is_jittered == found[0].is_jittered]
    width, count = fit(*(one.simulation for one in shown))
    columns = [one.simulation.spans(width, count) for one in shown]
    highest = max(span.oldest_fresh.total_seconds() for column in columns for span in column)
    rows = [
        [
            rough(spans[0].at),
            *(
                f"{rough(span.oldest_fresh)} {bar(span.oldest_fresh.total_seconds(), highest, _SMALL_BAR_WIDTH)}"
                for span in spans
            ),
        ]
        for spans in zip(*columns, strict=True)
    ]
    output.say("How long the oldest ready fresh job has waited:")
    output.table([Column("FROM", is_number=True), *(Column(one.mechanism.upper()) for one in shown)], rows)
    output.say("")
    output.fields([("bound", _bound(max((one.simulation for one in found), key=lambda one: one.peaks.retrying)))])


def print_jitter(jittered: Simulation, bare: Simulation) -> None:
    """Print both runs: attempts over time side by side, then how they ended."""
    width, pairs = side_by_side(jittered, bare)
    highest = max(max(pair) for pair in pairs)
    columns = (
        Column("FROM", is_number=True),
        Column(f"ATTEMPTS PER {rough(width)}", is_number=True),
        Column("WITH JITTER"),
        Column("ATTEMPTS", is_number=True),
        Column("WITHOUT"),
    )
    rows = [
        [
            rough(place * width),
            str(with_jitter),
            bar(with_jitter, highest, _BAR_WIDTH),
            str(without),
            bar(without, highest, _BAR_WIDTH),
        ]
        for place, (with_jitter, without) in enumerate(pairs)
    ]
    output.table(columns, rows)
    output.say("")
    output.fields(
        [("with jitter", _ends(jittered)), ("without", _ends(bare)), ("bound", _bound(jittered))],
    )


def _print_scenario(scenario: Scenario, ready: ReadyScenario | None, *, has_fairness: bool = True) -> None:
    if ready is not None:
        output.say(f"{ready.name}: {ready.description}.")
    lines = [("policy", str(scenario.policy)), ("load", _load(scenario)), ("workers", _workers(scenario))]
    if trouble := _trouble(scenario):
        lines.append(("trouble", trouble))
    if has_fairness:
        lines.append(("fairness", _fairness(scenario)))
    output.fields(lines)
    output.say("")


def _load(scenario: Scenario) -> str:
    parts = [f"{plural(batch.jobs, 'job')} at {rough(batch.at)}" for batch in scenario.batches]
    if scenario.rate:
        parts.append(f"{plural(scenario.rate, 'job')} per second for {rough(scenario.duration)}")
    return ", ".join(parts)


def _workers(scenario: Scenario) -> str:
    how = " on average" if scenario.is_exponential else ""
    text = f"{plural(scenario.workers, 'worker')} with {plural(scenario.slots, 'slot')}"
    text += f"; an attempt runs {format_duration(scenario.run_time)}{how}"
    if scenario.failure_time is not None:
        text += f", a failing one {format_duration(scenario.failure_time)}"
    return text


def _trouble(scenario: Scenario) -> str:
    parts = []
    if scenario.outage is not None:
        begin, end = scenario.outage
        part = "" if scenario.outage_hits == 1 else f" of {scenario.outage_hits:.0%} of the jobs"
        parts.append(f"every attempt{part} that starts from {rough(begin)} to {rough(end)} fails")
    if any(scenario.failure_rates):
        chances = ", ".join(f"{rate:.0%}" for rate in scenario.failure_rates)
        parts.append(f"attempts fail by chance ({chances})")
    if scenario.capacity is not None:
        parts.append(f"the other side serves {plural(scenario.capacity, 'attempt')} per second")
    return "; ".join(parts)


def _fairness(scenario: Scenario) -> str:
    fairness = scenario.fairness
    parts = [f"retry_share {fairness.retry_share:g}{' (strict)' if fairness.is_strict else ''}"]
    if fairness.retry_queue is not None:
        own = f"{plural(scenario.retry_workers, 'worker')} with {plural(scenario.retry_slots, 'slot')}"
        parts = [f"retry_queue {fairness.retry_queue} ({own})"]
    if fairness.max_retries_running is not None:
        parts.append(f"max_retries_running {fairness.max_retries_running}")
    if fairness.concurrency is not None:
        parts.append(f"concurrency {fairness.concurrency}")
    return ", ".join(parts)


def _sums(found: Simulation) -> list[tuple[str, str]]:
    peaks, waits = found.peaks, found.fresh_waits
    unfinished = f", {found.unfinished:,} not ended when it was stopped" if found.unfinished else ""
    drained = "not within this time" if found.drained_after is None else f"after {rough(found.drained_after)}"
    return [
        ("jobs", f"{found.jobs:,}: {found.succeeded:,} succeeded, {found.dead:,} dead{unfinished}"),
        ("attempts", f"{found.attempts:,}: {found.fresh_starts:,} fresh, {plural(found.retry_starts, 'retry')}"),
        (
            "fresh waits",
            f"{rough(waits.mean)} on average, {rough(waits.p99)} for one in a hundred, {rough(waits.greatest)} at most",
        ),
        (
            "peaks",
            f"{plural(peaks.attempts, 'attempt')} in {rough(found.scenario.bucket)}, "
            f"{plural(peaks.fresh_backlog, 'fresh job')} ready, "
            f"{plural(peaks.retry_due, 'retry')} due, {peaks.retry_waiting:,} waiting",
        ),
        ("drained", drained),
        ("bound", _bound(found)),
    ]


def _bound(found: Simulation) -> str:
    verdict = "kept" if found.is_within_bound else "BROKEN"
    return (
        f"{verdict}: at most {plural(found.bound.at_once, 'job')} to be retried at once "
        f"(seen: {found.peaks.retrying:,}), "
        f"{plural(found.bound.in_all, 'retry')} in all (seen: {found.retry_starts:,})"
    )


def _compared_row(one: Compared) -> list[str]:
    found = one.simulation
    return [
        one.mechanism,
        "yes" if one.is_jittered else "no",
        rough(found.fresh_waits.mean),
        rough(found.fresh_waits.p99),
        rough(found.fresh_waits.greatest),
        f"{found.peaks.fresh_backlog:,}",
        f"{found.peaks.retry_due:,}",
        f"{found.peaks.attempts:,}",
        f"{found.dead:,}",
        rough(found.retry_clear_after),
        rough(found.drained_after),
    ]


def _ends(run: Simulation) -> str:
    return (
        f"{run.succeeded:,} succeeded, {run.dead:,} dead, {plural(run.attempts, 'attempt')}; "
        f"peak after the start {peak(run):,} in {_unit(run)}; last ended after {rough(run.ended_after)}"
    )


def _unit(run: Simulation) -> str:
    bucket = run.scenario.bucket
    return "one second" if bucket == timedelta(seconds=1) else rough(bucket)
