"""Who may use the API while no token is set up: programs on this machine that speak to it directly.

Every rule fails closed. A request must come from a loopback address, over HTTP/1.1 or newer, with exactly one Host
header that names this machine, and without any header that proxies add. A proxy that adds no header and rewrites Host
cannot be told from a local program unless it speaks HTTP/1.0, as nginx does where it is not told otherwise: with a
proxy in front, set up tokens.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

_HOST = re.compile(r"[A-Za-z0-9.:_\[\]-]{1,300}")
"""What a host and a port are made of: without user names, paths, spaces and other marks that parsers disagree about."""
_VERSIONS = ("1.1", "2", "2.0", "3")
_PROXY_NAMES = frozenset(
    {
        "cdn-loop",
        "client-ip",
        "fly-client-ip",
        "forwarded",
        "front-end-https",
        "max-forwards",
        "remote-addr",
        "surrogate-capability",
        "true-client-ip",
        "via",
        "x-client-ip",
        "x-client-port",
        "x-cluster-client-ip",
        "x-coming-from",
        "x-host",
        "x-ip",
        "x-originating-ip",
        "x-proto",
        "x-proxyuser-ip",
        "x-real-ip",
        "x-real-port",
        "x-remote-addr",
        "x-remote-ip",
        "x-scheme",
        "x-true-client-ip",
        "x-url-scheme",
    }
)
_PROXY_BEGINNINGS = (
    "akamai-",
    "cf-",
    "cloudfront-",
    "fastly-",
    "fly-",
    "ot-proxy",
    "proxy-",
    "ssl-client-",
    "wl-proxy-",
    "x-accel-",
    "x-akamai-",
    "x-amz-cf-",
    "x-amzn-",
    "x-appengine-",
    "x-arr-",
    "x-azure-",
    "x-bluecoat-",
    "x-cdn",
    "x-cloud-trace-",
    "x-envoy-",
    "x-fastly-",
    "x-forward",
    "x-haproxy-",
    "x-ms-edge-",
    "x-nginx-",
    "x-nf-",
    "x-original",
    "x-proxy",
    "x-ssl-",
    "x-traefik-",
    "x-varnish",
    "x-vercel-",
)


def refusal(connection: HTTPConnection) -> str | None:
    """Why a request without a token is not let in, as a part of a sentence; None if it is."""
    scope = connection.scope
    client = scope.get("client")
    if client is None or not client[0]:
        return "the address of the client is not known"
    if not is_loopback(client[0]):
        return "the request comes from another machine"
    if scope.get("http_version") not in _VERSIONS:
        return "the request is not HTTP/1.1 or newer, so that a proxy may have sent it"
    marks = proxy_headers(connection.headers.keys())
    if marks:
        return f"the header {marks[0]} shows that a proxy has sent the request"
    hosts = connection.headers.getlist("host")
    if len(hosts) != 1 or not is_loopback(name_of(hosts[0])):
        return "the Host header does not name this machine"
    return None


def proxy_headers(names: Iterable[str]) -> list[str]:
    """Those of these header names, in lower case, that proxies add."""
    return [name for name in names if name in _PROXY_NAMES or name.startswith(_PROXY_BEGINNINGS)]


def is_loopback(host: str) -> bool:
    """Whether a name or an address means this machine and can be reached from nowhere else."""
    bare = host.strip("[]").lower()
    if bare == "localhost":
        return True
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def name_of(host: str) -> str:
    """The name or address in a Host header, in lower case; empty where it cannot be read."""
    if not _HOST.fullmatch(host):
        return ""
    try:
        found = urlsplit(f"//{host}")
        _ = found.port  # raises for one that is no port
        return (found.hostname or "").lower().rstrip(".")
    except ValueError:
        return ""
