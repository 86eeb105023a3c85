"""Raw Redis: what a few lines of hiredis and Lua can do with the same durability and fields, jobs kept and fenced.

A job is one text in a hash of all of them, and lies in one of three lines: ready, running by worker, ended. A batch is
read and written by a few commands in one script. The next claim is on its way while a batch is run, and what has ended
goes with it.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import hiredis
import msgspec

from bench.peers import job

BATCH = 500
# A job's fields, with bars between: state, attempt, worker, started_at, ended_at; then what no step changes: task,
# queue, lane, priority, run_at, created_at, delivery, max_attempts, failures, args. A place in line is run_at and id.
ENQUEUE = """
local now, records, ready = ARGV[2], {}, {}
local head = 'ready|0||||' .. ARGV[1] .. '|default|fresh|0|' .. now .. '|' .. now .. '|at_least_once||0|'
for at = 3, #ARGV, 2 do
    records[at - 2], records[at - 1] = ARGV[at], head .. ARGV[at + 1]
    ready[at - 2], ready[at - 1] = 0, now .. ':' .. ARGV[at]
end
redis.call('HSET', 'jobs', unpack(records))
redis.call('ZADD', 'ready', unpack(ready))
return 1
"""
CLAIM = """
local popped, ids = redis.call('ZPOPMIN', 'ready', ARGV[3]), {}
if #popped == 0 then
    return popped
end
for at = 1, #popped, 2 do
    ids[#ids + 1] = string.sub(popped[at], 18)
end
local claim, records, running, claimed = '|' .. ARGV[1] .. '|' .. ARGV[2] .. '||', {}, {}, {}
for number, record in ipairs(redis.call('HMGET', 'jobs', unpack(ids))) do
    local attempt, rest = string.match(record, '^ready|(%d+)|[^|]*|[^|]*|[^|]*|()')
    local at = 2 * number - 1
    attempt, rest = attempt + 1, string.sub(record, rest)
    records[at], records[at + 1] = ids[number], 'running|' .. attempt .. claim .. rest
    running[at], running[at + 1] = ids[number], attempt
    claimed[3 * number - 2], claimed[3 * number - 1], claimed[3 * number] = ids[number], attempt, rest
end
redis.call('HSET', 'jobs', unpack(records))
redis.call('HSET', 'running:' .. ARGV[1], unpack(running))
return claimed
"""
COMPLETE = """
local ids, records, ended, done = {}, {}, {}, {}
for at = 3, #ARGV, 2 do
    ids[#ids + 1] = ARGV[at]
end
for number, record in ipairs(redis.call('HMGET', 'jobs', unpack(ids))) do
    local attempt = ARGV[2 * number + 2]
    local fence = 'running|' .. attempt .. '|' .. ARGV[1] .. '|'
    if string.sub(record, 1, #fence) == fence then
        local started, rest = string.match(record, '^([^|]*)||()', #fence + 1)
        local at = 2 * #done + 1
        local times = '||' .. started .. '|' .. ARGV[2] .. '|'
        records[at], records[at + 1] = ids[number], 'succeeded|' .. attempt .. times .. string.sub(record, rest)
        ended[at], ended[at + 1] = ARGV[2], ids[number]
        done[#done + 1] = ids[number]
    end
end
if #done > 0 then
    redis.call('HSET', 'jobs', unpack(records))
    redis.call('ZADD', 'ended', unpack(ended))
    redis.call('HDEL', 'running:' .. ARGV[1], unpack(done))
end
return #done
"""

_open: list[Connection] = []
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Connection:
    """A socket, and what the server says on it."""

    def __init__(self) -> None:
        place = urlsplit(job.URL)
        self._socket = socket.create_connection((place.hostname, place.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = hiredis.Reader()
        self.enqueue: Any = None
        """The name of the script that enqueues, once it is loaded."""

    def send(self, *commands: Sequence[Any]) -> None:
        self._socket.sendall(b"".join(hiredis.pack_command(tuple(command)) for command in commands))

    def read(self) -> Any:
        while (answer := self._reader.gets()) is False:
            self._reader.feed(self._socket.recv(1 << 17))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def load(self, script: str) -> Any:
        self.send(("SCRIPT", "LOAD", script))
        return self.read()

    def close(self) -> None:
        self._socket.close()


def connect() -> None:
    server = Connection()
    server.enqueue = server.load(ENQUEUE)
    _open.append(server)


def disconnect() -> None:
    _open.pop().close()


def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        enqueue_bulk(task, (number,))


def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    given = [part for number in numbers for part in (f"{number:032x}", b'{"args":[%d]}' % number)]
    server = _open[0]
    server.send(("EVALSHA", server.enqueue, 0, task, time.time_ns() // 1000, *given))
    server.read()


def work() -> None:
    """Send what has ended and ask for the next batch, and run the one at hand meanwhile."""
    server = Connection()
    worker = f"w{os.getpid()}"
    claim, complete = server.load(CLAIM), server.load(COMPLETE)
    claimed: list[Any] = []
    ended: list[Any] = []
    while True:
        now = time.time_ns() // 1000
        asked: list[Sequence[Any]] = [("EVALSHA", complete, 0, worker, now, *ended)] if ended else []
        server.send(*asked, ("EVALSHA", claim, 0, worker, now, BATCH))
        ended = []
        for at in range(0, len(claimed), 3):
            job.noop(_decode(claimed[at + 2].rpartition(b"|")[2])["args"][0])
            ended += claimed[at : at + 2]
        claimed = [server.read() for _ in range(len(asked) + 1)][-1]
        if not claimed and not ended:
            time.sleep(0.005)


def settled(jobs: int) -> int:
    _open[0].send(("ZCARD", "ended"))
    return int(_open[0].read())


job.gate()
