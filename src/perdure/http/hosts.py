"""The hosts that a secret is bound to: exact names and addresses, all names below one, each with or without a port."""

from __future__ import annotations

import re

import msgspec

from perdure.errors import BadOption, BadSetting
from perdure.http.url import Target, read_url

ANY_HOST = "*"
"""Stands for every host. Only signing secrets may have it: other secrets would be sent to any host that a job names."""

_LONGEST = 300
_PORT = re.compile(r":[0-9]{1,5}$", re.ASCII)
_HINT = "Write a host like api.example.com, *.example.com, api.example.com:8443, 192.0.2.1 or [2001:db8::1]:8443."


class HostPattern(msgspec.Struct, frozen=True):
    """One host, or all names below a host."""

    host: str
    """A name or an address as `read_url` gives it; empty for every host."""
    is_below: bool
    """Whether it means the names below the host, and not the host itself."""
    port: int | None
    """None: any port."""

    def matches(self, target: Target) -> bool:
        if self.port is not None and target.port != self.port:
            return False
        if self.is_below:
            return not self.host or target.host.endswith(f".{self.host}")
        return target.host == self.host


def read_host_pattern(text: object) -> HostPattern:
    """A pattern from its text; raises BadSetting. Hosts are read as in URLs, so that one spelling means one host."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise BadSetting("A secret is bound to something that is not the name of a host.", _HINT)
    given = text.strip()
    if given == ANY_HOST:
        return HostPattern("", True, None)
    is_below = given.startswith("*.")
    rest = given[2:] if is_below else given
    if not rest or any(sign in rest for sign in "*/?#@"):
        raise _bad(text)
    try:
        target = read_url(f"https://{rest}/")
    except BadOption:
        raise _bad(text) from None
    is_address = ":" in target.host or target.host.replace(".", "").isdigit()
    if is_below and is_address:
        raise _bad(text)
    return HostPattern(target.host, is_below, target.port if _PORT.search(rest) else None)


def _bad(text: str) -> BadSetting:
    return BadSetting(f"A secret is bound to {text[:80]!r}, which is not the name of a host.", _HINT)
