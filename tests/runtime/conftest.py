"""Real workers with real signals, on a real store."""

from tests.chaos.fixtures import crew, engine, shared_crew

__all__ = ["crew", "engine", "shared_crew"]
