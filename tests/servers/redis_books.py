"""Audits the keys of a Redis store: every line, counter and index must say what the jobs themselves say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import redis

from perdure.engines.redis.keys import KEYS
from perdure.engines.redis.record import to_record
from perdure.model.schedule.definition import Schedule
from perdure.system.clock import to_microseconds

LIVE = ("waiting", "ready", "running")


def patterns(tag: str) -> dict[str, tuple[re.Pattern[str], str]]:
    """How each key of keys.py looks under a tag, and its type."""
    found = {}
    for key in KEYS:
        name = re.sub(r"<lane>", "(fresh|retry)", re.escape(key.name).replace(r"\<", "<").replace(r"\>", ">"))
        found[key.name] = (re.compile(re.escape(tag) + ":" + re.sub(r"<\w+>", "(.*)", name), re.DOTALL), key.type)
    return found


def keys_of(client: redis.Redis, tag: str) -> list[str]:
    """Every key under a tag."""
    return sorted(key.decode() for key in client.scan_iter(match=re.sub(r"([][*?\\])", r"\\\1", tag) + "*", count=1000))


def audit(client: redis.Redis, tag: str) -> list[str]:
    """What is wrong with a store; empty when all is well."""
    keys = keys_of(client, tag)
    with client.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.type(key)
            pipeline.ttl(key)
        told = pipeline.execute()
    kinds = {key: kind.decode() for key, kind in zip(keys, told[::2], strict=True)}
    known = list(patterns(tag).values())
    wrong = [
        f"{key} ({kind}) is not in keys.py"
        for key, kind in kinds.items()
        if not any(pattern.fullmatch(key) and kind == wanted for pattern, wanted in known)
    ]
    wrong += [f"{key} has a time to live" for key, ttl in zip(keys, told[1::2], strict=True) if ttl != -1]
    return [*wrong, *_wrong_lines(client, kinds, tag)]


def _wrong_lines(client: redis.Redis, kinds: dict[str, str], tag: str) -> Iterator[str]:
    jobs = _records(client, tag)
    for part in ("args", "errors", "results"):
        beside = {job_id.decode() for job_id in client.hkeys(f"{tag}:{part}")}
        # A record that has no args of its own has them beside it; whatever is beside belongs to a job.
        wanted_of = {job_id for job_id, job in jobs.items() if part != "args" or "args" not in job}
        if beside - wanted_of or (part == "args" and beside != wanted_of):
            yield f"{tag}:{part} is of {sorted(beside)}, and there are {sorted(jobs)}"
    wanted = _expected(jobs, tag)
    wanted.update(_expected_schedules(client, [key for key in kinds if key.startswith(f"{tag}:schedule:")], tag))
    found = {key: _members(client, key, kind) for key, kind in kinds.items() if _is_derived(key, tag)}
    forwards = _hashes(client, [key for key in kinds if key.startswith(f"{tag}:forward:")], f"{tag}:forward:")
    yield from _wrong_forwards(forwards, jobs)
    wanted |= _expected_of_forwards(forwards, tag)
    for key in sorted({*wanted, *found}):
        if wanted.get(key) != found.get(key):
            yield f"{key} holds {found.get(key)}, and the jobs say {wanted.get(key)}"
    for key in kinds:
        if key.startswith(f"{tag}:attempts:"):
            job = jobs.get(key.removeprefix(f"{tag}:attempts:"))
            has_own = job is not None and job["state"] in (b"running", b"succeeded")
            if job is None or client.llen(key) != int(job.get("attempt", 0)) - has_own:
                yield f"{key} holds {client.llen(key)} records of {job}"
        if key.startswith(f"{tag}:running:"):
            holder = key.removeprefix(f"{tag}:running:")
            is_living = client.zscore(f"{tag}:workers", holder) is not None
            if is_living == client.sismember(f"{tag}:vanished", holder):
                yield f"{key}: its worker is not either living or vanished"
        if key.startswith(f"{tag}:bell:"):
            queue = key.removeprefix(f"{tag}:bell:")
            if client.llen(key) != 1 or not client.exists(f"{tag}:ready:fresh:{queue}", f"{tag}:ready:retry:{queue}"):
                yield f"{key} calls for nothing, or more than once"
    for ids in client.zrange(f"{tag}:ended", 0, -1):
        states = {jobs[job_id]["state"] for job_id in ids.decode().split(",") if job_id in jobs}
        if b"," in ids and states != {b"succeeded"}:
            yield f"{tag}:ended has jobs together that are {states}"
    for holder in client.smembers(f"{tag}:vanished"):
        if not client.exists(f"{tag}:running:{holder.decode()}"):
            yield f"the vanished worker {holder!r} holds nothing"


def _wrong_forwards(forwards: dict[str, dict[str, Any]], jobs: dict[str, dict[str, Any]]) -> Iterator[str]:
    for job_id, forward in forwards.items():
        job = jobs.get(job_id)
        if job is None or job["state"] != b"dead" or forward["attempt"] != job["attempt"]:
            yield f"the forward {forward} is of {job}"
        if (forward["state"] in (b"pending", b"failing")) != ("next_at" in forward):
            yield f"the forward {forward} is due exactly while it is pending or failing"


def _expected_of_forwards(forwards: dict[str, dict[str, Any]], tag: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for job_id, forward in forwards.items():
        states = found.setdefault(f"{tag}:forward_counts", {})
        states[forward["state"].decode()] = states.get(forward["state"].decode(), 0) + 1
        if "next_at" in forward:
            found.setdefault(f"{tag}:forwards:{forward['queue'].decode()}", {})[job_id] = int(forward["next_at"])
    return found


def _records(client: redis.Redis, tag: str) -> dict[str, dict[str, Any]]:
    """The fields of every job by name, those left out that say nothing."""
    found = {}
    for job_id, text in client.hgetall(f"{tag}:records").items():
        said = msgspec.structs.asdict(to_record(text))
        fields = {name: value for name, value in said.items() if value != b"" or name in ("task", "queue")}
        for name in ("unique", "schedule", "origin", "reason", "retry", "result", "args"):
            if name in fields:
                assert fields[name].startswith(b"="), fields
                fields[name] = fields[name][1:]
        found[job_id.decode()] = fields
    return found


def _hashes(client: redis.Redis, keys: list[str], before: str) -> dict[str, dict[str, Any]]:
    with client.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.hgetall(key)
        told = pipeline.execute()
    return {
        key.removeprefix(before): {name.decode(): value for name, value in fields.items()}
        for key, fields in zip(keys, told, strict=True)
    }


def _is_derived(key: str, tag: str) -> bool:
    name = key.removeprefix(f"{tag}:")
    alone = (
        "jobs",
        "waiting",
        "ended",
        "dead",
        "cancelled",
        "unique",
        "counts",
        "schedules",
        "due",
        "queued",
        "forward_counts",
    )
    return name in alone or name.startswith(
        ("ready:", "running:", "cancelling:", "unfinished:", "forwards:", "parked:")
    )


def _expected(jobs: dict[str, dict[str, Any]], tag: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}

    def put(name: str, member: str, score: float) -> None:
        found.setdefault(f"{tag}:{name}", {})[member] = score

    counts: Counter[str] = Counter()
    for job_id, job in jobs.items():
        state, queue = job["state"].decode(), job["queue"].decode()
        lane = job.get("lane", b"fresh").decode()
        place = f"{max(0, int(job['run_at'])):018d}:{job_id}"
        counts[f"{state}:{lane}:{queue}"] += 1
        put("jobs", job_id, 0)
        match state:
            case "ready":
                put(f"ready:{lane}:{queue}", place, -int(job.get("priority", 0)))
            case "waiting":
                put("waiting", place, 0)
                if job.get("reason") == b"parked":
                    put(f"parked:{queue}", f"{len(job['task'])}:{job['task'].decode()}:{job_id}", 0)
            case "running":
                put(f"running:{job['worker'].decode()}", job_id, 0)
                if "is_cancelling" in job:
                    put(f"cancelling:{job['worker'].decode()}", job_id, 0)
            case "dead":
                put("dead", job_id, 0)
            case _:
                put("ended", job_id, int(job["ended_at"]))
                if state == "cancelled":
                    put("cancelled", job_id, 0)
        if "schedule" in job and state in LIVE:
            put(f"unfinished:{job['schedule'].decode()}", job_id, 0)
        if "unique" in job and state in LIVE:
            task = job["task"]
            put("unique", f"{len(task)}:{task.decode()}:{job['unique'].decode()}", hash(job_id))
    for field, number in counts.items():
        put("counts", field, number)
    return found


def _expected_schedules(client: redis.Redis, keys: list[str], tag: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for key in keys:
        name = key.removeprefix(f"{tag}:schedule:")
        schedule = msgspec.json.decode(client.hget(key, "document"), type=Schedule)
        found.setdefault(f"{tag}:schedules", {})[name] = 0
        if schedule.next_at is not None:
            found.setdefault(f"{tag}:due", {})[name] = to_microseconds(schedule.next_at)
        if schedule.backlog:
            found.setdefault(f"{tag}:queued", {})[name] = 0
        if client.hget(key, "revision").decode() != schedule.revision:
            found[f"{tag}:a revision that its document has"] = {name: 0}
    return found


def _members(client: redis.Redis, key: str, kind: str) -> dict[str, float]:
    match kind:
        case "zset":
            found = {member.decode(): score for member, score in client.zrange(key, 0, -1, withscores=True)}
            # Jobs that succeeded together share a member; whoever may leave by itself stands alone.
            if key.endswith(":ended"):
                return {job_id: score for ids, score in found.items() for job_id in ids.split(",")}
            return found
        case "set":
            return {member.decode(): 0 for member in client.smembers(key)}
        case _:
            pairs = client.hgetall(key).items()
            is_unique = key.endswith(":unique")
            return {name.decode(): hash(value.decode()) if is_unique else float(value) for name, value in pairs}
