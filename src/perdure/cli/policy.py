"""`perdure policy`: see what retry policies do before they do it."""

from __future__ import annotations

from datetime import timedelta

import click

from perdure.admin.forecast import Forecast, Span, forecast
from perdure.admin.policies import preset_documents, waits_document
from perdure.cli import output
from perdure.cli.lazy import SuggestingGroup
from perdure.cli.options import store_options
from perdure.cli.output import Column, plural, rough
from perdure.cli.plot import band
from perdure.cli.session import Session
from perdure.cli.simulate.command import simulate
from perdure.model.policy.presets import NAMED, PRESETS
from perdure.model.policy.retry import HIGHEST_LIMIT, Retry

_LIST_COLUMNS = (
    Column("NAME"),
    Column("LIMIT", is_number=True),
    Column("POLICY", is_wrapped=True),
    Column("WHAT IT DOES", is_wrapped=True),
    Column("FROM", is_wrapped=True),
)
_WAIT_COLUMNS = (
    Column("FAILURE", is_number=True),
    Column("CEILING", is_number=True),
    Column("WAIT"),
    Column("IN ALL: LEAST / EXPECTED / MOST"),
    Column("BAND"),
)
_BAND_WIDTH = 32


@click.group(cls=SuggestingGroup)
def policy() -> None:
    """See what retry policies do before they do it.

    POLICY is a preset's name or a policy's text, such as 'exponential(2s, cap=10m, max_attempts=12)'.
    """


@policy.command()
@store_options
def ls(session: Session) -> None:
    """List the presets, their other names, and the document whose behaviour each keeps."""
    presets = list(PRESETS.values())
    if session.is_json:
        session.emit({"presets": preset_documents()})
        return
    rows = [
        [
            " or ".join((preset.name, *preset.aliases)),
            str(preset.policy.max_attempts),
            preset.policy.text,
            preset.description,
            preset.origin,
        ]
        for preset in presets
    ]
    output.table(_LIST_COLUMNS, rows)


@policy.command()
@click.argument("policy_text", metavar="POLICY")
@click.option(
    "--limit", default=25, show_default=True, type=click.IntRange(min=1), metavar="N", help="Show at most N waits."
)
@store_options
def show(session: Session, policy_text: str, limit: int) -> None:
    """Show every wait of a policy: ceiling, jitter band, cumulative time, and how long it keeps trying."""
    retry = Retry.parse(policy_text)
    found = forecast(retry)
    if session.is_json:
        session.emit({"text": str(retry), "max_attempts": retry.max_attempts, **waits_document(found, limit)})
        return
    preset = NAMED.get(policy_text.strip())
    if preset is not None:
        output.say(f"{preset.name}: {preset.description}")
        output.say(f"from: {preset.origin}")
    output.say(str(retry))
    output.say("")
    print_waits(found, limit)


policy.add_command(simulate)


def print_waits(found: Forecast, limit: int) -> None:
    """Print the waits of a forecast as a table with a picture of the jitter band, then the sums."""
    shown = found.waits[:limit]
    scale = max((wait.delay.greatest for wait in shown), default=timedelta(0))
    rows = [
        [
            str(wait.failure),
            rough(wait.ceiling),
            _range(wait.delay),
            _three(wait.total),
            band(wait.delay, scale, _BAND_WIDTH),
        ]
        for wait in shown
    ]
    if rows:
        output.table(_WAIT_COLUMNS, rows)
    if len(found.waits) > len(shown):
        output.say(f"… and {len(found.waits) - len(shown):,} more")
    output.say("")
    output.fields(_sums(found))


def _sums(found: Forecast) -> list[tuple[str, str]]:
    retry = found.policy
    limit = f"{plural(retry.max_attempts, 'attempt')} ({plural(retry.max_retries, 'retry')})"
    if retry.max_attempts == HIGHEST_LIMIT:
        limit = f"unlimited ({HIGHEST_LIMIT:,} attempts)"
    sums = [("limit", limit)]
    if retry.bounds_jobs:
        sums.append(("caps jobs", "yes: a job that asks for more attempts does not get them"))
    if retry.within is not None:
        sums.append(("within", f"{rough(retry.within)} since it was enqueued"))
    more = "" if found.is_complete else f" for the first {len(found.waits):,} waits"
    sums.append(("keeps trying", f"{kept_trying(found.total)}{more}, plus what the attempts themselves take"))
    return sums


def kept_trying(total: Span) -> str:
    """How long a policy keeps trying, in words."""
    if total.least == total.greatest:
        return f"for {rough(total.least)}"
    return f"for {rough(total.least)} at least, {rough(total.expected)} expected, {rough(total.greatest)} at most"


def _range(span: Span) -> str:
    return rough(span.least) if span.least == span.greatest else f"{rough(span.least)} – {rough(span.greatest)}"


def _three(span: Span) -> str:
    if span.least == span.greatest:
        return rough(span.least)
    return f"{rough(span.least)} / {rough(span.expected)} / {rough(span.greatest)}"
