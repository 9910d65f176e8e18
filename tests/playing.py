"""How tests play a strategy or an oracle against given rewards."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from shortlist import Problem
from shortlist.strategies import strategy_named
from shortlist.strategies.protocol import Moments
from tests.oracles import Oracle

Reward = Callable[[int, int, int], float]
"""``reward(arm, number, count)``: the mean of the arm's `number`-th batch (from 0), of `count` pulls."""


@dataclass
class Played:
    """What happened: per arm the pulls of each of its batches, and the arms selected."""

    selected: set[int] = field(default_factory=set)
    pulls: dict[int, list[int]] = field(default_factory=dict)
    batches: list[dict[int, int]] = field(default_factory=list)

    def pull(self, counts: dict[int, int], reward: Reward) -> dict[int, float]:
        self.batches.append(counts)
        means = {}
        for arm, count in counts.items():
            earlier = self.pulls.setdefault(arm, [])
            means[arm] = reward(arm, len(earlier), count)
            earlier.append(count)
        return means

    @property
    def n_pulls(self) -> int:
        return sum(map(sum, self.pulls.values()))


def play_oracle(oracle: Oracle, reward: Reward) -> Played:
    played = Played()
    try:
        counts = next(oracle)
        while True:
            counts = oracle.send(played.pull(counts, reward))
    except StopIteration as end:
        played.selected = end.value
    return played


def play(name: str, problem: Problem, reward: Reward, most_batches: int = 10**9) -> Played:
    strategy = strategy_named(name)
    state, played = strategy.init(problem, ()), Played()
    while not strategy.verdict(state).is_final and len(played.batches) < most_batches:
        batch = strategy.ask(state)
        means = played.pull(dict(zip(batch.arms.tolist(), batch.counts.tolist(), strict=True)), reward)
        state = strategy.tell(state, Moments(np.array([means[arm] for arm in batch.arms.tolist()])))
    played.selected = set(strategy.verdict(state).selected.tolist())
    return played


def fitting(name: str, problem: Problem) -> Problem:
    """Return the problem, asking for one arm only if the strategy can select no more."""
    return problem.changed(m=1) if name != "auto" and strategy_named(name).unfit(problem) else problem


def gaussian_rewards(means: Any, variances: Any, seed: int) -> Reward:
    """Gaussian batch means that depend on the arm and the number of its batch alone."""

    def reward(arm: int, number: int, count: int) -> float:
        rng = np.random.default_rng((seed, arm, number))
        return float(means[arm] + np.sqrt(variances[arm] / count) * rng.standard_normal())

    return reward


def same(one: Any, other: Any) -> bool:
    """Whether two states are equal in every bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return bool(
            one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
        )
    if is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
