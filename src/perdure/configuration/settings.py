"""Every setting of an app, its default, and the environment variable that sets it: `lease` is PERDURE_LEASE."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

import msgspec

from perdure.errors import BadDuration, BadSetting
from perdure.text.credentials import Discreet
from perdure.text.duration import parse_duration

_MINUTE = timedelta(minutes=1)


class HiddenText(str):
    """A text that does not show itself where values are printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'…'"


class Settings(Discreet, msgspec.Struct, frozen=True, kw_only=True):
    """How an app behaves where its code does not say otherwise."""

    _secrets = frozenset(("http_signing_secrets", "tokens", "dead_letter"))

    url: Annotated[str, "where the jobs are kept"] = "sqlite:///perdure.db"
    queues: Annotated[tuple[str, ...] | None, "the queues a worker serves; unset: all that the app's code names"] = None
    queue_settings: Annotated[str | None, "limits and shares of single queues, over what the code says"] = None
    concurrency: Annotated[int, "how many attempts a worker process runs at once"] = 50
    lease: Annotated[timedelta, "how long a silent worker keeps its jobs"] = timedelta(seconds=30)
    grace: Annotated[timedelta, "how long a stopping worker lets attempts finish"] = timedelta(seconds=30)
    max_block: Annotated[
        timedelta, "how long a handler may block a worker's event loop or interpreter before the worker ends"
    ] = 5 * _MINUTE
    poll: Annotated[timedelta, "how often to look for work when no hint comes"] = timedelta(seconds=1)
    prefetch: Annotated[timedelta, "how much measured work a worker may hold in advance"] = timedelta(milliseconds=200)
    max_prefetch: Annotated[int, "how many jobs a worker may hold in advance, however fast they are"] = 2000
    retry: Annotated[str, "the retry policy of tasks and queues that have none: a preset or a policy's text"] = (
        "standard"
    )
    max_attempts_cap: Annotated[int | None, "no job may fail more often than this, whatever it asks for"] = None
    max_retry_after: Annotated[timedelta, "the longest wait that RetryAfter may ask for"] = timedelta(days=1)
    unknown_task_ttl: Annotated[timedelta, "how long a job waits for a worker that knows its task"] = timedelta(days=7)
    retention: Annotated[timedelta, "how long succeeded and cancelled jobs are kept"] = timedelta(days=7)
    max_payload: Annotated[int, "the largest arguments of a job, in bytes of JSON"] = 256 * 1024
    max_result: Annotated[int, "the largest result of a job, in bytes of JSON"] = 64 * 1024
    dead_letter: Annotated[str | None, "where dead jobs are forwarded to: queue:name or a URL"] = None
    dead_letter_retry: Annotated[str, "how tries to forward a dead job are spaced"] = (
        "exponential(1s, cap=5m, max_attempts=unlimited)"
    )
    auto_migrate: Annotated[bool | None, "migrate the store when it is opened; unset: SQLite yes, servers no"] = None
    http_allow: Annotated[tuple[str, ...] | None, "what HTTP jobs may reach beside public addresses"] = None
    http_signing_secrets: Annotated[
        tuple[str, ...] | None, "the secrets that sign HTTP jobs; several to replace one"
    ] = None
    secrets: Annotated[tuple[str, ...] | None, "named secrets of HTTP jobs: `NAME@HOST=VALUE` each; see http.md"] = None
    log: Annotated[str, "how log lines look: console or json"] = "console"
    tokens: Annotated[tuple[str, ...] | None, "who may use the API: `SCOPES:sha256:HASH` each; see rest.md"] = None
    token_file: Annotated[str | None, "a file with more of them, one a line"] = None
    hosts: Annotated[tuple[str, ...] | None, "the host names the API answers to, beside this machine's own"] = None
    redact: Annotated[
        tuple[str, ...] | None, "whose values are not shown, by the names of keys; `default` is a list; see rest.md"
    ] = ("default",)
    max_body: Annotated[int, "the largest body of a request to the API, in bytes"] = 1024 * 1024
    max_connections: Annotated[int | None, "how many connections the API keeps open; unset: what open files allow"] = (
        None
    )
    max_client_connections: Annotated[int | None, "how many of them one address may have; unset: half of them"] = None
    metrics_port: Annotated[int | None, "the port of a worker's metrics and health; unset: none; 0: any"] = None
    metrics_host: Annotated[str, "the address that metrics and health are served at"] = "127.0.0.1"
    otel: Annotated[bool, "tell OpenTelemetry about enqueues and attempts"] = False
    otel_ratio: Annotated[float, "which part of all jobs is traced, from 0 to 1"] = 1.0

    def __post_init__(self) -> None:
        for name in ("concurrency", "max_payload", "max_result", "max_body"):
            if getattr(self, name) < 1:
                raise BadSetting(f"{name} is {getattr(self, name)}; it must be at least 1.")
        for name in ("max_connections", "max_client_connections"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise BadSetting(f"{name} is {getattr(self, name)}; it must be at least 1.", "Leave it unset.")
        if self.max_prefetch < 0:
            raise BadSetting(f"max_prefetch is {self.max_prefetch}; it must not be negative.")
        if self.max_attempts_cap is not None and self.max_attempts_cap < 1:
            raise BadSetting(
                f"max_attempts_cap is {self.max_attempts_cap}; it must be at least 1.", "Leave it unset for no cap."
            )
        if not timedelta(milliseconds=100) <= self.lease <= 60 * _MINUTE:
            raise BadSetting(f"lease is {self.lease}; it must lie between 100ms and 1h.")
        if self.max_block < timedelta(seconds=1):
            raise BadSetting(f"max_block is {self.max_block}; it must be at least 1s.")
        if self.poll <= timedelta(0):
            raise BadSetting(f"poll is {self.poll}; it must be longer than nothing.")
        if self.metrics_port is not None and not 0 <= self.metrics_port <= 65535:
            raise BadSetting(f"metrics_port is {self.metrics_port}; it must lie between 0 and 65535.")
        if not 0 <= self.otel_ratio <= 1:
            raise BadSetting(f"otel_ratio is {self.otel_ratio}; it must lie between 0 and 1.")
        if self.log not in ("console", "json"):
            raise BadSetting(f"log is {self.log!r}; it must be console or json.")
        for name in ("http_signing_secrets", "secrets"):
            if (given := getattr(self, name)) is not None:
                msgspec.structs.force_setattr(self, name, tuple(HiddenText(secret) for secret in given))
        if self.queues is not None and not self.queues:
            raise BadSetting("queues is empty; a worker needs at least one queue.", "Leave it unset for all queues.")

    def with_given(self, **given: Any) -> Settings:
        """The same with other values where one is given."""
        return msgspec.structs.replace(self, **{name: value for name, value in given.items() if value is not None})

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, beneath: Mapping[str, Any] = types.MappingProxyType({}), **given: Any
    ) -> Settings:
        """The settings from PERDURE_… variables; `given` ones (not None) win over them, they over those `beneath`."""
        values: dict[str, Any] = dict(beneath)
        for name, kind in setting_kinds().items():
            text = environment.get(variable_of(name), "").strip()
            if given.get(name) is not None:
                values[name] = given[name]
            elif text:
                values[name] = _read_variable(name, kind, text)
        return cls(**values)


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return f"PERDURE_{name.upper()}"


