"""The strategies without a pilot pull exactly what a plain transcription of their rules does."""

from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.strategies import strategy_for
from shortlist.strategies.protocol import Moments
from tests.oracles.without_pilot import paired_race, t_cut_race

WITHOUT_PILOT: dict[str, Any] = {"paired-race": paired_race, "t-cut-race": t_cut_race}


@pytest.mark.parametrize("name", WITHOUT_PILOT)
@pytest.mark.parametrize(("n", "m", "seed"), [(2, 1, 1), (5, 2, 2), (12, 1, 3), (9, 8, 4)])
def test_pulls_are_those_of_the_oracle(name: str, n: int, m: int, seed: int) -> None:
    problem = sl.Problem(m=m, epsilon=0.8, delta=0.1, n=n, rewards=sl.Gaussian())
    rng = np.random.default_rng(seed)
    means, scales = rng.normal(0, 0.7, n), np.exp(rng.uniform(-1, 1, n))
    rules, oracle = strategy_for(name, problem), WITHOUT_PILOT[name](problem)
    state, asked = rules.init(problem, ()), next(oracle)
    answer = None
    while answer is None:
        batch = rules.ask(state)
        assert dict(zip(batch.arms.tolist(), batch.counts.tolist(), strict=True)) == asked
        drawn = [rng.normal(means[arm], scales[arm], count) for arm, count in asked.items()]
        moments = ((float(own.mean()), float(own.var(ddof=1))) for own in drawn)
        told = dict(zip(asked, moments, strict=True))
        own, spread = np.array([told[arm] for arm in batch.arms.tolist()]).T
        state = rules.tell(state, Moments(own, spread))
        try:
            asked = oracle.send(told)
        except StopIteration as end:
            answer = end.value
    assert rules.verdict(state).is_final
    assert set(rules.verdict(state).selected.tolist()) == answer
