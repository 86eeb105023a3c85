"""The OpenAPI 3.1 document, made of the same table of operations and types that the API runs on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from perdure.web import problems
from perdure.web.operation import Operation
from perdure.web.problems import Problem
from perdure.web.schemas.requests import JobIdText, QueueName, ScheduleName

_REF = "#/components/schemas/{name}"
_PATH_TYPES: dict[str, Any] = {"id": JobIdText, "name": QueueName}
_RETRY_AFTER = {"description": "How many seconds to wait before asking again.", "schema": {"type": "string"}}
_INTRODUCTION = (
    "Jobs, dead letters, queues, workers and policies. Names are snake_case; camelCase is accepted on input. Times are "
    "ISO text in UTC, durations are seconds. Every failure is an RFC 9457 problem. Arguments, results, details and "
    "traces are shown to tokens with the scope `args`, without the values of secret keys; others see `[hidden]`. Pages "
    "end at about 1 MB, and large payloads in them are cut; the job by its id shows them whole."
)

Schema = dict[str, Any]


def openapi(operations: Sequence[Operation], *, version: str, has_tokens: bool) -> Schema:
    """The document."""
    kinds = _kinds(operations)
    found, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    schemas = {_key(kind): _plain(schema) for kind, schema in zip(kinds, found, strict=True)}
    paths: Schema = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas, components)
    document: Schema = {
        "openapi": "3.1.0",
        "info": {"title": "Perdure", "version": version, "description": _INTRODUCTION},
        "paths": paths,
        "components": {
            "schemas": {name: _plain(schema) for name, schema in components.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    if has_tokens:
        document["security"] = [{"token": []}]
    return document


def _kinds(operations: Sequence[Operation]) -> list[Any]:
    kinds: list[Any] = [Problem, ScheduleName, *_PATH_TYPES.values()]
    for operation in operations:
        kinds += [kind for answer in operation.answers.values() for kind in _forms(answer)]
        if operation.query is not None:
            kinds.append(operation.query)
        if operation.body is not None:
            kinds += operation.body.forms
    unique = {_key(kind): kind for kind in kinds if kind is not str}
    return list(unique.values())


def _forms(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def _key(kind: Any) -> str:
    return str(kind) if not isinstance(kind, type) else kind.__qualname__


def _operation(operation: Operation, schemas: Schema, components: Schema) -> Schema:
    found: Schema = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [_tag(operation.path)],
        "responses": {
            **{str(status): _answer(operation, kind, schemas) for status, kind in operation.answers.items()},
            **{str(status): _problem(status) for status in operation.all_problems},
        },
    }
    description = " ".join(part for part in (operation.details, _scope(operation)) if part)
    if description:
        found["description"] = description
    if operation.scope is None:
        found["security"] = []
    parameters = _parameters(operation, schemas, components)
    if parameters:
        found["parameters"] = parameters
    if operation.body is not None:
        forms = [schemas[_key(form)] for form in operation.body.forms]
        schema = forms[0] if len(forms) == 1 else {"anyOf": forms}
        content = {"application/json": {"schema": schema}}
        found["requestBody"] = {"required": operation.body.is_required, "content": content}
    return found


def _parameters(operation: Operation, schemas: Schema, components: Schema) -> list[Schema]:
    parameters: list[Schema] = [
        {"name": name, "in": "path", "required": True, "schema": schemas[_key(_path_type(operation, name))]}
        for name in operation.parameters
    ]
    if operation.query is not None:
        schema = components[operation.query.__name__]
        parameters += [
            {"name": name, "in": "query", "required": name in schema["required"], "schema": _parameter(field)}
            for name, field in schema["properties"].items()
        ]
    if operation.is_repeatable:
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "The same key and request give the same answer, once done, for a day.",
                "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
            }
        )
    return parameters


def _path_type(operation: Operation, name: str) -> Any:
    return ScheduleName if _tag(operation.path) == "schedules" else _PATH_TYPES[name]


def _parameter(field: Schema) -> Schema:
    """A parameter that is not given has no null to be: it is left out."""
    field = {name: value for name, value in _plain(field).items() if not (name == "default" and value is None)}
    forms = [form for form in field.get("anyOf", ()) if form != {"type": "null"}]
    if len(forms) == 1:
        rest = {name: value for name, value in field.items() if name != "anyOf"}
        return {**rest, **forms[0]}
    return {**field, "anyOf": forms} if forms else field


def _answer(operation: Operation, kind: Any, schemas: Schema) -> Schema:
    forms = [{"type": "string"} if form is str else schemas[_key(form)] for form in _forms(kind)]
    schema = forms[0] if len(forms) == 1 else {"anyOf": forms}
    return {"description": operation.summary, "content": {operation.media_type: {"schema": schema}}}


def _problem(status: int) -> Schema:
    titles = [title for known, title in problems.TITLES.values() if known == status]
    found: Schema = {
        "description": " / ".join(titles) + ".",
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}},
    }
    if status in (429, 503):
        found["headers"] = {"Retry-After": _RETRY_AFTER}
    return found


def _scope(operation: Operation) -> str:
    return "" if operation.scope is None else f"Needs a token with the scope `{operation.scope}`."


def _tag(path: str) -> str:
    parts = [part for part in path.split("/") if part and part not in ("api", "v1")]
    return parts[0] if parts else "server"


def _plain(schema: Any) -> Any:
    """The schema without the titles that msgspec gives every type."""
    if isinstance(schema, dict):
        return {
            name: _plain(value) for name, value in schema.items() if not (name == "title" and isinstance(value, str))
        }
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema
