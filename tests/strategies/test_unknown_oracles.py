"""Strategies for unknown variances ask for the same pulls and select the same arms as their oracles."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shortlist as sl
from shortlist.strategies import pilot
from tests.oracles import ORACLES
from tests.oracles.unknown import UNKNOWN, piloted
from tests.playing import gaussian_rewards
from tests.playing_unknown import drawn_variances, play_unknown, play_unknown_oracle
from tests.questions import unknown
from tests.strategies.test_oracles import surprising_rewards
from tests.strategies.test_without_pilot import WITHOUT_PILOT

pytestmark = pytest.mark.slow

INNER = ["wnelim", "single-stage", "race", "racing"]
EVERY: dict[str, Callable[[sl.Problem], Any]] = UNKNOWN | {
    name: lambda question, name=name: piloted(question, ORACLES[name])  # type: ignore[misc]
    for name in INNER
}


def test_every_strategy_with_a_pilot_of_its_own_has_an_oracle() -> None:
    own = set(sl.strategies.names("unknown")) - set(sl.strategies.names())
    assert set(UNKNOWN) == own - set(WITHOUT_PILOT)


@st.composite
def questions(draw: st.DrawFn) -> tuple[sl.Problem, list[float]]:
    n = draw(st.integers(2, 25))
    m = draw(st.integers(1, n - 1))
    kind = draw(st.sampled_from(["equal", "any", "far"]))
    one = draw(st.floats(0.05, 20))
    variances = {
        "equal": [one] * n,
        "any": [draw(st.floats(0.1, 10)) for _ in range(n)],
        "far": [one * 10.0 ** draw(st.integers(-3, 2)) for _ in range(n)],
    }[kind]
    count = draw(st.sampled_from([None, 2, 3, 5, 12, 40]))
    delta = draw(st.sampled_from([0.3, 0.9] if count in (2, 3) else [0.01, 0.05, 0.2, 0.8]))
    return unknown(m, draw(st.floats(0.3, 2.0)), delta, n, pilot=count), variances


@pytest.mark.parametrize("name", EVERY)
@given(asked=questions(), seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_pulls_and_selections_are_those_of_the_oracle(
    name: str, asked: tuple[sl.Problem, list[float]], seed: int
) -> None:
    question, variances = asked
    if name in {"rinott", "kim-nelson"}:
        question = question.changed(m=1)
    shown = drawn_variances(variances, pilot.size(question), seed)
    means = np.random.default_rng(seed).standard_normal(question.n) * 2 * question.epsilon
    reward = gaussian_rewards(means, variances, seed)
    ours = play_unknown(name, question, reward, shown)
    oracle = play_unknown_oracle(EVERY[name](question), reward, shown)
    assert ours.batches == oracle.batches
    assert ours.selected == oracle.selected


@given(asked=questions(), seed=st.integers(0, 2**32), rate=st.sampled_from([0.05, 0.3, 1.0]))
@settings(max_examples=40, deadline=None)
def test_the_race_follows_its_oracle_whatever_the_surprises(
    asked: tuple[sl.Problem, list[float]], seed: int, rate: float
) -> None:
    """Means change from level to level, so that arms left behind become incumbents."""
    question, variances = asked
    question = question.changed(rewards=sl.Gaussian(pilot=12), epsilon=max(question.epsilon, 1.0))
    changing = surprising_rewards(question.with_variances(variances), seed, rate, 4.0)
    shown = drawn_variances(variances, 12, seed)

    def reward(arm: int, number: int, count: int) -> float:
        return changing(arm, number % 48, count)

    ours = play_unknown("t-race", question, reward, shown)
    oracle = play_unknown_oracle(UNKNOWN["t-race"](question), reward, shown)
    assert ours.batches == oracle.batches
    assert ours.selected == oracle.selected
