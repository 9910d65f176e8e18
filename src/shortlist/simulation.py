"""Many runs at once: replications of a strategy on simulated arms, advanced side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from shortlist.arrays import BoolArray, FloatArray, IntArray, as_slice, blocks, kth_largest
from shortlist.certificates import Guarantee
from shortlist.checks import real_numbers, whole_number
from shortlist.errors import InvalidProblem
from shortlist.measure import Summaries, check_summaries
from shortlist.measure.simulated import (
    Draw,
    block_rewards,
    checked_correlation,
    checked_means,
    default_rewards,
    drawing,
    own_scales,
)
from shortlist.planning import resolve
from shortlist.problem import Problem, checked
from shortlist.strategies import Batch, Strategy, strategy_for
from shortlist.strategies.protocol import Moments

_MOST_LANES = 128  # replications advanced together: enough to amortise the cost of a step
_ENTRIES = 1 << 22  # but at most this many arms times lanes, to limit memory

Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Simulation:
    """The outcomes of many replications.

    Attributes
    ----------
    problem, strategy, rewards, seed
        What was simulated. Replication r depends only on the seed and on r.
    guarantee
        The guarantee of the strategy on this problem, if any.
    pulls
        The number of pulls of each replication.
    selected
        The selected arms, one row per replication.
    is_final
        Whether each replication ended by the strategy's own rule, within the budget.
    is_error
        Whether each replication ended with a wrong answer: an m-th best selected arm worse by more than
        epsilon.
    """

    problem: Problem
    strategy: str
    rewards: str
    seed: int
    guarantee: Guarantee | None
    pulls: IntArray
    selected: IntArray
    is_final: BoolArray
    is_error: BoolArray

    @property
    def errors(self) -> int:
        """The number of replications that ended with a wrong answer."""
        return int(self.is_error.sum())

    @property
    def unfinished(self) -> int:
        """The number of replications that used up the budget."""
        return int((~self.is_final).sum())

    def __repr__(self) -> str:
        return (
            f"Simulation({self.problem!r}, {self.strategy!r}, {self.rewards!r}, {len(self.pulls)} runs, "
            f"mean pulls {self.pulls.mean():,.0f}, errors {self.errors}, unfinished {self.unfinished})"
        )

    def error_rate_limit(self, confidence: float = 0.95) -> float:
        """Return an upper confidence limit on the error probability (exact, one-sided; Clopper-Pearson)."""
        from scipy.special import betaincinv  # noqa: PLC0415  (scipy is slow to import)

        n = int(self.is_final.sum())
        return 1.0 if self.errors >= n else float(betaincinv(self.errors + 1, n - self.errors, confidence))

    def error_rate_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval for the error probability (exact, two-sided; Clopper-Pearson)."""
        from scipy.special import betaincinv  # noqa: PLC0415  (scipy is slow to import)

        n, errors, beyond = int(self.is_final.sum()), self.errors, (1 - confidence) / 2
        low = 0.0 if errors == 0 else float(betaincinv(errors, n - errors + 1, beyond))
        return low, self.error_rate_limit(1 - beyond)


