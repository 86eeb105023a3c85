"""Makes text from outside safe to print: what could begin a new line, command a terminal or turn text round.

Escaped are control characters (C0, DEL and C1, which has NEL), the line and paragraph separators, marks that change the
direction of text, further invisible format characters, and halves of surrogate pairs.
"""

from __future__ import annotations

import re

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str, limit: int | None = None) -> str:
    """The text on one line, with escapes such as `\\n`, `\\x1b` and `\\u202e` for what is not safe to print.

    With `limit` at most so many characters of the text, and a sign that there were more.
    """
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]}…"
    if text.isprintable():
        return text  # as most are
    return UNSAFE.sub(_escaped, text)


def json_escaped(text: str) -> str:
    """JSON text with the same characters written as JSON escapes them; line ends between values stay."""
    return text if text.isprintable() else UNSAFE.sub(_json_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    return _SHORT.get(character) or (
        f"\\x{ord(character):02x}" if ord(character) < 0x100 else f"\\u{ord(character):04x}"
    )


def _json_escaped(found: re.Match[str]) -> str:
    return found[0] if found[0] in "\n\t" else f"\\u{ord(found[0]):04x}"
