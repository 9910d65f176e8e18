"""How tests play a strategy for unknown variances, or its oracle, against given rewards."""

from typing import Any

import numpy as np

from shortlist import Problem
from shortlist.arrays import FloatArray
from shortlist.strategies import Strategy, strategy_for
from shortlist.strategies.protocol import Moments
from tests.playing import Played, Reward


def drawn_variances(variances: Any, count: int, seed: int) -> FloatArray:
    """Return sample variances of `count` Gaussian rewards that depend on the arm alone."""
    found = [np.random.default_rng((seed, arm)).chisquare(count - 1) for arm in range(len(variances))]
    return np.asarray(np.asarray(variances) * np.array(found) / (count - 1))


def play_unknown(
    name: str, question: Problem, reward: Reward, shown: FloatArray, most_batches: int = 10**9
) -> Played:
    """Play a strategy that is shown these sample variances after its pilot, or always if it needs them."""
    rules: Strategy[Any] = strategy_for(name, question)
    state, played = rules.init(question, ()), Played()
    while not rules.verdict(state).is_final and len(played.batches) < most_batches:
        batch = rules.ask(state)
        means = played.pull(dict(zip(batch.arms.tolist(), batch.counts.tolist(), strict=True)), reward)
        told = np.array([means[arm] for arm in batch.arms.tolist()])
        is_shown = len(played.batches) == 1 or rules.needs_variances
        state = rules.tell(state, Moments(told, shown[batch.arms] if is_shown else None))
    played.selected = set(rules.verdict(state).selected.tolist())
    return played


def play_unknown_oracle(oracle: Any, reward: Reward, shown: FloatArray) -> Played:
    """Play an oracle, which is sent means and variances first, and only means later."""
    played = Played()
    try:
        means = played.pull(next(oracle), reward)
        counts = oracle.send({arm: (mean, float(shown[arm])) for arm, mean in means.items()})
        while True:
            counts = oracle.send(played.pull(counts, reward))
    except StopIteration as end:
        played.selected = end.value
    return played
