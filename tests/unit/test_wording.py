"""plural: a number and its noun agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import perdure
from perdure.text.plural import plural


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "retry", "0 retries"),
        (1, "retry", "1 retry"),
        (2, "retry", "2 retries"),
        (1, "job", "1 job"),
        (1234567, "job", "1,234,567 jobs"),
        (2, "day", "2 days"),
        (2, "process", "2 processes"),
        (2, "batch", "2 batches"),
        (2, "dead job", "2 dead jobs"),
        (1.0, "job", "1 job"),
        (0.5, "job", "0.5 jobs"),
    ],
)
def test_a_noun_has_the_form_that_its_number_needs(count: float, noun: str, text: str) -> None:
    assert plural(count, noun) == text


_NOUNS = "retries|attempts|jobs|ticks|tries|workers|slots|failures|schedules|queues|groups|runs|tasks|fields|times"
_COUNTED = re.compile(rf"\{{([^{{}}]*)\}} (?:(?:ready|waiting|dead|fresh) )?(?:{_NOUNS})\b(?!/)")
_NEVER_ONE = {
    "HIGHEST_LIMIT:,": "a constant",
    "len(jobs)": "a batch that is too large",
    "len(self._limits)": "the jobs of the demo",
    "self._cast.count": "the jobs of the demo",
    "standing.total": "the jobs of the demo",
    "times:,.0f": "said only of large factors",
}
_NO_NUMBERS = {"_names(LIVE)", "_names(states_before(verb))", "job.queue!r", "job.attempt"}


def test_no_message_counts_by_hand() -> None:
    found = [
        f"{path.name}: {match[0]}"
        for path in sorted(Path(perdure.__file__).parent.rglob("*.py"))
        for line in path.read_text().splitlines()
        if not line.lstrip().startswith('"""')
        for match in _COUNTED.finditer(line)
        if match[1] not in {*_NEVER_ONE, *_NO_NUMBERS}
    ]
    assert found == []
