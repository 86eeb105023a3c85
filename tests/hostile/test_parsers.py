"""Every parser of what a client sends takes time in proportion to its length, and no input makes it slow.

Work is counted in instructions of Python, and as CPU time of n against 4n where the work is inside of C. With
PERDURE_HOSTILE=long a megabyte of each input must also be read within a generous time.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.speed.instructions import Instructions
from tests.web.conftest import connected, make_app
from tests.web.reach import Reach

from perdure import App
from perdure.admin.replay import read_rate
from perdure.admin.selection import read_id
from perdure.errors import PerdureError
from perdure.http.url import read_url
from perdure.model.payload.codec import decode_args, decode_body, encode_args
from perdure.model.payload.normaliser import MOST_NODES
from perdure.model.policy.retry import Retry
from perdure.model.schedule.rule import parse_rule
from perdure.text.duration import parse_duration
from perdure.text.suggestion import suggestion
from perdure.web.app import Api, create_app
from perdure.web.intake import _told
from perdure.web.paging import read_cursor
from perdure.web.problems import Failed, _without_secrets

IS_LONG = os.environ.get("PERDURE_HOSTILE") == "long"
MEGABYTE = 1024 * 1024
LIMIT = 8 * MEGABYTE


def _repeated(unit: str, head: str, tail: str) -> Callable[[int], bytes]:
    def make(size: int) -> bytes:
        count = max(1, (size - len(head) - len(tail)) // (len(unit) + 1))
        return (head + ",".join([unit] * count) + tail).encode()

    return make


def _keys(head: str, tail: str, form: str = '"k{:07}":1') -> Callable[[int], bytes]:
    def make(size: int) -> bytes:
        count = max(1, (size - len(head) - len(tail)) // (len(form.format(0)) + 1))
        return (head + ",".join(form.format(number) for number in range(count)) + tail).encode()

    return make


def _text(head: str, unit: str, tail: str) -> Callable[[int], bytes]:
    return lambda size: (head + unit * max(1, (size - len(head) - len(tail)) // len(unit)) + tail).encode()


BODIES: dict[str, Callable[[int], bytes]] = {
    "empty jobs": _repeated("{}", '{"jobs":[', "]}"),
    "jobs": _repeated('{"task":"send"}', '{"jobs":[', "]}"),
    "jobs of an unknown field": _repeated('{"tsk":1}', '{"jobs":[', "]}"),
    "jobs of an unknown task": _repeated('{"task":"sendd"}', '{"jobs":[', "]}"),
    "keys": _keys("{", "}"),
    "keys with the first one twice": _keys('{"k0000000":1,', "}"),
    "keys with the last one twice": _keys("{", ',"z":1,"z":2}'),
    "keys with spaces": _keys("{ ", " }", '"k{:07}" : 1'),
    "keys with escaped colons": _keys("{ ", " }", '"\\u003ak{:07}": 1'),
    "keys with another form's name": _keys('{"schedule":"x",', "}"),
    "keys of arguments": _keys('{"task":"send","kwargs":{', "}}"),
    "keys of headers": _keys('{"task":"http","kwargs":{"url":"http://a.b","headers":{', "}}}", '"k{:07}":"x"'),
    "keys of a request": _keys('{"task":"http","kwargs":{"url":"http://a.b",', "}}"),
    "numbers": _repeated("1", '{"task":"send","args":[[', "]]}"),
    "texts": _repeated('"x"', '{"task":"send","args":[[', "]]}"),
    "lists": _repeated("[]", '{"task":"send","args":[[', "]]}"),
    "lists, and one number too large": _repeated("[]", '{"' + "k" * 1000 + '":[', ",99999999999999999999]}"),
    "deep lists": lambda size: b'{"task":"send","args":' + b"[" * (size // 2) + b"]" * (size // 2) + b"}",
    "deep objects": lambda size: b'{"a":' * (size // 6) + b"1" + b"}" * (size // 6),
    "many deep lists": _repeated("[" * 60 + "]" * 60, '{"task":"send","args":[', "]}"),
    "a long number": _text('{"task":"send","args":[', "9", "]}"),
    "a long priority": _text('{"task":"send","priority":', "9", "}"),
    "a long fraction": _text('{"task":"send","args":[0.', "1", "]}"),
    "a long fraction as priority": _text('{"task":"send","priority":0.', "1", "}"),
    "a long exponent": _text('{"task":"send","args":[1e', "9", "]}"),
    "numbers of 4000 digits": _repeated("9" * 4000, '{"task":"send","args":[', "]}"),
    "numbers of 40 digits": _repeated("9" * 40, '{"task":"send","args":[', "]}"),
    "largest floats": _repeated("1e308", '{"task":"send","args":[[', "]]}"),
    "smallest floats": _repeated("4.9E-324", '{"task":"send","args":[[', "]]}"),
    "floats out of range": _repeated("1e999999", '{"task":"send","args":[', "]}"),
    "exact floats": _repeated("0.1234567890123456789012345678901234567890e-300", '{"task":"send","args":[', "]}"),
    "escapes": _text('{"task":"send","args":["', "\\u0041", '"]}'),
    "halves of pairs": _text('{"task":"send","args":["', "\\ud800", '"]}'),
    "NULs": _text('{"task":"send","args":["', "\\u0000", '"]}'),
    "backslashes": _text('{"task":"send","args":["\\u003a', "\\\\", '"] }'),
    "quoted brackets": _text('{"task":"send","args":["', "[{,", '"] }'),
    "a long key": _text('{"', "priority", '":1}'),
    "a long key with a fault in it": _text('{"', "k", '":[99999999999999999999]}'),
    "a long task": _text('{"task":"', "send", '"}'),
    "a long queue": _text('{"task":"send","queue":"', "a", '"}'),
    "a long policy": _text('{"task":"send","retry":"', "(", '"}'),
    "a long duration": _text('{"task":"send","delay":"', "1", '"}'),
    "a long moment": _text('{"task":"send","run_at":"', "2", '"}'),
    "a long cron": _text('{"schedule":"', "* ", '","api":"http://a.b"}'),
    "a long URL": _text('{"schedule":"* * * * *","api":"http://', "a.", '"}'),
    "a long type": _text('{"schedule":"* * * * *","api":"http://a.b","type":"', " - at `$", '"}'),
    "spaces": _text('{"task":"send"', " ", "}"),
    "no JSON": _text("", "\x7f", ""),
    "an open text": _text('{"task":"', "a", ""),
    "policies": _repeated('{"task":"send","args":[""],"retry":"fixed(1s).never(A,B,C,D,E)"}', '{"jobs":[', "]}"),
    "ids": _repeated('"01890a5d-ac96-774b-bcce-b302099a8057"', '{"ids":[', "]}"),
    "empty ids": _repeated('""', '{"ids":[', "]}"),
}
PATHS = ("jobs", "replays", "schedules")


async def _post(reach: Reach, path: str, body: bytes) -> None:
    response = await reach.ask("POST", path, content=body, headers={"Content-Type": "application/json"})
    assert response.status_code < 500, response.text
    assert len(response.content) < 100_000


@pytest.fixture
async def asked(tmp_path: Path):
    app = make_app(f"sqlite:///{tmp_path}/jobs.db")
    async with connected(create_app(app)) as client:
        yield Reach(client)
    app.close()


@pytest.mark.parametrize("path", PATHS)
async def test_the_work_for_a_body_grows_with_its_length_at_most(asked: Reach, path: str) -> None:
    slow = {}
    names = list(BODIES)[:: 1 if path == "jobs" else 5]
    for name in names:
        make, counts = BODIES[name], []
        await _post(asked, path, make(500))  # what is worked out once is not counted
        for size in (500, 2_000):
            with Instructions() as work:
                await _post(asked, path, make(size))
            counts.append(work.count)
        if counts[1] > 5 * counts[0] + 3_000:
            slow[name] = counts
    assert slow == {}


def _seconds(work: Callable[[], object]) -> float:
    """The CPU time that this thread takes."""
    # What the garbage collector takes depends on all that other tests have left in this process.
    gc.disable()
    began = time.thread_time()
    try:
        work()
    except (PerdureError, Failed):
        pass
    finally:
        taken = time.thread_time() - began
        gc.enable()
    return taken


def _is_slow(make: Callable[[int], Callable[[], object]]) -> str | None:
    """Whether four times the input takes far more than four times the time; what is quick anyway is not looked at."""
    for _ in range(3):
        large = _seconds(make(128 * 1024))
        small = 0.0 if large < 0.05 else _seconds(make(32 * 1024))
        if large < 0.05 or large < 10 * small:
            return None
    return f"{small:.4f} s, then {large:.4f} s"


def test_to_decode_a_body_takes_time_in_proportion_to_its_length() -> None:
    found = {
        name: _is_slow(lambda size, make=make: lambda: decode_body(make(size), LIMIT)) for name, make in BODIES.items()
    }
    assert {name: what for name, what in found.items() if what} == {}


TEXTS: dict[str, Callable[[str], object]] = {
    "cron": parse_rule,
    "policy": Retry.parse,
    "duration": parse_duration,
    "rate": read_rate,
    "id": read_id,
    "cursor": read_cursor,
    "URL": read_url,
    "URL with a path": lambda text: read_url(f"http://a.b/{text}"),
    "suggestion": lambda text: suggestion(text, ["priority", "timeout", text[:-1]]),
    "message of msgspec": _told,
    "error with a URL": _without_secrets,
}
UNITS = (
    "a",
    "1",
    "*",
    " ",
    "1m",
    "* ",
    ",",
    "(",
    "[",
    '"',
    "a.",
    "a:",
    "//",
    "@",
    "\\",
    " - at `$",
    "://",
    "e.never(",
    "$`",
)


@pytest.mark.parametrize("parser", TEXTS, ids=list(TEXTS))
def test_to_read_a_text_takes_time_in_proportion_to_its_length(parser: str) -> None:
    read = TEXTS[parser]
    found = {unit: _is_slow(lambda size, unit=unit: lambda: read(unit * (size // len(unit)))) for unit in UNITS}
    assert {unit: what for unit, what in found.items() if what} == {}


@pytest.mark.parametrize("parameter", ["limit", "state", "before", "error", "cursor", "task", "a" * 3_000])
async def test_a_long_parameter_is_refused_with_a_short_answer(asked: Reach, parameter: str) -> None:
    for unit in ("1", "a", "%41", " - at `$", "%C3%A9"):
        response = await asked.ask("GET", f"jobs?{parameter}={unit * (9_000 // len(unit))}")
        assert response.status_code in (400, 422)
        assert len(response.content) < 5_000


async def test_a_batch_that_is_too_long_is_refused_before_its_jobs_are_looked_at(asked: Reach) -> None:
    counts = []
    for count in (1_001, 4_004):
        body = b'{"jobs":[' + b",".join([b"{}"] * count) + b"]}"
        with Instructions() as work:
            await _post(asked, "jobs", body)
        counts.append(work.count)
    # What is left for each job is to count its parts, about 90 instructions.
    assert counts[1] - counts[0] < 3_003 * 150


async def test_the_policies_of_a_batch_are_read_once_each_and_bounded(asked: Reach, monkeypatch) -> None:
    read: list[str] = []
    real = Retry.parse
    monkeypatch.setattr(Retry, "parse", staticmethod(lambda text: read.append(text) or real(text)))
    job = {"task": "send", "args": [""]}
    policy = "fixed(7001ms)"  # no other test has it, as policies are kept once they were read
    await asked.post("jobs", {"jobs": [{**job, "retry": policy} for _ in range(100)]}, 201)
    assert read == [policy]
    long = [{**job, "retry": f"fixed({number}s).never({','.join('ABCDEFG')})"} for number in range(1, 400)]
    problem = await asked.post("jobs", {"jobs": long}, 422)
    assert problem["errors"][0]["pointer"] == "/jobs"
    assert read == [policy]


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ('{"a":1,"a":2}', True),
        ('{"a":1, "b":{"c":1,"c":1}}', True),
        ('{"a:b":1,"a\\u003ab":2}', True),
        ('{"a\\u003Ab":1,"a\\u003ab":2}', True),
        ('{"x":"\\\\u003a","a":1,"a":2}', True),
        ('{"a":":","a":1}', True),
        ('[{"a":1},{"a":1}]', False),
        ('{"a": ":", "b": "::"}', False),
        ('{"x": "\\\\u003a"}', False),
        ('{"x": "\\\\\\u003a"}', False),
        ('{"x": "\\u003a\\u003A", "\\u003a": 1}', False),
        ('{"x\\u003a": 1, "x": 2}', False),
    ],
)
def test_double_keys_are_found_however_colons_are_written(text: str, is_refused: bool) -> None:
    padding = " " * 70_000
    for written in (text, text + padding):
        if is_refused:
            with pytest.raises(PerdureError, match="twice"):
                decode_body(written.encode(), LIMIT)
        else:
            assert decode_body(written.encode(), LIMIT) == json.loads(text)


def test_floats_of_any_size_are_read_exactly_and_infinite_ones_refused() -> None:
    values = [1e308, -1.7976931348623157e308, 5e-324, 2.2250738585072014e-308, 1e-300, 0.1, 1e22]
    data = msgspec.json.encode({"args": values * 300})
    assert len(data) > 4096
    assert decode_args(data) == (values * 300, {})
    with pytest.raises(PerdureError, match="range"):
        decode_body(b"[" + b"1e308," * 1000 + b"1e309]", LIMIT)


@pytest.mark.parametrize("text", ["[1, 2", '{"a" 1}', "nul", '"\x00"', "[1,]", "{,}"])
def test_what_is_no_json_is_refused_as_such_however_long(text: str) -> None:
    for written in (text, text + " " * 70_000):
        with pytest.raises(PerdureError, match="not JSON"):
            decode_body(written.encode(), LIMIT)


@pytest.mark.parametrize("inner", ["1", "[]", "{}", '""', '"[,{"', '{"a":1}', "[ ]"])
def test_the_most_parts_are_counted_exactly(inner: str) -> None:
    parts = {"1": 1, "[]": 1, "{}": 1, '""': 1, '"[,{"': 1, '{"a":1}': 2, "[ ]": 1}[inner]
    most = (MOST_NODES - 1) // parts
    decode_body(("[" + ",".join([inner] * most) + "]").encode(), LIMIT)
    with pytest.raises(PerdureError, match="more than 100,000 values"):
        decode_body(("[" + ",".join([inner] * (most + 1)) + "]").encode(), LIMIT)


@pytest.mark.parametrize(
    "text", ['"' + "[" * 200_000 + '"', '["\\"' + ",[{" * 60_000 + '"]', '["\\\\", "' + "," * 150_000 + '"]']
)
def test_brackets_and_commas_inside_of_texts_are_no_parts(text: str) -> None:
    assert decode_body(text.encode(), LIMIT) == json.loads(text)


def test_the_path_to_a_fault_is_made_once_not_for_every_part() -> None:
    """A long key above many parts: a path for each of them would take gigabytes of copying."""
    large = {"k" * 1_000_000: [[] for _ in range(5_000)] + [2**70]}
    with Instructions() as work, pytest.raises(PerdureError, match="64 bits"):
        decode_body(msgspec.json.encode(large), LIMIT)
    assert work.count < 5_000 * 200
    with pytest.raises(PerdureError, match="cannot be stored"):
        encode_args((), {"k" * 100_000: [[] for _ in range(5_000)] + [object()]}, LIMIT)


@pytest.mark.skipif(not IS_LONG, reason="measures a megabyte of each input; PERDURE_HOSTILE=long runs it")
@pytest.mark.parametrize("name", BODIES)
async def test_a_megabyte_of_anything_is_read_quickly(tmp_path: Path, name: str) -> None:
    app: App = make_app(f"sqlite:///{tmp_path}/jobs.db")
    api: Api = create_app(app)
    body = BODIES[name](MEGABYTE)[: MEGABYTE - 1]
    async with connected(api) as client:
        reach = Reach(client)
        await _post(reach, "jobs", b"{}")
        for path in PATHS:
            taken = []
            for _ in range(3):
                began = time.process_time()
                await _post(reach, path, body)
                taken.append(time.process_time() - began)
                await asyncio.sleep(0)
            assert min(taken) < 0.3, (path, taken)
    app.close()
