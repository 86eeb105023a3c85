"""A directory and a user to whom permissions apply, also where the tests run as root, whom they do not stop."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def own_directory() -> Iterator[Path]:
    """A directory that belongs to the user of `unprivileged`; the parents of pytest's own are closed to it."""
    path = Path(tempfile.mkdtemp(prefix="pd-"))
    if os.geteuid() == 0:
        os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
    try:
        yield path
    finally:
        path.chmod(0o700)
        shutil.rmtree(path)


@contextmanager
def unprivileged() -> Iterator[None]:
    """As another user than root. Whatever is imported inside must have been imported before."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
