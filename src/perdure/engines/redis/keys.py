"""Every key of a store: its type, what it holds, and which scripts write it.

All keys begin with the store's prefix in braces and a colon, `{perdure}:` unless the URL says otherwise. The braces are
a hash tag: in a Cluster all keys of a store are in one slot, so that any script may touch any of them. Scripts declare
the prefix alone and derive the keys from it. No key has a time to live, and none is left behind: when every job is
pruned and no worker, switch, note or schedule is left, only `schema` is.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key, or one kind of key: `<name>` in its name stands for that thing's name."""

    name: str
    type: Literal["string", "hash", "list", "set", "zset"]
    holds: str
    score: str = ""
    """What a sorted set is ordered by before the bytes of its members."""
    writers: tuple[str, ...]
    """The scripts that write it."""


_MAKERS = ("enqueue", "enqueue_one", "fire")
_SETTLERS = ("commit", "succeed")
_MOVERS = (*_MAKERS, "fetch", *_SETTLERS, "promote", "cancel", "change", "retry", "replay", "discard", "prune")

KEYS = (
    Key(
        name="records",
        type="hash",
        holds="the id of every job and its record: fields as in `fragments/record.lua`, each ended by byte 255",
        writers=("repair", *_MOVERS, "start", "set_aside", "unpark"),
    ),
    Key(
        name="args",
        type="hash",
        holds="the id of each job whose arguments are too long for its record, and those arguments",
        writers=("enqueue", "fire", "change", "prune"),
    ),
    Key(
        name="errors",
        type="hash",
        holds="the id of each job whose newest failure is kept, and that failure",
        writers=("commit", "prune"),
    ),
    Key(
        name="results",
        type="hash",
        holds="the id of each job whose result is too long for its record, and that result",
        writers=("commit", "prune"),
    ),
    Key(
        name="attempts:<id>",
        type="list",
        holds="`token|delay|record` of each attempt of a job that did not succeed, oldest first",
        writers=("commit", "prune"),
    ),
    Key(name="jobs", type="zset", holds="the id of every job", score="0", writers=("repair", *_MAKERS, "prune")),
    Key(
        name="ready:<lane>:<queue>",
        type="zset",
        holds="`run_at:id` of each ready job, run_at in eighteen digits",
        score="the priority, negated",
        writers=("repair", *_MAKERS, "fetch", "commit", "promote", "cancel", "change", "retry", "replay"),
    ),
    Key(
        name="bell:<queue>",
        type="list",
        holds="`1`, only while the queue has ready jobs; popped by one of the idle workers that stand by for it",
        writers=("repair", *_MAKERS, "fetch", "commit", "promote", "cancel", "change", "retry", "replay", "resume"),
    ),
    Key(
        name="waiting",
        type="zset",
        holds="`run_at:id` of each waiting job, run_at in eighteen digits",
        score="0",
        writers=("repair", "enqueue", "fire", "commit", "promote", "cancel", "change", "retry", "replay", "unpark"),
    ),
    Key(
        name="parked:<queue>",
        type="zset",
        holds="`length of task:task:id` of each waiting job of the queue whose task no worker knew that claimed it",
        score="0",
        writers=("repair", "commit", "promote", "cancel", "change", "retry", "unpark"),
    ),
    Key(
        name="running:<worker>",
        type="set",
        holds="the id of each job that the worker is running",
        writers=("repair", "fetch", "unpark", "set_aside", *_SETTLERS),
    ),
    Key(
        name="cancelling:<worker>",
        type="set",
        holds="the ids of running jobs that are to be cancelled",
        writers=("cancel", "set_aside", *_SETTLERS),
    ),
    Key(
        name="ended",
        type="zset",
        holds="each cancelled job's id; those of succeeded ones, up to a hundred that ended together joined by commas",
        score="ended_at",
        writers=("repair", *_SETTLERS, "cancel", "discard", "retry", "replay", "prune"),
    ),
    Key(
        name="dead",
        type="zset",
        holds="the id of each dead job",
        score="0",
        writers=("repair", "commit", "retry", "replay", "discard", "set_aside"),
    ),
    Key(
        name="forward:<id>",
        type="hash",
        holds="how far the forwarding of a dead job is: its fields by name, those absent that there are none of",
        writers=("repair", "commit", "forward", "forwarded", "forward_now", "retry", "replay", "discard"),
    ),
    Key(
        name="forwards:<queue>",
        type="zset",
        holds="the id of each dead job of the queue that is to be forwarded",
        score="when the next try is due",
        writers=("repair", "commit", "forward", "forwarded", "forward_now", "retry", "replay", "discard"),
    ),
    Key(
        name="forward_counts",
        type="hash",
        holds="each state of forwards and how many there are",
        writers=("repair_counters", "repair", "commit", "forwarded", "forward_now", "retry", "replay", "discard"),
    ),
    Key(
        name="cancelled",
        type="zset",
        holds="the id of each cancelled job",
        score="0",
        writers=("repair", "commit", "cancel", "discard", "retry", "replay", "prune"),
    ),
    Key(
        name="unique",
        type="hash",
        holds="`length of task:task:unique key` and the id of the live job that holds it",
        writers=("repair", "enqueue", *_SETTLERS, "cancel", "retry", "replay", "set_aside"),
    ),
    Key(
        name="counts",
        type="hash",
        holds="`state:lane:queue` and how many jobs there are",
        writers=("repair_counters", "repair", *_MOVERS, "set_aside"),
    ),
    Key(
        name="paused",
        type="hash",
        holds="each paused queue and `paused_at|=reason`",
        writers=("pause", "resume", "prune"),
    ),
    Key(
        name="paused_until",
        type="hash",
        holds="each paused queue whose pause ends by itself, and when",
        writers=("pause", "resume", "prune"),
    ),
    Key(
        name="settings",
        type="hash",
        holds="`setting:queue` and what an operator has set",
        writers=("configure",),
    ),
    Key(name="notes", type="hash", holds="`kind:key` and body of each note", writers=("note", "prune")),
    Key(
        name="notes_expiring",
        type="zset",
        holds="`kind:key` of each note",
        score="when it expires",
        writers=("note", "prune"),
    ),
    Key(
        name="notes_made:<kind>", type="zset", holds="the key of each note", score="made_at", writers=("note", "prune")
    ),
    Key(
        name="workers",
        type="zset",
        holds="the id of each living worker",
        score="the end of its lease",
        writers=("register", "beat", "reap", "deregister"),
    ),
    Key(
        name="worker:<worker>",
        type="hash",
        holds="what the worker said of itself, and its last beat",
        writers=("register", "beat", "reap", "deregister"),
    ),
    Key(
        name="vanished",
        type="set",
        holds="the id of each worker that was struck off while it held jobs",
        writers=("repair", "reap", "deregister", "register", "set_aside", *_SETTLERS),
    ),
    Key(
        name="registered",
        type="zset",
        holds="the same as `workers`, so that workers are still known when that key was deleted",
        score="the end of its lease",
        writers=("register", "beat", "reap", "deregister"),
    ),
    Key(
        name="schedule:<schedule>",
        type="hash",
        holds="a schedule: its revision, its document, and when a worker last named it",
        writers=("put_schedule", "remove_schedule", "name_schedules", "fire"),
    ),
    Key(
        name="schedules",
        type="zset",
        holds="the name of every schedule",
        score="0",
        writers=("put_schedule", "remove_schedule", "fire"),
    ),
    Key(
        name="due",
        type="zset",
        holds="the name of each schedule that has a tick to come",
        score="its next tick",
        writers=("put_schedule", "remove_schedule", "fire"),
    ),
    Key(
        name="queued",
        type="set",
        holds="the name of each schedule with ticks that wait for its earlier job",
        writers=("put_schedule", "remove_schedule", "fire"),
    ),
    Key(
        name="unfinished:<schedule>",
        type="set",
        holds="the ids of the jobs of a schedule that have not ended",
        writers=("repair", "enqueue", "fire", *_SETTLERS, "cancel", "retry", "replay", "set_aside"),
    ),
    Key(name="schema", type="string", holds="the version of this layout", writers=("schema",)),
)

CHANNEL = "hints"
"""The pub/sub channel of hints; a message is the sender's own name. `hints:<sender>` ends its listener."""
