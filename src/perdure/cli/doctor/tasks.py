"""What `perdure doctor` finds about tasks: workers that know none for their queues, and jobs that nobody knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from perdure.application.served_tasks import no_task, tasks_in, unknown_queue
from perdure.cli.doctor.finding import Finding
from perdure.cli.output import plural
from perdure.store import Store
from perdure.store.reads import JobFilter
from perdure.store.workers import WorkerInfo

if TYPE_CHECKING:
    from perdure.app import App


def task_findings(app: App | None, store: Store, alive: Sequence[WorkerInfo]) -> Iterator[Finding]:
    """Compare the app's tasks, where an app is named, with the queues of living workers; count jobs nobody knows."""
    parked = store.count(JobFilter(state="waiting", reason="parked")).wait()
    if parked:
        text = (
            f"{plural(parked, 'job')} of tasks that no worker knew; see 'perdure jobs ls --reason parked'. Start a"
            " worker whose app has these tasks"
        )
        yield Finding("tasks", "problem", text)
    if app is None:
        return
    problems = [*_idle_workers(app, alive), *_unserved(app, alive)]
    yield from problems
    if not problems and not parked:
        yield Finding("tasks", "ok", f"{plural(len(app.tasks), 'task')}, and living workers serve all their queues")


def _idle_workers(app: App, alive: Sequence[WorkerInfo]) -> Iterator[Finding]:
    """Workers that serve no queue of the app's tasks, and queues that the app does not name."""
    if not app.tasks:
        yield Finding("tasks", "problem", "the app has no task; import the modules that define them in its module")
        return
    for worker in alive:
        text = no_task(app.registry, worker.queues)
        if text is not None:
            yield Finding("tasks", "problem", f"{worker.id} on {worker.host}: {text}")
        else:
            for queue in worker.queues:
                unknown = unknown_queue(app.registry, queue)
                if unknown is not None:
                    yield Finding("tasks", "note", f"{worker.id} on {worker.host}: {unknown}")


def _unserved(app: App, alive: Sequence[WorkerInfo]) -> Iterator[Finding]:
    """Tasks whose queue no living worker serves; said only where there are workers."""
    if not alive:
        return
    served = tasks_in(app.registry, {queue for worker in alive for queue in worker.queues})
    left = sorted(set(app.tasks) - set(served))
    if left and served:
        queues = ", ".join(sorted({app.tasks[name].queue for name in left}))
        yield Finding("tasks", "note", f"no living worker serves {queues}, the queue of {', '.join(left[:8])}")
