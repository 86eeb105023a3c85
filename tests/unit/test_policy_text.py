"""The text of a policy: canonical, read back exactly, and refused with the place of the fault."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.strategies import policies

from perdure.errors import BadPolicy
from perdure.model.policy.parser import parse_stored_policy
from perdure.model.policy.presets import PRESETS
from perdure.model.policy.retry import HIGHEST_LIMIT, Retry

CANONICAL = [
    ("exponential(500ms, cap=30s)", Retry.preset("standard")),
    ("exponential(2s)", Retry.exponential("2s")),
    ("exponential(2s, factor=1.5)", Retry.exponential(2, 1.5)),
    ("fixed(5s)", Retry.fixed("5s")),
    ("fixed(0s)", Retry.fixed(0)),
    ("fixed(5s, jitter=none)", Retry.fixed("5s", jitter="none")),
    ("linear(1m30s, cap=1h, jitter=decorrelated)", Retry.linear(90, cap=3600, jitter="decorrelated")),
    ("delays([1s, 5s, 1m])", Retry.delays([1, 5, 60])),
    ("delays([1s], jitter=0.25)", Retry.delays([1], jitter=0.25)),
    ("never_retry()", Retry.never_retry()),
    ("never_retry().never(KeyError)", Retry.never_retry().never(KeyError)),
    ("fixed(5s, max_attempts=unlimited)", Retry.fixed("5s", max_attempts="unlimited")),
    ("fixed(5s, max_recoveries=unlimited)", Retry.fixed("5s", max_recoveries=None)),
    ("fixed(5s, max_recoveries=1000000)", Retry.fixed("5s", max_recoveries=HIGHEST_LIMIT)),
    (
        "exponential(2s, factor=3, cap=10m, jitter=equal, max_attempts=12, within=1d)"
        ".never(ValueError).on(TimeoutError, 5s).on(app.Rate, fixed(1m))",
        Retry.exponential("2s", 3, "10m", "equal", max_attempts=12, within="1d")
        .on("app.Rate", Retry.fixed("1m"))
        .on(TimeoutError, "5s")
        .never(ValueError),
    ),
    (
        "exponential(200ms, cap=5s, jitter=0.2, max_attempts=25, jitter_over_cap=true, caps_jobs=true)",
        Retry.preset("harbor"),
    ),
    ('fixed(5s).never("a name, with (marks)")', Retry.fixed("5s").never("a name, with (marks)")),
]


@pytest.mark.parametrize(("text", "policy"), CANONICAL)
def test_the_text_is_canonical_and_read_back(text: str, policy: Retry) -> None:
    assert policy.text == str(policy) == text
    assert Retry.parse(text) == policy


@given(policies())
def test_every_policy_that_can_be_stored_is_read_back(policy: Retry) -> None:
    assert Retry.parse(str(policy)) == policy
    assert Retry.parse(policy.text).text == policy.text


SPELLINGS = [
    ("standard", "exponential(500ms, cap=30s)"),
    ("  standard  ", "exponential(500ms, cap=30s)"),
    ("standard()", "exponential(500ms, cap=30s)"),
    (
        "harbor(max_attempts=5, jitter=none, jitter_over_cap=false)",
        "exponential(200ms, cap=5s, jitter=none, max_attempts=5, caps_jobs=true)",
    ),
    ("harbor(caps_jobs=false)", "exponential(200ms, cap=5s, jitter=0.2, max_attempts=25, jitter_over_cap=true)"),
    ("fixed(5s, caps_jobs=true, max_attempts=10)", "fixed(5s, max_attempts=10, caps_jobs=true)"),
    ("none", "fixed(0s)"),
    ("none(max_attempts=9)", "fixed(0s, max_attempts=9)"),
    ("fixed(5s).on(A, none)", "fixed(5s).on(A, fixed(0s))"),
    ("one-shot(max_retries=0)", "never_retry()"),
    ("fixed", "fixed(5s)"),
    ("fixed(max_retries=0)", "fixed(5s, max_attempts=1)"),
    ("exponential(max_retries=9)", "exponential(5s, cap=5m, jitter=0.15, max_attempts=10, jitter_over_cap=true)"),
    ("exponential( base = 2s , max_attempts = 4 )", "exponential(2s)"),
    ("delays(waits=[1s,2s])", "delays([1s, 2s])"),
    ("fixed(90)", "fixed(1m30s)"),
    ("never_retry", "never_retry()"),
    ("fixed(5s).on(A, B, 1m).never( C,D )", "fixed(5s).never(C, D).on(A, 1m).on(B, 1m)"),
    ("fixed(5s).on(A, never_retry)", "fixed(5s).on(A, never_retry())"),
    ("fixed(5s).on(A, B, harbor)", "fixed(5s).on(A, {0}).on(B, {0})".format(Retry.preset("harbor").text)),
    ('fixed(5s)\n .on("odd name", 1m)', 'fixed(5s).on("odd name", 1m)'),
]


@pytest.mark.parametrize(("text", "canonical"), SPELLINGS)
def test_other_spellings_mean_the_same(text: str, canonical: str) -> None:
    assert Retry.parse(text).text == canonical


REFUSED = [
    ("", 1, "a preset's name"),
    ("   ", 4, "a preset's name"),
    ("standrad", 1, "Did you mean standard"),
    ("nonsense", 1, "The presets are standard"),
    ("linear", 7, "`(`"),
    ("linear()", 1, "linear's step"),
    ("exponential(factor=3)", 1, "exponential's base"),
    ("exponential(2s", 15, "`,` or `)`"),
    ("exponential(2s, factr=3)", 17, "factor, cap, jitter"),
    ("exponential(2s, cap=1m, cap=2m)", 25, "each once"),
    ("exponential(2s, 3)", 17, "max_attempts=5"),
    ("exponential(2s,)", 16, "an option"),
    ("linear(2s, factor=3)", 12, "each once"),
    ("harbor(2s)", 8, "an option"),
    ("harbor(max_attempts)", 8, "an option"),
    ("harbor(waits=[1s])", 8, "one of the options"),
    ("fixed(soon)", 7, "a delay"),
    ("fixed(-5s)", 7, "a delay"),
    ("fixed(5s, cap=0)", 1, "0 does not mean unset"),
    ("fixed(5s, max_attempts=0)", 1, "runs at least once"),
    ("fixed(5s, max_attempts=1.5)", 24, "max_attempts"),
    ("fixed(5s, max_attempts=4, max_retries=3)", 1, "two spellings"),
    ("fixed(5s, jitter=lots)", 1, "no known jitter"),
    ("fixed(5s, jitter=nan)", 1, "no known jitter"),
    ("exponential(5s, factor=1e999)", 1, "factor"),
    ("exponential(5s, factor=nan)", 24, "factor"),
    ("fixed(5s, jitter_over_cap=1)", 27, "jitter_over_cap"),
    ("fixed(5s, jitter_over_cap=)", 27, "a value"),
    ("delays()", 1, "delays's waits"),
    ("delays(1s)", 8, "a list of delays"),
    ("delays([])", 9, "a delay"),
    ("delays([1s,])", 12, "a delay"),
    ("delays([1s 2s])", 12, "`,` or `]`"),
    ("never_retry(1)", 13, "takes nothing"),
    ("fixed(5s) garbage", 11, "the end"),
    ("fixed(5s).", 11, "`never` or `on`"),
    ("fixed(5s).sometimes(A)", 11, "`never` or `on`"),
    ("fixed(5s).never", 16, "`(`"),
    ("fixed(5s).never()", 17, "the name of an error"),
    ("fixed(5s).never(A B)", 19, "`,` or `)`"),
    ("fixed(5s).on(A)", 15, "a delay or a policy"),
    ("fixed(5s).on(A, B)", 17, "no preset"),
    ("fixed(5s).on(A, 5m, 6m)", 19, "`)`"),
    ("fixed(5s).on(A, fixed(1m).never(B))", 26, "`)`"),
    ("fixed(5s).on(A, 5 parsecs)", 19, "`)`"),
    ('fixed(5s).never("open)', 17, "the name of an error"),
    ('fixed(5s).never("\\q")', 17, "quotes"),
    ('fixed(5s).never("")', 17, "not the name"),
    ('fixed(5s).never("\\u0000")', 17, "not the name"),
    ("fixed(5s, caps_jobs=1)", 21, "caps_jobs"),
    ("one-shot(max_attempts=5)", 1, "immediate(max_attempts=5)"),
    ("one-shot(max_retries=unlimited)", 1, "one-shot means one attempt"),
    ("__import__('os').system('true')", 1, "a preset's name"),
]


@pytest.mark.parametrize(("text", "place", "expected"), REFUSED)
def test_a_fault_is_told_with_its_place_and_what_was_expected(text: str, place: int, expected: str) -> None:
    with pytest.raises(BadPolicy) as caught:
        Retry.parse(text)
    assert f"at character {place}:" in str(caught.value)
    assert expected in str(caught.value)


MISSPELT = [
    ("exponential(2s, max_atempts=3)", "max_attempts"),
    ("exponential(2s, max-attempts=3)", "max_attempts"),
    ("exponential(2s, maxAttempts=3)", "max_attempts"),
    ("exponential(2s, retries=3)", "max_retries"),
    ("exponential(2s, factr=3)", "factor"),
    ("fixed(evry=2s)", "every"),
    ("delays(wait=[1s])", "waits"),
    ("fixed(5s, cap_jobs=true)", "caps_jobs"),
    ("harbor(max_atempts=3)", "max_attempts"),
    ("standrad", "standard"),
    ("Patient", "patient"),
    ("nonee", "none"),
    ("exponental(2s)", "exponential"),
    ("linar(2s)", "linear"),
    ("dealys([1s])", "delays"),
    ("nevr_retry()", "never_retry"),
    ("fixed(5s, jitter=ful)", "full"),
    ("fixed(5s, jitter=decor)", "decorrelated"),
    ("fixed(5s, max_attempts=unlimted)", "unlimited"),
    ("fixed(5s, max_retries=unlimited_)", "unlimited"),
    ("fixed(5s, max_recoveries=unlimmited)", "unlimited"),
    ("fixed(5s, caps_jobs=ture)", "true"),
    ("fixed(5s, jitter_over_cap=flase)", "false"),
    ("fixed(5s).nevr(A)", "never"),
    ("fixed(5s).onn(A, 5s)", "on"),
    ("fixed(5s).on(A, standrad)", "standard"),
    ("fixed(5s).never(ValueEror)", "ValueError"),
    ("fixed(5s).never(KeyError, timeouterror)", "TimeoutError"),
    ('fixed(5s).on("ConectionError", 5s)', "ConnectionError"),
    ("fixed(5s).on(A, fixed(1s, max_atempts=3))", "max_attempts"),
]


@pytest.mark.parametrize(("text", "meant"), MISSPELT)
def test_a_misspelt_name_is_answered_with_the_nearest(text: str, meant: str) -> None:
    with pytest.raises(BadPolicy) as caught:
        Retry.parse(text)
    assert str(caught.value.hint).startswith(f"Did you mean {meant}?")


@pytest.mark.parametrize("name", ["app.ValueEror", "RateLimited", "A", "HTTPError", "myapp.errors.TimeoutEror"])
def test_the_name_of_an_error_of_one_s_own_is_left_as_it_is(name: str) -> None:
    assert Retry.parse(f"fixed(5s).never({name})") == Retry.fixed("5s").never(name)


def test_other_names_of_a_built_in_error_mean_the_same() -> None:
    policy = Retry.parse("fixed(5s).never(IOError)")
    assert policy == Retry.fixed("5s").never(OSError) == Retry.fixed("5s").never("builtins.EnvironmentError")
    assert policy.text == "fixed(5s).never(OSError)"


def test_a_stored_text_with_an_odd_name_of_an_error_is_read() -> None:
    assert parse_stored_policy("fixed(5s).never(ValueEror)") == Retry.fixed("5s").never("ValueEror")


def test_a_misspelt_jitter_is_answered_with_the_nearest_in_code_too() -> None:
    with pytest.raises(BadPolicy, match="Did you mean equal"):
        Retry.fixed("5s", jitter="equl")  # type: ignore[arg-type]


def test_a_stored_text_with_an_option_of_a_newer_version_keeps_what_this_one_knows() -> None:
    text = "fixed(5s, max_attempts=2, invented_later=yes, caps_jobs=true).on(KeyError, fixed(1s, also_new=7))"
    assert parse_stored_policy(text) == Retry.parse("fixed(5s, max_attempts=2, caps_jobs=true).on(KeyError, fixed(1s))")
    with pytest.raises(BadPolicy, match="invented_later"):
        Retry.parse(text)


@given(policies())
def test_stored_policies_are_read_like_all_others(policy: Retry) -> None:
    assert parse_stored_policy(policy.text) == policy


@given(st.text(max_size=60) | st.text(string.ascii_lowercase + '()[],=." 159sm_-', max_size=60))
def test_any_text_is_read_or_refused_as_a_bad_policy(text: str) -> None:
    try:
        policy = Retry.parse(text)
    except BadPolicy:
        return
    assert Retry.parse(policy.text) == policy


@given(policies(), st.data())
def test_a_damaged_text_is_read_or_refused_as_a_bad_policy(policy: Retry, data: st.DataObject) -> None:
    text = policy.text
    cut = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:cut] + data.draw(st.text(max_size=2)) + text[cut + 1 :]
    try:
        Retry.parse(damaged)
    except BadPolicy:
        return


@pytest.mark.parametrize("wrong", [None, 5, b"fixed(5s)"])
def test_only_text_is_parsed(wrong: object) -> None:
    with pytest.raises(BadPolicy):
        Retry.parse(wrong)  # type: ignore[arg-type]


def test_a_text_is_at_most_four_kilobytes() -> None:
    with pytest.raises(BadPolicy, match="4,096 bytes"):
        Retry.parse("standard" + " " * 5000)
    with pytest.raises(BadPolicy, match="4,096 bytes"):
        _ = Retry.delays(["1s"] * 1000, max_attempts=999).never(*(f"app.Error{n}" for n in range(300))).text
    assert str(Retry.delays(["1s"] * 1000)).startswith("delays([1s, ")


def test_a_function_has_no_text_but_can_be_shown() -> None:
    def soon(n: int) -> int:
        return n

    for policy in (Retry.function(soon), Retry.fixed("5s").on(KeyError, Retry.function(soon))):
        with pytest.raises(BadPolicy, match="no text form"):
            _ = policy.text
        assert "soon" in str(policy)
        assert "soon" in repr(policy)


def test_the_repr_shows_the_text() -> None:
    assert repr(Retry.fixed("5s")) == "<Retry fixed(5s)>"


def test_no_constructor_hides_behind_the_name_of_a_preset() -> None:
    for name, preset in PRESETS.items():
        assert Retry.parse(name) == preset.policy
