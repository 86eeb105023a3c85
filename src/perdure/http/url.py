"""Reads the URL of a request, strictly: one spelling of a host means one thing, or it is refused.

The parts that come out of here are the ones that are resolved, checked, connected to and sent; no other parser looks at
the URL again, so that no two parts of the program can disagree about where it leads.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote

import msgspec

from perdure.errors import BadOption
from perdure.text.credentials import hide_credentials

LONGEST_URL = 8192

_FORM = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<query>\?[^#]*)?(#.*)?",
    re.ASCII | re.IGNORECASE,
)
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\]")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
_SAFE = "/%:@!$&'()*+,;=~-._?[]"
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request goes."""

    scheme: str
    host: str
    """A name in lower case, or an address without brackets."""
    port: int
    path: str
    """Path and query as they are sent."""

    @property
    def authority(self) -> str:
        """Host and port as the Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port: what messages say of a URL, since paths and queries may hold secrets."""
        return f"{self.scheme}://{self.authority}"


def read_url(url: object) -> Target:
    """The target of an absolute http or https URL; raises BadOption for anything else."""
    if not isinstance(url, str):
        raise BadOption(f"The URL is a {type(url).__name__}, not a text.", _HINT)
    if len(url) > LONGEST_URL:
        raise BadOption(f"The URL has {len(url):,} characters, and at most {LONGEST_URL:,} are sent.")
    if _FORBIDDEN.search(url):
        raise _bad(url, "has a space, a control character or a backslash", "Percent-encode it.")
    found = _FORM.fullmatch(url)
    if found is None or not found["authority"]:
        raise _bad(url, "is not absolute", _HINT)
    scheme = found["scheme"].lower()
    if scheme not in _DEFAULT_PORTS:
        raise _bad(url, f"has the scheme {scheme!r}", _HINT)
    host, port = _read_authority(url, found["authority"])
    path = quote(found["path"] or "/", safe=_SAFE) + quote(found["query"] or "", safe=_SAFE)
    return Target(scheme=scheme, host=host, port=_DEFAULT_PORTS[scheme] if port is None else port, path=path)


def read_address(text: str) -> IPv4Address | IPv6Address | None:
    """The address that a text is in its only spelling; None when it is none."""
    try:
        return IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError:
        return None


def _read_authority(url: str, authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise _bad(url, "has a user name or password in it", "Send credentials in an Authorization header.")
    if authority.startswith("["):
        inside, closed, after = authority[1:].partition("]")
        if not closed or (after and not after.startswith(":")):
            raise _bad(url, "has a host that cannot be read", _HINT)
        return _read_ipv6(url, inside), _read_port(url, after[1:]) if after else None
    host, colon, port = authority.partition(":")
    return _read_host(url, host), _read_port(url, port) if colon else None


def _read_ipv6(url: str, text: str) -> str:
    address = read_address(text) if ":" in text and "%" not in text else None
    if address is None:
        raise _bad(url, "has a host in brackets that is no IPv6 address", "Zone ids are not accepted.")
    return str(address)


def _read_host(url: str, host: str) -> str:
    if not host.isascii():
        raise _bad(url, "has a host that is not written in ASCII", "Write it in its xn-- form.")
    name = host.lower().removesuffix(".")
    labels = name.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        # A last label that is a number makes the whole an address; of its many spellings only the plain one is taken.
        if read_address(name) is None:
            raise _bad(url, "has an address in an unusual form as its host", "Write it as four decimal numbers.")
        return name
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise _bad(url, "has a host that is no valid name", _HINT)
    return name


def _read_port(url: str, text: str) -> int:
    if not _PORT.fullmatch(text) or not 1 <= int(text) <= 65535:
        raise _bad(url, "has a port that is no number from 1 to 65535", "Leave it out for the usual one.")
    return int(text)


_HINT = "Write it like https://host/path or http://host:8080/path."


def _bad(url: str, what: str, hint: str) -> BadOption:
    # Errors end up in logs.
    return BadOption(f"The URL {hide_credentials(url)[:100]!r} {what}.", hint)
