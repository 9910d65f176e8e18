"""Instances with known truth: their variances, their means and their only right answers."""

import inspect
import math
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist import instances
from shortlist.simulation import is_bad


def problem(n: int = 6, m: int = 2, epsilon: float = 0.5) -> sl.Problem:
    return sl.Problem(m=m, epsilon=epsilon, delta=0.05, variances=np.linspace(1.0, 2.0, n))


def good(instance: instances.Instance) -> set[int]:
    """Return the arms that a right answer may hold."""
    return set(np.flatnonzero(~is_bad(instance.problem, instance.means)).tolist())


# --- the paper's illustrative example -------------------------------------------------------------


@pytest.mark.parametrize(("k", "levels"), [(2, 1), (3, 2), (4, 2)])
def test_illustrative_is_the_example_of_the_paper(k: int, levels: int) -> None:
    """m = 2^k, n = 2^(k^2), l = ceil(log2 k); 2^i arms of variance 2^-i for i < l; else 2^(-k^2) l / k."""
    found = instances.illustrative(k)
    n, rest = 2 ** (k * k), 2.0 ** (-k * k) * levels / k
    assert (found.problem.m, found.problem.n) == (2**k, n)
    assert levels == math.ceil(math.log2(k))
    expected = {2.0**-i: 2**i for i in range(levels)} | {rest: n - 2**levels + 1}
    assert Counter(found.problem.variances.tolist()) == expected


@pytest.mark.parametrize("k", [2, 3, 4])
def test_illustrative_has_the_groups_the_paper_names(k: int) -> None:
    found = instances.illustrative(k)
    shape = sl.heterogeneity(found.problem)
    rest = found.problem.variances.min()
    assert (found.problem.variances[shape.more] == rest).all()
    assert (found.problem.variances[shape.less] > rest).all()
    assert len(shape.more) + len(shape.less) == found.problem.n


def test_illustrative_takes_epsilon_and_delta() -> None:
    asked = instances.illustrative(2, epsilon=0.7, delta=0.01).problem
    assert (asked.epsilon, asked.delta) == (0.7, 0.01)


def test_illustrative_has_one_right_answer() -> None:
    found = instances.illustrative(3)
    assert good(found) == set(range(found.problem.m))


@pytest.mark.parametrize("k", [1, 0, -2, 6, 2.0, "3", True, None])
def test_illustrative_refuses_other_k(k: Any) -> None:
    with pytest.raises(sl.InvalidProblem) as caught:
        instances.illustrative(k)
    assert f"`k` is {k!r}" in str(caught.value)
    assert "2, 3, 4 or 5" in str(caught.value)


def test_illustrative_takes_a_numpy_integer() -> None:
    assert instances.illustrative(np.int64(2)).problem.n == 16  # type: ignore[arg-type]


# --- hard instances -------------------------------------------------------------------------------


def test_hard_by_M_has_the_means_of_the_paper() -> None:
    found = instances.hard(problem(), 4, M={1, 3})
    above = found.means[1]
    assert 0.5 < above < 0.51
    assert found.means.tolist() == [-above, above, -above, above, 0.0, -above]


def test_hard_by_F_has_the_means_of_the_paper() -> None:
    found = instances.hard(problem(m=3), 0, F=[5, 2])
    above = found.means[5]
    assert 0.5 < above < 0.51
    assert found.means.tolist() == [0.0, -above, above, -above, -above, above]


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("epsilon", [0.5, 1e-3, 1000.0])
def test_the_only_right_answer_is_M(m: int, epsilon: float) -> None:
    asked = problem(m=m, epsilon=epsilon)
    for M in combinations(range(6), m):
        for l in set(range(6)) - set(M):  # noqa: E741
            assert good(instances.hard(asked, l, M=M)) == set(M)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("epsilon", [0.5, 1e-3, 1000.0])
def test_the_only_right_answer_is_F_with_l(m: int, epsilon: float) -> None:
    asked = problem(m=m, epsilon=epsilon)
    for F in combinations(range(6), m - 1):
        for l in set(range(6)) - set(F):  # noqa: E741
            assert good(instances.hard(asked, l, F=F)) == {*F, l}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"M": [1, 2], "F": [1]},
        {"M": [1]},
        {"M": [1, 2, 3]},
        {"M": [1, 1]},
        {"M": []},
        {"F": []},
        {"F": [1, 2]},
        {"M": [0, 1]},
        {"F": [0]},
        {"M": [1, 6]},
        {"M": [-1, 1]},
        {"M": [0.5, 1]},
        {"M": [1, "2"]},
    ],
    ids=repr,
)
def test_hard_refuses_sets_of_another_size_or_place(given: dict[str, Any]) -> None:
    with pytest.raises(sl.InvalidProblem):
        instances.hard(problem(), 0, **given)


