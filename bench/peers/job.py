"""What the handlers of all peers do: note the moment in the tally, and fail where that is the work."""

from __future__ import annotations

import os
import threading
from time import monotonic, sleep

from bench.tally import ours

URL = os.environ["BENCH_URL"]
ENGINE = os.environ["BENCH_ENGINE"]
TASKS = ("noop_async", "noop_sync", "fail_twice")
"""What the handlers of a peer are called; Perdure has `compute` and `noop_at_most_once` beside them."""
_SUM = 6000
"""Adding up so many numbers takes Python about a tenth of a millisecond."""

_tally = ours()
_last, _first, _runs, _worker = _tally.last, _tally.first, _tally.runs, _tally.worker
_own = int(os.environ.get("BENCH_WORKER", "0"))


class OnPurposeError(Exception):
    """What jobs that fail twice raise."""


def noop(number: int) -> None:
    """Note that the job ran, and nothing else."""
    _last[number] = monotonic()
    _worker[number] = _own
    _runs[number] = (_runs[number] + 1) & 255


def compute(number: int) -> None:
    """Keep the processor busy for a moment, as handlers do that make something."""
    sum(range(_SUM))
    noop(number)


def fail_twice(number: int) -> None:
    """Fail at the first and at the second run, succeed at the third."""
    runs = _runs[number] = (_runs[number] + 1) & 255
    if runs == 1:
        _first[number] = monotonic()
    if runs < 3:
        raise OnPurposeError(number)
    _last[number] = monotonic()
    _worker[number] = _own


def gate() -> None:
    """In a worker, wait for the other ones; elsewhere go on. The last line of an adapter."""
    if "BENCH_WORKER" in os.environ:
        threading.Thread(target=_end_with, args=(int(os.environ["BENCH_PARENT"]),), daemon=True).start()
        _tally.arrive(_own)


def _end_with(parent: int) -> None:
    """End when the harness is gone, even if it was killed: nobody else would end this process then."""
    while _is_there(parent):
        sleep(1)
    os._exit(1)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
