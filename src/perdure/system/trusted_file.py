"""Whether a file that decides what a program does can be trusted: nobody but its user and root can have written it.

A configuration file in the working directory is read without being asked for, and it can name the app whose code is
run. So one that other users could have put there or changed is refused: one that belongs to another user, that
everybody may write, or whose directory is either of these. The sticky bit of a directory such as /tmp does not help,
as it lets everybody make new files. Members of the file's group are trusted, since many systems make all files
writable for a group that has one member; `perdure doctor` names such a file.
"""

from __future__ import annotations

import os
import stat

_ROOT = 0


def distrust(path: str, status: os.stat_result, *, is_named: bool) -> str | None:
    """Why a file must not be trusted, as the end of a sentence; None when it may be.

    `status` is that of the open file, so that no other file can take its place in between. With `is_named` the user has
    named the file: then it only must not be one that everybody may write.
    """
    if not hasattr(os, "geteuid") or (is_named and not stat.S_ISREG(status.st_mode)):
        return None
    if status.st_mode & stat.S_IWOTH:
        return "everybody may write it"
    if is_named:
        return None
    if status.st_uid not in (_ROOT, os.geteuid()):
        return f"it belongs to another user ({_name(status.st_uid)})"
    full = os.path.abspath(path)
    for directory in dict.fromkeys((os.path.dirname(full), os.path.dirname(os.path.realpath(full)))):
        place = os.stat(directory)
        if place.st_mode & stat.S_IWOTH:
            return f"everybody may write to its directory {directory}"
        if place.st_uid not in (_ROOT, os.geteuid()):
            return f"its directory {directory} belongs to another user ({_name(place.st_uid)})"
    return None


def _name(user: int) -> str:
    import pwd  # only Unix has it, and only an error needs it

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"number {user}"
