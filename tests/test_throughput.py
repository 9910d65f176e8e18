"""The flow line: exact throughputs against known figures, and simulation against both."""

import numpy as np
import pytest
from benchmarks import inventory
from benchmarks.blocks import demanded
from benchmarks.throughput import Lines, lines, rewards, rewards_in_blocks, throughputs
from benchmarks.unknown import summaries

import shortlist as sl
from tests.questions import unknown


@pytest.fixture(scope="module")
def every() -> Lines:
    return lines()


def test_the_best_designs_are_known(every: Lines) -> None:
    found = throughputs(every)
    assert len(found) == 3249
    assert found.max() == pytest.approx(5.776121751464, abs=1e-11)
    best = {every.name(int(arm)) for arm in np.argsort(-found)[:2]}
    assert best == {"(7,7,6,8,12)", "(6,7,7,12,8)"}
    assert [int((found > found.max() - within).sum()) for within in (0.01, 0.1)] == [6, 21]


def test_two_stations_that_never_wait_are_as_fast_as_the_third() -> None:
    fast = Lines(np.array([[10**6, 10**6, 2]]), np.array([[5, 5]]))
    assert throughputs(fast)[0] == pytest.approx(2.0, rel=1e-5)


def test_one_place_each_is_a_line_that_can_be_solved_by_hand() -> None:
    """b2 = b3 = 1, equal rates: the known throughput of three stations without buffers, 22/39."""
    assert throughputs(Lines(np.array([[1, 1, 1]]), np.array([[1, 1]])))[0] == pytest.approx(
        22 / 39, rel=1e-12
    )


def test_a_simulation_agrees(every: Lines) -> None:
    """Five standard errors, about."""
    arms = np.array([0, 1234, 1700, 3248])
    drawn = rewards(every, np.repeat(arms, 400), np.random.default_rng(1)).reshape(4, 400)
    exact = -1 / throughputs(every)[arms]
    np.testing.assert_array_less(np.abs(drawn.mean(axis=1) - exact), 5 * drawn.std(axis=1) / 20)


def test_arms_of_a_block_share_service_times(every: Lines) -> None:
    """Rewards follow the seed, have the same means as others, and vary together."""
    arms = np.array([1700, 1234, 1701, 1700])
    drawn = rewards_in_blocks(every, arms, range(400))
    np.testing.assert_array_equal(drawn[0], drawn[3])
    np.testing.assert_array_equal(drawn[:2, 5:7], rewards_in_blocks(every, arms[:2], [5, 6]))
    exact = -1 / throughputs(every)[arms]
    np.testing.assert_array_less(np.abs(drawn.mean(axis=1) - exact), 5 * drawn.std(axis=1) / 20)
    assert np.corrcoef(drawn[0], drawn[2])[0, 1] > 0.9


def test_the_inventory_is_simulated_as_it_is_computed() -> None:
    found = inventory.systems()
    arms = np.array([3, 700, 1590])
    drawn = inventory.rewards(found, np.repeat(arms, 20_000), np.random.default_rng(2)).reshape(3, 20_000)
    errors = np.sqrt(found.variances[arms] / 20_000)
    np.testing.assert_array_less(np.abs(drawn.mean(axis=1) + found.means[arms]), 5 * errors)
    np.testing.assert_allclose(drawn.var(axis=1), found.variances[arms], rtol=0.08)
    shared = np.stack([demanded(found, arms, np.random.default_rng(seed)) for seed in range(2000)], axis=1)
    errors = np.sqrt(found.variances[arms] / 2000)
    np.testing.assert_array_less(np.abs(shared.mean(axis=1) - found.means[arms]), 5 * errors)


def test_rewards_in_a_row_are_summed_up_by_ticket() -> None:
    question = unknown(1, 0.1, 0.05, 3)
    tickets = sl.session.Tickets(question, 0, np.arange(3), np.array([2, 1, 3]), np.zeros(3, dtype=np.int64))
    told = summaries(tickets, np.array([1.0, 3.0, 5.0, 1.0, 2.0, 6.0]))
    assert told == [sl.Summary(2, 2.0, 2.0), sl.Summary(1, 5.0), sl.Summary(3, 3.0, 7.0)]
