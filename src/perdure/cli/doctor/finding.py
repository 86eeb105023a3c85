"""One finding of `perdure doctor`."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["ok", "note", "problem"]


class Finding(NamedTuple):
    """One thing looked at; a note deserves a look, a problem needs somebody."""

    check: str
    level: Level
    text: str
