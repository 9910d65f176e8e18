"""The fixtures of the store's tests, for stores of PostgreSQL."""

from tests.store.conftest import postgres, server

__all__ = ["postgres", "server"]
