"""The idea in plain Python keeps its promise."""

import ast
import importlib.util
import math
import random
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import pytest
from scipy import stats

from tests.docs.pages import ROOT

FILE = ROOT / "examples" / "00_whole_idea.py"
N, M, EPSILON, DELTA = 8, 2, 0.5, 0.2
MEANS = [0.51, 0.51] + [0.0] * 6  # any other answer would be wrong
RUNS = 300


@pytest.fixture(scope="module")
def idea() -> ModuleType:
    spec = importlib.util.spec_from_file_location("whole_idea", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arms_of(seed: int) -> Callable[[int], float]:
    noise = random.Random(seed)
    return lambda arm: noise.gauss(MEANS[arm], 1)


def errors(idea: ModuleType) -> int:
    """Return how many of many runs end with a wrong answer."""
    return sum(
        idea.select(arms_of(seed), N, M, EPSILON, DELTA, 1, batch=5)[0] != [0, 1] for seed in range(RUNS)
    )


def is_plausible(n_errors: int) -> bool:
    """Whether so many errors may happen, with a chance above 1 in 1,000, if each run errs with delta."""
    return bool(stats.binomtest(n_errors, RUNS, DELTA, alternative="greater").pvalue > 1e-3)


def test_it_is_wrong_no_more_often_than_it_says(idea: ModuleType) -> None:
    assert is_plausible(errors(idea))


def test_intervals_that_are_too_short_would_be_seen(
    idea: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = idea.half_width
    monkeypatch.setattr(idea, "half_width", lambda *given: whole(*given) / 3)
    assert not is_plausible(errors(idea))


def test_delta_is_spent_once(idea: ModuleType) -> None:
    """By their half-widths, all intervals of all arms in all rounds together fail with delta at most."""
    spent, rounds = 0.0, 2000
    for number in range(1, rounds + 1):
        width = idea.half_width(25 * number, number, N, DELTA, 2.0)
        spent += N * 2 * math.exp(-25 * number * width**2 / (2 * 2.0**2))
    assert spent == pytest.approx(DELTA * (1 - 1 / (rounds + 1)), rel=1e-9)


def misleading(idea: ModuleType, means: list[float], best: set[int]) -> Callable[[int], float]:
    """Rewards by which best arms look as bad, and others as good, as their intervals allow."""
    counts, sums = [0] * len(means), [0.0] * len(means)

    def pull(arm: int) -> float:
        counts[arm] += 1
        off = 0.999 * idea.half_width(counts[arm], counts[arm], len(means), 0.1, 1.0)
        before, sums[arm] = sums[arm], counts[arm] * (means[arm] + (-off if arm in best else off))
        return sums[arm] - before

    return pull


def test_means_that_are_off_as_far_as_intervals_allow_do_not_mislead(idea: ModuleType) -> None:
    rng = random.Random(3)
    for _ in range(200):
        means, m = [rng.gauss(0, 1) for _ in range(6)], rng.randint(1, 5)
        best = set(sorted(range(6), key=lambda arm: -means[arm])[:m])
        selected, _ = idea.select(misleading(idea, means, best), 6, m, 0.7, 0.1, 1.0, batch=1)
        assert all(means[arm] >= sorted(means)[-m] - 0.7 for arm in selected)


def test_it_pulls_arms_in_the_middle_more_than_others(idea: ModuleType) -> None:
    counts = [0] * 4
    noise = random.Random(1)

    def pull(arm: int) -> float:
        counts[arm] += 1
        return noise.gauss([0.0, 2.0, 2.4, 5.0][arm], 1)

    assert idea.select(pull, 4, 2, 0.3, 0.1, 1)[0] == [2, 3]
    assert counts[1] > 2 * counts[0]
    assert counts[2] > 2 * counts[3]


def test_it_is_short_and_stands_alone() -> None:
    source = FILE.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 60
    imported = {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported == {"math", "random", "sys"}
    assert "from " not in {line[:5] for line in source.splitlines()}


def test_it_prints_its_answer() -> None:
    run = subprocess.run([sys.executable, str(FILE)], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("Arms [3, 5], each within 0.5 of the second best")
