"""`perdure metrics`: what is measured, and what Prometheus and Grafana need to watch it."""

from __future__ import annotations

import json

import click

from perdure.cli import output
from perdure.cli.lazy import SuggestingGroup
from perdure.cli.options import store_options
from perdure.cli.output import Column
from perdure.cli.session import Session

_COLUMNS = (Column("NAME"), Column("KIND"), Column("LABELS"), Column("MEANING", is_wrapped=True))


@click.group(cls=SuggestingGroup)
def metrics() -> None:
    """Metrics: their names, alert rules, a dashboard."""


@metrics.command()
@store_options
def names(session: Session) -> None:
    """List every metric; the store is not looked at."""
    from perdure.observe.catalogue import CATALOGUE  # here, so that help does not wait for it

    if session.is_json:
        found = [
            {"name": one.name, "kind": one.kind, "labels": list(one.labels), "meaning": one.meaning}
            for one in CATALOGUE
        ]
        session.emit({"metrics": found})
    else:
        output.table(_COLUMNS, [[one.name, one.kind, ",".join(one.labels), one.meaning] for one in CATALOGUE])


@metrics.command()
@store_options
def rules(session: Session) -> None:
    """Print alert rules for Prometheus as YAML (with --json as JSON); the store is not looked at."""
    from perdure.observe import rules as written

    if session.is_json:
        fields = ("name", "expression", "lasting", "severity", "summary", "action")
        session.emit({"rules": [{name: getattr(rule, name) for name in fields} for rule in written.rules()]})
    else:
        click.echo(written.rules_text(), nl=False)


@metrics.command()
@store_options
def dashboard(session: Session) -> None:
    """Print a dashboard for Grafana as JSON; the store is not looked at."""
    from perdure.observe.dashboard import dashboard as made

    click.echo(json.dumps(made(), indent=2, ensure_ascii=False))


@metrics.command()
@store_options
def show(session: Session) -> None:
    """Print what the store's own metrics are now, in the format of Prometheus (with --json as a text in JSON)."""
    with session.app() as app:
        # Opened first, so that a store that cannot be reached is an error here and not a zero among the metrics.
        app.store.now().wait()
        text, content_type = app.render_metrics()
    if session.is_json:
        session.emit({"content_type": content_type, "text": text.decode()})
    else:
        click.echo(output.harmless(text.decode()), nl=False)
