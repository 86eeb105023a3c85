"""Runs one verb of an adapter inside the peer's environment and prints what came of it, as one line of JSON.

python -m bench.peers MODULE setup | enqueue_one | enqueue_bulk | enqueue_at | trickle | settled | work
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import inspect
import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.tally import ours

BATCH = 1000
STEP = 100


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("verb")
    parser.add_argument("--task", default="noop_async")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds after which to stop")
    parser.add_argument("--due", type=float, default=0.0, help="seconds until the jobs may run")
    parser.add_argument("--pause", type=float, default=0.02)
    options = parser.parse_args()
    with asyncio.Runner() as runner:
        adapter = Adapter(importlib.import_module(f"bench.peers.{options.module}"), runner)
        found = VERBS[options.verb](adapter, options)
        print(json.dumps(found))
        sys.stdout.flush()


class Adapter:
    """A module's functions, each called as it wants to be called."""

    def __init__(self, module: Any, runner: asyncio.Runner) -> None:
        self._module = module
        self._runner = runner

    def has(self, verb: str) -> bool:
        return hasattr(self._module, verb)

    def call(self, verb: str, *values: Any) -> Any:
        function = getattr(self._module, verb, None)
        if function is None:
            return None
        found = function(*values)
        return self._runner.run(found) if inspect.iscoroutine(found) else found


def setup(adapter: Adapter, options: argparse.Namespace) -> object:
    adapter.call("setup")
    return {}


def enqueue(verb: str, step: int) -> Callable[[Adapter, argparse.Namespace], object]:
    """Enqueue until the jobs or the time are used up; a first job, not timed, opens what is opened late."""

    def timed(adapter: Adapter, options: argparse.Namespace) -> object:
        if not adapter.has(verb):
            return {"missing": verb}
        adapter.call("connect")
        # A whole second: not everybody can say a part of one.
        due = math.ceil(time.time() + options.due)
        more = (due,) if verb == "enqueue_at" else ()
        end = options.first + options.jobs
        adapter.call(verb, options.task, range(options.first, options.first + 1), *more)
        done = options.first + 1
        began = time.monotonic()
        while done < end and time.monotonic() - began < options.limit:
            until = min(done + step, end)
            adapter.call(verb, options.task, range(done, until), *more)
            done = until
        seconds = time.monotonic() - began
        adapter.call("disconnect")
        jobs = done - options.first
        return {"jobs": jobs, "timed": jobs - 1, "seconds": seconds, "due": due}

    return timed


def trickle(adapter: Adapter, options: argparse.Namespace) -> object:
    """One job after a pause after another, each with the moment of its enqueue in the tally."""
    tally = ours()
    adapter.call("connect")
    end = time.monotonic() + options.limit
    done = 0
    for number in range(options.first, options.first + options.jobs):
        if time.monotonic() > end:
            break
        tally.sent[number] = time.monotonic()
        adapter.call("enqueue_one", options.task, range(number, number + 1))
        done += 1
        # An uneven pause, so as not to fall into step with somebody's polling.
        time.sleep(options.pause * (0.5 + (number * 37 % 101) / 101))
    adapter.call("disconnect")
    return {"jobs": done}


def settled(adapter: Adapter, options: argparse.Namespace) -> object:
    if not adapter.has("settled"):
        return {"missing": "settled"}
    adapter.call("connect")
    count = adapter.call("settled", options.jobs)
    adapter.call("disconnect")
    return {"settled": count}


def work(adapter: Adapter, options: argparse.Namespace) -> object:
    adapter.call("work")
    return {}


VERBS: dict[str, Callable[[Adapter, argparse.Namespace], object]] = {
    "setup": setup,
    "enqueue_one": enqueue("enqueue_one", STEP),
    "enqueue_bulk": enqueue("enqueue_bulk", BATCH),
    "enqueue_at": enqueue("enqueue_at", BATCH),
    "trickle": trickle,
    "settled": settled,
    "work": work,
}

if __name__ == "__main__":
    main()
