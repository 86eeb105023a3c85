"""Which of an app's tasks a worker can run, by the queues it serves; what looks like a mistake is put into words."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from perdure.application.registry import Registry
from perdure.text.suggestion import in_brackets

_SHOWN = 8
"""How many names a sentence lists."""

logger = logging.getLogger("perdure")


def warn_of_queues(registry: Registry, queues: Sequence[str]) -> None:
    """Log what looks like a mistake in the queues that a worker is to serve."""
    problems = [no_task(registry, queues), *(unknown_queue(registry, queue) for queue in queues)]
    for text in filter(None, problems):
        logger.warning(text, extra={"perdure": {"event": "queues_in_doubt", "queues": list(queues)}})


def no_task(registry: Registry, queues: Iterable[str]) -> str | None:
    """The warning that none of the app's tasks is in these queues; None where one is."""
    served = sorted(queues)
    if not registry.tasks:
        return (
            f"This worker serves {_listed(served)} and knows no task but HTTP jobs: the app has none. Jobs of other"
            " tasks wait for a worker that knows them. Name the app with your tasks (perdure worker MODULE:APP), and"
            " import the modules that define them in that module."
        )
    if tasks_in(registry, served):
        return None
    homes = sorted({task.queue for task in registry.tasks.values()})
    places = "; ".join(f"{queue}: {_listed(_names(registry, queue))}" for queue in homes[:_SHOWN])
    return (
        f"This worker serves {_listed(served)}, and none of the app's tasks is in there. The tasks by queue are:"
        f" {places}. Serve one of these queues (--queues {','.join(homes[:_SHOWN])}), or leave --queues out to serve"
        " all."
    )


def unknown_queue(registry: Registry, queue: str) -> str | None:
    """The warning that the app's code names no such queue, with the name that may be meant; None where it does."""
    known = {*registry.queue_names(), *registry.graveyards()}
    if queue in known:
        return None
    return (
        f"No task and no app.queue() names the queue {queue!r}{in_brackets(queue, known)}. It is served all the same,"
        " for jobs that are enqueued to it by name."
    )


def tasks_in(registry: Registry, queues: Iterable[str]) -> list[str]:
    """The names of the tasks whose jobs, or whose retries, are in one of these queues."""
    homes = registry.homes(queues)
    return sorted(name for name, task in registry.tasks.items() if task.queue in homes)


def _names(registry: Registry, queue: str) -> list[str]:
    return sorted(name for name, task in registry.tasks.items() if task.queue == queue)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
