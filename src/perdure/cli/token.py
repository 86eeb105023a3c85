"""`perdure token`: make tokens for the REST API."""

from __future__ import annotations

import click

from perdure.cli import output
from perdure.cli.lazy import SuggestingGroup
from perdure.cli.options import store_options
from perdure.cli.session import Session


@click.group(cls=SuggestingGroup)
def token() -> None:
    """Make tokens for the REST API."""


@token.command()
@click.option(
    "--scope", "scopes", default="read", show_default=True, metavar="A,B", help="Of read, args, enqueue, write, admin."
)
@store_options
def new(session: Session, scopes: str) -> None:
    """Make a token, and the entry by which a server knows it; nothing is stored.

    read looks at everything but arguments and results, args at those, too; enqueue makes jobs; write reads, makes jobs
    and does all that operators do; admin does everything.
    """
    from perdure.web.access.tokens import new_token, read_scopes  # here, so that help does not wait for it

    secret, entry = new_token(read_scopes(scopes, ","))
    if session.is_json:
        session.emit({"token": secret, "entry": entry})
        return
    output.fields([("token", secret), ("entry", entry)])
    output.aside("Give the entry to the server in PERDURE_TOKENS, and the token to whoever may use it.")
