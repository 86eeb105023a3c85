"""What the OpenAPI document promises, held against generated requests, good and bad, over real HTTP on every engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import BaseSchema, Case, GenerationMode, checks
from tests.conformance.conftest import ENGINES
from tests.conftest import examples
from tests.web.conftest import make_app, serving

from perdure.web.app import OPERATIONS, create_app

IS_LONG = os.environ.get("PERDURE_CHAOS") == "long"
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
]
ENDLESS = {"stream_events"}


OPERATION_NAMES = [operation.name for operation in OPERATIONS if operation.name not in ENDLESS]


def can_be_wrong(name: str) -> bool:
    """Whether there is anything in a request that could be wrong."""
    operation = next(operation for operation in OPERATIONS if operation.name == name)
    has_query = operation.query is not None and bool(operation.query.__struct_fields__)
    return has_query or operation.body is not None or bool(operation.parameters)


def cases() -> Iterator[Any]:
    """Good requests on every engine; bad ones, which are refused before any engine is asked, on the first."""
    # A store in memory answers as one in a file does.
    used = ENGINES if IS_LONG else [engine for engine in ENGINES if engine.name != "sqlite-memory"]
    for engine in used:
        for name in OPERATION_NAMES:
            yield pytest.param(engine, name, GenerationMode.POSITIVE, id=f"{engine.name}-{name}-good")
            if can_be_wrong(name) and (IS_LONG or engine is used[0]):
                yield pytest.param(engine, name, GenerationMode.NEGATIVE, id=f"{engine.name}-{name}-bad")


@pytest.fixture(scope="module")
def schema(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The document of a server that runs, as a client gets it."""
    app = make_app(request.param.make_url(tmp_path_factory.mktemp("schema")))
    with serving(create_app(app, accepts_any_task=True)) as url:
        refusals = {"expected-statuses": ["4xx"]}
        config = schemathesis.Config.from_dict({"checks": {"negative_data_rejection": refusals}})
        yield schemathesis.openapi.from_url(f"{url}/openapi.json", config=config)
    app.close()


@pytest.mark.parametrize(("schema", "name", "mode"), list(cases()), indirect=["schema"])
def test_no_generated_request_gets_an_answer_that_is_not_described(
    schema: BaseSchema, name: str, mode: GenerationMode
) -> None:
    operation = schema.find_operation_by_id(name)

    @settings(
        max_examples=examples(8),
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Case) -> None:
        case.call_and_validate(checks=CHECKS, timeout=120)

    ask()
