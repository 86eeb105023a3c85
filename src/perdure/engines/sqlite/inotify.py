"""Waits until a file is written to, where the operating system can tell (Linux); elsewhere it only waits.

A write is told when it happens, which is before the transaction that it belongs to is complete: whoever is told must
look more than once.
"""

from __future__ import annotations

import ctypes
import os
import select
import time

_MODIFIED = 0x2
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_ENOUGH = 4096


class FileWatch:
    """Tells of writes to one file, which must exist; used by one thread."""

    def __init__(self, path: str) -> None:
        self._descriptor = _watch(path)
        self._poll = select.poll()
        if self._descriptor is not None:
            self._poll.register(self._descriptor, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Wait for a write, at most so long; whether there was one. A time without a watch is simply waited."""
        if self._descriptor is None:
            time.sleep(seconds)
            return False
        if not self._poll.poll(seconds * 1000):
            return False
        try:
            os.read(self._descriptor, _ENOUGH)
        except BlockingIOError:
            pass  # told, but nothing to read after all
        return True

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _watch(path: str) -> int | None:
    """A descriptor that can be read when the file was written to; None where there is no such thing."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        descriptor = int(library.inotify_init1(_FLAGS))
    except (AttributeError, OSError, TypeError):
        return None
    if descriptor < 0:
        return None
    if library.inotify_add_watch(descriptor, os.fsencode(path), ctypes.c_uint32(_MODIFIED)) < 0:
        os.close(descriptor)
        return None
    return descriptor
