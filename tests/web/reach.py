"""Short words for asking the API and for what its answers must look like."""

from __future__ import annotations

from typing import Any

import httpx2

API = "/api/v1"


class Reach:
    """Asks the API; every failure must be a whole problem."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client

    async def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        response = await self.client.request(method, path if path.startswith("/") else f"{API}/{path}", **options)
        if response.status_code >= 400 and method != "HEAD":
            check_problem(response)
        return response

    async def get(self, path: str, status: int = 200, **options: Any) -> Any:
        return expect(await self.ask("GET", path, **options), status)

    async def post(self, path: str, body: Any = None, status: int = 200, **options: Any) -> Any:
        given = {} if body is None else {"json": body}
        return expect(await self.ask("POST", path, **given, **options), status)

    async def enqueue(self, **body: Any) -> str:
        made = await self.post("jobs", {"task": "send", "args": ["a@b.c"], **body}, 201)
        return str(made["id"])


def expect(response: httpx2.Response, status: int) -> Any:
    assert response.status_code == status, f"{response.status_code} {response.text}"
    return response.json()


def check_problem(response: httpx2.Response) -> dict[str, Any]:
    """The answer is an RFC 9457 problem that says something, and nothing of our insides."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    problem: dict[str, Any] = response.json()
    assert problem["status"] == response.status_code
    assert problem["type"] == f"urn:perdure:problem:{problem['code']}"
    assert problem["title"]
    assert len(problem["detail"]) > 10
    assert problem["request_id"] == response.headers["x-request-id"]
    assert "Traceback" not in response.text
    assert 'File "' not in response.text
    return problem
