"""The rule of a schedule: a cron expression or an interval, read from one text and asked by one call."""

from __future__ import annotations

from perdure.model.cron.expression import Cron
from perdure.model.cron.parser import words_of
from perdure.model.schedule.every import Every

Rule = Cron | Every
"""What says when a schedule ticks; `rule.next(after, zone=zone, anchor=anchor)` works on either."""


def parse_rule(text: str) -> Rule:
    """The rule that a text spells: `@every 10s` is an interval, everything else a cron expression."""
    return Every.parse(text) if words_of(text)[0].lower() == "@every" else Cron.parse(text)
