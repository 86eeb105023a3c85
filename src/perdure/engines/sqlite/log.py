"""The file of the write-ahead log, and how much of it is in use.

The log is written in rounds, each over what the one before has left there. Its head and each of its frames carry the
mark of their round (the two salts of SQLite's documented format), so that a look at one place tells whether the round
under way has come that far. SQLite takes no locks on this file: it may be opened and closed beside it.
"""

from __future__ import annotations

import os

MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
"""What a log begins with: the number of its format, for either order of bytes in its checksums."""
_HEAD = 32
_FRAME = 24
"""What stands before each page."""
_SHARE = 8
"""The file is made longer in advance only by less than this part of the free disk space: the rest is for jobs."""
_STRETCH = 1 << 20
"""How many bytes are written at once to make the file longer."""


class Log:
    """The log of one open store; used by one thread at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None
        self._page = 0
        self._earlier: dict[int, bytes] = {}
        """What earlier rounds have left at places that were looked at."""

    @property
    def size(self) -> int:
        """How long the file is, in use or not."""
        return 0 if self._file is None else os.fstat(self._file).st_size

    def reaches(self, size: int) -> bool:
        """Whether at least so many bytes of it are in use."""
        try:
            file = self._opened()
            place = self._place(file, size)
            found = os.pread(file, _FRAME, place)
            # Mostly nothing has happened there, and one look is enough.
            if len(found) < _FRAME or found == self._earlier.get(place):
                return False
            head = os.pread(file, _HEAD, 0)
            if head[:4] not in MAGIC:
                return False  # another program has truncated the log; a checkpoint would copy what is not there
            if found[8:16] == head[16:24]:
                return True
        except OSError:
            return False
        self._earlier[place] = found
        return False

    def has_room(self, size: int) -> bool:
        """Whether the file can be made so long and leave most of the free disk space to others."""
        try:
            disk = os.statvfs(self._path)
        except OSError:
            return False
        return size - self.size <= disk.f_bavail * disk.f_frsize // _SHARE

    def lengthen(self, size: int) -> None:
        """Make the file so long, with nothing in it; only for who holds the write lock, or it might hit a frame."""
        file = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            before = end = os.fstat(file).st_size
            try:
                while end < size:
                    end += os.pwrite(file, bytes(min(size - end, _STRETCH)), end)
                os.fsync(file)
            except OSError:
                # Where the disk is full, what is left of it is for frames.
                os.ftruncate(file, before)
                raise
        finally:
            os.close(file)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _opened(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        return self._file

    def _place(self, file: int, size: int) -> int:
        """Where the frame begins in which the part of that size ends."""
        if not self._page:
            self._page = int.from_bytes(os.pread(file, _HEAD, 0)[8:12], "big")
        step = _FRAME + self._page
        return _HEAD + size // step * step
