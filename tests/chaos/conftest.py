"""Real processes on a real store."""

from tests.chaos.fixtures import crew, engine

__all__ = ["crew", "engine"]
