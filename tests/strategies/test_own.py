"""A strategy of one's own, given as an object: the same results as by name, in memory only."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.report.fragment import result_html
from shortlist.strategies import Strategy, strategy_for

KNOWN = sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0, 0.5, 2.0, 1.0])
UNKNOWN = sl.Problem(m=1, epsilon=0.5, delta=0.05, n=4, rewards=sl.Gaussian())
BLOCKS = sl.Problem(m=1, epsilon=0.5, delta=0.05, n=4, rewards=sl.Gaussian(), items=sl.Blocks())
MEANS = [0.0, 0.2, 0.9, 1.5]
CASES = [
    (KNOWN, "race"),
    (KNOWN, "wnelim"),
    (UNKNOWN, "t-cut-race"),
    (UNKNOWN, "race"),
    (BLOCKS, "paired-race"),
]


def own(name: str, problem: sl.Problem) -> Strategy[Any]:
    return replace(strategy_for(name, problem), name="mine")


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_an_object_simulates_as_the_same_strategy_by_name(problem: sl.Problem, name: str) -> None:
    how: dict[str, Any] = {"replications": 3, "variances": None if problem is KNOWN else [1.0] * 4}
    by_name = sl.simulate(problem, MEANS, name, **how)
    for strategy in (own(name, problem), strategy_for(name, problem)):
        found = sl.simulate(problem, MEANS, strategy, **how)
        assert found.strategy == strategy.name
        assert found.guarantee == by_name.guarantee
        for part in ("pulls", "selected", "is_final", "is_error"):
            assert np.array_equal(getattr(found, part), getattr(by_name, part))


def test_an_object_selects_as_the_same_strategy_by_name() -> None:
    def measure(arm: int, count: int, rng: np.random.Generator) -> list[float]:
        return list(rng.normal(MEANS[arm], 1.0, count))

    mine, named = (sl.select(measure, KNOWN, strategy, seed=3) for strategy in (own("race", KNOWN), "race"))
    assert str(mine) == str(named).replace(" race,", " mine,")
    assert mine.to_dict() | {"strategy": "race"} == named.to_dict()
    assert "mine" in result_html(mine)
    assert pickle.loads(pickle.dumps(mine)).strategy == "mine"


def test_a_session_asks_as_the_same_strategy_by_name() -> None:
    mine, named = sl.Session(KNOWN, own("race", KNOWN), seed=2), sl.Session(KNOWN, "race", seed=2)
    while tickets := mine.ask():
        assert list(tickets) == list(named.ask())
        for session in (mine, named):
            session.tell(session.ask(), [[MEANS[ticket.arm]] * ticket.count for ticket in session.ask()])
    assert mine.result.to_dict() | {"strategy": "race"} == named.result.to_dict()


def test_a_stored_run_needs_a_strategy_that_can_be_found_by_name(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with pytest.raises(sl.InvalidProblem, match=r"strategy mine was given as an object.*Omit `store`"):
        sl.Session(KNOWN, own("race", KNOWN), store=store)
    assert not store.exists()
    sl.Session(KNOWN, strategy_for("race", KNOWN), store=store).close()  # this one has a name
    assert sl.Session.resume(store).strategy == "race"


@pytest.mark.parametrize("name", ["race", "paired-race", "auto", ""])
def test_a_name_that_is_taken_is_refused(name: str) -> None:
    with pytest.raises(sl.InvalidProblem, match="which is taken"):
        sl.simulate(KNOWN, MEANS, replace(own("race", KNOWN), name=name))


def test_an_object_that_cannot_take_the_problem_is_refused() -> None:
    with pytest.raises(sl.InvalidProblem, match="strategy mine cannot take this problem"):
        sl.Session(UNKNOWN, replace(own("rinott", UNKNOWN), unfit=lambda _: "no"))
    with pytest.raises(sl.InvalidProblem, match="variances of this problem are unknown"):
        sl.simulate(UNKNOWN, MEANS, own("race", KNOWN), variances=[1.0] * 4)
