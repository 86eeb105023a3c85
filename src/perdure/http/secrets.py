"""Named secrets: what workers sign requests with or send in headers, and to which hosts.

A job holds the name of a secret only. The worker looks the value up when it sends the request, and only for a host that
the secret is bound to: whoever may enqueue a request chooses its URL, and must not get signatures or credentials for a
host of their own. Jobs that came over the API may not use a secret that is bound to no host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from perdure.configuration.settings import HiddenText
from perdure.errors import BadOption, BadSetting
from perdure.http.errors import MissingSecretError, SecretRefusedError, SigningError
from perdure.http.hosts import ANY_HOST, HostPattern, read_host_pattern
from perdure.http.request import Request, SecretRef
from perdure.http.sign import PREFIX, is_key_name, read_secret
from perdure.http.url import Target

_BETWEEN_HOSTS = "+"
_LONGEST_VALUE = 8192
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?", re.ASCII)
_HOW = "Write NAME@HOST=VALUE, with + between several hosts."


class Secret:
    """A secret and the hosts it may be used for: `App(secrets={"stripe": Secret("sk_…", hosts=["api.stripe.com"])})`.

    One that begins with `whsec_` signs requests; any other can be sent in a header. It never shows its value.
    """

    __slots__ = ("hosts", "value")

    def __init__(self, value: str, *, hosts: Sequence[str]) -> None:
        if not isinstance(value, str):
            raise BadOption(f"The value of a secret is a {type(value).__name__}.", "Pass text.")
        if isinstance(hosts, str) or not hosts:
            raise BadOption("A secret is bound to no host.", 'Pass hosts=["api.example.com"].')
        for host in hosts:
            read_host_pattern(host)
        self.value = HiddenText(value)
        self.hosts = tuple(host.strip() for host in hosts)

    def __repr__(self) -> str:
        return f"Secret('…', hosts={list(self.hosts)!r})"


SecretsLike: TypeAlias = Mapping[str, Secret | Sequence[Secret]]
"""What `App(secrets=...)` takes: each name with its secret, or with several while one replaces another."""


def secret_entries(secrets: SecretsLike | None) -> tuple[str, ...] | None:
    """The secrets of an app's code in the form that the setting has."""
    if secrets is None:
        return None
    entries: list[str] = []
    for name, given in secrets.items():
        for secret in [given] if isinstance(given, Secret) else given:
            if not isinstance(secret, Secret):
                raise BadOption(
                    f"The secret {str(name)[:64]!r} is a {type(secret).__name__}.",
                    'Pass Secret("…", hosts=["api.example.com"]).',
                )
            entries.append(HiddenText(f"{name}@{_BETWEEN_HOSTS.join(secret.hosts)}={secret.value}"))
    return tuple(entries)


class _Entry(msgspec.Struct, frozen=True):
    """One value of a secret."""

    value: str
    hosts: tuple[HostPattern, ...] | None
    """None: it is bound to no host."""

    @property
    def signs(self) -> bool:
        return self.value.startswith(PREFIX)

    def serves(self, target: Target, *, is_remote: bool) -> bool:
        if self.hosts is None:
            return not is_remote
        return any(pattern.matches(target) for pattern in self.hosts)


