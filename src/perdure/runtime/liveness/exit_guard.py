"""A small process that kills a worker process which hangs so that nothing inside it can end it.

All code in the worker process, its watchdog too, needs Python's interpreter lock. A handler that holds that lock all
the time, for example in a regular expression that backtracks, stops all of it. So the last resort is another process,
which reads a pipe from the worker:

- The watchdog writes a beat every second. When no beat has come for `max_block`, the guard kills the worker. Time in
  which the worker was stopped (SIGSTOP) does not count.
- Python's signal handler is written in C and does not need the lock: it writes the number of each signal to the pipe
  (`signal.set_wakeup_fd`). After SIGTERM or SIGINT the guard waits for the grace period and a few seconds, and kills
  the worker if it still runs. It also tells the watchdog of the signal: Python's own handler runs in the main thread
  only, and not before a blocking call there is over if the signal came to another thread or just before that call.

The guard ends when the worker has ended. This file is also the program of the guard. It imports few modules of the
standard library and nothing of Perdure, so that a guard starts fast and needs little memory.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

_STOPPING = (signal.SIGTERM, signal.SIGINT)
_BLOCKED = (*_STOPPING, signal.SIGHUP)
"""Signals that a terminal or service manager sends to all processes of a worker; the guard must outlive them."""

_BEAT = 0
"""The byte of a beat; no signal has this number."""

_LOOK = 1.0
"""How many seconds without a message pass until the guard counts them and looks whether the worker is there."""

_ONE_STOP = 1.0
"""Signals within so many seconds are one stop: a service manager signals the supervisor, which passes it on, too."""

_LONGEST = 10 * 365 * 86400.0
"""The longest time in seconds that the timer is set to; systems refuse very long ones."""


class ExitGuard:
    """The worker's side: the guard process and the pipe to it. Make and stop it in the main thread."""

    def __init__(self, *, grace: float, late: float, max_block: float) -> None:
        """Start the guard; raises OSError where the system grants no process or descriptor.

        The worker ends within `grace` and `late` seconds of the first signal, `late` seconds after the second, and
        `max_block` seconds after its last beat.
        """
        import subprocess  # here, so that the guard's own process does not import it

        self._pipes = [*os.pipe(), *os.pipe()]
        theirs, self._pipe, self._echo, their_echo = self._pipes
        os.set_blocking(self._pipe, False)
        os.set_blocking(self._echo, False)
        arguments = (theirs, their_echo, os.getpid(), grace, late, max_block)
        # The guard inherits the blocked signals, so that there is no moment at which they would end it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, *map(str, arguments)],
                pass_fds=[theirs, their_echo],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._before = signal.set_wakeup_fd(self._pipe, warn_on_full_buffer=False)

    def beat(self) -> None:
        """Say that the process runs; call it at least every second, in any thread."""
        with contextlib.suppress(OSError):  # a full pipe holds enough beats; a closed one has no reader
            os.write(self._pipe, bytes([_BEAT]))

    def has_signal(self) -> bool:
        """Whether a signal to stop has come since the last call."""
        try:
            return bool(os.read(self._echo, 512))
        except OSError:
            return False

    def stop(self) -> None:
        """End the guard: the worker has stopped, and the program has its process to itself again."""
        used = signal.set_wakeup_fd(self._before, warn_on_full_buffer=False)
        if used not in (self._pipe, -1):
            signal.set_wakeup_fd(used)  # somebody else has replaced it meanwhile
        self._close()
        self._process.kill()
        self._process.wait()

    def _close(self) -> None:
        # The guard's ends stay open here until now: Python would complain about signals that it cannot write any more.
        for descriptor in self._pipes:
            os.close(descriptor)


def guard(pipe: int, echo: int, worker: int, grace: float, late: float, max_block: float) -> None:
    """Read the pipe until the worker has ended, or has to be killed."""

    def kill(*_: object) -> None:
        if os.getppid() == worker:
            os.kill(worker, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGALRM, kill)
    silence = 0.0
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while os.getppid() == worker:
        if not poll.poll(_LOOK * 1000):
            silence += 0.0 if _is_stopped(worker) else _LOOK
            if silence >= max_block:
                kill()
            continue
        messages = os.read(pipe, 512)
        if not messages:
            return
        if _BEAT in messages:
            silence = 0.0
        if any(message in _STOPPING for message in messages):
            _stop_within(grace, late)
            os.write(echo, b"!")


def _stop_within(grace: float, late: float) -> None:
    """Set the timer at the end of which the worker is killed, or shorten it after the second signal."""
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    if not left:
        signal.setitimer(signal.ITIMER_REAL, min(grace + late, _LONGEST))
    elif grace + late - left > _ONE_STOP:
        signal.setitimer(signal.ITIMER_REAL, min(left, late))


def _is_stopped(worker: int) -> bool:
    """Whether SIGSTOP or a debugger has stopped the process; known on Linux only."""
    try:
        with open(f"/proc/{worker}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in (b"T", b"t")


if __name__ == "__main__":
    guard(*map(int, sys.argv[1:4]), *map(float, sys.argv[4:7]))