@pytest.mark.parametrize("l", [6, -1, 1.5, "0", None])
def test_hard_refuses_an_l_that_is_no_arm(l: Any) -> None:  # noqa: E741
    with pytest.raises(sl.InvalidProblem):
        instances.hard(problem(), l, M=[1, 2])


@pytest.mark.parametrize("kind", [list, tuple, set, np.array])
def test_hard_takes_any_collection(kind: Any) -> None:
    asked = problem(m=3)
    assert good(instances.hard(asked, 0, M=kind([1, 2, 3]))) == {1, 2, 3}
    assert good(instances.hard(asked, 0, F=kind([1, 2]))) == {0, 1, 2}


# --- the usual test cases -------------------------------------------------------------------------


def test_slippage_lies_just_above_epsilon() -> None:
    found = instances.slippage(problem())
    assert found.means[2:].tolist() == [0.0] * 4
    assert found.means[0] == found.means[1]
    assert 0.5 < found.means[0] < 0.51
    assert good(found) == {0, 1}


def test_slippage_takes_a_gap() -> None:
    assert instances.slippage(problem(), gap=2.0).means.tolist() == [2.0, 2.0, 0.0, 0.0, 0.0, 0.0]
    assert good(instances.slippage(problem(), gap=0.5)) == set(range(6))


def test_equal_means_make_every_answer_right() -> None:
    assert instances.equal(problem(), mean=3.0).means.tolist() == [3.0] * 6
    assert good(instances.equal(problem())) == set(range(6))


def test_linear_falls_evenly() -> None:
    assert instances.linear(problem(n=5)).means.tolist() == [1.0, 0.75, 0.5, 0.25, 0.0]
    assert instances.linear(problem(n=3), low=-1.0, high=3.0).means.tolist() == [3.0, 1.0, -1.0]
    assert instances.linear(problem(n=1, m=1)).means.tolist() == [1.0]


def test_random_is_reproducible_and_within_its_spread() -> None:
    one, again, other = (instances.random(500, 7, spread=10.0, seed=seed) for seed in (1, 1, 2))
    assert one.problem == again.problem
    assert one.means.tolist() == again.means.tolist()
    assert one.problem != other.problem
    assert (one.problem.n, one.problem.m) == (500, 7)
    assert one.problem.variances.min() >= 0.1
    assert one.problem.variances.max() <= 10.0
    assert one.problem.variances.min() < 0.12  # missed by all 500 with probability 2e-9
    assert one.problem.variances.max() > 8.5  # likewise 2e-8


def test_random_takes_epsilon_and_delta() -> None:
    asked = instances.random(5, 2, epsilon=0.7, delta=0.01).problem
    assert (asked.epsilon, asked.delta) == (0.7, 0.01)


@pytest.mark.parametrize(
    "change",
    [
        {"n": 0},
        {"n": -1},
        {"n": 2.5},
        {"m": 0},
        {"m": 6},
        {"spread": 0.5},
        {"spread": math.inf},
        {"spread": math.nan},
        {"seed": -1},
        {"seed": 1.5},
        {"epsilon": 0.0},
        {"delta": 1.0},
    ],
    ids=repr,
)
def test_random_refuses_nonsense(change: dict[str, Any]) -> None:
    with pytest.raises(sl.InvalidProblem):
        instances.random(**({"n": 5, "m": 2} | change))


# --- all of them ----------------------------------------------------------------------------------


def public_functions() -> dict[str, Any]:
    found = inspect.getmembers(instances, inspect.isfunction)
    return {
        name: one for name, one in found if not name.startswith("_") and one.__module__ == instances.__name__
    }


def test_there_are_instances() -> None:
    assert {"illustrative", "hard", "slippage", "equal", "linear", "random"} <= set(public_functions())


@pytest.mark.parametrize("name", public_functions())
def test_every_instance_says_where_it_comes_from(name: str) -> None:
    text = inspect.getdoc(public_functions()[name])
    assert text is not None
    heading, _, source = text.partition("Source\n------\n")
    assert heading.strip()
    assert source.strip()


def test_every_instance_carries_its_name_and_source() -> None:
    asked = problem()
    for one in (
        instances.illustrative(2),
        instances.hard(asked, 0, M=[1, 2]),
        instances.hard(asked, 0, F=[1]),
        instances.slippage(asked),
        instances.equal(asked),
        instances.linear(asked),
        instances.random(5, 2),
    ):
        assert one.name
        assert one.source
        assert one.means.shape == (one.problem.n,)
        assert np.isfinite(one.means).all()
