"""The filters of a request, in the words of the admin service."""

from __future__ import annotations

from typing import Any

from perdure.admin.selection import Filters as Known
from perdure.web.schemas.requests import DeadSelection, Filters


def filters_of(given: Filters) -> dict[str, Any]:
    """What the request filters by."""
    names = [name for name in Known.__annotations__ if hasattr(given, name)]
    return {name: value for name in names if (value := getattr(given, name)) is not None}


def selection_of(given: DeadSelection) -> tuple[list[str], dict[str, Any]]:
    """The ids and filters of a selection of dead jobs; `all` is the filter for all of them."""
    filters = filters_of(given)
    if given.all:
        filters["state"] = "dead"
    return list(given.ids or ()), filters
