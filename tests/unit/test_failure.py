"""What is kept of an exception: bounded, storable, and captured whatever the exception does."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.failure import MESSAGE_LIMIT, TRACE_LIMIT, Detailed, Failure, capture, clean, normalise, type_name


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def failure_of(call: Callable[[], object]) -> Failure:
    try:
        call()
    except BaseException as caught:
        return capture(caught)
    raise AssertionError("nothing was raised")


class PlainError(Exception):
    pass


class ExitingError(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class RecursiveError(Exception):
    def __str__(self) -> str:
        return str(self)


class WrongTypeError(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]  # noqa: PLE0307 - the point of it


class LyingText(str):
    def __len__(self) -> int:
        return 1

    def encode(self, *args: object, **kwargs: object) -> bytes:  # type: ignore[override]
        raise KeyboardInterrupt


class LyingError(Exception):
    def __str__(self) -> str:
        return LyingText("x" * 50_000)


class HostileMeta(type):
    @property
    def __module__(cls) -> str:  # type: ignore[override]
        raise SystemExit(4)


class HostileKindError(Exception, metaclass=HostileMeta):
    pass


HOSTILE: dict[str, Callable[[], BaseException]] = {
    "exits when shown": ExitingError,
    "recurses when shown": RecursiveError,
    "is shown as a number": WrongTypeError,
    "is shown as a lying text": LyingError,
    "has a hostile class": HostileKindError,
    "10 MB message": lambda: ValueError("x" * 10_000_000),
    "surrogates": lambda: ValueError("\ud800\udfff" * 5_000),
    "NUL": lambda: ValueError("a\x00b" * 5_000),
    "escape codes": lambda: ValueError("\x1b[2J\x07" * 5_000),
    "unprintable arguments": lambda: ValueError(object(), b"\xff", {1, 2}),
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": lambda: SystemExit(0),
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "StopIteration": lambda: StopIteration(5),
    "MemoryError": MemoryError,
    "RecursionError": RecursionError,
    "a group": lambda: ExceptionGroup("several", [ValueError("one"), ExitingError()]),
    "a class with an endless name": type("E" * 100_000 + "Error", (Exception,), {}),
    "a class with an odd name": type("\x01 ,()\x1b", (Exception,), {}),
}


@pytest.mark.parametrize("build", HOSTILE.values(), ids=HOSTILE.keys())
def test_every_exception_becomes_bounded_storable_text(build: Callable[[], BaseException]) -> None:
    failure = capture(raised(build()))
    stored = msgspec.json.encode(failure)
    assert msgspec.json.decode(stored, type=Failure) == failure
    assert b"\\u0000" not in stored
    assert len(failure.message) <= MESSAGE_LIMIT + 60
    assert len(failure.trace) <= TRACE_LIMIT + 4_000
    assert len(failure.type) <= 260
    assert failure.lineage[0] == failure.type
    assert failure.lineage[-1] == "BaseException"


def test_the_type_the_message_and_the_lineage_are_kept() -> None:
    failure = capture(raised(PlainError("no such thing")))
    assert failure.type == f"{__name__}.PlainError"
    assert failure.message == "no such thing"
    assert failure.lineage == (f"{__name__}.PlainError", "Exception", "BaseException")
    assert str(failure) == f"{__name__}.PlainError: no such thing"


def test_data_that_an_exception_brings_along_is_kept_instead_of_where_it_was_raised() -> None:
    try:
        raise Detailed("503 from https://example.com", {"status": 503, "ms": 1.5})
    except Detailed as error:
        failure = capture(error)
    assert failure.detail == {"status": 503, "ms": 1.5}
    assert (failure.trace, failure.frame) == ("", "")
    assert msgspec.json.decode(msgspec.json.encode(failure), type=Failure) == failure


def test_an_attribute_that_happens_to_be_named_detail_is_not_taken() -> None:
    error = ValueError("x")
    error.detail = {"status": 1}  # type: ignore[attr-defined]
    assert capture(error).detail is None


def test_answers_with_another_status_are_another_group() -> None:
    failures = [Failure(type="E", message=f"{status} from x", detail={"status": status}) for status in (404, 404, 429)]
    assert len({failure.fingerprint("http") for failure in failures}) == 2


def test_builtin_errors_are_named_without_their_module() -> None:
    assert type_name(TimeoutError) == "TimeoutError"
    assert capture(KeyError("x")).lineage == ("KeyError", "LookupError", "Exception", "BaseException")


def test_a_message_that_cannot_be_had_says_so() -> None:
    assert capture(ExitingError()).message == "(its __str__ raised SystemExit)"
    assert capture(WrongTypeError()).message == "(its __str__ raised TypeError)"


def test_a_long_message_says_how_long_it_was() -> None:
    message = capture(ValueError("x" * 10_000_000)).message
    assert message.startswith("xxx")
    assert message.endswith("… (10,000,000 characters in all)")


def test_a_message_that_lies_about_its_length_is_measured() -> None:
    assert capture(LyingError()).message.endswith("x… (50,000 characters in all)")


def test_an_exception_that_was_never_raised_has_no_trace() -> None:
    failure = capture(ValueError("x"))
    assert failure.trace == ""
    assert failure.frame == ""


def test_the_trace_shows_where_it_was_raised() -> None:
    failure = capture(raised(PlainError()))
    assert "test_failure.py" in failure.trace
    assert "in raised" in failure.trace
    assert failure.frame == f"{__name__}:raised"


def test_the_frame_is_in_own_code_not_in_the_standard_library() -> None:
    def own() -> None:
        json.loads("{")

    failure = failure_of(own)
    assert "/json/" in failure.trace
    assert failure.frame.endswith("own")
    assert failure.frame.startswith(f"{__name__}:")


def test_a_failed_import_is_put_down_to_who_imported() -> None:
    def own() -> None:
        importlib.import_module("perdure.nothing_of_that_name")

    failure = failure_of(own)
    assert "<frozen importlib" in failure.trace
    assert failure.frame.endswith("own")


def test_a_deep_trace_keeps_its_innermost_frames() -> None:
    def dive(depth: int) -> None:
        if depth == 0:
            raise PlainError("at the bottom")
        dive(depth - 1)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        failure = failure_of(lambda: dive(10_000))
    finally:
        sys.setrecursionlimit(limit)
    assert "at the bottom" in failure.trace
    assert failure.trace.count("\n") < 100
    assert failure.frame.endswith("dive")


def test_a_trace_too_long_loses_its_beginning() -> None:
    source = "def f():\n    g()\ndef g():\n    raise ValueError  #" + " x" * 4_000 + "\n"
    long_name = "own/" + "d" * 20_000 + ".py"
    scope: dict[str, Callable[[], None]] = {}
    exec(compile(source, long_name, "exec"), scope)
    failure = failure_of(scope["f"])
    assert len(failure.trace) <= TRACE_LIMIT
    assert failure.trace.rstrip().endswith("in g")


def raise_from(**chosen: BaseException | None) -> None:
    try:
        raise KeyError("inner")
    except KeyError:
        if "cause" in chosen:
            raise PlainError("outer") from chosen["cause"]
        raise PlainError("outer")  # noqa: B904 - the context is the point


def test_what_an_exception_was_raised_from_is_named() -> None:
    failure = failure_of(lambda: raise_from(cause=ValueError("deeper")))
    assert failure.trace.endswith("caused by ValueError: deeper\n")


def test_what_was_being_handled_is_named() -> None:
    assert failure_of(raise_from).trace.endswith("while handling KeyError: 'inner'\n")


def test_what_is_hidden_on_purpose_stays_hidden() -> None:
    last_line = failure_of(lambda: raise_from(cause=None)).trace.splitlines()[-1]
    assert "raise PlainError" in last_line


def test_the_members_of_a_group_are_named() -> None:
    failure = capture(raised(ExceptionGroup("several", [ValueError("one"), KeyError("two")])))
    assert "holding ValueError: one\n" in failure.trace
    assert "holding KeyError: 'two'\n" in failure.trace


def test_causes_in_a_circle_or_without_end_are_cut() -> None:
    one, other = PlainError("one"), PlainError("other")
    one.__cause__, other.__cause__ = other, one
    assert capture(one).trace.count("caused by") == 1
    first = error = PlainError("0")
    for number in range(1, 1000):
        error.__cause__ = PlainError(f"{number} " + "x" * 10_000)
        error = error.__cause__
    failure = capture(first)
    assert failure.trace.count("caused by") == 5
    assert len(failure.trace) < 3_500


@given(st.text(), st.integers(1, 50))
def test_cleaned_text_is_storable_and_bounded(text: str, limit: int) -> None:
    cleaned = clean(text, limit)
    cleaned.encode("utf-8")
    assert "\x00" not in cleaned
    assert "\x1b" not in cleaned
    assert len(cleaned) <= limit + 40
    assert clean(cleaned, limit + 100) == cleaned


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=100))
def test_plain_text_is_left_as_it_is(text: str) -> None:
    assert clean(text, 100) == text


@pytest.mark.parametrize("text", ["\ud800" * 50, "\x1b" * 50, "\x00" * 50], ids=ascii)
def test_escaping_does_not_lengthen_text_beyond_its_limit(text: str) -> None:
    assert len(clean(text, 50)) <= 50 + len("… (50 characters in all)")


def test_lines_are_kept() -> None:
    assert clean("one\n\ttwo", 100) == "one\n\ttwo"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("user 17 not found", "user 23 not found"),
        ("no row 'a'", "no row 'b'"),
        ("job 0194f3e2-1c7b-7d0a-8f4e-2b9a6c5d4e3f", "job 0194f3e2-1c7b-7d0a-8f4e-ffffffffffff"),
        ("<object at 0x7f12ab>", "<object at 0x7f99cd>"),
        ("took 1.5 s at 12:30:01", "took 22.75 s at 08:15:44"),
    ],
)
def test_failures_that_differ_by_data_only_share_a_fingerprint(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)
    first, second = Failure(type="ValueError", message=one), Failure(type="ValueError", message=other)
    assert first.fingerprint("send") == second.fingerprint("send")


def test_failures_of_other_tasks_types_and_places_have_other_fingerprints() -> None:
    failure = Failure(type="ValueError", message="no", frame="app:send")
    others = {
        failure.fingerprint("send"),
        failure.fingerprint("render"),
        Failure(type="KeyError", message="no", frame="app:send").fingerprint("send"),
        Failure(type="ValueError", message="yes", frame="app:send").fingerprint("send"),
        Failure(type="ValueError", message="no", frame="app:other").fingerprint("send"),
    }
    assert len(others) == 5


def test_normalising_a_hostile_message_is_quick() -> None:
    normalise("'" * 100_000)
    normalise("a" * 100_000 + "1." * 100_000)
