"""A small process that kills a worker process which was told to stop and has not ended in time.

All code in the worker process, its watchdog too, needs Python's interpreter lock. A handler that holds that lock all
the time, for example in a regular expression that backtracks, stops all of it. So the last resort is another process.
Python's signal handler is written in C and does not need the lock: it writes the number of each signal to a pipe
(`signal.set_wakeup_fd`), and the guard reads that pipe. After SIGTERM or SIGINT the guard waits for the grace period
and a few seconds, and kills the worker if it still runs. It ends when the worker has ended.

This file is also the program of the guard. It imports few modules of the standard library and nothing of Perdure, so
that a guard starts fast and needs little memory.
"""

from __future__ import annotations

import os
import select
import signal
import sys

_STOPPING = (signal.SIGTERM, signal.SIGINT)
_BLOCKED = (*_STOPPING, signal.SIGHUP)
"""Signals that a terminal or service manager sends to all processes of a worker; the guard must outlive them."""

_LOOK = 5.0
"""After how many seconds at the latest the guard notices that the worker is gone while a copy of it keeps the pipe."""

_ONE_STOP = 1.0
"""Signals within so many seconds are one stop: a service manager signals the supervisor, which passes it on, too."""


class ExitGuard:
    """The worker's side: the guard process and the pipe to it. Use it in the main thread."""

    def __init__(self, grace: float, late: float) -> None:
        """Start the guard; raises OSError where the system grants no process or descriptor.

        A worker ends within `grace` seconds and `late` seconds of the first signal; `late` seconds after the second.
        """
        import subprocess  # here, so that the guard's own process does not import it

        read_end, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        command = [sys.executable, "-I", "-S", __file__, *map(str, (read_end, os.getpid(), grace, late))]
        # The guard inherits the blocked signals, so that there is no moment at which they would end it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
        try:
            self._process = subprocess.Popen(
                command,
                pass_fds=[read_end],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.close(read_end)
        self._before = signal.set_wakeup_fd(self._pipe, warn_on_full_buffer=False)

    def stop(self) -> None:
        """End the guard: the worker has stopped, and the program has its process to itself again."""
        used = signal.set_wakeup_fd(self._before, warn_on_full_buffer=False)
        if used not in (self._pipe, -1):
            signal.set_wakeup_fd(used)  # somebody else has replaced it meanwhile
        os.close(self._pipe)
        self._process.kill()
        self._process.wait()


def guard(pipe: int, worker: int, grace: float, late: float) -> None:
    """Wait for signals until the worker has ended; kill it when it was told to stop and its time is over."""

    def kill(*_: object) -> None:
        if os.getppid() == worker:
            os.kill(worker, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGALRM, kill)
    whole = grace + late
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while os.getppid() == worker:
        if not poll.poll(_LOOK * 1000):
            continue
        numbers = os.read(pipe, 512)
        if not numbers:
            return
        if not any(number in _STOPPING for number in numbers):
            continue
        left, _ = signal.getitimer(signal.ITIMER_REAL)
        if not left:
            signal.setitimer(signal.ITIMER_REAL, whole)
        elif whole - left > _ONE_STOP:
            signal.setitimer(signal.ITIMER_REAL, min(left, late))


if __name__ == "__main__":
    guard(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
