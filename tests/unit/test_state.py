"""The table of verbs × states: closed, complete, and without a way out of success."""

from __future__ import annotations

import pytest

from perdure.model.state import (
    DELIVERIES,
    ENDED,
    ENQUEUED,
    LANES,
    LIVE,
    STATES,
    TRANSITIONS,
    VERBS,
    State,
    is_allowed,
    states_before,
)


def ways_out(state: State) -> set[str]:
    return {verb for verb in VERBS if state in states_before(verb)}


def reachable(start: State) -> set[State]:
    found: set[State] = {start}
    while True:
        more = {after for verb in VERBS for before in found for after in TRANSITIONS[verb].get(before, frozenset())}
        if more <= found:
            return found
        found |= more


def test_every_verb_has_its_row() -> None:
    assert set(TRANSITIONS) == set(VERBS)


def test_every_state_is_live_or_ended_but_not_both() -> None:
    assert set(STATES) == LIVE | ENDED
    assert not LIVE & ENDED


def test_the_words_are_the_glossary_s() -> None:
    assert STATES == ("waiting", "ready", "running", "succeeded", "dead", "cancelled")
    assert LANES == ("fresh", "retry")
    assert DELIVERIES == ("at_least_once", "at_most_once")


def test_only_states_of_the_table_occur() -> None:
    for moves in TRANSITIONS.values():
        for before, after in moves.items():
            assert before in STATES
            assert after
            assert after <= set(STATES)


# Proves [INV-2].
def test_success_is_final() -> None:
    assert ways_out("succeeded") == set()


def test_only_a_fetch_starts_a_job() -> None:
    starting = {
        verb for verb in VERBS for before in STATES if before != "running" and is_allowed(verb, before, "running")
    }
    assert starting == {"fetch"}


def test_only_a_running_job_succeeds() -> None:
    for verb in VERBS:
        for before in STATES:
            if is_allowed(verb, before, "succeeded"):
                assert (verb, before) == ("succeed", "running")


# Proves [INV-2].
def test_a_dead_job_comes_back_only_on_request() -> None:
    assert ways_out("dead") == {"retry", "replay", "discard"}
    assert ways_out("cancelled") == {"retry", "replay"}


@pytest.mark.parametrize("state", sorted(ENQUEUED))
def test_every_enqueued_job_can_reach_every_end(state: State) -> None:
    assert reachable(state) >= ENDED


@pytest.mark.parametrize("state", sorted(LIVE))
def test_no_live_state_is_a_trap(state: State) -> None:
    assert ways_out(state)
    assert reachable(state) & ENDED


def test_what_the_table_does_not_name_is_not_allowed() -> None:
    assert not is_allowed("fetch", "waiting", "running")
    assert not is_allowed("promote", "dead", "ready")
    assert not is_allowed("discard", "running", "cancelled")
    assert not is_allowed("replay", "succeeded", "ready")


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        TRANSITIONS["fetch"]["dead"] = frozenset({"running"})  # type: ignore[index]
