"""Makes the user and password of a store's URL safe to parse: raw special characters in them are percent-encoded.

Parsers disagree about a password with a raw `@`, and take parts of one with a raw `/` or `?` for a host, a path or an
option, which then get into errors and logs. The first kind is encoded here, the second kind refused.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from perdure.errors import BadSetting
from perdure.text.credentials import hide_credentials

_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SAFE = "%!$&'()*+,;=-._~"


def encode_userinfo(rest: str) -> str:
    """What follows `scheme://` with user and password percent-encoded; BadSetting where they have no clear end."""
    authority = re.split(r"[/?]", rest, maxsplit=1)[0]
    after = rest[len(authority) :]
    path, _, query = after.partition("?")
    names = [option.partition("=")[0] for option in query.split("&")]
    if "@" in path or any("@" in name for name in names) or (not path and _has_torn_port(authority, query)):
        raise BadSetting(
            "The store's URL has an @ after its host: the user or password in it probably holds a / or ? as it is.",
            "Percent-encode it: write %2F for /, %3F for ?, %23 for # and %40 for @.",
        )
    if "@" not in authority:
        return rest
    userinfo, _, host = authority.rpartition("@")
    user, colon, password = userinfo.partition(":")
    return f"{_encoded(user)}{colon}{_encoded(password)}@{host}{after}"


def shown(value: str) -> str:
    """The value of an option as an error shows it: what stands before an @ may belong to a password."""
    return repr(hide_credentials(value)[:80])


def _has_torn_port(authority: str, query: str) -> bool:
    """Whether the value of an option goes on with what may be a password: in `user:12?x=y@host` it began as a port."""
    port = authority.rpartition("]")[2].partition(":")[2]
    return "@" in query and "@" not in authority and port != ""


def _encoded(part: str) -> str:
    return quote(_LONE_PERCENT.sub("%25", part), safe=_SAFE)
