"""`perdure policy simulate`: a policy and a queue's fairness under a load, in virtual time, as tables and pictures."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import msgspec

from perdure.admin.document import seconds
from perdure.cli import output
from perdure.cli.options import store_options
from perdure.cli.session import Session
from perdure.cli.simulate.options import load_options
from perdure.cli.simulate.report import (
    print_comparison,
    print_jitter,
    print_simulation,
)
from perdure.errors import BadOption
from perdure.model.policy.retry import Retry
from perdure.simulator.document import comparison_document, jitter_document, scenario_document, simulation_document
from perdure.simulator.ready import ALL_AT_ONCE, READY
from perdure.simulator.result import Simulation
from perdure.simulator.run import run
from perdure.simulator.scenario import Batch, Scenario
from perdure.simulator.variants import compare as run_comparison

_NOTHING = timedelta(0)
_MINUTE = timedelta(minutes=1)
_JOBS = 1000
_FAIRNESS = {
    "retry_share": "retry_share",
    "strict": "is_strict",
    "max_retries_running": "max_retries_running",
    "concurrency": "concurrency",
    "retry_queue": "retry_queue",
}
_OTHER_NAMES = {"fetch": "batch", "exponential": "is_exponential"}


@click.command()
@click.argument("policy_text", metavar="[POLICY]", required=False)
@load_options
@store_options
def simulate(
    session: Session, policy_text: str | None, scenario: str | None, compare: bool, plot: Path | None, **load: Any
) -> None:
    """See what a policy and a queue's fairness do under a load, in virtual time, by the real decisions.

    With nothing but a POLICY many jobs fail together until the other side is back, with and without jitter. With a
    load or a scenario, fresh jobs and retries share the workers.
    """
    if policy_text is None and scenario is None:
        raise BadOption("There is nothing to simulate.", "Give a POLICY, such as standard, or a --scenario.")
    given = {name: value for name, value in load.items() if value is not None}
    is_plain = scenario is None and not compare and not given.keys() & {"rate", "duration", "batches", "outage"}
    chosen = _scenario(policy_text, scenario, given, is_plain=is_plain)
    if compare:
        _show_comparison(session, chosen, scenario, plot)
    elif is_plain:
        _show_jitter(session, chosen, plot)
    else:
        _show_one(session, chosen, scenario, plot)


def _scenario(policy_text: str | None, name: str | None, given: dict[str, Any], *, is_plain: bool) -> Scenario:
    """The ready scenario, or jobs that all start at once, or a load of the caller's, with what the options change."""
    changes = {_OTHER_NAMES.get(key, key): value for key, value in given.items() if key not in _FAIRNESS}
    jobs, fail_for = changes.pop("jobs", None), changes.pop("fail_for", None)
    if policy_text is not None:
        changes["policy"] = Retry.parse(policy_text)
    if name is None and "rate" not in changes and "batches" not in changes:
        jobs = jobs or _JOBS
    if is_plain:
        changes = {**ALL_AT_ONCE, **changes}
        fail_for = _MINUTE if fail_for is None else fail_for
    if jobs is not None:
        changes["batches"] = (Batch(_NOTHING, jobs), *changes.get("batches", ()))
    if fail_for is not None:
        if "outage" in changes:
            raise BadOption("--fail-for and --outage say the same.", "Give one of them.")
        changes["outage"] = (_NOTHING, fail_for)
    if name is None:
        base = Scenario(**{"seed": 1, **changes})
    else:
        base = msgspec.structs.replace(READY[name].scenario, **changes)
    fairness = {_FAIRNESS[key]: value for key, value in given.items() if key in _FAIRNESS}
    return msgspec.structs.replace(base, fairness=msgspec.structs.replace(base.fairness, **fairness))


def _show_jitter(session: Session, scenario: Scenario, plot: Path | None) -> None:
    jittered = run(scenario)
    bare = run(msgspec.structs.replace(scenario, policy=scenario.policy.replace(jitter="none")))
    _draw(plot, [("with jitter", jittered), ("without jitter", bare)], "The same jobs with and without jitter")
    assert scenario.outage is not None, "jobs that fail together have an outage"
    if session.is_json:
        session.emit(
            {
                "text": scenario.policy.text,
                "jobs": scenario.jobs,
                "fail_for": seconds(scenario.outage[1]),
                "seed": scenario.seed,
                "scenario": scenario_document(scenario),
                **jitter_document(jittered, bare),
            }
        )
        return
    back = output.rough(scenario.outage[1])
    output.say(f"{output.plural(scenario.jobs, 'job')} fail together; the other side is back after {back}.")
    output.say(f"policy: {scenario.policy}")
    output.say("")
    print_jitter(jittered, bare)


def _show_one(session: Session, scenario: Scenario, name: str | None, plot: Path | None) -> None:
    found = run(scenario)
    _draw(plot, [("", found)], _title(name))
    if session.is_json:
        session.emit({"scenario": scenario_document(scenario), **simulation_document(found)})
        return
    print_simulation(found, None if name is None else READY[name])


def _show_comparison(session: Session, scenario: Scenario, name: str | None, plot: Path | None) -> None:
    found = run_comparison(scenario)
    shown = [one for one in found if one.is_jittered == found[0].is_jittered]
    _draw(plot, [(one.mechanism, one.simulation) for one in shown], _title(name))
    if session.is_json:
        session.emit({"scenario": scenario_document(scenario), "comparison": comparison_document(found)})
        return
    print_comparison(scenario, found, None if name is None else READY[name])


def _title(name: str | None) -> str:
    return "Simulation" if name is None else f"Simulation: {READY[name].description}"


def _draw(plot: Path | None, runs: list[tuple[str, Simulation]], title: str) -> None:
    if plot is not None:
        from perdure.cli.simulate.picture import draw  # matplotlib is slow to import, and an extra

        draw(plot, runs, title)
