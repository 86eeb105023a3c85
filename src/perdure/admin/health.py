"""Whether all is well, judged by thresholds: what `perdure health` and a server's own health say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Literal

import msgspec

from perdure.admin.document import Document, moment, seconds
from perdure.admin.inspect import Stats, stats
from perdure.admin.recent_rates import RecentRates, pulse
from perdure.admin.reply_generator import Steps, ask, stepped
from perdure.model.thresholds import Thresholds
from perdure.store import Store
from perdure.store.reads import QueueInfo, SchemaStatus
from perdure.store.workers import WorkerInfo
from perdure.text.duration import format_duration
from perdure.text.plural import plural

Level = Literal["ok", "note", "degraded", "failed"]
LEVELS: tuple[Level, ...] = ("ok", "note", "degraded", "failed")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing looked at, and what to do about it where something is to be done."""

    check: str
    level: Level
    text: str
    hint: str = ""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """All findings, and the numbers they rest on."""

    findings: tuple[Finding, ...]
    stats: Stats
    pulse: RecentRates
    forwards_failed: int = 0
    """How many dead jobs could not be handed to their sink so far."""

    @property
    def status(self) -> Literal["ok", "degraded", "failed"]:
        """The worst of the findings; notes do not count."""
        worst = max(LEVELS.index(finding.level) for finding in self.findings)
        return "failed" if LEVELS[worst] == "failed" else "degraded" if LEVELS[worst] == "degraded" else "ok"


@stepped
def health(store: Store, thresholds: Thresholds, *, queue: str | None = None) -> Steps[Health]:
    """Look at one queue or at all of them."""
    schema = yield from ask(store.schema())
    numbers = yield from ask(stats(store))
    registered = yield from ask(store.workers())
    lately = yield from ask(pulse(store, thresholds.window, queue))
    forwards = yield from ask(store.forward_counts())
    forwards_failed = forwards.get("failing", 0) + forwards.get("stopped", 0)
    queues = [one for one in numbers.queues if queue in (None, one.name)]
    registered = [one for one in registered if queue is None or queue in one.queues]
    findings = [
        _schema(schema),
        *_workers(registered, queues, numbers, lately),
        *_queues(queues, numbers, lately, thresholds),
        *_lately(lately, thresholds),
        _forwards(forwards_failed),
    ]
    return Health(findings=tuple(findings), stats=numbers, pulse=lately, forwards_failed=forwards_failed)


def health_document(found: Health) -> Document:
    """The findings and their numbers as plain data."""
    lately = found.pulse
    return {
        "status": found.status,
        "at": moment(found.stats.at),
        "findings": [finding_document(finding) for finding in found.findings],
        "window": seconds(lately.window),
        "attempts": lately.attempts,
        "retries": lately.retries,
        "retry_rate": round(lately.retry_rate, 6),
        "exhausted": lately.exhausted,
        "dead": lately.dead,
        "wait": seconds(lately.wait),
        "retry_delay": seconds(lately.retry_delay),
        "is_sample": lately.is_sample,
        "workers": found.stats.workers,
        "oldest_ready_age": seconds(found.stats.oldest_ready_age),
        "forwards_failed": found.forwards_failed,
    }


def finding_document(finding: Finding) -> Document:
    return {"check": finding.check, "level": finding.level, "text": finding.text, "hint": finding.hint}


def _schema(schema: SchemaStatus) -> Finding:
    if schema.is_current:
        return Finding(check="schema", level="ok", text=f"version {schema.found} is current")
    text = f"version {schema.found}, wanted {schema.wanted}"
    return Finding(check="schema", level="failed", text=text, hint="perdure db migrate")


def _workers(
    registered: Sequence[WorkerInfo], queues: Sequence[QueueInfo], numbers: Stats, lately: RecentRates
) -> Iterator[Finding]:
    alive = [worker for worker in registered if worker.lease_until > numbers.at]
    for worker in registered:
        if worker.lease_until <= numbers.at:
            text = f"the lease of {worker.id} on {worker.host} ran out, and it holds {plural(worker.running, 'job')}"
            hint = "any living worker recovers them; see why it went: its log, the machine's memory"
            yield Finding(check="leases", level="degraded", text=text, hint=hint)
    served = {name for worker in alive for name in worker.queues}
    due = [queue for queue in queues if (queue.ready or queue.name in lately.overdue) and not queue.is_paused]
    unserved = [queue for queue in due if queue.name not in served]
    for queue in unserved:
        jobs = f"{queue.ready:,} ready and {plural(queue.waiting, 'waiting job')} in {queue.name}"
        text = f"{jobs}: no living worker serves it"
        yield Finding(check="workers", level="failed", text=text, hint=f"perdure worker MODULE:APP -q {queue.name}")
    if not unserved:
        yield Finding(check="workers", level="ok" if alive else "note", text=f"{len(alive)} alive")


