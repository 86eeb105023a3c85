"""`perdure http`: make a job whose handler is an HTTP request."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from perdure.cli import output
from perdure.cli.enqueue import read_at, read_limit
from perdure.cli.options import read_duration
from perdure.cli.session import Session
from perdure.errors import BadOption, BadPayload

_AS_JSON = "\x00"
"""What `--json` is taken for when no content follows it; no shell can pass it."""


def _read_header(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for text in values:
        name, colon, value = text.partition(":")
        if not colon:
            raise BadOption(f"--header is {text[:60]!r}, without a colon.", "Write it like 'Name: value'.")
        if name.strip() in headers:
            raise BadOption(f"The header {name.strip()} is given twice.", "Join the values with a comma.")
        headers[name.strip()] = value.strip()
    return headers


def _read_secret_header(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, dict[str, str]]:
    headers: dict[str, dict[str, str]] = {}
    for text in values:
        name, colon, value = text.partition(":")
        prefix, space, secret = value.strip().rpartition(" ")
        if not colon or not secret:
            raise BadOption(
                "--secret-header cannot be read.",
                "Write it like 'Authorization: Bearer NAME', with the name of a secret and not the secret itself.",
            )
        headers[name.strip()] = {"secret": secret, "prefix": prefix + space}
    return headers


@click.command()
@click.argument("method")
@click.argument("target", metavar="URL")
@click.option(
    "--json",
    "json_texts",
    multiple=True,
    is_flag=False,
    flag_value=_AS_JSON,
    metavar="[JSON]",
    help="Content as JSON, - reads stdin; alone: print JSON for programs.",
)
@click.option("--body", metavar="TEXT", help="Content as text; - reads stdin.")
@click.option(
    "--header", "-H", "headers", multiple=True, callback=_read_header, metavar="'NAME: VALUE'", help="A header."
)
@click.option(
    "--secret-header",
    "secret_headers",
    multiple=True,
    callback=_read_secret_header,
    metavar="'NAME: [PREFIX] SECRET'",
    help="A header with a secret of the workers, by its name.",
)
@click.option(
    "--timeout", callback=read_duration, metavar="DURATION", help="How long one attempt may take; 30s if not given."
)
@click.option(
    "--retry-on", type=click.Choice(["default", "all"]), default="default", help="Which failures are retried."
)
@click.option("--sign", is_flag=True, help="Sign it with the workers' secret.")
@click.option("--sign-with", metavar="NAME", help="Sign it with the workers' secret of this name.")
@click.option("--retry", metavar="POLICY", help="A preset's name or a policy's text.")
@click.option("--max-attempts", callback=read_limit, metavar="N", help="The most failures it may have, or unlimited.")
@click.option("--max-retries", callback=read_limit, metavar="N", help="The same limit, counted as retries.")
@click.option("--queue", metavar="NAME", help="The queue; default if not given.")
@click.option("--delay", callback=read_duration, metavar="DURATION", help="Not before so long from now.")
@click.option(
    "--at", "run_at", callback=read_at, metavar="WHEN", help="Not before this ISO time, UTC if it has no offset."
)
@click.option("--priority", type=click.IntRange(-100, 100), metavar="N", help="-100 to 100, higher first.")
@click.option("--unique", metavar="KEY", help="No second live HTTP job with the same key.")
@click.option("--delivery", type=click.Choice(["at_least_once", "at_most_once"]), help="May it be sent twice?")
@click.option("--url", "store_url", metavar="URL", help="The store; else PERDURE_URL, else perdure.toml.")
def http(
    method: str,
    target: str,
    json_texts: tuple[str, ...],
    body: str | None,
    headers: dict[str, str],
    secret_headers: dict[str, dict[str, str]],
    retry_on: str,
    sign: bool,
    sign_with: str | None,
    store_url: str | None,
    **options: Any,
) -> None:
    """Make a job that sends a request to URL, and print its id. Every worker can run it.

    perdure http POST https://example.com/hook --json '{"order": 7}' --header 'X-Shop: 3'
    """
    document: dict[str, Any] = {"method": method, "url": target, "retry_on": retry_on}
    for name in headers.keys() & secret_headers.keys():
        raise BadOption(f"The header {name} is given twice.", "Give it once, as --header or as --secret-header.")
    document["headers"] = {**headers, **secret_headers}
    document["sign"] = sign_with if sign_with is not None else sign
    contents = [text for text in json_texts if text != _AS_JSON]
    if len(contents) > 1:
        raise BadOption("--json has two contents.", "A request has one.")
    if contents:
        document["json"] = _read_json(_content(contents[0]))
    if body is not None:
        document["body"] = _content(body)
    session = Session(url=store_url, is_json=_AS_JSON in json_texts)
    given = {name: value for name, value in options.items() if value is not None}
    with session.app(may_create=True) as app:
        job_id = app.http.call(document, **given).enqueue()
    if session.is_json:
        session.emit({"id": job_id})
    else:
        output.say(job_id)


def _content(text: str) -> str:
    return sys.stdin.read() if text == "-" else text


def _read_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadPayload(f"--json is not JSON: {error}.", "Put the JSON in single quotes for the shell.") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
