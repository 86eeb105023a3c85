"""Real processes on a real store."""

from tests.chaos.fixtures import crew, engine, pytest_collection_modifyitems

__all__ = ["crew", "engine", "pytest_collection_modifyitems"]
