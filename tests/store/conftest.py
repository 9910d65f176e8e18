"""Places where stores can be, for tests of all kinds of stores."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy

from shortlist.store import MemoryStore, Store, open_store
from tests.store.server import Server, programs

_numbers = itertools.count()


@dataclass
class Place:
    """Where a store is. Whatever was opened there is closed at the end of the test."""

    address: str
    memory: MemoryStore | None = None
    opened: list[Store] = field(default_factory=list)

    def open(self, clock: Callable[[], float] | None = None) -> Store:
        """Return the store, opened anew; in memory, there is but one."""
        if self.memory is not None:
            if clock is not None:
                self.memory = MemoryStore(clock)
            return self.memory
        self.opened.append(open_store(self.address, clock=clock))
        return self.opened[-1]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server for all tests of this process."""
    found = programs()
    if found is None:
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    running = Server(found)
    yield running
    running.stop()


@pytest.fixture
def postgres(server: Server) -> str:
    """The address of an empty database, as good as: a schema of its own."""
    schema = f"s{next(_numbers)}"
    engine = sqlalchemy.create_engine(server.url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
    engine.dispose()
    return f"{server.url}&options=-csearch_path%3D{schema}"


def _closed(place: Place) -> Iterator[Place]:
    yield place
    for store in place.opened:
        store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place that other processes can reach."""
    is_file = request.param == "sqlite"
    yield from _closed(Place(str(tmp_path / "runs.db") if is_file else request.getfixturevalue("postgres")))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place of every kind."""
    if request.param == "memory":
        yield Place(":memory:", MemoryStore())
        return
    is_file = request.param == "sqlite"
    yield from _closed(Place(str(tmp_path / "runs.db") if is_file else request.getfixturevalue("postgres")))
