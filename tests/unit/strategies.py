"""What Hypothesis draws in these tests: durations, policies with all their options, names of errors."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from perdure.model.policy.curve import LONGEST_DELAY
from perdure.model.policy.limit import HIGHEST_LIMIT
from perdure.model.policy.retry import Retry

MICROSECOND = timedelta(microseconds=1)

delays = st.timedeltas(min_value=timedelta(0), max_value=LONGEST_DELAY)
positive_delays = st.timedeltas(min_value=MICROSECOND, max_value=LONGEST_DELAY)
jitters = st.sampled_from(["none", "full", "equal", "decorrelated"]) | st.floats(min_value=0, max_value=1)
factors = st.integers(1, 1_000_000) | st.floats(1, 1_000_000, allow_nan=False)
limits = st.integers(1, 30) | st.just(HIGHEST_LIMIT) | st.just("unlimited") | st.integers(1, HIGHEST_LIMIT)
recoveries = st.none() | st.integers(0, HIGHEST_LIMIT)

plain_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,15}(\.[A-Za-z_][A-Za-z0-9_]{0,15}){0,3}", fullmatch=True)
odd_names = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20).filter(
    lambda name: not name.startswith("builtins.")
)
error_names = plain_names | odd_names


@st.composite
def options(draw: st.DrawFn) -> dict[str, object]:
    """Options that every constructor takes."""
    given: dict[str, object] = {"jitter": draw(jitters)}
    if draw(st.booleans()):
        given["cap"] = draw(positive_delays)
    if draw(st.booleans()):
        given["max_attempts"] = draw(limits)
    if draw(st.booleans()):
        given["within"] = draw(st.timedeltas(min_value=MICROSECOND, max_value=timedelta(days=36500)))
    if draw(st.booleans()):
        given["max_recoveries"] = draw(recoveries)
    if draw(st.booleans()):
        given["jitter_over_cap"] = draw(st.booleans())
    if draw(st.booleans()):
        given["caps_jobs"] = draw(st.booleans())
    return given


@st.composite
def plain_policies(draw: st.DrawFn) -> Retry:
    """Policies without rules."""
    given = draw(options())
    match draw(st.sampled_from(["exponential", "fixed", "linear", "delays", "never_retry"])):
        case "exponential":
            return Retry.exponential(draw(delays), draw(factors), **given)
        case "fixed":
            return Retry.fixed(draw(delays), **given)
        case "linear":
            return Retry.linear(draw(delays), **given)
        case "delays":
            return Retry.delays(draw(st.lists(delays, min_size=1, max_size=8)), **given)
        case _:
            return Retry.never_retry()


@st.composite
def policies(draw: st.DrawFn) -> Retry:
    """Policies of every kind that can be stored."""
    policy = draw(plain_policies())
    for name in draw(st.lists(error_names, max_size=4)):
        match draw(st.sampled_from(["never", "delay", "policy"])):
            case "never":
                policy = policy.never(name)
            case "delay":
                policy = policy.on(name, draw(delays))
            case _:
                policy = policy.on(name, draw(plain_policies()))
    return policy
