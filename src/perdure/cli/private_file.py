"""Writes a file that only its user can read, for what holds the arguments and errors of jobs.

A new file is made with mode 600, whatever the umask is, and never through a symbolic link: in a directory that others
may write to, a link could lead anywhere. A file that is to be overwritten stays as it is until the new content is
complete, and is then replaced.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from perdure.errors import Refused

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def private_file(path: str, *, may_overwrite: bool) -> Iterator[IO[str]]:
    """The file, open to be written; raises Refused where it exists and may not be overwritten."""
    is_taken = os.path.lexists(path)
    if is_taken and _is_device(path):
        # A pipe or a terminal, which keeps nothing.
        with open(path, "w", encoding="utf-8") as target:
            yield target
        return
    if os.path.islink(path):
        raise Refused(
            f"{path} is a symbolic link, and is not followed.", "Name the file that it leads to, or another one."
        )
    if is_taken and not may_overwrite:
        raise Refused(f"The file {path} exists.", "Give --yes to overwrite it, or another name.")
    if not is_taken:
        with _made(path) as target:
            yield target
        return
    beside = f"{path}.{secrets.token_hex(4)}.part"
    try:
        with _made(beside) as target:
            yield target
        os.replace(beside, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise


def _made(path: str) -> IO[str]:
    try:
        return open(os.open(path, _NEW, 0o600), "w", encoding="utf-8")
    except FileExistsError:
        raise Refused(f"The file {path} was made by another program just now.", "Choose another name.") from None


def _is_device(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
