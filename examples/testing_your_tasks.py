"""How to test tasks: the real pipeline in memory, with a clock that the test moves. Hours of retries take milliseconds.

These are pytest functions; the file also runs by itself:

    pytest testing_your_tasks.py
    python testing_your_tasks.py
"""

from __future__ import annotations

from datetime import timedelta

from perdure import App, Retry

app = App()
answers: list[str] = []
"""What the fake bank will say, one answer for each call."""


@app.task(retry=Retry.delays(["1m", "1h"], max_attempts=3).never(PermissionError))
def charge(order: int) -> str:
    """The task under test."""
    match answers.pop(0):
        case "down":
            raise ConnectionError("the bank does not answer")
        case "declined":
            raise PermissionError("the card was declined")
    return f"order {order} is paid"


def test_a_charge_is_tried_again_when_the_bank_was_down() -> None:
    answers[:] = ["down", "down", "fine"]
    with app.testing() as t:
        job_id = charge.enqueue(7)
        t.drain()  # runs all that is due now
        assert t.job(job_id).state == "waiting"
        assert t.job(job_id).run_at == t.now + timedelta(minutes=1)
        t.advance("1m")  # moves the clock, and runs what comes due on the way
        assert t.job(job_id).failures == 2
        t.advance("1h")
        assert t.job(job_id).state == "succeeded"
        assert t.job(job_id).result == b'"order 7 is paid"'


def test_a_declined_card_is_not_tried_again() -> None:
    answers[:] = ["declined"]
    with app.testing() as t:
        job_id = charge.enqueue(7)
        t.drain()
        assert t.job(job_id).state == "dead"
        assert t.job(job_id).reason == "unrecoverable"


def test_three_failures_are_enough_and_the_history_has_them_all() -> None:
    answers[:] = ["down"] * 3
    with app.testing() as t:
        job_id = charge.enqueue(7)
        t.advance("1d")
        assert t.job(job_id).reason == "exhausted"
        assert [attempt.outcome for attempt in t.history(job_id)] == ["failed"] * 3
        assert [attempt.delay for attempt in t.history(job_id)] == [timedelta(minutes=1), timedelta(hours=1), None]


def test_the_function_itself_can_be_called_without_any_queue() -> None:
    answers[:] = ["fine"]
    assert charge(7) == "order 7 is paid"


if __name__ == "__main__":
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    for name, test in tests.items():
        test()
        print(f"ok  {name.removeprefix('test_').replace('_', ' ')}")
