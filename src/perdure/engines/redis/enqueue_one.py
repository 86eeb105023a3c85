"""Makes one plain job durable: the usual enqueue, and so in the fewest steps, here and in the server."""

from __future__ import annotations

from datetime import timedelta

from perdure.engines.redis.record import END, WITHIN
from perdure.engines.redis.rows import from_duration
from perdure.engines.redis.runner import Runner
from perdure.engines.redis.verb import Argument, Call, optional
from perdure.model.job import NewJob

_Kind = tuple[str, str, int, int | None, str | None, str, timedelta | None]
_MOST_KINDS = 1000


class PlainJobs:
    """Packs the calls that make plain jobs; most jobs of a program differ in id and args only, so the rest is kept."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._beginnings: dict[_Kind, tuple[bytes, bytes]] = {}
        self._keeps = runner.is_timeless
        self._is_possible = runner.client.takes_packed

    def pack(self, job: NewJob) -> bytes | None:
        """The call that makes the job, as it goes over the wire; None where it is not plain, or cannot be packed so."""
        if not self._is_possible or not is_plain(job):
            return None
        kind = job.task, job.queue, job.priority, job.max_attempts, job.retry, job.delivery, job.timeout
        found = self._beginnings.get(kind)
        if found is None:
            found = self._begin(kind)
        beginning, tail = found
        args, job_id = job.args, job.id.encode()
        return b"%b$%d\r\n%b%b\xff\r\n$%d\r\n%b\r\n" % (
            beginning,
            len(tail) + len(args) + 1,
            tail,
            args,
            len(job_id),
            job_id,
        )

    def _begin(self, kind: _Kind) -> tuple[bytes, bytes]:
        *first, tail = _arguments(kind)
        found = self._runner.pack_beginning(Call("enqueue_one", first), 2), tail
        if self._keeps:
            if len(self._beginnings) >= _MOST_KINDS:
                self._beginnings.clear()
            self._beginnings[kind] = found
        return found


def is_plain(job: NewJob) -> bool:
    """Whether nothing is kept beside the job's record, and it is ready at once; anything else is a batch's to make."""
    return (
        job.unique is None
        and job.delay is None
        and job.run_at is None
        and job.schedule is None
        and job.tick_at is None
        and len(job.args) <= WITHIN
        and END not in job.args
        # The script relies on it; a batch's script says what is wrong with any other.
        and type(job.priority) is int
        and -100 <= job.priority <= 100
    )


def enqueue_one(job: NewJob) -> Call:
    """The call that makes a plain job; it stands under its own id, whether or not it stood before."""
    *first, tail = _arguments(
        (job.task, job.queue, job.priority, job.max_attempts, job.retry, job.delivery, job.timeout)
    )
    return Call("enqueue_one", (*first, b"%b%b\xff" % (tail, job.args), job.id), is_write=True)


def _arguments(kind: _Kind) -> tuple[Argument, Argument, Argument, bytes]:
    """What jobs of one kind share: queue, score, the record up to its run_at, and from max_attempts to the args."""
    task, queue, priority, max_attempts, retry, delivery, timeout = kind
    head = (b"ready", b"0", b"", b"", b"", b"", b"0", b"0", *[b""] * 8, queue.encode(), b"", b"", task.encode())
    tail = (
        b"" if max_attempts is None else b"%d" % max_attempts,
        optional(retry),
        b"" if delivery == "at_least_once" else delivery.encode(),
        b"" if timeout is None else b"%d" % from_duration(timeout),
        b"",
        b"=",
    )
    return queue.encode(), b"%d" % -priority, END.join((*head, b"%d" % priority, b"")), END.join(tail)
