"""What may be said about a queue: three kinds of limit, four places, and a text form."""

from __future__ import annotations

import pytest

from perdure import App, Settings
from perdure.errors import BadOption, BadSetting
from perdure.model.queue.fairness import Fairness
from perdure.model.queue.settings import NOTHING_SAID, QueueSettings, effective
from perdure.model.queue.text import read_queue_settings


def test_nothing_said_anywhere_is_the_default() -> None:
    found = effective([("operator", NOTHING_SAID), ("code", NOTHING_SAID)])
    assert found.fairness == Fairness()
    assert set(found.origins.values()) == {"default"}


def test_the_first_place_that_says_something_holds_value_by_value() -> None:
    found = effective(
        [
            ("operator", QueueSettings(concurrency=1)),
            ("configuration", QueueSettings(concurrency=2, retry_share=0.5)),
            ("code", QueueSettings(concurrency=3, retry_share=0.7, is_strict=True)),
        ]
    )
    assert found.fairness == Fairness(concurrency=1, retry_share=0.5, is_strict=True)
    assert found.origins == {
        "concurrency": "operator",
        "retry_share": "configuration",
        "is_strict": "code",
        "max_retries_running": "default",
    }


def test_explicitly_no_limit_wins_over_a_number_and_unset_does_not() -> None:
    code = ("code", QueueSettings(concurrency=3, max_retries_running=3))
    found = effective([("operator", QueueSettings(concurrency="none")), code])
    assert (found.fairness.concurrency, found.fairness.max_retries_running) == (None, 3)
    assert (found.origins["concurrency"], found.origins["max_retries_running"]) == ("operator", "code")


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "3", "nothing", 2**31])
@pytest.mark.parametrize("name", ["concurrency", "max_retries_running"])
def test_a_limit_is_a_positive_number_or_none(name: str, limit: object) -> None:
    with pytest.raises(BadOption, match=name):
        QueueSettings(**{name: limit})  # type: ignore[arg-type]


def test_a_share_of_zero_and_false_are_said_and_not_unset() -> None:
    code = ("code", QueueSettings(retry_share=0.5, is_strict=True))
    found = effective([("operator", QueueSettings(retry_share=0, is_strict=False)), code])
    assert (found.fairness.retry_share, found.fairness.is_strict) == (0, False)


def test_the_text_form_says_all_that_can_be_said() -> None:
    text = "mail: retry_share=0.1, concurrency=5; default: strict, max_retries_running=none;\nslow:no-strict"
    assert read_queue_settings(text) == {
        "mail": QueueSettings(retry_share=0.1, concurrency=5),
        "default": QueueSettings(is_strict=True, max_retries_running="none"),
        "slow": QueueSettings(is_strict=False),
    }
    assert read_queue_settings("a: strict=no") == {"a": QueueSettings(is_strict=False)}
    assert read_queue_settings(" ; ") == {}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("mail", "mail"),
        ("ma il: strict", "ma il"),
        ("mail: concurrency=many", "concurrency"),
        ("mail: concurrency=0", "concurrency"),
        ("mail: retry_share=2", "retry_share"),
        ("mail: colour=red", "colour"),
        ("mail: concurrency", "concurrency"),
        ("mail: strict=perhaps", "is_strict"),
        ("mail: concurrency=1, concurrency=2", "twice"),
        ("mail: strict; mail: strict", "mail"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_key(text: str, named: str) -> None:
    with pytest.raises(BadSetting, match=named):
        read_queue_settings(text)


def test_configuration_wins_over_code() -> None:
    app = App("sqlite://", settings=Settings(queue_settings="mail: concurrency=5"))
    app.queue("mail", concurrency=7, retry_share=0.3)
    assert app.registry.fairness("mail") == Fairness(concurrency=5, retry_share=0.3)
    assert app.registry.fairness("mail", QueueSettings(concurrency="none")).concurrency is None
