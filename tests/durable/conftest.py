"""Places where runs can be kept."""

from tests.store.conftest import durable, place, postgres, server

__all__ = ["durable", "place", "postgres", "server"]