def simulate(
    problem: Problem,
    means: ArrayLike,
    strategy: str | Strategy[Any] = "auto",
    *,
    variances: ArrayLike | None = None,
    replications: int = 100,
    seed: int = 0,
    rewards: str | None = None,
    budget: int | None = None,
    progress: Progress | None = None,
    correlation: float | None = None,
    covariance: ArrayLike | None = None,
) -> Simulation:
    """Return the outcomes of a strategy on simulated arms, over many replications.

    Parameters
    ----------
    problem
        The question.
    means
        The true mean of every arm.
    strategy
        A name from `shortlist.strategies.names()`, or "auto" for the best certified one (see `plan`), or a
        `Strategy` of your own, which need not be registered.
    variances
        If the problem does not state them: the true variances, which the strategy does not see.
    replications
        The number of independent runs.
    seed
        The seed; replication r does not depend on the number of replications.
    rewards
        "gaussian", "bernoulli", "two-point" (the mean plus or minus one scale), "uniform" or "noiseless". By
        default Gaussian; for rewards of which only bounds are known "bernoulli": at one of the two bounds.
    budget
        The maximum number of pulls per replication; one that needs more is left unfinished.
    progress
        Called after every step with the number of finished replications and the total number of pulls.
    correlation
        With blocks: the correlation of any two arms within a block, from 0 to 1; by default 0.
    covariance
        With blocks: instead of `variances` and `correlation`, the covariance matrix of the arms.

    Examples
    --------
    >>> problem = Problem(m=1, epsilon=0.2, delta=0.05, variances=[1.0, 4.0, 9.0])
    >>> outcome = simulate(problem, [0.0, 0.0, 0.5], replications=50)
    >>> outcome.errors, outcome.pulls.shape
    (0, (50,))
    """
    if checked(problem).has_blocks:
        noise = _BlockNoise.of(problem, variances, rewards, correlation, covariance)
        return _simulate_blocks(problem, means, strategy, noise, replications, seed, budget, progress)
    if correlation is not None or covariance is not None:
        raise InvalidProblem("`correlation` and `covariance` are for problems with items=Blocks().")
    if problem.items is not None:
        return _simulate_items(problem, means, strategy, replications, seed, budget, progress)
    rewards = rewards or default_rewards(problem)
    truth = _truth(problem, variances, rewards)
    true_means = checked_means(truth, means, rewards)
    replications = whole_number(replications, "replications", 1, 10**8)
    seed = whole_number(seed, "seed", 0)
    budget = None if budget is None else whole_number(budget, "budget", 0)
    rules = strategy_for(resolve(strategy, problem), problem)
    outcome = _Outcome.empty(replications, rules.n_selected(problem))
    size = max(1, min(_MOST_LANES, _ENTRIES // problem.n))
    for start in range(0, replications, size):
        lanes = np.arange(start, min(start + size, replications))
        rngs = [np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(lane),))) for lane in lanes]
        draw = drawing(truth, rewards)
        scales = own_scales(truth, rewards)
        drawn = true_means if scales is None else (true_means - scales[0]) / scales[1]
        arms = _Arms(drawn, truth.variances, draw, is_noisy=rewards != "noiseless", scales=scales)
        _run(problem, rules, arms, _Running(lanes, rngs, outcome), budget, progress)
    return _outcomes(problem, rules, rewards, seed, outcome, true_means)


def _simulate_items(
    problem: Problem,
    table: ArrayLike,
    strategy: str | Strategy[Any],
    replications: int,
    seed: int,
    budget: int | None,
    progress: Progress | None,
) -> Simulation:
    """Return the outcomes on a table of scores, with the items in another order each time."""
    scores = checked_table(problem, table)
    replications = whole_number(replications, "replications", 1, 10**8)
    rules = strategy_for(resolve(strategy, problem), problem)
    outcome = _Outcome.empty(replications, problem.m)
    for lane in range(replications):
        order = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(lane,))).permutation(
            problem.n_items
        )
        known = None if problem.known is None else problem.known.in_order(order)
        ordered = scores[:, order]
        start = rules.init(problem.changed(known=known), ())
        _run_cells(problem, rules, start, partial(_whole, ordered), outcome, lane, budget)
        if progress is not None:
            progress(int(outcome.is_final.sum()), int(outcome.pulls.sum()))
    return _outcomes(problem, rules, "table", seed, outcome, scores.mean(axis=1))


