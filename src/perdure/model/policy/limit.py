"""Reads limits: how many attempts a job may have, however the caller spells it."""

from __future__ import annotations

from typing import Literal

from perdure.errors import BadPolicy
from perdure.text.shown import shown

HIGHEST_LIMIT = 1_000_000
"""What `"unlimited"` stands for: no job retries for ever."""

DEFAULT_LIMIT = 4

Limit = int | Literal["unlimited"]


def read_limit(max_attempts: Limit | None, max_retries: Limit | None) -> int | None:
    """The max_attempts that the two spellings mean together; None when neither is given."""
    if max_attempts is not None and max_retries is not None:
        raise BadPolicy(
            "Both max_attempts and max_retries are given, and they are two spellings of one limit.",
            "Give one of them; max_attempts = max_retries + 1.",
        )
    if max_attempts is not None:
        return _read_attempts(max_attempts)
    if max_retries is not None:
        return _read_retries(max_retries)
    return None


def read_recoveries(value: Limit | None) -> int | None:
    """How many attempts may be lost to vanished workers for free; None or "unlimited": all of them."""
    if value is None or value == "unlimited":
        return None
    _refuse_non_integers("max_recoveries", value)
    if not 0 <= value <= HIGHEST_LIMIT:
        raise BadPolicy(
            f"max_recoveries is {shown(value)}, and it goes from 0 to {HIGHEST_LIMIT:,}.",
            "0 counts every lost attempt as a failure; None makes them all free.",
        )
    return value


def _read_attempts(value: Limit) -> int:
    if value == "unlimited":
        return HIGHEST_LIMIT
    _refuse_non_integers("max_attempts", value)
    if value < 1:
        raise BadPolicy(
            f"max_attempts is {shown(value)}, and a job runs at least once.",
            'max_attempts=1 (or max_retries=0) means one run; "unlimited" is a value of its own.',
        )
    if value > HIGHEST_LIMIT:
        raise BadPolicy(f"max_attempts is above {HIGHEST_LIMIT:,}.", 'Say "unlimited" for the highest limit.')
    return value


def _read_retries(value: Limit) -> int:
    if value == "unlimited":
        return HIGHEST_LIMIT
    _refuse_non_integers("max_retries", value)
    if value < 0:
        raise BadPolicy(
            f"max_retries is {shown(value)}, and it cannot be negative.",
            'max_retries=0 means one run; "unlimited" is a value of its own.',
        )
    if value >= HIGHEST_LIMIT:
        raise BadPolicy(f"max_retries is {HIGHEST_LIMIT:,} or more.", 'Say "unlimited" for the highest limit.')
    return value + 1


def _refuse_non_integers(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadPolicy(
            f"{what} is {shown(value)}, which is not a whole number.",
            'Give a whole number or "unlimited"; leave it out for the default.',
        )
