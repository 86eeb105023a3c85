"""The states of a job and the table of verbs × states, as data: code, constraints, tests and docs read it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

State = Literal["waiting", "ready", "running", "succeeded", "dead", "cancelled"]
Lane = Literal["fresh", "retry"]
Delivery = Literal["at_least_once", "at_most_once"]
Verb = Literal[
    "enqueue",
    "promote",
    "fetch",
    "succeed",
    "fail",
    "snooze",
    "release",
    "park",
    "bury",
    "cancel",
    "change",
    "retry",
    "replay",
    "discard",
]

STATES: tuple[State, ...] = get_args(State)
LANES: tuple[Lane, ...] = get_args(Lane)
DELIVERIES: tuple[Delivery, ...] = get_args(Delivery)
VERBS: tuple[Verb, ...] = get_args(Verb)

LIVE: frozenset[State] = frozenset({"waiting", "ready", "running"})
ENDED: frozenset[State] = frozenset({"succeeded", "dead", "cancelled"})

_Moves = Mapping[State, frozenset[State]]


def _moves(table: dict[State, set[State]]) -> _Moves:
    return MappingProxyType({state: frozenset(after) for state, after in table.items()})


# [INV-2] Nothing leaves `succeeded`; `dead` and `cancelled` are left by a person's verbs only.
TRANSITIONS: Mapping[Verb, _Moves] = MappingProxyType(
    {
        # A new job has no state before; "enqueue" is listed for the states that it may create.
        "enqueue": _moves({}),
        "promote": _moves({"waiting": {"ready"}}),
        "fetch": _moves({"ready": {"running"}}),
        "succeed": _moves({"running": {"succeeded"}}),
        "fail": _moves({"running": {"waiting", "ready", "dead"}}),
        "snooze": _moves({"running": {"waiting", "ready"}}),
        "release": _moves({"running": {"ready"}}),
        "park": _moves({"running": {"waiting", "dead"}}),
        "bury": _moves({"running": {"dead"}}),
        # Cancelling a running job asks its worker; the worker's commit then moves it.
        "cancel": _moves({"waiting": {"cancelled"}, "ready": {"cancelled"}, "running": {"running", "cancelled"}}),
        # Due later, due sooner, or as before: only what has not started is changed.
        "change": _moves({"waiting": {"waiting", "ready"}, "ready": {"ready", "waiting"}}),
        "retry": _moves({"waiting": {"ready"}, "dead": {"ready"}, "cancelled": {"ready"}}),
        "replay": _moves({"dead": {"ready", "waiting"}, "cancelled": {"ready", "waiting"}}),
        "discard": _moves({"dead": {"cancelled"}}),
    }
)

ENQUEUED: frozenset[State] = frozenset({"waiting", "ready"})


def states_before(verb: Verb) -> frozenset[State]:
    """The states in which the verb may be used."""
    return frozenset(TRANSITIONS[verb])


def is_allowed(verb: Verb, before: State, after: State) -> bool:
    """Whether the verb may take a job from one state to the other."""
    return after in TRANSITIONS[verb].get(before, frozenset())