def describe() -> list[tuple[str, str, object]]:
    """Every setting with its meaning and default, for `--help` and the docs."""
    hints = typing.get_type_hints(Settings, include_extras=True)
    defaults = Settings()
    return [(name, hint.__metadata__[0], getattr(defaults, name)) for name, hint in hints.items()]


@functools.cache
def setting_kinds() -> dict[str, object]:
    """The type of every setting."""
    return typing.get_type_hints(Settings)


def read_value(kind: object, value: object, *, what: str) -> object:
    """A setting's value from a text, or from a number, truth or list of texts; raises BadDuration or ValueError."""
    wanted = inner_kind(kind)
    if isinstance(value, str):
        return None if wanted is not kind and value.lower() in ("none", "unset") else _read_text(wanted, value, what)
    if wanted is timedelta and isinstance(value, int | float):
        return parse_duration(value, what=what)
    if typing.get_origin(wanted) is tuple and isinstance(value, list) and all(isinstance(part, str) for part in value):
        return tuple(part.strip() for part in value if part.strip())
    if wanted is float and type(value) is int:
        return float(value)
    # Compared by its very type, as True is an int to Python, and to nobody else.
    if wanted in (bool, int, float) and type(value) is wanted:
        return value
    raise ValueError(value)


def inner_kind(kind: object) -> object:
    """The type of a setting's value where it has one: `int` for `int | None`."""
    if not isinstance(kind, types.UnionType):
        return kind
    return next(part for part in typing.get_args(kind) if part is not type(None))


def _read_text(wanted: object, text: str, what: str) -> object:
    if wanted is timedelta:
        return parse_duration(text, what=what)
    if wanted is int or wanted is float:
        return wanted(text)
    if wanted is bool:
        truths = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        if text.lower() not in truths:
            raise ValueError(text)
        return truths[text.lower()]
    if wanted is str:
        return text
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _read_variable(name: str, kind: object, text: str) -> object:
    try:
        return read_value(kind, text, what=name)
    except (ValueError, BadDuration) as error:
        what = str(error) if isinstance(error, BadDuration) else f"{text!r} cannot be read."
        raise BadSetting(f"The environment variable {variable_of(name)} is wrong: {what}") from None
