"""What the certificates ask of the course of a race, and that a race ends whatever the rewards."""

import numpy as np
import pytest

import shortlist as sl
from shortlist.strategies import level_race as race
from shortlist.strategies.level_course import course
from shortlist.strategies.protocol import Done, Moments
from tests.questions import known


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 0.37, 0.7, 1.0, 1.5, 5.0])
@pytest.mark.parametrize(("n", "m"), [(2, 1), (10, 3), (64, 32)])
def test_where_rewards_are_swapped_all_pulls_weigh_alike(n: int, m: int, epsilon: float) -> None:
    laid_out = course(known(m, epsilon, 0.05, np.full(n, 0.7), noise="gaussian"))
    levels = np.arange(laid_out.n_levels)
    pulls = laid_out.usual_batch(levels, np.zeros_like(levels))
    assert laid_out.is_swapping
    assert np.allclose(pulls / laid_out.weights, laid_out.unit[0], rtol=1e-9)
    assert pulls.sum() * n == laid_out.worst_case_pulls


@pytest.mark.parametrize("noise", ["sub-gaussian", "gaussian"])
@pytest.mark.parametrize("mean", [14203787.957292609, 1781117588.8174708, 18050029.237453803, 1.9430561e9])
def test_it_ends_where_means_differ_in_their_last_bit(mean: float, noise: str) -> None:
    problem = known(1, 0.1, 0.05, np.ones(2), noise=noise)
    means = np.array([mean, np.nextafter(mean, np.inf)])
    state: race.Open | Done = race.init(course(problem))
    while not isinstance(state, Done):
        state = race.tell(state, Moments(means[state.arms]))
    assert len(state.selected) == 1


def test_a_huge_epsilon_needs_no_warning() -> None:
    problem = known(1, 1e90, 0.05, np.full(3, 0.25), noise="gaussian")
    outcome = sl.simulate(problem, [0.0, 1.0, 2.0], "level-race", replications=3)
    assert outcome.pulls.tolist() == [3, 3, 3]


@pytest.mark.parametrize("noise", ["sub-gaussian", "gaussian"])
def test_a_short_race_has_few_rounds_and_promises_about_as_much(noise: str) -> None:
    problem = known(3, 0.1, 0.05, np.ones(20), noise=noise)
    short, long = sl.plan(problem)["short-race"], sl.plan(problem)["level-race"]
    assert (short.rounds, long.rounds) == (96, 4800)
    assert short.guarantee == long.guarantee
    assert short.worst_case_pulls == pytest.approx(long.worst_case_pulls, rel=0.02)
    session = sl.Session(problem, "short-race")
    sl.drive(session, sl.simulated_measure(problem, sl.instances.slippage(problem).means))
    assert session.result.n_rounds <= 10
