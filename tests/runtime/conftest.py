"""Real workers with real signals, on a real store: the embedded one, and in the long tests every engine."""

from tests.chaos.fixtures import crew, engine, pytest_collection_modifyitems, shared_crew

__all__ = ["crew", "engine", "pytest_collection_modifyitems", "shared_crew"]