def _queues(
    queues: Sequence[QueueInfo], numbers: Stats, lately: RecentRates, thresholds: Thresholds
) -> Iterator[Finding]:
    for queue in queues:
        if queue.is_paused:
            why = f" ({queue.pause_reason})" if queue.pause_reason else ""
            text = f"{queue.name} is paused{why} with {plural(queue.ready, 'ready job')}"
            level: Level = "degraded" if queue.ready else "note"
            yield Finding(check="queues", level=level, text=text, hint=f"perdure queues resume {queue.name}")
    ages = {queue.name: _age(queue, numbers, lately) for queue in queues if not queue.is_paused}
    late = {name: age for name, age in ages.items() if age > thresholds.oldest_ready}
    for name, age in late.items():
        text = f"the oldest job of {name} has been due for {_shown(age)}, over {_shown(thresholds.oldest_ready)}"
        hint = "more workers or a higher --concurrency; see 'perdure queues ls'"
        yield Finding(check="oldest ready", level="degraded", text=text, hint=hint)
    if not late:
        yield Finding(check="oldest ready", level="ok", text=f"no job is due for {_shown(thresholds.oldest_ready)}")


def _lately(lately: RecentRates, thresholds: Thresholds) -> Iterator[Finding]:
    of = f"of{' the newest' if lately.is_sample else ''} {plural(lately.attempts, 'attempt')}"
    span = _shown(lately.window)
    text = f"{lately.retry_rate:.1%} {of} in {span} were retries"
    is_high = lately.attempts >= thresholds.least_attempts and lately.retry_rate > thresholds.retry_rate
    yield _judged("retry rate", is_high, text, f"{thresholds.retry_rate:.0%}", "what fails: 'perdure dlq groups'")
    text = f"{plural(lately.exhausted, 'job')} reached {'its' if lately.exhausted == 1 else 'their'} limit in {span}"
    is_high = lately.exhausted > thresholds.exhausted
    yield _judged("limits", is_high, text, str(thresholds.exhausted), "'perdure dlq groups', then 'perdure dlq replay'")
    text = f"95 % of the newest attempts began within {_shown(lately.wait)} after they were due"
    is_high = lately.wait is not None and lately.wait > thresholds.wait
    yield _judged("wait", is_high, text, _shown(thresholds.wait), "more workers or a higher --concurrency")
    text = f"95 % of the waiting retries wait for at most {_shown(lately.retry_delay)}"
    is_high = lately.retry_delay is not None and lately.retry_delay > thresholds.retry_delay
    hint = "what they wait for: 'perdure jobs ls --state waiting'; delays: 'perdure explain TASK'"
    yield _judged("retry delay", is_high, text, _shown(thresholds.retry_delay), hint)


def _judged(check: str, is_high: bool, text: str, limit: str, hint: str) -> Finding:
    if is_high:
        return Finding(check=check, level="degraded", text=f"{text}, over {limit}", hint=hint)
    return Finding(check=check, level="ok", text=text)


def _forwards(failed: int) -> Finding:
    if not failed:
        return Finding(check="forwarding", level="ok", text="no dead letter failed to be forwarded")
    text = f"{plural(failed, 'dead job')} could not be handed to {'its' if failed == 1 else 'their'} sink"
    return Finding(check="forwarding", level="failed", text=text, hint="they are kept here; see 'perdure dlq ls'")


def _age(queue: QueueInfo, numbers: Stats, lately: RecentRates) -> timedelta:
    """How long the queue's oldest job has been due, ready or still counted as waiting."""
    since = [moment for moment in (queue.oldest_ready_at, lately.overdue.get(queue.name)) if moment is not None]
    return numbers.at - min(since) if since else timedelta(0)


def _shown(duration: timedelta | None) -> str:
    """To the millisecond below ten seconds, else to the second."""
    if duration is None:
        return "0s"
    step = timedelta(milliseconds=1) if duration < timedelta(seconds=10) else timedelta(seconds=1)
    return format_duration(round(duration / step) * step)
