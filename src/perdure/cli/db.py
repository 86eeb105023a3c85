"""`perdure db`: the store's schema, its status, its migration and its statements."""

from __future__ import annotations

import click

from perdure.cli import faults, output
from perdure.cli.lazy import SuggestingGroup
from perdure.cli.options import store_options
from perdure.cli.session import Session
from perdure.errors import SchemaTooNew, SchemaTooOld
from perdure.store.reads import SchemaStatus


@click.group(cls=SuggestingGroup)
def db() -> None:
    """The store's schema: status, migration and statements."""


@db.command()
@store_options
def migrate(session: Session) -> None:
    """Bring the store's schema to what this Perdure wants; makes a SQLite file that does not exist."""
    with session.app(may_create=True, auto_migrate=True) as app:
        found = app.store.schema().wait()
    _print_status(session, found)


@db.command()
@store_options
def status(session: Session) -> int:
    """Say which schema the store has, changing nothing; exit code 1 when it is not current."""
    try:
        with session.store(auto_migrate=False) as store:
            found = store.schema().wait()
    except (SchemaTooOld, SchemaTooNew) as error:
        if session.is_json:
            session.emit({"found": None, "wanted": None, "is_current": False, "message": str(error)})
        else:
            output.say(str(error))
        return faults.FAILED
    _print_status(session, found)
    return faults.OK if found.is_current else faults.FAILED


@db.command()
@store_options
def sql(session: Session) -> None:
    """Print the statements that make the schema, for a person to run; the store is not looked at."""
    with session.app(may_create=True) as app:
        script = app.schema_sql()
    if session.is_json:
        session.emit({"sql": script})
    else:
        output.say(script)


def _print_status(session: Session, status: SchemaStatus) -> None:
    if session.is_json:
        session.emit({"found": status.found, "wanted": status.wanted, "is_current": status.is_current, "message": None})
    elif status.is_current:
        output.say(f"The schema is current (version {status.found}).")
    else:
        output.say(f"The schema has version {status.found}; this Perdure wants {status.wanted}.")
        if status.found < status.wanted:
            output.aside("Migrate it with: perdure db migrate")
