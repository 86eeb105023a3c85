"""Plays the demo: enqueues the jobs, keeps two workers going, and lets things go wrong at their moments.

The loop listens to the workers, replaces those that are gone, shows how far it is, and moves the script on by one step.
It ends when every job has ended, or when the time is up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from perdure.app import App
from perdure.cli.demo.jobs import Cast, Part
from perdure.cli.demo.ledger import read_ledger
from perdure.cli.demo.story import Story
from perdure.cli.demo.view import Standing, Tone, View
from perdure.cli.demo.workers import Crew
from perdure.errors import PerdureError, WrongState
from perdure.model.job import JobId
from perdure.system.clock import Clock
from perdure.text.plural import plural

WORKERS = 2

_STEP = 0.1
_MOST_LOST_WORKERS = 8
_STOP_PATIENCE = 5.0
_FINAL = ("succeeded", "dead", "cancelled")


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What the demo itself knows when the run is over, without asking the store."""

    limits: dict[JobId, int]
    """Every job that was accepted, with the most starts it may have."""
    asked: int
    """How often a job was asked for; the duplicate of a unique key counts here only."""
    workers_lost: int
    seconds: float


class Run:
    """One run of the demo."""

    def __init__(self, *, app: App, folder: Path, cast: Cast, view: View, clock: Clock, within: float) -> None:
        self._app = app
        self._folder = folder
        self._cast = cast
        self._view = view
        self._clock = clock
        self._within = within
        self._began = clock.monotonic()
        self._crew = Crew(folder, clock=clock)
        self._labels: dict[JobId, str] = {}
        self._limits: dict[JobId, int] = {}
        self._asked = 0
        self._workers_lost = 0
        self._states: dict[str, int] = {}
        self._story = Story(self._labels, self._say)

    def play(self) -> Played:
        """Play it to the end; raises when the time is up or the workers cannot be kept going."""
        try:
            self._enqueue_crowd()
            for _ in range(WORKERS):
                self._crew.start()
            self._loop()
            seconds = self._seconds()
        finally:
            self._crew.stop(_STOP_PATIENCE)
        return Played(limits=self._limits, asked=self._asked, workers_lost=self._workers_lost, seconds=seconds)

    def _loop(self) -> None:
        script = self._script()
        is_scripted = True
        while is_scripted or self._ended() < len(self._limits):
            for heard in self._crew.hear(_STEP):
                self._story.hear(heard)
            self._replace_the_gone()
            self._look()
            if is_scripted:
                is_scripted = next(script, "over") != "over"
            if self._seconds() > self._within:
                raise self._too_slow()
        for heard in self._crew.hear(0.0):
            self._story.hear(heard)
        more = f"; {self._story.untold} smaller events were not told" if self._story.untold else ""
        self._say(f"all {len(self._limits)} jobs have ended{more}", "good")

    def _script(self) -> Iterator[str]:
        """What goes wrong, in order; every `yield` waits for the next turn of the loop."""
        while not self._is_past(0.12):
            yield "before the crash"
        lost = self._workers_lost
        self._story.follow(self._enqueue([self._cast.photo])[0])
        while self._workers_lost == lost:
            yield "waiting for the crash"
        while not self._is_past(0.4):
            yield "before the kill"
        charge = self._enqueue([self._cast.charge])[0]
        self._story.follow(charge)
        while (pid := self._started_in(charge)) is None:
            yield "waiting for the charge to run"
        self._kill(pid)
        while not self._is_past(0.6):
            yield "before the cancellations"
        self._cancel_reminder()
        export = self._enqueue([self._cast.export])[0]
        while self._started_in(export) is None:
            yield "waiting for the export to run"
        self._cancel_export(export)

    def _enqueue_crowd(self) -> None:
        _ = self._app.store  # opened before the measuring begins
        began = self._clock.monotonic()
        self._enqueue(self._cast.crowd)
        took = 1000 * (self._clock.monotonic() - began)
        self._say(f"{plural(len(self._limits), 'job')} accepted and durable, in one batch of {took:.0f} ms", "good")
        self._say("one of them was asked for twice with the same unique key, and made once", "good")

    def _enqueue(self, parts: Sequence[Part]) -> list[JobId]:
        ids = self._app.enqueue_many([part.bound for part in parts])
        self._asked += len(ids)
        for job_id, part in zip(ids, parts, strict=True):
            self._labels.setdefault(job_id, part.label)
            self._limits[job_id] = self._limit(part)
        return ids

    def _limit(self, part: Part) -> int:
        if part.bound.delivery == "at_most_once":
            return 1
        retry = self._app.tasks[part.bound.task].retry
        assert retry is not None, "every task of the demo has a policy of its own"
        return retry.max_attempts

    def _kill(self, pid: int) -> None:
        """Kill the worker that runs the charge; any other one if that is gone already."""
        wanted = pid if pid in self._crew.pids else next(iter(self._crew.pids), None)
        if wanted is None or not self._crew.kill(wanted):
            return
        self._crew.gone()
        self._workers_lost += 1
        self._story.killed(wanted, self._held_by(wanted))
        self._story.replaced(wanted, self._crew.start())

    def _cancel_reminder(self) -> None:
        label = self._cast.reminder.label
        [job_id] = [job_id for job_id, its_label in self._labels.items() if its_label == label]
        with self._app.client() as client:
            client.cancel(job_id)
        self._story.tell(f"{label}, due in an hour, was cancelled while it waited", "good")

    def _cancel_export(self, job_id: JobId) -> None:
        with self._app.client() as client:
            try:
                client.cancel(job_id)
            except WrongState:
                return  # it has come to another end meanwhile, which the books will show
        self._story.tell(f"{self._cast.export.label} is running; its cancellation was asked for", "plain")

    def _replace_the_gone(self) -> None:
        for gone in self._crew.gone():
            self._workers_lost += 1
            if self._workers_lost > _MOST_LOST_WORKERS:
                raise self._too_many_lost()
            self._story.gone(gone, self._held_by(gone.pid))
            self._story.replaced(gone.pid, self._crew.start())

    def _held_by(self, pid: int) -> int | None:
        """How many jobs the store counts as running in a process that is gone; None when it is struck off already."""
        worker = self._story.worker_of(pid)
        with self._app.client() as client:
            return next((info.running for info in client.workers() if info.id == worker), None)

    def _look(self) -> None:
        """See how far the jobs are, and how those ended whose failures were told."""
        with self._app.client() as client:
            stats = client.stats()
        self._states = {state: getattr(stats, state) for state in ("waiting", "ready", "running", *_FINAL)}
        followed = sorted(self._story.followed)
        for job in self._app.store.get(followed).wait() if followed else []:
            if job is not None and job.state == "succeeded":
                self._story.succeeded(job.id, job.attempt)
                self._story.followed.discard(job.id)
        self._view.show(
            Standing(
                total=self._cast.count,
                ended=self._ended(),
                states=self._states,
                workers=len(self._crew.pids),
                seconds=self._seconds(),
            )
        )

    def _ended(self) -> int:
        return sum(self._states.get(state, 0) for state in _FINAL)

    def _is_past(self, share: float) -> bool:
        return self._ended() >= share * self._cast.count

    def _started_in(self, job_id: JobId) -> int | None:
        """The process in which a job was started, according to the ledger."""
        entries = read_ledger(self._folder)
        return next((entry.pid for entry in entries if entry.job_id == job_id and entry.kind == "start"), None)

    def _say(self, text: str, tone: Tone = "plain") -> None:
        self._view.say(text, tone, at=self._seconds())

    def _seconds(self) -> float:
        return self._clock.monotonic() - self._began

    def _too_slow(self) -> PerdureError:
        left = ", ".join(f"{count} {state}" for state, count in self._states.items() if count and state not in _FINAL)
        return PerdureError(
            f"The demo stopped after {self._within:.0f} s: {self._ended()} of {self._cast.count} jobs had ended; "
            f"of the others {left or 'not all had been enqueued'}.",
            self._story.trouble or "If this machine is very busy, try again later, or with fewer --jobs.",
        )

    def _too_many_lost(self) -> PerdureError:
        said = " ".join(self._crew.last_words[-1:])
        return PerdureError(
            f"The demo stopped: {self._workers_lost} worker processes were lost, and two were meant to be.",
            f"The last one said: {said}" if said else None,
        )
