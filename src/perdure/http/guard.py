"""The address guard: which addresses HTTP jobs may be sent to, and what a deployment opens beyond that.

Whoever can enqueue a request chooses its URL, and the worker stands inside the network: without a guard its requests
would reach what the outside never should. Only public unicast addresses pass; the rest needs the setting `http_allow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from perdure.errors import BadSetting
from perdure.http.url import read_address

Address = IPv4Address | IPv6Address

_IPV4 = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by carriers"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud platform's own"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_IPV6 = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "an IPv4 address in disguise"),
        ("::/96", "an IPv4 address in disguise"),
        ("64:ff9b:1::/48", "a local translation to IPv4"),
        ("2001::/32", "a Teredo tunnel"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "for documentation"),
        ("3fff::/20", "for documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_6TO4 = IPv6Network("2002::/16")
_ISATAP = (0x00005EFE, 0x02005EFE)


def why_not_public(address: Address) -> str | None:
    """What kind of address it is, if it is not public; None for one that everybody may reach."""
    if isinstance(address, IPv4Address):
        return next((what for network, what in _IPV4 if address in network), None)
    inner = _embedded(address)
    if inner is not None:
        what = why_not_public(inner)
        return None if what is None else f"a form of {inner}, {what}"
    what = next((what for network, what in _IPV6 if address in network), None)
    return what or (None if address in _PUBLIC_IPV6 else "reserved")


class Guard:
    """What a deployment lets HTTP jobs reach: everything public, and the addresses, networks and hosts it names."""

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._networks: list[IPv4Network | IPv6Network] = []
        self._hosts: set[str] = set()
        for entry in allowed:
            network = _read_network(entry)
            if network is not None:
                self._networks.append(network)
            else:
                self._hosts.add(_read_name(entry))

    def refusal(self, host: str, address: Address) -> str | None:
        """Why `host` may not be reached at `address`; None if it may."""
        if host in self._hosts:
            return None
        if any(address.version == network.version and address in network for network in self._networks):
            return None
        what = why_not_public(address)
        return None if what is None else f"{address} is {what}"


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to this one end up at, for the forms that have one and may be public."""
    value = int(address)
    if address in _NAT64:
        return IPv4Address(value & 0xFFFFFFFF)
    if address in _6TO4:
        return IPv4Address((value >> 80) & 0xFFFFFFFF)
    if address in _PUBLIC_IPV6 and (value >> 32) & 0xFFFFFFFF in _ISATAP:
        return IPv4Address(value & 0xFFFFFFFF)
    return None


def _read_network(entry: str) -> IPv4Network | IPv6Network | None:
    text = entry.strip().removeprefix("[").removesuffix("]")
    if read_address(text.partition("/")[0]) is None:
        return None
    try:
        return ip_network(text)
    except ValueError as error:
        raise BadSetting(f"http_allow has {entry!r}: {error}.", _HINT) from None


def _read_name(entry: str) -> str:
    name = entry.strip().lower().removesuffix(".")
    is_name = name.isascii() and all(part.replace("-", "").replace("_", "").isalnum() for part in name.split("."))
    if not is_name or name.split(".")[-1].isdigit():
        raise BadSetting(f"http_allow has {entry!r}, which is no address, network or host name.", _HINT)
    return name


_HINT = "Write it like 127.0.0.1,10.0.0.0/8,internal.example"
