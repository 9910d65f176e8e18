"""What the check-up says of differences within blocks: each trouble is found, and false alarms are rare."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import pearsonr

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.doctor import Finding, examine
from shortlist.doctor.blocks import differences
from shortlist.measure import ItemsSource
from tests.doctor.test_assumptions import NO_TABLE, measured

PROBLEM = sl.Problem(m=1, epsilon=0.5, delta=0.05, n=5, rewards=sl.Gaussian(), items=sl.Blocks())


def found(table: FloatArray) -> dict[str, Finding]:
    return {one.subject: one for one in differences(PROBLEM, NO_TABLE, measured(table))}


def shared(rng: np.random.Generator, rows: int = 60) -> FloatArray:
    """Rewards in blocks: a common part that is far from Gaussian and drifts, and Gaussian noise."""
    common = 50 * rng.exponential(1, (rows, 1)) + 10 * np.arange(rows)[:, None]
    return np.asarray(common + rng.normal(np.arange(5.0), np.arange(1.0, 6.0), (rows, 5)))


def test_what_arms_have_in_common_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    said = found(shared(rng))
    assert {one.severity for one in said.values()} == {"ok"}
    assert "two equal arms would take about" in said["saving"].seen


def test_false_alarms_are_rare() -> None:
    rng = np.random.default_rng(2)
    counts: Counter[tuple[str, str]] = Counter()
    for _ in range(60):
        counts.update((one.subject, one.severity) for one in found(shared(rng, 30)).values())
    for subject in ("differences", "drift", "noise", "blocks"):
        assert counts[subject, "error"] == 0
        assert counts[subject, "note"] <= 3


def in_blocks(trouble: str, rng: np.random.Generator) -> FloatArray:
    table = shared(rng)
    rows = np.arange(len(table))
    if trouble == "skewed":
        table[:, 2] += 20 * rng.exponential(1, len(table))
    elif trouble == "heavy":
        table[::10, 2] += [60, -60] * 3
    elif trouble == "drift":
        table[:, 2] += rows / 2
    elif trouble == "noise":
        table[:, 2] += rng.normal(0, np.exp(rows / 12))
    elif trouble == "correlated":
        table = shared(rng, 200)
        steps = rng.normal(0, 10, 201)
        table[:, 2] += steps[1:] + steps[:-1]  # each depends on the one before, but on none earlier
    elif trouble == "coarse":
        table = 100 * table[:, :1] // 100 + rng.integers(0, 2, table.shape) * np.array([0, 1, 0, 0, 0])
    return table


@pytest.mark.parametrize(
    ("trouble", "subject", "said"),
    [
        ("skewed", "differences", "have a skewness of about"),
        ("heavy", "differences", "heavy tails"),
        ("drift", "drift", "change with the order of blocks"),
        ("noise", "noise", "vary more and more"),
        ("correlated", "blocks", "in successive blocks are correlated"),
        ("coarse", "differences", "only two values"),
    ],
)
def test_each_trouble_is_found(trouble: str, subject: str, said: str) -> None:
    finding = found(in_blocks(trouble, np.random.default_rng(3)))[subject]
    assert finding.severity == "error"
    assert said in finding.seen
    assert trouble == "coarse" or "arm-2" in finding.seen
    assert finding.advice


def test_arms_that_share_nothing_are_noted() -> None:
    rng = np.random.default_rng(4)
    said = found(rng.normal(0, 1, (60, 5)))["saving"]
    assert said.severity == "note"
    assert "not clear that shared conditions save pulls" in said.seen
    assert "would take about" not in said.seen
    assert "use the seed of the block" in said.advice
    few = differences(PROBLEM, NO_TABLE, measured(rng.normal(0, 1, (6, 5))))
    assert [(one.severity, one.subject) for one in few] == [("note", "differences")]


def test_bad_arms_do_not_hide_what_blocks_save() -> None:
    rng = np.random.default_rng(4)
    shared = rng.normal(0, 1, (60, 1))
    table = np.hstack([shared + rng.normal(1, 0.3, (60, 2)), rng.normal(-20, 30, (60, 3))])
    said = found(table)["saving"]
    assert said.severity == "ok"
    assert "The best of the tested arms, arm-0 and arm-1, have a correlation of about 0.9" in said.seen
    weak = found(np.hstack([0.7 * shared + rng.normal(1, 1.0, (60, 2)), table[:, 2:]]))["saving"]
    assert (weak.severity, weak.advice) == ("ok", ""), "they use the seed, although that saves little"


def test_a_saving_is_told_only_if_the_correlation_is_clear() -> None:
    """Without one, 7 or more of 300 would have a chance of .001 at one of 200."""
    rng = np.random.default_rng(8)
    said = [found(rng.normal(0, 1, (20, 3)))["saving"] for _ in range(300)]
    assert sum(one.severity == "ok" for one in said) <= 6
    table = 2 * (0.95**0.5 * rng.normal(0, 1, (20, 1)) + 0.05**0.5 * rng.normal(0, 1, (20, 3)))
    clear = found(table)["saving"]
    assert clear.severity == "ok"
    pair = next(pair for pair in ([0, 1], [0, 2], [1, 2]) if f"arm-{pair[0]} and arm-{pair[1]}" in clear.seen)
    result = pearsonr(*table[:, pair].T)
    low, high = result.confidence_interval(0.99)
    said_so = (
        f"correlation of about {result.statistic:.2g} within blocks (99 % interval: {low:.2g} to {high:.2g})"
    )
    assert said_so in clear.seen


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
def test_the_figures_of_a_diagnosis_are_those_of_a_plan(correlation: float) -> None:
    """The standard deviation is that of an arm; what arms share is in the correlation, and only there."""

    def measure(arm: int, blocks: list[int]) -> Any:
        shared = np.array([np.random.default_rng(block).normal(0, 2) for block in blocks])
        own = np.array([np.random.default_rng([block, arm + 1]).normal(0, 2) for block in blocks])
        return correlation**0.5 * shared + (1 - correlation) ** 0.5 * own

    assert PROBLEM.items is not None
    estimate = examine(ItemsSource(measure, PROBLEM.items), PROBLEM, pulls=200).estimate
    scale, rest = estimate.instance.partition("standard deviation ")[2].split("; ")
    assert float(scale) == pytest.approx(2, rel=0.2)
    assert rest.endswith(" (medians over pairs of tested arms)")
    rho = 0.0 if "independent" in rest else float(rest.split()[3])
    assert rho == pytest.approx(correlation, abs=0.1)
    planned = sl.plan(PROBLEM).usual_at(scale=float(scale), correlation=rho).pulls["paired-race"]
    assert estimate.usual_pulls == pytest.approx(planned.median, rel=0.3)


def test_a_diagnosis_of_blocks_has_no_pilot() -> None:
    def measure(arm: int, blocks: list[int]) -> Any:
        return [
            np.random.default_rng(block).normal(0, 9) + np.random.default_rng([block, arm + 1]).normal()
            for block in blocks
        ]

    assert PROBLEM.items is not None
    diagnosis = examine(ItemsSource(measure, PROBLEM.items), PROBLEM)
    assert diagnosis.is_healthy
    assert diagnosis.pilot_pulls is None
    assert {"differences", "noise", "blocks", "saving", "drift"} < {one.subject for one in diagnosis.findings}
    assert "pilot" not in {one.subject for one in diagnosis.findings}
    cached = examine(ItemsSource(lambda arm, blocks: [float(arm)] * len(blocks), PROBLEM.items), PROBLEM)
    assert not cached.is_healthy
    coins = sl.Problem(m=1, epsilon=0.5, delta=0.05, n=5, rewards=sl.Bernoulli(), items=sl.Blocks())
    assert coins.items is not None
    fair = ItemsSource(lambda arm, blocks: [(block * (arm + 3)) // 7 % 2 for block in blocks], coins.items)
    subjects = {one.subject for one in examine(fair, coins).findings}
    assert "blocks" in subjects
    assert not subjects & {"differences", "shared items"}


def test_in_lockstep_one_block_after_the_other_is_tested() -> None:
    order: list[int] = []
    blocks = sl.Blocks(lockstep=True)
    problem = sl.Problem(m=1, epsilon=0.5, delta=0.05, n=3, rewards=sl.Gaussian(), items=blocks)

    def measure(arm: int, seeds: list[int]) -> list[float]:
        order.extend([arm] * len(seeds))
        return [float(np.random.default_rng([arm, seed]).normal()) for seed in seeds]

    examine(ItemsSource(measure, blocks), problem, pulls=12)
    assert order[:36] == [0, 1, 2] * 12
