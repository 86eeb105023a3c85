"""Turns the workers' log into the demo's story: of hundreds of events, the few that show what a failure leads to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from perdure.cli.demo.tasks import CRASH_CODE
from perdure.cli.demo.view import Tone
from perdure.cli.demo.workers import Gone, Heard
from perdure.cli.output import one_line, plural, rough
from perdure.model.job import JobId

MOST_LINES = 40

_BUDGET = {
    "failed": 2,
    "asked to wait": 1,
    "timeout": 1,
    "lost": 1,
    "dead exhausted": 1,
    "dead unrecoverable": 2,
    "dead failed": 1,
    "dead outcome unknown": 2,
    "dead lost": 2,
    "cancelled": 2,
    "lease lost": 2,
    "store trouble": 1,
    "succeeded": 4,
}
"""How often each kind of event is told; others of its kind are only counted."""
_USUAL_BUDGET = 2
_FOLLOWED = 4
"""So many jobs at a time are told from a failure to their end."""


class Story:
    """What is told of one run."""

    def __init__(self, labels: Mapping[JobId, str], say: Callable[[str, Tone], None]) -> None:
        self._labels = labels
        self._say = say
        self._told: Counter[str] = Counter()
        self._pids: dict[str, int] = {}
        self._lines = 0
        self.followed: set[JobId] = set()
        """Jobs whose failures were told, and whose end is to be told."""
        self.trouble: str | None = None
        """What a worker last said about the store, unless all was well again afterwards."""
        self.untold = 0
        """Events that were only counted."""

    def worker_of(self, pid: int) -> str | None:
        """The id of the worker that runs in this process, once it has said so."""
        return next((worker for worker, its_pid in self._pids.items() if its_pid == pid), None)

    def tell(self, text: str, tone: Tone = "plain") -> None:
        """Tell something that matters whatever else was told."""
        self._lines += 1
        self._say(text, tone)

    def follow(self, job_id: JobId) -> None:
        """From now on tell whatever happens to this job."""
        self.followed.add(job_id)

    def hear(self, heard: Heard) -> None:
        """Take one log record of a worker."""
        record = heard.record
        match record.get("event"):
            case "worker_started":
                self._pids[str(record["worker"])] = heard.pid
                self._maybe("worker started", f"worker {heard.pid} is at work", "plain")
            case "worker_reaped":
                self._reaped(record, heard.pid)
            case "lease_lost":
                text = f"worker {heard.pid} was too slow to renew its lease; it dropped its jobs and begins anew"
                self._maybe("lease lost", text, "warning")
            case "store_trouble":
                self.trouble = f"worker {heard.pid}: {one_line(str(record['message']))}"
                self._maybe("store trouble", self.trouble, "warning")
            case "store_recovered":
                self.trouble = None
            case str(event) if event.startswith("attempt_"):
                self._attempt(record)
            case _:
                pass

    def gone(self, gone: Gone, held: int | None) -> None:
        """A worker process is gone by its own doing."""
        how = f"exited with code {gone.code}" if gone.code >= 0 else f"was ended by signal {-gone.code}"
        why = "a job took the whole process down: " if gone.code == CRASH_CODE else ""
        self.tell(f"{why}worker {gone.pid} {how}{_holding(held)}", "bad")

    def killed(self, pid: int, held: int | None) -> None:
        """A worker process was killed on purpose."""
        self.tell(f"worker {pid} was killed with SIGKILL{_holding(held)}", "bad")

    def replaced(self, pid: int, by: int) -> None:
        """Another worker process takes the place of one that is gone."""
        self.tell(f"worker {by} takes the place of {pid}", "faint")

    def succeeded(self, job_id: JobId, attempt: int) -> None:
        """A followed job came to a good end."""
        self._maybe("succeeded", f"{self._label(job_id)} succeeded at attempt {attempt}", "good")

    def _reaped(self, record: Mapping[str, Any], by: int) -> None:
        pid = self._pids.get(str(record["worker"]))
        whose = "a vanished worker" if pid is None else f"worker {pid}"
        jobs = plural(int(record["jobs"]), "job")
        self.tell(f"the lease of {whose} ran out: worker {by} recovered its {jobs}", "good")

    def _attempt(self, record: Mapping[str, Any]) -> None:
        job_id = JobId(str(record["job"]))
        match record.get("state"):
            case "dead":
                self._dead(job_id, record)
            case "cancelled":
                self._maybe("cancelled", f"{self._label(job_id)} was cancelled while it ran", "good")
            case "waiting" | "ready" if record["event"] in ("attempt_failed", "attempt_timeout", "attempt_lost"):
                self._failed(job_id, record)
            case _:
                pass

    def _failed(self, job_id: JobId, record: Mapping[str, Any]) -> None:
        kind = str(record["event"]).removeprefix("attempt_")
        error = _error(record)
        if error.startswith("RetryAfter"):
            kind = "asked to wait"
        delay = rough(timedelta(seconds=float(record.get("delay") or 0)))
        how, place = f"failed: {error}", ""
        if kind == "lost":
            how = f"was lost: {error.partition(': ')[2]}" if "child" in error else "was lost with its worker"
            place = ", alone in a child process"  # whoever was lost with a worker may be what killed it
        count = f"attempt {record['attempt']} of {record['max_attempts']}"
        text = f"{self._label(job_id)}: {count} {how}; next in {delay}{place}"
        is_told = self._maybe(kind, text, "warning", always=job_id in self.followed)
        if is_told and len(self.followed) < _FOLLOWED:
            self.follow(job_id)

    def _dead(self, job_id: JobId, record: Mapping[str, Any]) -> None:
        reason = str(record["reason"])
        error = _error(record)
        count = plural(int(record["attempt"]), "attempt")
        text = f"{self._label(job_id)} is dead ({reason}) after {count}: {error}"
        if reason == "outcome unknown":
            text = f"{self._label(job_id)} is dead (outcome unknown): it runs at most once, so never again"
        self._maybe(f"dead {reason}", text, "bad", always=job_id in self.followed)
        self.followed.discard(job_id)

    def _maybe(self, kind: str, text: str, tone: Tone, *, always: bool = False) -> bool:
        """Tell it, unless enough of its kind was told, or enough in all."""
        self._told[kind] += 1
        is_wanted = always or self._told[kind] <= _BUDGET.get(kind, _USUAL_BUDGET)
        if not is_wanted or self._lines >= MOST_LINES:
            self.untold += 1
            return False
        self.tell(text, tone)
        return True

    def _label(self, job_id: JobId) -> str:
        return self._labels.get(job_id, str(job_id))


def _error(record: Mapping[str, Any]) -> str:
    """The error without its module path, on one line."""
    kind, _, message = one_line(str(record.get("error", "")), 160).partition(": ")
    return f"{kind.rpartition('.')[2]}: {message}" if message else kind


def _holding(held: int | None) -> str:
    return "" if held is None else f" while it held {plural(held, 'job')}"
