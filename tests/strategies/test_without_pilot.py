"""The strategies without a pilot pull exactly what a plain transcription of their rules does."""

from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.strategies import strategy_for
from shortlist.strategies.protocol import Moments
from tests.oracles.without_pilot import paired_race, t_cut_race

WITHOUT_PILOT: dict[str, Any] = {"paired-race": paired_race, "t-cut-race": t_cut_race}


@pytest.mark.parametrize("name", WITHOUT_PILOT)
@pytest.mark.parametrize(("n", "m", "seed"), [(2, 1, 1), (5, 2, 2), (12, 1, 3), (9, 8, 4)])
def test_pulls_are_those_of_the_oracle(name: str, n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    means, scales = rng.normal(0, 0.7, n), np.exp(rng.uniform(-1, 1, n))
    rounds(name, m, means, scales, rng)


@pytest.mark.parametrize(("n", "m", "seed"), [(150, 2, 3), (400, 1, 4), (300, 299, 5)])
def test_pulls_of_many_equal_arms_are_those_of_the_oracle(n: int, m: int, seed: int) -> None:
    """After 40 rounds means are lowered, after 80 in full."""
    assert rounds("t-cut-race", m, np.zeros(n), np.ones(n), np.random.default_rng(seed)) > 45


def rounds(name: str, m: int, means: FloatArray, scales: FloatArray, rng: np.random.Generator) -> int:
    """Return how many rounds a run takes, each of them that of the oracle."""
    problem = sl.Problem(m=m, epsilon=0.8, delta=0.1, n=len(means), rewards=sl.Gaussian())
    rules, oracle = strategy_for(name, problem), WITHOUT_PILOT[name](problem)
    state, asked = rules.init(problem, ()), next(oracle)
    answer, n_rounds = None, 0
    while answer is None:
        batch = rules.ask(state)
        assert dict(zip(batch.arms.tolist(), batch.counts.tolist(), strict=True)) == asked
        drawn = [rng.normal(means[arm], scales[arm], count) for arm, count in asked.items()]
        moments = ((float(own.mean()), float(own.var(ddof=1))) for own in drawn)
        told = dict(zip(asked, moments, strict=True))
        own, spread = np.array([told[arm] for arm in batch.arms.tolist()]).T
        state, n_rounds = rules.tell(state, Moments(own, spread)), n_rounds + 1
        try:
            asked = oracle.send(told)
        except StopIteration as end:
            answer = end.value
    assert rules.verdict(state).is_final
    assert set(rules.verdict(state).selected.tolist()) == answer
    return n_rounds


def test_runs_of_an_earlier_version_keep_its_rule_in_a_local_build_too() -> None:
    problem = sl.Problem(m=1, epsilon=0.8, delta=0.1, n=9, rewards=sl.Gaussian())
    now = strategy_for("t-cut-race", problem)
    assert strategy_for("t-cut-race", problem, "0.3.0.dev0") is now
    assert strategy_for("t-cut-race", problem, "0.2.0") is not now
    assert strategy_for("t-cut-race", problem, "0.2.0+local") is strategy_for("t-cut-race", problem, "0.2.0")
