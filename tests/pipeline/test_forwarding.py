"""Dead letters from end to end: which sink a dead job goes to, what it is told, and what follows when it refuses."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.regression.test_originals import LEASE, claim_and_vanish

from perdure import App, Attempt, DeadLetter, GiveUp, Job, Retry, RetryAfter, Settings
from perdure.errors import BadOption
from perdure.model.event import Event, Forwarded, ForwardFailed
from perdure.model.forward import Forward
from perdure.model.job import NewJob
from perdure.testing import Harness

EVERY_SECOND = Retry.fixed("1s", jitter="none", max_attempts="unlimited")


class Told:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class Box:
    """A sink that refuses so many times before it accepts."""

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals
        self.calls = 0
        self.jobs: list[Job] = []

    def __call__(self, job: Job) -> None:
        self.calls += 1
        if self.calls <= self.refusals:
            raise ConnectionError("the box is shut")
        self.jobs.append(job)

    @property
    def ids(self) -> list[str]:
        return [job.id for job in self.jobs]


def make_app(**options: Any) -> App:
    app = App("sqlite://", **options)

    @app.task(name="fail", retry=Retry.never_retry())
    def fail(*args: Any) -> None:
        raise ValueError("it broke")

    return app


def die(app: App, *args: Any, **options: Any) -> str:
    return app.tasks["fail"].options(**options).enqueue(*args)


def forward_of(t: Harness, job_id: str) -> Forward | None:
    return t.store.forwards([t.job(job_id).id]).wait().get(t.job(job_id).id)


def state_of(t: Harness, job_id: str) -> str | None:
    forward = forward_of(t, job_id)
    return None if forward is None else forward.state


def test_a_function_gets_the_dead_job_with_its_error() -> None:
    box = Box()
    app = make_app(dead_letter=box)
    with app.testing() as t:
        job_id = die(app, 1, "two")
        t.drain()
        assert box.jobs == [t.job(job_id)]
        assert (t.job(job_id).state, state_of(t, job_id)) == ("dead", "forwarded")
    assert box.jobs[0].error is not None
    assert box.jobs[0].error.message == "it broke"


def test_a_function_of_two_gets_the_history_too() -> None:
    seen: list[list[Attempt]] = []

    def bury(job: Job, history: list[Attempt]) -> None:
        seen.append(history)

    app = make_app(dead_letter=bury)
    with app.testing() as t:
        job_id = die(app, retry=Retry.fixed("1s", max_attempts=3))
        t.advance("1m")
        assert seen == [t.history(job_id)]
    assert [attempt.outcome for attempt in seen[0]] == ["failed"] * 3


def test_an_async_function_is_awaited() -> None:
    seen: list[str] = []

    async def bury(job: Job) -> None:
        seen.append(job.id)

    app = make_app(dead_letter=bury)
    with app.testing() as t:
        job_id = die(app)
        t.drain()
        assert state_of(t, job_id) == "forwarded"
        assert seen == [job_id]


# Proves [INV-22].
def test_a_sink_that_refuses_50_times_keeps_the_job_here_and_gets_it_in_the_end() -> None:
    told, box = Told(), Box(refusals=50)
    app = make_app(dead_letter=DeadLetter.function(box, retry=EVERY_SECOND), observer=told)
    with app.testing() as t:
        job_id = die(app)
        t.drain()
        for number in range(1, 51):
            forward = forward_of(t, job_id)
            assert forward is not None
            assert (forward.state, forward.tries, forward.error) == (
                "failing",
                number,
                "ConnectionError: the box is shut",
            )
            assert forward.next_at == t.now + timedelta(seconds=1)
            assert t.job(job_id).state == "dead"
            t.advance("1s")
        assert (state_of(t, job_id), box.ids) == ("forwarded", [job_id])
        t.advance("1h")
    assert box.calls == 51
    failures = told.of(ForwardFailed)
    assert [event.tries for event in failures] == list(range(1, 51))
    assert {(event.job, event.retry_in) for event in failures} == {(job_id, timedelta(seconds=1))}
    assert all("Box" in event.sink and "the box is shut" in event.error for event in failures)
    assert [(event.job, event.tries) for event in told.of(Forwarded)] == [(job_id, 51)]


def test_tries_back_off_as_the_setting_says() -> None:
    box = Box(refusals=100)
    settings = Settings(dead_letter_retry="exponential(1s, cap=4s, jitter=none, max_attempts=unlimited)")
    app = make_app(dead_letter=box, settings=settings)
    with app.testing() as t:
        die(app)
        t.drain()
        calls = []
        for _ in range(16):
            calls.append(box.calls)
            t.advance("1s")
    assert calls == [1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6]


def test_the_usual_policy_never_gives_up() -> None:
    box = Box(refusals=150)
    app = make_app(dead_letter=box)
    with app.testing() as t:
        job_id = die(app)
        t.advance("7d")
        assert state_of(t, job_id) == "forwarded"
        assert t.job(job_id).state == "dead"


def test_a_policy_with_a_limit_stops_and_a_person_goes_on() -> None:
    told, box = Told(), Box(refusals=3)
    app = make_app(dead_letter=DeadLetter.function(box, retry=Retry.fixed("1s", max_attempts=3)), observer=told)
    with app.testing() as t, app.client() as client:
        job_id = die(app)
        t.advance("1d")
        assert (state_of(t, job_id), box.calls, t.job(job_id).state) == ("stopped", 3, "dead")
        assert told.of(ForwardFailed)[-1].retry_in is None
        assert client.forward(job_id) == 1
        t.drain()
        assert (state_of(t, job_id), box.ids) == ("forwarded", [job_id])
        assert client.forward(job_id) == 0


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GiveUp("no"), TimeoutError(), GeneratorExit()])
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_function_raises_is_a_refusal(error: BaseException, is_async: bool) -> None:
    calls: list[str] = []

    def bury(job: Job) -> None:
        calls.append(job.id)
        if len(calls) == 1:
            raise error

    async def bury_async(job: Job) -> None:
        bury(job)

    app = make_app(dead_letter=bury_async if is_async else bury)
    with app.testing() as t:
        job_id = die(app)
        t.drain()
        assert state_of(t, job_id) == "failing"
        t.advance("1m")
        assert (state_of(t, job_id), calls) == ("forwarded", [job_id, job_id])


@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_that_hangs_is_a_refusal_after_its_timeout(is_async: bool) -> None:
    calls: list[str] = []

    def bury(job: Job) -> None:
        calls.append(job.id)
        until = time.monotonic() + 20
        while len(calls) == 1 and time.monotonic() < until:
            time.sleep(0.01)

    async def bury_async(job: Job) -> None:
        calls.append(job.id)
        if len(calls) == 1:
            await asyncio.sleep(20)

    app = make_app(dead_letter=DeadLetter.function(bury_async if is_async else bury, timeout="1s"))
    with app.testing() as t:
        job_id = die(app)
        t.drain()
        forward = forward_of(t, job_id)
        assert forward is not None
        assert (forward.state, forward.error) == ("failing", "it did not accept the job within 1s")
        t.advance("1m")
        assert state_of(t, job_id) == "forwarded"


def test_a_sink_may_say_when_to_come_back() -> None:
    calls: list[float] = []

    def bury(job: Job) -> None:
        calls.append((t.now - begin).total_seconds())
        if len(calls) == 1:
            raise RetryAfter("10m")

    app = make_app(dead_letter=bury)
    with app.testing() as t:
        begin = t.now
        die(app)
        t.advance("1h")
    assert calls == [0.0, 600.0]


def test_a_queue_gets_a_copy_that_nobody_runs_unasked() -> None:
    app = make_app(dead_letter="queue:graveyard")
    app.queue("graveyard", concurrency=1)
    with app.testing() as t:
        job_id = die(app, 1, "two", priority=7)
        t.drain()
        (copy,) = t.jobs(queue="graveyard")
        dead = t.job(job_id)
        assert (copy.task, copy.args, copy.priority, copy.state) == (dead.task, dead.args, 7, "ready")
        assert copy.id != dead.id
        assert copy.unique == f"dead-letter:{job_id}:1"
        assert (dead.state, state_of(t, job_id)) == ("dead", "forwarded")
    assert "graveyard" not in app.registry.queue_names()


def test_a_copy_is_made_once_however_often_it_is_forwarded() -> None:
    app = make_app(dead_letter="queue:graveyard")
    with app.testing() as t:
        job_id = die(app)
        t.drain()
        sink = app.sinks.of(t.job(job_id))
        assert sink is not None
        for number in range(3):
            t._run(sink.accept(t.job(job_id), t.history(job_id), number))
        (copy,) = t.jobs(queue="graveyard")
        # Nor once it has ended, when its unique key is free again.
        app.client().cancel(copy.id)
        t._run(sink.accept(t.job(job_id), t.history(job_id), 4))
        assert [found.id for found in t.jobs(queue="graveyard")] == [copy.id]


def test_a_job_that_dies_again_is_copied_again() -> None:
    app = make_app(dead_letter="queue:graveyard")
    with app.testing() as t, app.client() as client:
        job_id = die(app)
        t.drain()
        client.replay(job_id)
        t.drain()
        copies = {copy.unique for copy in t.jobs(queue="graveyard")}
        assert copies == {f"dead-letter:{job_id}:1", f"dead-letter:{job_id}:2"}


def test_a_copy_that_dies_in_the_graveyard_stays_there() -> None:
    app = make_app(dead_letter="queue:graveyard")
    app.queue("graveyard")

    @app.task(queue="graveyard")
    def dig() -> None: ...

    with app.testing() as t:
        job_id = die(app)
        t.advance("1d")
        (copy,) = t.jobs(queue="graveyard")
        assert copy.state == "dead"
        assert forward_of(t, copy.id) is None
        assert len(t.jobs()) == 2
        assert state_of(t, job_id) == "forwarded"


def letters_app(**options: Any) -> tuple[App, list[dict[str, Any]]]:
    app = make_app(**options)
    letters: list[dict[str, Any]] = []

    @app.task(queue="letters")
    def read_letter(letter: dict[str, Any]) -> None:
        letters.append(letter)

    return app, letters


def test_a_task_is_told_of_the_dead_job_with_error_and_attempts() -> None:
    app, letters = letters_app(dead_letter="queue:letters:read_letter")
    with app.testing() as t:
        job_id = die(app, 1, "two")
        t.drain()
        assert state_of(t, job_id) == "forwarded"
    (letter,) = letters
    assert (letter["id"], letter["task"], letter["args"]) == (job_id, "fail", {"args": [1, "two"]})
    assert (letter["reason"], letter["error"]["message"]) == ("exhausted", "it broke")
    assert [attempt["outcome"] for attempt in letter["attempts"]] == ["failed"]


def test_a_task_can_be_given_itself() -> None:
    app, letters = letters_app()
    app.queue("default", dead_letter=app.tasks["read_letter"])
    with app.testing() as t:
        job_id = die(app)
        t.drain()
        assert [letter["id"] for letter in letters] == [job_id]
    assert "letters" in app.registry.queue_names()


def test_a_letter_that_is_too_large_to_be_stored_says_that_it_is_cut() -> None:
    app, letters = letters_app(dead_letter="queue:letters:read_letter")
    with app.testing() as t:
        job_id = die(app, "x" * (256 * 1024 - 200))
        t.drain()
        assert state_of(t, job_id) == "forwarded"
    (letter,) = letters
    assert (letter["id"], letter["is_cut"], letter["error"]["message"]) == (job_id, True, "it broke")


@pytest.mark.parametrize(
    "args", [b"no JSON", b'{"args":["\\ud800"]}', b'{"args":[NaN]}', b'{"args":[1e999]}', b"\xff\x00"]
)
def test_a_job_that_died_of_its_arguments_is_forwarded_all_the_same(args: bytes) -> None:
    app, letters = letters_app(dead_letter="queue:letters:read_letter")
    with app.testing() as t:
        job_id = app.surroundings.ids.job()
        t.store.enqueue([NewJob(id=job_id, task="fail", queue="default", args=args)]).wait()
        t.drain()
        assert (t.job(job_id).reason, state_of(t, job_id)) == ("bad payload", "forwarded")
    assert [letter["id"] for letter in letters] == [job_id]


def test_a_queues_sink_comes_before_the_apps() -> None:
    own, usual = Box(), Box()
    app = make_app(dead_letter=usual)
    app.queue("own", dead_letter=own)
    app.queue("plain")
    app.queue("none", dead_letter="none")
    with app.testing() as t:
        ids = [die(app, queue=queue) for queue in ("own", "plain", "unheard", "none")]
        t.drain()
        assert own.ids == ids[:1]
        assert sorted(usual.ids) == sorted(ids[1:3])
        assert (state_of(t, ids[3]), t.job(ids[3]).state) == (None, "dead")


def test_a_job_in_a_retry_queue_goes_to_the_sink_of_where_it_came_from() -> None:
    own, usual = Box(), Box()
    app = make_app(dead_letter=usual)
    app.queue("mail", dead_letter=own, retry_queue="mail-retries")
    with app.testing() as t:
        job_id = die(app, queue="mail", retry=Retry.fixed("1s", max_attempts=2))
        t.advance("1m")
        assert t.job(job_id).queue == "mail-retries"
        assert (own.ids, usual.ids) == ([job_id], [])


def test_the_setting_names_a_sink_and_the_parameter_wins_over_it() -> None:
    box = Box()
    for app, copies in (
        (make_app(settings=Settings(dead_letter="queue:graveyard")), 1),
        (make_app(settings=Settings(dead_letter="queue:graveyard"), dead_letter=box), 0),
    ):
        with app.testing() as t:
            die(app)
            t.drain()
            assert len(t.jobs(queue="graveyard")) == copies
    assert box.calls == 1


@pytest.mark.parametrize("way", ["replay", "retry", "discard"])
def test_a_job_that_is_put_back_or_dismissed_is_not_forwarded(way: str) -> None:
    box = Box(refusals=1)
    app = make_app(dead_letter=box)
    with app.testing() as t, app.client() as client:
        job_id = die(app)
        t.drain()
        assert state_of(t, job_id) == "failing"
        t.store.pause("default", None).wait()
        getattr(client, way)(job_id)
        t.advance("1d")
        assert (forward_of(t, job_id), box.calls) == (None, 1)


def test_only_dead_jobs_are_forwarded() -> None:
    box = Box()
    app = make_app(dead_letter=box)

    @app.task
    def work() -> None: ...

    with app.testing() as t, app.client() as client:
        work.enqueue()
        client.cancel(work.options(delay="1h").enqueue())
        die(app, retry=Retry.fixed("1h"))
        t.drain()
    assert box.calls == 0


def test_a_changed_configuration_holds_for_what_is_due_already() -> None:
    wrong, right = Box(refusals=1000), Box()
    app = make_app()
    app.queue("default", dead_letter=wrong)
    with app.testing() as t:
        job_id = die(app)
        t.advance("1m")
        assert state_of(t, job_id) == "failing"
        app.queue("default", dead_letter=right)
        t.advance("1h")
        assert (state_of(t, job_id), right.ids) == ("forwarded", [job_id])


def test_a_sink_that_is_configured_no_more_is_said_to_be_missing() -> None:
    told = Told()
    app = make_app(observer=told)
    app.queue("default", dead_letter=Box(refusals=1000))
    with app.testing() as t:
        job_id = die(app)
        t.drain()
        app.queue("default")
        t.advance("1h")
        forward = forward_of(t, job_id)
        assert forward is not None
        assert (forward.state, t.job(job_id).state) == ("failing", "dead")
        assert forward.error == "no dead_letter is configured for the queue 'default' here"
    assert told.of(ForwardFailed)[-1].sink == "none"


def test_what_died_before_there_was_a_sink_is_forwarded_when_a_person_asks() -> None:
    box = Box()
    app = make_app()
    with app.testing() as t, app.client() as client:
        ids = [die(app), die(app)]
        t.drain()
        app.queue("default", dead_letter=box)
        t.advance("1h")
        assert box.calls == 0
        assert client.forward(state="dead") == 2
        t.drain()
        assert sorted(box.ids) == sorted(ids)
        assert {forward.state for forward in client.forwards(*ids).values()} == {"forwarded"}


def test_a_job_lost_with_its_worker_is_forwarded_when_it_is_declared_dead() -> None:
    box = Box()
    app = make_app(dead_letter=box)
    with app.testing() as t:
        job_id = die(app)
        assert len(claim_and_vanish(t.store)) == 1
        t.advance(LEASE)
        assert (t.job(job_id).reason, box.ids) == ("lost", [job_id])


def test_the_log_tells_of_refusals_and_acceptance_but_not_of_arguments(caplog: pytest.LogCaptureFixture) -> None:
    app = make_app(dead_letter=DeadLetter.function(Box(refusals=1), retry=EVERY_SECOND))
    caplog.set_level(logging.INFO, "perdure")
    with app.testing() as t:
        job_id = die(app, "a secret")
        t.advance("1s")
    lines = [record.getMessage() for record in caplog.records if "handed to" in record.getMessage()]
    assert len(lines) == 2
    assert lines[0].startswith(f"Dead job {job_id} could not be handed to function:")
    assert "(try 1, next in 1s); it stays dead here: ConnectionError: the box is shut" in lines[0]
    assert lines[1].startswith(f"Dead job {job_id} was handed to function:")
    assert "a secret" not in "".join(lines)


def test_queues_that_are_each_others_sinks_are_refused() -> None:
    app = make_app()
    app.queue("a", dead_letter="queue:b")
    app.queue("b", dead_letter="queue:c")
    app.sinks.refuse_circles()
    app.queue("c", dead_letter="queue:a")
    with pytest.raises(BadOption, match="a → b → c → a"):
        app.sinks.refuse_circles()
    app.queue("c", dead_letter="queue:c")
    app.sinks.refuse_circles()


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "graveyard",
        "queue:",
        "queue:no good",
        "queue:a:no good",
        "ftp://example.com",
        "http://",
        "https://u:p@x.com",
        7,
    ],
)
def test_what_is_no_sink_is_refused_where_it_is_given(wrong: Any) -> None:
    with pytest.raises(BadOption):
        make_app(dead_letter=wrong)
    with pytest.raises(BadOption):
        make_app().queue("mail", dead_letter=wrong)


@pytest.mark.parametrize("function", [lambda: None, lambda job, history, more: None, lambda *, job: None])
def test_a_function_that_takes_no_job_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(BadOption, match="job"):
        make_app(dead_letter=function)


@pytest.mark.parametrize("timeout", ["0s", "1d", "5ms"])
def test_a_timeout_that_no_sink_can_have_is_refused(timeout: str) -> None:
    with pytest.raises(BadOption, match="between 10ms and 1h"):
        DeadLetter.function(print, timeout=timeout)


def test_the_name_of_a_url_hides_path_and_query() -> None:
    letter = DeadLetter.http("https://hooks.example.com/services/T0/secret?key=1")
    assert letter.sink.name == "https://hooks.example.com"


@pytest.mark.parametrize(
    "message",
    [
        "first\nsecond",
        "first\r\n2030-01-01 12:00:00 INFO all is well",
        "first\x0b\x0c\x1c\x85\u2028\u2029second",
        "\n" * 10_000 + "x",
        "x" * 100_000,
        "line\n" * 50_000,
        "\x00\x1b[31m\udc80",
    ],
    ids=["line feed", "forged line", "odd separators", "nothing but lines", "long", "long lines", "control"],
)
def test_what_a_sink_refuses_with_is_kept_short_and_on_one_line(message: str) -> None:
    def refuse(job: Job) -> None:
        raise ConnectionError(message)

    told = Told()
    app = make_app(dead_letter=refuse, observer=told)
    with app.testing() as t:
        job_id = die(app)
        t.drain()
        forward = forward_of(t, job_id)
    assert forward is not None
    (event,) = told.of(ForwardFailed)
    for error in (forward.error, event.error):
        assert error.startswith("ConnectionError: ")
        assert error.isprintable()
        assert len(error.splitlines()) == 1
        assert len(error) < 1100
