"""Takes passwords and other secrets out of what is shown: URLs in errors and logs, settings in a repr.

Everything that shows a URL which a user gave goes through `hide_credentials`. It has to be safe for URLs that were
written wrong as well: a password with a raw `@`, `/`, `?` or `#` in it ends where no parser expects it. So whatever
stands before the last `@` counts as secret.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

HIDDEN = "…"

_AUTHORITY = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)?.*@", re.DOTALL)
_OPTION = re.compile(
    r"(?P<name>[?&;]\s*[a-z_.-]*(?:pass|pwd|secret|token|key|signature|sig|credential)[a-z_.-]*=)[^&;\s]*",
    re.IGNORECASE,
)
_INSIDE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\n]*@")


def hide_credentials(url: str) -> str:
    """The URL without user, password and options that hold secrets; more than those where it is not clear."""
    return _OPTION.sub(rf"\g<name>{HIDDEN}", _AUTHORITY.sub(rf"\g<scheme>{HIDDEN}@", url, count=1))


def hide_credentials_in(text: str) -> str:
    """A text of somebody else's, such as a driver's error, without the credentials of URLs in it."""
    return _INSIDE.sub(lambda found: hide_credentials(found[0]), text)


class Discreet:
    """A struct whose repr hides the fields that `_secrets` names, and the credentials of URLs in the other ones."""

    __slots__ = ()
    # Without an annotation, which would make it one more field of a struct to whoever lists those.
    _secrets = frozenset[str]()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What Rich prints, too."""
        fields = msgspec.structs.asdict(self).items()  # type: ignore[arg-type]  # it is mixed into structs
        return [(name, _shown(value, is_secret=name in self._secrets)) for name, value in fields]


def _shown(value: object, *, is_secret: bool) -> object:
    if value is None:
        return None
    if is_secret:
        return HIDDEN
    return hide_credentials(value) if isinstance(value, str) and "://" in value else value
