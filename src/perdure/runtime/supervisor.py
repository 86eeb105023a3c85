"""Keeps several worker processes alive: starts them, replaces one that crashes, passes stop signals on, waits for all.

It is a plain process without a store: what it supervises are commands. A worker that exits by itself with code 0
after a stop is done; one that dies otherwise is replaced, with a growing pause when it dies again and again. A worker
that finds its engine unusable ends all of them: another would find the same, or begin a new store in its place.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

from perdure.system.clock import Clock

LIFELINE = "PERDURE_LIFELINE"
"""The environment variable with the descriptor of the pipe by which a worker notices that its supervisor is gone."""

_QUICK = 5.0
_START = 60.0
"""Within how many seconds an exit with a code of refusal counts as a refusal to start; imports may take long."""

_LONGEST_PAUSE = 10.0
_REFUSALS = frozenset({2, 4})
_ENGINE_UNUSABLE = 5
"""The exit code of a worker whose engine cannot be used, and for which it does not wait."""


class Supervisor:
    """Runs `count` copies of a command."""

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        *,
        clock: Clock,
        say: Callable[[str], None],
        variables: Callable[[int], Mapping[str, str]] = lambda place: {},
    ) -> None:
        """`variables` are those of the environment that differ from place to place."""
        self._command = list(command)
        self._variables = variables
        self._count = count
        self._clock = clock
        self._say = say
        self._places: list[_Place] = []
        self._stops = 0
        self._changed = threading.Event()

    def run(self) -> int:
        """Supervise until stopped; gives the exit code: 0 when every worker ended well.

        A worker that refuses to start (bad usage, engine unreachable) will refuse again: its code is given at once.
        """
        read_end, write_end = os.pipe()
        environment = {**os.environ, LIFELINE: str(read_end)}
        self._places = [
            _Place(self._command, {**environment, **self._variables(place)}, read_end, self._clock)
            for place in range(self._count)
        ]
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            while not all(place.is_done(self._stops > 0) for place in self._places):
                refused = self._tend()
                if refused is not None:
                    self._stop(signal.SIGTERM, None)
                    return refused
                self._changed.wait(0.05)
                self._changed.clear()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            # Closing the write end tells workers that are left, after a crash of this very code, to stop.
            os.close(write_end)
            os.close(read_end)
        # A worker that the stop met before it could listen died of SIGTERM with nothing in its hands: well, too.
        return 0 if all(place.code in (0, -signal.SIGTERM) for place in self._places) else 1

    def _tend(self) -> int | None:
        """Look after every place once; gives the exit code of a worker that refused to start or to go on."""
        for place in self._places:
            ended = place.poll()
            if ended is not None and not self._stops:
                if ended.code == _ENGINE_UNUSABLE or (ended.is_first and ended.code in _REFUSALS):
                    return ended.code
                self._say(f"worker process {ended.pid} {_how(ended.code)}; starting another in {ended.pause:g} s")
            if place.is_vacant and not self._stops:
                place.start_when_due()
        return None

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stops += 1
        for place in self._places:
            place.signal(signal.SIGTERM)
        self._changed.set()


class _Ended:
    def __init__(self, pid: int, code: int, pause: float, is_first: bool) -> None:
        self.pid = pid
        self.is_first = is_first
        self.code = code
        self.pause = pause


class _Place:
    """One worker process after another."""

    def __init__(self, command: list[str], environment: dict[str, str], lifeline: int, clock: Clock) -> None:
        self._command = command
        self._environment = environment
        self._lifeline = lifeline
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._due = 0.0
        self._deaths = 0
        self._generation = 0
        self.code = 0

    @property
    def is_vacant(self) -> bool:
        return self._process is None

    def is_done(self, is_stopping: bool) -> bool:
        return is_stopping and self._process is None

    def start_when_due(self) -> None:
        if self._clock.monotonic() >= self._due:
            self._started = self._clock.monotonic()
            # In a group of its own, so that Ctrl-C reaches it once, from the supervisor, and not twice.
            self._process = subprocess.Popen(
                self._command, env=self._environment, pass_fds=[self._lifeline], start_new_session=True
            )

    def poll(self) -> _Ended | None:
        """Notice the end of the process; a place that lost its worker quickly waits longer before the next."""
        if self._process is None:
            return None
        code = self._process.poll()
        if code is None:
            return None
        pid, self._process, self.code = self._process.pid, None, code
        lived = self._clock.monotonic() - self._started
        is_quick = lived < _QUICK
        self._deaths = self._deaths + 1 if is_quick else 0
        pause = min(0.1 * 2.0 ** (self._deaths - 1), _LONGEST_PAUSE) if self._deaths else 0.0
        self._due = self._clock.monotonic() + pause
        self._generation += 1
        return _Ended(pid, code, pause, self._generation == 1 and lived < _START)

    def signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


def stop_with_supervisor(stop: Callable[[], None]) -> bool:
    """In a supervised worker: call `stop` when the supervisor is gone, so that no worker is left without one.

    Gives whether this is a supervised worker.
    """
    descriptor = os.environ.pop(LIFELINE, None)
    if descriptor is None:
        return False

    # Else what handlers start would inherit it.
    os.set_inheritable(int(descriptor), False)

    def watch(end: int) -> None:
        try:
            os.read(end, 1)  # nobody ever writes; it returns when the last write end is closed
        except OSError:
            return
        stop()

    threading.Thread(target=watch, args=(int(descriptor),), name="perdure-lifeline", daemon=True).start()
    return True


def _how(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
