"""The app of an older version of the crash tests' program: it knows one of the tasks only."""

from __future__ import annotations

from tests.chaos.work import RETRY, on_loop

from perdure import App

app = App(retry=RETRY)
app.task(name=on_loop.name)(on_loop.function)
