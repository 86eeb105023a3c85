"""What goes wrong, told to people and programs: what, why and what to do, with an exit code for each kind."""

from __future__ import annotations

import json
import os
import sys
import traceback

import click

from perdure.errors import EngineError, NotFound, PerdureError, Refused, UsageError
from perdure.text.credentials import hide_credentials_in

OK = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
REFUSED = 4
UNREACHABLE = 5
INTERRUPTED = 130

DEBUG_VARIABLE = "PERDURE_DEBUG"


def exit_code(error: BaseException) -> int:
    """The exit code for an error."""
    match error:
        case click.Abort() | KeyboardInterrupt():
            return INTERRUPTED
        case UsageError() | click.UsageError():
            return USAGE
        case NotFound():
            return NOT_FOUND
        case Refused():
            return REFUSED
        case EngineError():
            return UNREACHABLE
        case _:
            return FAILED


def tell(error: Exception, *, as_json: bool) -> None:
    """Write an error to stderr, after the traceback of the user's own code where that failed.

    A traceback of Perdure's code is shown only when PERDURE_DEBUG asks for it.
    """
    what, why, hint = _parts(error)
    trace: str = getattr(error, "trace", "")
    if as_json:
        document: dict[str, object] = {
            "type": type(error).__name__,
            "message": what,
            "why": why,
            "hint": hint,
            "exit_code": exit_code(error),
        }
        if trace:
            document["traceback"] = trace
        click.echo(json.dumps({"error": document}), err=True)
    else:
        if trace:
            click.echo(_harmless(trace.rstrip("\n")), err=True)
        click.echo(f"{_label('error:', 'red')} {_harmless(what)}", err=True)
        if why:
            click.echo(f"{_label('why:', 'yellow')} {_harmless(why)}", err=True)
        if hint:
            click.echo(f"{_label('try:', 'cyan')} {_harmless(hint)}", err=True)
    if os.environ.get(DEBUG_VARIABLE):
        click.echo(_harmless(hide_credentials_in("".join(traceback.format_exception(error)))), err=True)


def warn(message: str) -> None:
    """Write a warning to stderr."""
    click.echo(f"{_label('warning:', 'yellow')} {_harmless(message)}", err=True)


def _parts(error: Exception) -> tuple[str, str | None, str | None]:
    match error:
        case PerdureError():
            return hide_credentials_in(error.message), _why(error), error.hint
        case click.UsageError():
            path = error.ctx.command_path if error.ctx is not None else "perdure"
            return hide_credentials_in(error.format_message()), None, f"{path} --help"
        case click.ClickException():
            return hide_credentials_in(error.format_message()), None, None
        case OSError():
            name = f"{error.filename}: " if error.filename else ""
            return f"{name}{error.strerror or error}", None, None
        case _:
            what = f"Perdure itself failed: {type(error).__name__}: {hide_credentials_in(str(error))}"
            return what, None, f"This is a fault in Perdure; set {DEBUG_VARIABLE}=1 to see where."


def _why(error: PerdureError) -> str | None:
    cause = error.__cause__
    if cause is None or isinstance(cause, PerdureError):
        return None
    return f"{type(cause).__name__}: {hide_credentials_in(str(cause))}"


def _harmless(text: str) -> str:
    from perdure.cli.output import harmless  # here, so that help does not wait for it

    return harmless(text)


def _label(text: str, colour: str) -> str:
    is_coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    return click.style(text, fg=colour, bold=True) if is_coloured else text
