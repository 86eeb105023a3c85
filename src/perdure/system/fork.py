"""Gives a forked child locks of its own: one that another thread of the parent held at the fork would stay locked.

Only locks that a child needs after it has followed the advice of the error about a fork are registered here: those of
the app and of what it shares with every store that it opens. A store itself is not used in a child.
"""

from __future__ import annotations

import os
import threading
import weakref

_owners: list[tuple[weakref.ref[object], str]] = []


def lock_of(owner: object, name: str = "_lock") -> threading.Lock:
    """A lock for this attribute of the owner; in a forked child the attribute gets a new one."""
    _owners[:] = [each for each in _owners if each[0]() is not None]
    _owners.append((weakref.ref(owner), name))
    return threading.Lock()


def _renew() -> None:
    for reference, name in _owners:
        owner = reference()
        if owner is not None:
            setattr(owner, name, threading.Lock())


os.register_at_fork(after_in_child=_renew)
