"""What the page about schedules says of cron expressions is what they do."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.docs.pages import page, section

from perdure.errors import BadCron
from perdure.model.cron.expression import Cron
from perdure.model.cron.parser import LONGEST_TEXT, NICKNAMES
from perdure.model.cron.pattern import FIRST_YEAR, LAST_YEAR
from perdure.model.schedule.rule import parse_rule

FIELDS = ["second", "minute", "hour", "day", "month", "weekday"]
PAGE = section(page("schedules.md"), "Cron expressions")


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table that has this heading."""
    table = PAGE.split(f"\n| {heading} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


@pytest.mark.parametrize(("rule", "said"), [row[:2] for row in rows("rule | when it ticks")])
def test_every_rule_ticks_as_the_page_says(rule: str, said: str) -> None:
    assert parse_rule(rule.strip("`")).describe() == said


@pytest.mark.parametrize(("form", "where"), [row[:2] for row in rows("form | where")])
def test_every_form_is_taken_where_the_page_says_and_only_there(form: str, where: str) -> None:
    for text in re.findall("`([^`]+)`", form):
        taken = {name for place, name in enumerate(FIELDS) if is_taken(text, place)}
        assert taken == set(where.split(", ")) if where != "anywhere" else taken


def is_taken(text: str, place: int) -> bool:
    try:
        Cron.parse(" ".join(text if field == place else "*" for field in range(len(FIELDS))))
    except BadCron:
        return False
    return True


def test_every_nickname_is_documented_with_what_it_means() -> None:
    assert {row[0].strip("`"): row[1].strip("`") for row in rows("nickname")} == NICKNAMES


@pytest.mark.parametrize(("rule", "zone", "day", "expected"), rows("rule | zone"))
def test_every_change_of_the_clocks_is_met_as_the_page_says(rule: str, zone: str, day: str, expected: str) -> None:
    place, cron = ZoneInfo(zone.strip("`")), Cron.parse(rule.strip("`"))
    start = datetime.fromisoformat(day[:10]).replace(tzinfo=place).astimezone(UTC) - timedelta(seconds=1)
    found, tick = [], cron.next(start, place)
    while tick is not None and tick.astimezone(place).date().isoformat() == day[:10]:
        found.append(format(tick.astimezone(place), "%H:%M"))
        tick = cron.next(tick, place)
    wanted = expected.split()
    assert (found if wanted[-1] != "…" else [*found[: len(wanted) - 1], "…"]) == wanted


def test_the_bounds_are_the_documented_ones() -> None:
    assert f"more than {LONGEST_TEXT} characters" in PAGE
    assert f"from the year {FIRST_YEAR} to {LAST_YEAR}" in PAGE
