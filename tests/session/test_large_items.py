"""Very many items: memory is taken for scores that were measured, and what cannot be held is refused."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.errors import InvalidProblem
from shortlist.files.problem_file import read_problem
from shortlist.server.app import create_app
from shortlist.session import Session
from shortlist.store import MemoryStore
from shortlist.strategies.item_state import Open
from tests.server.calling import Caller

TOO_MANY = r"20 arms on 10,000,000 items would need about 3\.2 GB .* at most 5,000,000 for so many arms"


def question(n: int, items: Any, **changes: Any) -> sl.Problem:
    given: dict[str, Any] = {"m": 1, "epsilon": 0.05, "delta": 0.05, "rewards": sl.Bernoulli()}
    return sl.Problem(**(given | {"n": n, "items": items} | changes))


@contextmanager
def at_most(megabytes: float) -> Iterator[None]:
    """Make sure that no more memory is taken."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("n", "n_items"), [(20, 10_000_000), (1_000_000, 1_000_000), (10_000, 10_001)])
def test_a_table_that_cannot_be_held_is_refused(n: int, n_items: int) -> None:
    with pytest.raises(InvalidProblem, match=f"{n:,} arms on {n_items:,} items would need about .* GB"):
        question(n, n_items)


def test_it_is_refused_in_a_problem_file(tmp_path: Path) -> None:
    file = tmp_path / "large.toml"
    asked = '[problem]\nm = 1\nepsilon = 0.05\ndelta = 0.05\nn = 20\nrewards = "bernoulli"\n'
    file.write_text(f"{asked}\n[items]\nn = 10_000_000\n", encoding="utf-8")
    with pytest.raises(InvalidProblem, match=TOO_MANY):
        read_problem(file)


def test_it_is_refused_over_http() -> None:
    asked = {"m": 1, "epsilon": 0.05, "delta": 0.05, "n": 20, "rewards": "bernoulli", "n_items": 10_000_000}
    with Caller(create_app(MemoryStore())) as client:
        found = client.post("/runs", json={"name": "large", "question": asked})
    assert found.status_code == 422
    assert "20 arms on 10,000,000 items would need about 3.2 GB" in found.json()["error"]["message"]


@pytest.mark.parametrize(("n", "n_items"), [(10, 10_000_000), (20, 1_000_000), (10_000, 10_000)])
def test_memory_is_taken_for_measured_scores_only(n: int, n_items: int) -> None:
    with at_most(60):
        session = Session(question(n, n_items))
        tickets = session.ask()
        rewards = np.random.default_rng(0).integers(0, 2, (n, 8)).astype(float)
        session.tell(tickets, [list(rewards[ticket.arm]) for ticket in tickets])
    state = session.history.state
    assert isinstance(state, Open)
    assert state.scores.shape == (n, 8)


def test_a_million_arms_on_a_hundred_items_are_accepted() -> None:
    assert question(1_000_000, 100).n_cells == 100_000_000


@pytest.mark.parametrize("rewards", [sl.Bernoulli(), sl.Gaussian()])
def test_blocks_are_endless_and_take_memory_for_measured_ones_only(rewards: Any) -> None:
    with at_most(20):
        session = Session(question(1_000, sl.Blocks(), rewards=rewards))
        for _ in range(3):
            tickets = session.ask()
            assert session.items_of(tickets[0])
            session.tell(tickets, [[float(k % 2) for k in range(ticket.count)] for ticket in tickets])
