"""Several observers at once; one that raises hurts nobody."""

from __future__ import annotations

import logging

import pytest
from tests.observe.told import attempt

from perdure import App
from perdure.model.event import Event, tell_all
from perdure.observe.fanout import Fanout


class Heard:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(self, event: Event) -> None:
        self.events.append(event)


class Faulty(Heard):
    def tell(self, event: Event) -> None:
        super().tell(event)
        raise RuntimeError("the observer is broken")


def test_everybody_hears_every_event_though_one_raises(caplog: pytest.LogCaptureFixture) -> None:
    first, faulty, last = Heard(), Faulty(), Heard()
    fanout = Fanout([first, faulty, last])
    events = [attempt(), attempt(), attempt()]
    fanout.tell(events[0])
    tell_all(fanout, events[1:])
    assert first.events == faulty.events == last.events == events
    assert [record.levelno for record in caplog.records] == [logging.ERROR], "said once, not once per event"


def test_an_observer_that_raises_does_not_stop_a_worker_from_enqueuing() -> None:
    app = App("sqlite://", observer=Faulty())

    @app.task
    def work() -> None: ...

    try:
        assert work.enqueue()
    finally:
        app.close()


def test_metrics_go_on_beside_an_observer_of_ones_own() -> None:
    heard = Heard()
    app = App("sqlite://", observer=heard)
    app.observer.tell(attempt())
    try:
        assert len(heard.events) == 1
        assert b'perdure_attempts_total{outcome="succeeded",queue="mail",task="send"} 1.0' in app.render_metrics()[0]
    finally:
        app.close()
