"""Raw Redis: what a few lines of redis-py and Lua can do with the same durability and fields, jobs kept and fenced."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import redis

from bench.peers import job

BATCH = 500
ENQUEUE = """
local now = ARGV[2]
for at = 3, #ARGV, 2 do
    redis.call('HSET', 'job:' .. ARGV[at], 'task', ARGV[1], 'queue', 'default', 'state', 'ready', 'lane', 'fresh',
        'priority', '0', 'run_at', now, 'created_at', now, 'attempt', '0', 'delivery', 'at_least_once',
        'args', ARGV[at + 1])
    redis.call('ZADD', 'ready', now, ARGV[at])
end
return 1
"""
CLAIM = """
local popped = redis.call('ZPOPMIN', 'ready', ARGV[3])
local claimed = {}
for at = 1, #popped, 2 do
    local key = 'job:' .. popped[at]
    local found = redis.call('HMGET', key, 'attempt', 'args')
    local attempt = tonumber(found[1]) + 1
    redis.call('HSET', key, 'state', 'running', 'attempt', attempt, 'worker', ARGV[1], 'started_at', ARGV[2])
    claimed[#claimed + 1] = popped[at]
    claimed[#claimed + 1] = attempt
    claimed[#claimed + 1] = found[2]
end
return claimed
"""
COMPLETE = """
local accepted = 0
for at = 3, #ARGV, 2 do
    local key = 'job:' .. ARGV[at]
    local found = redis.call('HMGET', key, 'attempt', 'worker')
    if found[1] == ARGV[at + 1] and found[2] == ARGV[1] then
        redis.call('HSET', key, 'state', 'succeeded', 'worker', '', 'ended_at', ARGV[2])
        redis.call('ZADD', 'succeeded', ARGV[2], ARGV[at])
        accepted = accepted + 1
    end
end
return accepted
"""

_open: list[redis.Redis] = []
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def connect() -> None:
    _open.append(redis.Redis.from_url(job.URL))


def disconnect() -> None:
    _open.pop().close()


def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    script = _open[0].register_script(ENQUEUE)
    for number in numbers:
        script(args=[task, time.time_ns() // 1000, f"{number:032x}", b'{"args":[%d]}' % number])


def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    given = [part for number in numbers for part in (f"{number:032x}", b'{"args":[%d]}' % number)]
    _open[0].register_script(ENQUEUE)(args=[task, time.time_ns() // 1000, *given])


def work() -> None:
    """Complete a batch and claim the next in one round trip."""
    client = redis.Redis.from_url(job.URL)
    worker = f"w{os.getpid()}"
    claim, complete = client.script_load(CLAIM), client.script_load(COMPLETE)
    ended: list[Any] = []
    while True:
        now = time.time_ns() // 1000
        with client.pipeline(transaction=False) as pipe:
            if ended:
                pipe.evalsha(complete, 0, worker, now, *ended)
            pipe.evalsha(claim, 0, worker, now, BATCH)
            claimed = pipe.execute()[-1]
        ended = []
        for at in range(0, len(claimed), 3):
            job.noop(_decode(claimed[at + 2])["args"][0])
            ended += claimed[at : at + 2]
        if not claimed:
            time.sleep(0.005)


def settled(jobs: int) -> int:
    return int(_open[0].zcard("succeeded"))


job.gate()
