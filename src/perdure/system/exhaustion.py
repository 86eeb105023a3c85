"""Recognises errors that mean that the process or the machine is out of resources for the moment.

Descriptors, buffers, memory and threads come back by themselves when others give them up. Code that meets such an error
waits and tries again; it does not end.
"""

from __future__ import annotations

import errno

_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN})
_NO_THREAD = "can't start new thread"
"""What Python says in a RuntimeError, which has no type or number of its own for this."""


def is_exhaustion(error: BaseException) -> bool:
    """Whether the error says that descriptors, buffers, memory, processes or threads have run out."""
    if isinstance(error, OSError):
        return error.errno in _ERRNOS
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and str(error).startswith(_NO_THREAD))
