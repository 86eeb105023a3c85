"""The text of cron expressions: errors that point at the field, plain English, and any text at all."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.unit.cron_texts import Drawn, expressions

from perdure.errors import BadCron
from perdure.model.cron.expression import Cron
from perdure.model.cron.parser import LONGEST_TEXT, NICKNAMES
from perdure.model.schedule.rule import parse_rule


@pytest.mark.parametrize(
    ("text", "field", "what"),
    [
        ("60 * * * *", "minute (field 1 of 5)", "has 60 as a value, which is not from 0 to 59"),
        ("60 * * * * *", "second (field 1 of 6)", "has 60 as a value, which is not from 0 to 59"),
        ("0 60 * * * *", "minute (field 2 of 6)", "has 60 as a value, which is not from 0 to 59"),
        ("0 24 * * *", "hour (field 2 of 5)", "has 24 as a value, which is not from 0 to 23"),
        ("0 0 0 * *", "day of the month (field 3 of 5)", "has 0 as a value, which is not from 1 to 31"),
        ("0 0 32 * *", "day of the month (field 3 of 5)", "has 32 as a value, which is not from 1 to 31"),
        ("0 0 * 13 *", "month (field 4 of 5)", "has 13 as a value, which is not from 1 to 12"),
        ("0 0 * 0 *", "month (field 4 of 5)", "has 0 as a value, which is not from 1 to 12"),
        ("0 0 * * 8", "weekday (field 5 of 5)", "has 8 as a value, which is not from 0 to 7"),
        ("0 0 * janu *", "month (field 4 of 5)", "has 'janu' as a value, which is no number and no name"),
        ("0 0 * * JAN", "weekday (field 5 of 5)", "has 'JAN' as a value, which is no number and no name"),
        ("0 0 MON * *", "day of the month (field 3 of 5)", "has 'MON' as a value, which is no number"),
        ("*/0 * * * *", "minute (field 1 of 5)", "has 0 as the step in `*/0`, which is not from 1 to 60"),
        ("*/61 * * * *", "minute (field 1 of 5)", "has 61 as the step in `*/61`, which is not from 1 to 60"),
        ("0 */25 * * *", "hour (field 2 of 5)", "has 25 as the step in `*/25`, which is not from 1 to 24"),
        ("*/ * * * *", "minute (field 1 of 5)", "lacks the step in `*/`"),
        ("*/-5 * * * *", "minute (field 1 of 5)", "has '-5' as the step in `*/-5`, which is no number"),
        ("*/2/3 * * * *", "minute (field 1 of 5)", "has '2/3' as the step in `*/2/3`, which is no number"),
        ("1,,2 * * * *", "minute (field 1 of 5)", "has an empty part between commas"),
        (", * * * *", "minute (field 1 of 5)", "has an empty part between commas"),
        ("5- * * * *", "minute (field 1 of 5)", "lacks a value"),
        ("-5 * * * *", "minute (field 1 of 5)", "lacks a value"),
        ("1-2-3 * * * *", "minute (field 1 of 5)", "has '2-3' as a value, which is no number"),
        ("*-5 * * * *", "minute (field 1 of 5)", "has '*' as a value, which is no number"),
        ("** * * * *", "minute (field 1 of 5)", "has '**' as a value, which is no number"),
        ("0x5 * * * *", "minute (field 1 of 5)", "has '0x5' as a value, which is no number"),
        ("? * * * *", "minute (field 1 of 5)", "has `?`"),
        ("0 0 ?,1 * *", "day of the month (field 3 of 5)", "has `?`, which stands alone"),
        ("0 0 L-0 * *", "day of the month (field 3 of 5)", "has 0 as the number of days in `L-0`"),
        ("0 0 L-31 * *", "day of the month (field 3 of 5)", "which is not from 1 to 30"),
        ("0 0 32W * *", "day of the month (field 3 of 5)", "has 32 as the day in `32W`"),
        ("0 0 W * *", "day of the month (field 3 of 5)", "lacks the day in `W`"),
        ("0 0 1-5W * *", "day of the month (field 3 of 5)", "has '1-5' as the day"),
        ("0 0 L/2 * *", "day of the month (field 3 of 5)", "has 'L' as a value"),
        ("0 0 5L * *", "day of the month (field 3 of 5)", "has '5L' as a value"),
        ("L * * * *", "minute (field 1 of 5)", "has 'L' as a value"),
        ("0 0 * * L", "weekday (field 5 of 5)", "has `L` without a weekday"),
        ("0 0 * * FRI#0", "weekday (field 5 of 5)", "has 0 as the number after # in `FRI#0`"),
        ("0 0 * * FRI#6", "weekday (field 5 of 5)", "which is not from 1 to 5"),
        ("0 0 * * FRI#", "weekday (field 5 of 5)", "lacks the number after # in `FRI#`"),
        ("0 0 * * #2", "weekday (field 5 of 5)", "lacks a value"),
        ("0 0 * * 8#2", "weekday (field 5 of 5)", "has 8 as a value"),
        ("0 0 * * MON-FRI#2", "weekday (field 5 of 5)", "has 'MON-FRI' as a value"),
        ("0 0 5#2 * *", "day of the month (field 3 of 5)", "has '5#2' as a value"),
        ("9" * 200 + " * * * *", "minute (field 1 of 5)", "which is not from 0 to 59"),
    ],
)
def test_the_error_points_at_the_field_and_says_what_it_takes(text: str, field: str, what: str) -> None:
    with pytest.raises(BadCron) as caught:
        Cron.parse(text)
    assert caught.value.message.startswith(f"The {field} of ")
    assert what in caught.value.message
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("It takes ")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        (" \t\n", "is empty"),
        ("* * * *", "has 4 fields, not 5 or 6"),
        ("0 0 * * * * *", "has 7 fields, not 5 or 6.* A field for the year is not supported"),
        ("0 0 1 1 *".replace("1", "\u0661"), "has the character"),
        ("0 0 * * \u017fun", "has the character"),  # a long s, whose capital is S
        ("0\u00a00 * * *", "has the character"),
        ("0 0 * * *\x00", "has the character"),
        ("0\x0b0 * * * *", "has the character"),
        ("*" * (LONGEST_TEXT + 1), f"longer than {LONGEST_TEXT} characters"),
        ("@reboot", "`@reboot` is refused"),
        ("@fortnightly", "no nickname '@fortnightly'.*@daily"),
        ("@daily 3", "has more after @daily"),
        ("@every", "is empty"),
        ("@every 10x", "cannot be read"),
        ("@every 0s", "shorter than a second"),
        ("@every 999ms", "shorter than a second"),
        ("@every -5s", "negative"),
        ("@every 1e3s", "cannot be read"),
        ("@every 99999999999d", "longer than a hundred years"),
    ],
)
def test_the_error_says_what_is_wrong_with_the_whole(text: str, what: str) -> None:
    with pytest.raises(BadCron, match=what):
        parse_rule(text)


@pytest.mark.parametrize("given", [None, 5, b"* * * * *", ["*"] * 5])
def test_what_is_not_text_is_refused(given: object) -> None:
    with pytest.raises(BadCron, match="is a string"):
        parse_rule(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("0 0 30 2 *", "day of the month '30' .* never comes in the month '2'"),
        ("0 0 30,31 FEB ?", "day of the month '30,31' .* never comes in the month 'FEB'"),
        ("0 0 31 4,6,9,11 *", "day of the month '31' .* never comes in the month '4,6,9,11'"),
        ("0 0 31W 4 *", "day of the month '31W' .* never comes"),
        ("0 0 L-30 APR *", "day of the month 'L-30' .* never comes"),
        ("0 0 LW * */7", "day of the month 'LW' .* never meets the weekday '\\*/7'.*both have to match"),
        ("0 0 */31 2 SUN#2", "never meets the weekday"),
    ],
)
def test_dates_that_no_year_has_are_refused(text: str, what: str) -> None:
    with pytest.raises(BadCron, match=what):
        Cron.parse(text)


@pytest.mark.parametrize("text", ["0 0 29 2 *", "0 0 31 4,5 *", "0 0 L-28 2 *", "0 0 29W 2 *", "0 0 30 2 MON"])
def test_dates_that_some_year_has_are_fine(text: str) -> None:
    assert str(Cron.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("* * * * *", "every minute"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/7 * * * *", "at every 7th minute of every hour"),
        ("5/15 * * * *", "at every 15th minute from 5 on of every hour"),
        ("10-40/5 * * * *", "at every 5th minute from 10 to 40 of every hour"),
        ("30 * * * *", "at minute 30 of every hour"),
        ("0,30 * * * *", "at minutes 0 and 30 of every hour"),
        ("0 */2 * * *", "every 2 hours"),
        ("15 */2 * * *", "at minute 15 of every 2nd hour"),
        ("0 9-17 * * *", "at minute 0 of hours 9 to 17"),
        ("*/5 9-17 * * MON-FRI", "every 5 minutes of hours 9 to 17 on Monday to Friday"),
        ("30 5 * * * *", "at second 30 of minute 5 of every hour"),
        ("30 * * * * *", "at second 30 of every minute"),
        ("*/10 0-5 3 * * *", "every 10 seconds of minutes 0 to 5 of hour 3"),
        ("0 0 3 * * *", "at 03:00:00 every day"),
        ("0 3,15 * * *", "at 03:00 and 15:00 every day"),
        ("0 3 * 1 *", "at 03:00 every day in January"),
        ("30 12 * * FRIL", "at 12:30 on the last Friday of each month"),
        ("30 12 * * FRI#2", "at 12:30 on the second Friday of each month"),
        ("30 12 * 3-5 FRI#2", "at 12:30 on the second Friday of March to May"),
        ("0 0 * * 7,1", "at 00:00 on Sunday and Monday"),
        ("0 0 * NOV-FEB 5-1", "at 00:00 on Friday to Monday in November to February"),
        ("0 0 * * */2", "at 00:00 on Sunday, Tuesday, Thursday and Saturday"),
        ("0 0 L * *", "at 00:00 on the last day of each month"),
        ("0 0 L-3 * *", "at 00:00 on the 3rd day before the last of each month"),
        ("0 0 LW * *", "at 00:00 on the last working day of each month"),
        ("0 0 1,15W * *", "at 00:00 on day 1 and the working day nearest to day 15 of each month"),
        ("0 0 1-5 JAN,JUL *", "at 00:00 on days 1 to 5 of January and July"),
        ("0 0 13 * FRI", "at 00:00 on day 13 of each month or on Friday"),
        ("0 0 */2 * MON", "at 00:00 on every 2nd day of each month, only if it is Monday"),
        ("0 0 1-31 * MON", "at 00:00 every day"),
        ("0 0 ? * ?", "at 00:00 every day"),
        ("@hourly", "every hour"),
        ("@daily", "at 00:00 every day"),
        ("@weekly", "at 00:00 on Sunday"),
        ("@yearly", "at 00:00 on day 1 of January"),
        ("@every 90m", "every 1h30m"),
    ],
)
def test_a_rule_is_said_in_plain_english(text: str, said: str) -> None:
    assert parse_rule(text).describe() == said


@settings(max_examples=examples(60))
@given(expressions(seconds=True) | expressions(seconds=False))
def test_every_expression_has_a_description_and_a_text_that_means_the_same(drawn: Drawn) -> None:
    cron = Cron.parse(drawn.text)
    again = Cron.parse(str(cron))
    assert (str(cron), again, hash(again)) == (drawn.text, cron, hash(cron))
    assert re.match("(at|every) ", cron.describe())


@settings(max_examples=examples(40))
@given(expressions(seconds=False))
def test_case_and_spaces_change_nothing_but_the_text(drawn: Drawn) -> None:
    cron, spaced = Cron.parse(drawn.text), Cron.parse(drawn.text.replace(" ", " \t ").lower() + "\n")
    assert (spaced.pattern, spaced.is_interval, spaced.text) == (cron.pattern, cron.is_interval, cron.text)


word = st.text("0123456789*?,-/#LWlw@", min_size=1, max_size=6) | st.sampled_from(
    ["*", "0", "L", "LW", "15W", "5L", "FRI#2", "JAN", "mon-fri", "*/5", "1,2", "22-2", "?", "59", "31", *NICKNAMES]
)


@settings(max_examples=examples(200))
@given(st.text(max_size=30) | st.lists(word, min_size=4, max_size=7).map(" ".join))
@example("0 0 " + ",".join(["1-31"] * 30) + " * *")
@example(",".join(["*"] * 123) + " * * * *")
@example("@every " + "1" * 240 + "s")
def test_any_text_is_read_or_refused_as_bad_cron(text: str) -> None:
    try:
        rule = parse_rule(text)
    except BadCron as bad:
        told = str(bad)
    else:
        assert parse_rule(str(rule)) == rule
        told = rule.describe()
    assert 0 < len(told) < 1000
