"""What `perdure doctor` says about retry policies: how long the app's keeps trying, and which tasks give up soon."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from perdure.admin.forecast import Forecast, forecast
from perdure.cli.doctor.finding import Finding
from perdure.cli.output import plural, rough
from perdure.cli.policy import kept_trying
from perdure.cli.session import Session
from perdure.errors import BadPolicy, UsageError

if TYPE_CHECKING:
    from perdure.app import App
    from perdure.model.policy.retry import Retry

_CHECK = "retries"
_SOON = timedelta(seconds=10)
"""A policy that keeps trying no longer than this does not outlast the restart of a service."""

_REMEDY = 'A longer outage leaves their jobs dead; retry="patient" keeps trying for about a day'


def load_user_app(session: Session) -> tuple[App | None, list[Finding]]:
    """The user's app, if one is named. One that cannot be loaded is a note: the store can be checked without it."""
    if not session.has_app:
        return None, []
    try:
        with session.app(may_create=True) as app:
            return app, []
    except UsageError as error:
        return None, [Finding("app", "note", f"the app cannot be loaded here, so its tasks are not checked: {error}")]


def policy_findings(app: App) -> Iterator[Finding]:
    """What there is to say about the policies of an app and its tasks; a policy is a choice, so none is a problem."""
    yield _app_finding(app)
    groups: dict[tuple[Retry, int, str], list[str]] = {}
    now = app.surroundings.clock.now()
    for name, task in sorted(app.tasks.items()):
        policy = app.registry.task_policy(name, now)
        groups.setdefault((policy.retry, policy.limit, task.delivery), []).append(name)
    lasting = 0
    for (retry, limit, delivery), names in groups.items():
        if delivery == "at_most_once":
            yield Finding(
                _CHECK, "note", f"{_give_up(names)}: {', '.join(names)}; delivered at most once, so never retried"
            )
            continue
        try:
            found = forecast(retry.with_limit(limit))
        except BadPolicy as error:
            yield Finding(_CHECK, "note", f"the policy of {', '.join(names)} cannot be worked out: {error}")
            continue
        if _is_soon(found):
            yield Finding(_CHECK, "note", f"{_give_up(names)}: {', '.join(names)}; {_policy_text(found)}. {_REMEDY}")
        else:
            lasting += len(names)
    if lasting:
        yield Finding(_CHECK, "ok", f"{plural(lasting, 'task')} may keep trying for more than {rough(_SOON)}")


def _app_finding(app: App) -> Finding:
    retry = app.configuration.retry
    who = "the app's policy, for tasks and queues that have none,"
    try:
        found = forecast(retry)
    except BadPolicy as error:
        return Finding(_CHECK, "note", f"{who} cannot be worked out: {error}")
    if _is_soon(found):
        return Finding(_CHECK, "note", f"{who} gives up within {rough(_SOON)}: {_policy_text(found)}. {_REMEDY}")
    return Finding(_CHECK, "ok", f"{who} is {_policy_text(found)}")


def _is_soon(found: Forecast) -> bool:
    return found.is_complete and found.total.greatest <= _SOON


def _give_up(names: list[str]) -> str:
    verb = "gives" if len(names) == 1 else "give"
    return f"{plural(len(names), 'task')} {verb} up within {rough(_SOON)} of the first failure"


def _policy_text(found: Forecast) -> str:
    retry = found.policy
    if retry.max_attempts == 1:
        return f"{retry}, one attempt without retries"
    more = "" if found.is_complete else " and longer"
    return f"{retry}, {plural(retry.max_attempts, 'attempt')}, keeps trying {kept_trying(found.total)}{more}"
