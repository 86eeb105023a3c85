"""Secrets are left out by the names of their keys, however those are spelt, and inside of texts; nothing else is."""

from __future__ import annotations

import time

import pytest

from perdure.model.payload.redaction import REDACTED, Redactor

SECRET_KEYS = (
    *("password", "Password", "PASSWORD", "user_password", "dbPassword", "db-password", "passwordHash", "userpassword"),
    *("passwd", "passphrase", "pwd", "secret", "client_secret", "clientSecret", "SECRET_KEY", "token", "access_token"),
    *("refreshToken", "csrftoken", "X-Auth-Token", "token_value", "token2", "api_key", "apiKey", "APIKEY", "X-Api-Key"),
    *("authorization", "Authorization", "Proxy-Authorization", "auth", "cookie", "Cookie", "Set-Cookie", "private_key"),
    *(
        "privateKey",
        "aws_access_key_id",
        "credentials",
        "card",
        "card_number",
        "cardNumber",
        "creditCard",
        "cvv",
        "CVC",
    ),
    *("cvv2", "pin", "otp", "jwt", "session_id", "ssn", "signing_key"),
)
OTHER_KEYS = (
    *("user", "name", "max_tokens", "discard", "discarded", "cardinality", "author", "authority", "pinned", "opinion"),
    *("keyboard", "key", "compass", "spin", "url", "to", "id", "state", "count", "mail", "", "postcardinal"),
)


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_the_value_of_a_secret_key_is_left_out_wherever_it_is(key: str) -> None:
    redactor = Redactor()
    for value in ("x", 7, 1.5, ["x"], {"a": "x"}):
        assert redactor.value({key: value}) == {key: REDACTED}
    assert redactor.value([{"a": [{key: "x"}]}]) == [{"a": [{key: REDACTED}]}]
    assert redactor.value([[key, "x"], ["a", "b"]]) == [[key, REDACTED], ["a", "b"]]
    assert redactor.value({"name": key, "value": "x"}) == {"name": key, "value": REDACTED}
    assert redactor.value({key: None, "a": True}) == {key: None, "a": True}


@pytest.mark.parametrize("key", OTHER_KEYS)
def test_other_keys_are_left_as_they_are(key: str) -> None:
    value = {key: ["x", {key: 1}]}
    assert Redactor().value(value) == value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("https://user:pw@host/path", "https://…@host/path"),
        ("https://host/?a=1&api_key=abc&b=2", "https://host/?a=1&api_key=[redacted]&b=2"),
        ('{"password": "x", "a": 1}', '{"password": "[redacted]", "a": 1}'),
        ('{"card": {"number": 4111}}', '{"card": "[redacted]"}'),
        ('{"a": 1, "password": "x', '{"a": 1, "password": "[redacted]"'),
        ('got {"card": {"number": "4111"}, "x": 1}', 'got {"card": "[redacted]"'),
        ("KeyError: {'token': 'abc', 'a': 1}", "KeyError: {'token': '[redacted]', 'a': 1}"),
        ("password=hunter2 user=ada", "password=[redacted] user=ada"),
        ("Authorization: Bearer abcdefgh", "Authorization: [redacted]"),
        ("GET / HTTP/1.1\nCookie: a=b; c=d\nAccept: x", "GET / HTTP/1.1\nCookie: [redacted]\nAccept: x"),
        ("sent Bearer abcdefgh.ijk", "sent Bearer [redacted]"),
        ("the token was refused", "the token was refused"),
        ("max_tokens=100", "max_tokens=100"),
    ],
)
def test_pairs_inside_of_a_text_are_treated_alike(text: str, shown: str) -> None:
    assert Redactor().text(text) == shown
    assert Redactor().value({"a": text}) == {"a": shown}


def test_rules_of_your_own_replace_the_default_ones_or_are_added_to_them() -> None:
    own = Redactor(["iban", "*salary*"])
    assert own.value({"iban": 1, "IBAN_number": 2, "monthlySalaryEur": 3, "password": 4}) == {
        "iban": REDACTED,
        "IBAN_number": REDACTED,
        "monthlySalaryEur": REDACTED,
        "password": 4,
    }
    both = Redactor(["default", "iban"])
    assert both.hides("iban")
    assert both.hides("password")
    for none in (None, [], ["", "*"]):
        assert Redactor(none).value({"password": "x", "url": "http://a:b@c"}) == {
            "password": "x",
            "url": "http://a:b@c",
        }


def test_values_that_are_nested_without_end_are_not_shown() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    assert Redactor().value(value) == REDACTED


@pytest.mark.parametrize(
    "unit", ["password", "token=", '"token":', "a", "://", "token: ", "'", '"', "\\", "a-", " ", "="]
)
def test_long_texts_are_searched_in_time_linear_in_their_length(unit: str) -> None:
    redactor = Redactor()

    def taken(size: int) -> float:
        text = "token " + unit * (size // len(unit))
        began = time.thread_time()
        redactor.text(text)
        return time.thread_time() - began

    for _ in range(3):
        large = taken(200_000)
        if large < 0.2 or large < 10 * taken(50_000):
            return
    pytest.fail(f"{large:.2f} s for 200 KB")


def test_very_many_keys_do_not_fill_the_memory() -> None:
    redactor = Redactor()
    for number in range(25_000):
        assert not redactor.hides(f"key{number}")
    assert len(redactor._known) <= 10_000