def _simulate_blocks(
    problem: Problem,
    means: ArrayLike,
    strategy: str | Strategy[Any],
    noise: _BlockNoise,
    replications: int,
    seed: int,
    budget: int | None,
    progress: Progress | None,
) -> Simulation:
    """Return the outcomes on simulated blocks."""
    true_means = checked_means(noise.truth, means, noise.rewards)
    replications = whole_number(replications, "replications", 1, 10**8)
    seed = whole_number(seed, "seed", 0)
    budget = None if budget is None else whole_number(budget, "budget", 0)
    rules = strategy_for(resolve(strategy, problem), problem)
    outcome = _Outcome.empty(replications, problem.m)
    for lane in range(replications):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(lane,)))
        table = np.empty((problem.n, 0))

        def up_to(width: int, rng: np.random.Generator = rng) -> FloatArray:
            nonlocal table
            if width > table.shape[1]:
                more = noise.drawn(rng, true_means, max(width - table.shape[1], table.shape[1] // 2))
                table = np.concatenate([table, more], axis=1)
            return table

        _run_cells(problem, rules, rules.init(problem, ()), up_to, outcome, lane, budget)
        if progress is not None:
            progress(int(outcome.is_final.sum()), int(outcome.pulls.sum()))
    return _outcomes(problem, rules, noise.rewards, seed, outcome, true_means)


@dataclass(frozen=True, eq=False)
class _BlockNoise:
    """How rewards of a block vary: `root` is a root of the covariance matrix, if a matrix was given."""

    truth: Problem
    rewards: str
    correlation: float
    root: FloatArray | None

    @classmethod
    def of(
        cls,
        problem: Problem,
        variances: ArrayLike | None,
        rewards: str | None,
        correlation: float | None,
        covariance: ArrayLike | None,
    ) -> _BlockNoise:
        share = 0.0 if correlation is None else checked_correlation(correlation)
        if rewards is not None and rewards != default_rewards(problem):
            raise InvalidProblem(f"in blocks, rewards are {default_rewards(problem)} for this problem.")
        streams = problem.changed(items=None, target="pool")
        if covariance is None:
            truth = _truth(streams, variances, default_rewards(problem))
            return cls(truth, default_rewards(problem), share, None)
        if variances is not None or correlation is not None or problem.is_bounded:
            raise InvalidProblem("`covariance` is for Gaussian rewards, without `variances`, `correlation`.")
        matrix = real_numbers(covariance, "covariance", "Give a matrix with one row per arm.")
        if matrix.shape != (problem.n, problem.n) or not np.allclose(matrix, matrix.T):
            raise InvalidProblem(f"`covariance` must be a symmetric matrix of {problem.n:,} arms.")
        values, vectors = np.linalg.eigh(matrix)
        if values.min() < -1e-9 * values.max():
            raise InvalidProblem("`covariance` has a negative eigenvalue, so it is not a covariance matrix.")
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return cls(streams.with_variances(np.diag(matrix)), "gaussian", 0.0, root)

    def drawn(self, rng: np.random.Generator, means: FloatArray, n_blocks: int) -> FloatArray:
        """Return the rewards of all arms in so many more blocks."""
        own = rng.standard_normal((len(means), n_blocks))
        if self.root is not None:
            return np.asarray(means[:, None] + self.root @ own)
        common = rng.standard_normal(n_blocks)
        return block_rewards(self.truth, means, slice(None), own, common, self.correlation)


def _whole(table: FloatArray, _width: int) -> FloatArray:
    return table


def _run_cells(
    problem: Problem,
    rules: Strategy[Any],
    state: Any,
    up_to: Callable[[int], FloatArray],
    outcome: _Outcome,
    lane: int,
    budget: int | None,
) -> None:
    """Carry out a run on shared items or blocks; `up_to` returns a table with so many columns or more."""
    seen = np.zeros(problem.n, dtype=np.int64)
    while not rules.verdict(state).is_final:
        batch = rules.ask(state)
        is_over = budget is not None and seen.sum() + batch.counts.sum() > budget
        if is_over or not len(batch.arms):  # a population may need more items than there are
            break
        cells = problem.merits(up_to(int((seen[batch.arms] + batch.counts).max())))
        told = [cells[arm, seen[arm] :][:count] for arm, count in zip(batch.arms, batch.counts, strict=True)]
        seen[batch.arms] += batch.counts
        means = np.array([part.mean() for part in told])
        state = rules.tell(state, Moments(means, scores=np.concatenate(told)))
    outcome.pulls[lane] = seen.sum()
    verdict = rules.verdict(state)
    outcome.is_final[lane] = verdict.is_final
    if verdict.is_final:
        outcome.selected[lane] = verdict.selected


def _outcomes(
    problem: Problem, rules: Strategy[Any], rewards: str, seed: int, outcome: _Outcome, means: FloatArray
) -> Simulation:
    return Simulation(
        problem=problem,
        strategy=rules.name,
        rewards=rewards,
        seed=seed,
        guarantee=rules.guarantee(problem),
        pulls=outcome.pulls,
        selected=outcome.selected,
        is_final=outcome.is_final,
        is_error=outcome.is_final & is_wrong(problem, means, outcome.selected),
    )


def checked_table(problem: Problem, table: ArrayLike) -> FloatArray:
    """Return a complete table of scores, one row per arm and one column per item, within the bounds."""
    advice = "Give a table of scores: one row per arm, one column per item."
    scores = real_numbers(table, "means", advice)
    if scores.shape != (problem.n, problem.n_items):
        raise InvalidProblem(
            f"the table has the shape {scores.shape}, but there are {problem.n:,} arms and "
            f"{problem.n_items:,} items. {advice}"
        )
    means, unknown = scores.mean(axis=1), np.full(problem.n, np.nan)
    if not np.isfinite(means).all():
        raise InvalidProblem("the table has gaps; a whole table is needed to say what a run would have cost.")
    check_summaries(
        problem, problem.arms, Summaries(np.full(problem.n, problem.n_items), means, unknown, scores)
    )
    return scores


def _truth(problem: Problem, variances: ArrayLike | None, rewards: str) -> Problem:
    """Return the problem with the true variances, as the simulation needs it."""
    problem = checked(problem)
    if problem.knows_variances:
        if variances is not None:
            raise InvalidProblem("the problem already has variances; omit `variances`.")
        return problem
    if variances is None:
        raise InvalidProblem("to simulate arms of unknown variances, give the true `variances`, one per arm.")
    if rewards not in {"gaussian", "noiseless"}:
        raise InvalidProblem(f"with unknown variances rewards are Gaussian; {rewards!r} cannot be simulated.")
    return problem.with_variances(variances)


@dataclass(frozen=True, eq=False)
class _Outcome:
    pulls: IntArray
    selected: IntArray
    is_final: BoolArray

    @classmethod
    def empty(cls, replications: int, n_selected: int) -> _Outcome:
        selected = np.full((replications, n_selected), -1, dtype=np.int64)
        return cls(np.zeros(replications, dtype=np.int64), selected, np.zeros(replications, dtype=np.bool_))


@dataclass(frozen=True, eq=False)
class _Arms:
    means: FloatArray
    variances: FloatArray
    draw: Draw
    is_noisy: bool
    scales: tuple[FloatArray, FloatArray] | None = None

    def sample_variances(self, rngs: list[np.random.Generator], batch: Batch) -> FloatArray:
        """Return the sample variances of Gaussian rewards, which are independent of their means."""
        drawn = np.zeros(batch.arms.shape)
        for row, rng, arms, counts in zip(drawn, rngs, batch.arms, batch.counts, strict=True):
            asked = counts > 1  # lanes that ask for fewer arms are padded
            if self.is_noisy:
                freedom = counts[asked] - 1
                row[asked] = self.variances[arms[asked]] * rng.chisquare(freedom) / freedom
        return drawn

    def scaled(self, drawn: FloatArray, arms: IntArray) -> FloatArray:
        """Return coins of 0 and 1 as those of each arm's own bounds."""
        return drawn if self.scales is None else self.scales[0][arms] + self.scales[1][arms] * drawn

    def pull(self, rngs: list[np.random.Generator], batch: Batch) -> FloatArray:
        if not batch.counts.all():  # lanes ask for different numbers of arms: each draws only for its own
            return self._pull_lane_by_lane(rngs, batch)
        drawn = np.empty(batch.arms.shape)
        for block in blocks(batch.arms.shape):
            means, variances = self._of(batch.arms[:, block])
            self.draw(drawn[:, block], rngs, means, variances, batch.counts[:, block])
        return drawn

    def _pull_lane_by_lane(self, rngs: list[np.random.Generator], batch: Batch) -> FloatArray:
        drawn = np.zeros(batch.arms.shape)
        for lane, rng in enumerate(rngs):
            asked = np.flatnonzero(batch.counts[lane])
            one = Batch(batch.arms[lane, asked][None], batch.counts[lane, asked][None])
            drawn[lane, asked] = self.pull([rng], one)[0]
        return drawn

    def _of(self, arms: IntArray) -> tuple[FloatArray, FloatArray]:
        if len(arms) == 1 and (run := as_slice(arms[0])) is not None:
            return self.means[None, run], self.variances[None, run].copy()
        return self.means[arms], self.variances[arms]


@dataclass(frozen=True, eq=False)
class _Running:
    """The running replications, with their generators, and the arrays for the outcomes."""

    lanes: IntArray
    rngs: list[np.random.Generator]
    outcome: _Outcome

    def keep(self, is_kept: BoolArray) -> _Running:
        rngs = [rng for rng, kept in zip(self.rngs, is_kept, strict=True) if kept]
        return _Running(self.lanes[is_kept], rngs, self.outcome)


def _run(
    problem: Problem,
    rules: Strategy[Any],
    arms: _Arms,
    running: _Running,
    budget: int | None,
    progress: Progress | None,
) -> None:
    """Advance some lanes until each has ended or used up its budget."""
    outcome = running.outcome
    state = rules.init(problem, (len(running.lanes),))
    is_within = np.ones(len(running.lanes), dtype=np.bool_)  # has not used up its budget
    has_variances = not problem.knows_variances  # in a pilot, or always
    while True:
        verdict = rules.verdict(state)
        if verdict.is_final.any():
            ended = running.lanes[verdict.is_final & is_within]
            outcome.selected[ended] = verdict.selected[verdict.is_final & is_within]
            outcome.is_final[ended] = True
        batch = rules.ask(state)
        costs = batch.counts.sum(axis=-1)
        if budget is not None:
            is_within &= verdict.is_final | (outcome.pulls[running.lanes] + costs <= budget)
        if progress is not None:
            progress(int(outcome.is_final.sum()), int(outcome.pulls.sum()))
        is_open = is_within & ~verdict.is_final
        if not is_open.any():
            return
        if not is_open.all() and rules.take_lanes is not None:
            running, is_within = running.keep(is_open), is_within[is_open]
            state = rules.take_lanes(state, is_open)
            continue
        outcome.pulls[running.lanes[is_open]] += costs[is_open]
        means = problem.merits(arms.scaled(arms.pull(running.rngs, batch), batch.arms))
        variances = arms.sample_variances(running.rngs, batch) if has_variances else None
        state = rules.tell(state, Moments(means, variances))
        has_variances = rules.needs_variances


def is_bad(problem: Problem, means: FloatArray) -> BoolArray:
    """Return for each arm whether its true mean is more than epsilon worse than the m-th best.

    A difference of exactly epsilon is allowed, with a tolerance for rounding.
    """
    merits = problem.merits(means)
    return _is_below(problem, float(kth_largest(merits, problem.m)[0]), merits)


def is_wrong(problem: Problem, means: FloatArray, selected: IntArray) -> BoolArray:
    """Return for each replication whether fewer than m of the selected arms are good enough.

    For a strategy that selects m arms, this means that one of them is bad. For a screening strategy it is
    the failure of its guarantee at rank m.
    """
    merits = problem.merits(means)
    is_low = _is_below(problem, float(kth_largest(merits, problem.m)[0]), merits[selected])
    return np.asarray((~is_low).sum(axis=-1) < problem.m)


def _is_below(problem: Problem, cut: float, merits: FloatArray) -> BoolArray:
    rounding = 4 * np.spacing(np.maximum(np.abs(merits), max(abs(cut), problem.epsilon)))
    return np.asarray((cut - merits) - problem.epsilon > rounding)