class Secrets:
    """The secrets of a deployment: those of `secrets`, and the signing secrets of `http_signing_secrets`."""

    def __init__(self, signing: Sequence[str] = (), named: Sequence[str] = ()) -> None:
        self._entries: dict[str, list[_Entry]] = {}
        for text in signing:
            # Base64 may end in "=", so what begins like a secret has neither name nor hosts.
            name, entry = ("", _Entry(text, None)) if text.startswith(PREFIX) else _read_entry(text)
            read_secret(entry.value)
            self._entries.setdefault(name, []).append(entry)
        for text in named:
            name, entry = _read_entry(text)
            if not name or entry.hosts is None:
                raise BadSetting("A secret has no name or is bound to no host.", _HOW)
            _check_value(name, entry)
            self._entries.setdefault(name, []).append(entry)

    def can_sign(self, target: Target) -> bool:
        """Whether a request to the target can be signed without naming a secret."""
        return any(entry.serves(target, is_remote=False) for entry in self._entries.get("", []))

    def signing(self, name: str, target: Target, *, is_remote: bool) -> list[str]:
        """The signing secrets of this name, "" for those without one, for a request to the target."""
        entries = self._entries.get(name, [])
        if not entries:
            which = f"named {name!r}" if name else "without a name"
            raise SigningError(
                f"this worker has no signing secret {which}; set PERDURE_SECRETS or PERDURE_HTTP_SIGNING_SECRETS "
                "where workers run",
                {},
            )
        return self._usable(name, entries, target, signs=True, is_remote=is_remote)

    def header(self, name: str, target: Target, *, is_remote: bool) -> str:
        """The secret of this name that a request to the target has in a header."""
        entries = self._entries.get(name, [])
        if not entries:
            raise MissingSecretError(
                f"this worker has no secret named {name!r}; set PERDURE_SECRETS where workers run", {}
            )
        return self._usable(name, entries, target, signs=False, is_remote=is_remote)[0]

    def check(self, request: Request) -> None:
        """Raise BadOption where a secret that is known here refuses the request; others are left to the workers."""
        try:
            if request.sign is not False and (name := signing_name(request)) in self._entries:
                self.signing(name, request.target, is_remote=request.is_remote)
            for value in request.headers.values():
                if isinstance(value, SecretRef) and value.secret in self._entries:
                    self.header(value.secret, request.target, is_remote=request.is_remote)
        except SecretRefusedError as error:
            raise BadOption(f"The request is refused: {error}.") from None

    def _usable(self, name: str, entries: list[_Entry], target: Target, *, signs: bool, is_remote: bool) -> list[str]:
        called = f"the secret {name!r}" if name else "the signing secret without a name"
        fitting = [entry for entry in entries if entry.signs is signs]
        if not fitting:
            what = "is not a signing secret (whsec_…)" if signs else "is a signing secret, which is never sent"
            raise SecretRefusedError(f"{called} {what}", {})
        usable = [entry.value for entry in fitting if entry.serves(target, is_remote=is_remote)]
        if usable:
            return usable
        if all(entry.hosts is None for entry in fitting):
            raise SecretRefusedError(
                f"{called} is bound to no host, and jobs that come over the API use bound secrets only; "
                f"write {name}@{target.host}=whsec_… in http_signing_secrets where workers and the server run",
                {"host": target.host},
            )
        raise SecretRefusedError(
            f"{called} is not bound to the host {target.authority}; add the host to the secret in the settings of "
            "the workers, if the secret is meant for it",
            {"host": target.host},
        )


def signing_name(request: Request) -> str:
    """The name of the secret that signs a request; empty where it names none."""
    return request.sign if isinstance(request.sign, str) else ""


def _read_entry(text: str) -> tuple[str, _Entry]:
    """The name and the secret of `NAME@HOST+HOST=VALUE`; no message repeats the value."""
    head, _, value = text.partition("=")
    name, at, hosts = head.partition("@")
    name = name.strip()
    if not value.strip() or (name and not is_key_name(name)) or (not name and not at):
        raise BadSetting(
            "A secret cannot be read.", f"{_HOW} A value with a comma needs perdure.toml or App(secrets=…)."
        )
    if not at:
        return name, _Entry(value, None)
    patterns = tuple(read_host_pattern(host) for host in hosts.split(_BETWEEN_HOSTS))
    return name, _Entry(value, patterns)


def _check_value(name: str, entry: _Entry) -> None:
    if entry.signs:
        read_secret(entry.value)
        return
    if not _VALUE.fullmatch(entry.value) or len(entry.value) > _LONGEST_VALUE:
        raise BadSetting(
            f"The secret {name!r} cannot be sent in a header.",
            f"It must be printable ASCII on one line, at most {_LONGEST_VALUE:,} characters, without spaces around it.",
        )
    if any(not pattern.host for pattern in entry.hosts or ()):
        raise BadSetting(
            f"The secret {name!r} is bound to {ANY_HOST!r}, and would be sent to any host that a job names.",
            "Name its hosts; only signing secrets (whsec_…) may be bound to every host.",
        )
