"""Notes: small texts that servers keep for a time, so that a repeated request is known again, by any of them."""

from __future__ import annotations

import builtins
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from perdure.store.reply import Reply


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A note as it stands."""

    kind: str
    key: str
    body: str
    made_at: datetime


class NoteStore(Protocol):
    """The verbs of notes."""

    def note(self, kind: str, key: str, body: str, keep: timedelta, *, replaces: bool = False) -> Reply[Note]:
        """Make a note to be kept for so long, unless one of this kind and key stands; gives the one that stands.

        With `replaces` a note that stands gets this body, and keeps its time. Of several who make the same note at
        once, all are given the same one. Notes whose time is over stand no more.
        """
        ...

    def notes(self, kind: str, limit: int) -> Reply[builtins.list[Note]]:
        """The notes of a kind that stand, newest first."""
        ...
