"""The result of a run: the selected arms, their guarantee, and the cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.bounds import LowerBound, lower_bound
from shortlist.certificates import Certificate, Guarantee
from shortlist.certificates.assumptions import WORDS
from shortlist.certificates.certificate import OPEN, named
from shortlist.errors import NoGuarantee
from shortlist.escaping import on_one_line
from shortlist.planning import gap_words
from shortlist.problem import Problem


class Stop(Enum):
    """Why a run ended; the value is the sentence that the user sees."""

    CERTIFIED = "The strategy ended by its own rule, and its guarantee holds."
    UNPROVED = "The strategy ended by its own rule, but it has no guarantee. Use another strategy."
    BUDGET = "Stopped early: the remaining budget is too small for the next batch of pulls."
    DEADLINE = "The deadline passed before the strategy ended."
    PERSON = "The run was stopped before the strategy ended."
    ITEMS = (
        "No items or blocks are left, and the requested epsilon is not certified. Use more items, or a "
        "larger epsilon."
    )
    OPEN = "The run has not ended: some of its pulls have no results yet."


@dataclass(frozen=True, eq=False)
class Arms:
    """The measurements of every arm.

    Attributes
    ----------
    pulls
        The number of pulls of each arm.
    means
        The mean of its rewards; NaN for an arm without pulls. In blocks an estimate that can be compared with
        the others: an arm that stopped early is compared with them in its own blocks.
    statuses
        "in", "open" or "out"; see `Certificate`. Empty if unknown.
    left_out
        How many of the pulls its mean leaves out, on shared items and in blocks: those measured ahead, and
        those of tickets or rounds that are not complete. None if there are none.
    """

    pulls: IntArray
    means: FloatArray
    statuses: tuple[str, ...] = ()
    left_out: IntArray | None = None

    @property
    def in_mean(self) -> IntArray:
        """The number of pulls of which `means` is the mean."""
        return self.pulls if self.left_out is None else self.pulls - self.left_out

    def __repr__(self) -> str:
        return f"Arms(n={len(self.pulls)}, n_pulls={int(self.pulls.sum())})"


@dataclass(frozen=True, eq=False)
class Result:
    """The answer to a problem.

    Attributes
    ----------
    problem, strategy, seed
        The question, the strategy, and the seed that reproduces the run.
    indices
        The selected arms, the best observed mean first. This order is not part of the guarantee. If the run
        has not ended, the arms for which most is certified so far; none if nothing is.
    stop
        Why the run ended.
    guarantee
        The guarantee of the selection; None unless the conditions of its theorem were met. If the run has not
        ended, see `certificate`.
    n_pulls, n_rounds
        The number of pulls, and of batches.
    arms
        The measurements of every arm.
    n_fed
        The number of pulls that were measured elsewhere and fed to the run.
    n_scored
        The number of pulls that failed, and count as the value chosen for failures.
    n_reissued
        The number of tickets that were issued to a second worker, or tried again, before they were answered.
        The first answer counts, so the guarantee assumes that how long a measurement takes does not depend
        on its reward. It is 0 if a measurement repeated with its seed gives the same rewards.
    certificate
        What is certified, also if the run has not ended; None if unknown.
    n_ahead
        With shared items: how many scores were measured before it was known whether they would be needed, and
        were not used. They are among `n_pulls`.
    """

    problem: Problem
    strategy: str
    seed: int
    indices: IntArray
    stop: Stop
    guarantee: Guarantee | None
    n_pulls: int
    n_rounds: int
    arms: Arms
    n_fed: int = 0
    n_scored: int = 0
    n_reissued: int = 0
    certificate: Certificate | None = None
    n_ahead: int = 0

    @property
    def certified_epsilon(self) -> float:
        """The smallest epsilon that is certified now for the selected arms; infinite if nothing is.

        It may be larger than requested if the run stopped early. More pulls usually lower it; it may rise
        when other arms look best.
        """
        return math.inf if self.certificate is None else self.certificate.epsilon

    @property
    def selected(self) -> tuple[str, ...]:
        """The names of the selected arms, in the order of `indices`."""
        return tuple(self.problem.name(int(arm)) for arm in self.indices)

    @property
    def cost(self) -> float:
        """The cost of all pulls, in the units of the problem's `costs`; without costs, their number."""
        return self.problem.cost_of(self.arms.pulls)

    @property
    def n_saved(self) -> int:
        """How many scores on shared items are saved, compared with the whole table; else 0.

        While some arms are open, only those of the other arms are: their further scores are not needed.
        """
        if not self.problem.has_pool:
            return 0
        left = self.problem.cells - np.minimum(self.arms.pulls, self.problem.cells)
        if self.stop in {Stop.CERTIFIED, Stop.UNPROVED}:
            return int(left.sum())
        return int(left[np.array(self.arms.statuses) != OPEN].sum()) if self.arms.statuses else 0

    @property
    def effort(self) -> str:
        """The pulls of the run, and what they cost, as a sentence."""
        rounds = {0: "", 1: " in one round"}.get(self.n_rounds, f" in {self.n_rounds:,} rounds")
        pulls = "1 pull" if self.n_pulls == 1 else f"{self.n_pulls:,} pulls"
        if self.problem.has_blocks:
            n_blocks = int(self.arms.pulls.max())
            pulls += f" in {n_blocks:,} {'block' if n_blocks == 1 else 'blocks'}"
        elif self.problem.items is not None:
            share = self.n_pulls / max(self.problem.n_cells, 1)
            pulls = f"{self.n_pulls:,} of {self.problem.n_cells:,} scores ({share:.1%})"
        fed = f", {self.n_fed:,} of them fed," if self.n_fed else ""
        cost = "" if self.problem.costs is None else f" at a cost of {self.cost:,.6g}"
        said = f"{pulls}{cost}{fed}{rounds} by {self.strategy}, seed {self.seed}."
        were = "was" if self.n_ahead == 1 else "were"
        ahead = f" {self.n_ahead:,} of them {were} measured ahead and not needed." if self.n_ahead else ""
        scored_were = "was" if self.n_scored == 1 else "were"
        scored = f" {self.n_scored:,} of them failed and {scored_were} scored." if self.n_scored else ""
        return said + ahead + scored

    @property
    def reissued(self) -> str:
        """A sentence on tickets that may have been measured more than once; empty if there are none."""
        if not self.n_reissued:
            return ""
        is_one = self.n_reissued == 1
        tickets, each = ("1 ticket", "") if is_one else (f"{self.n_reissued:,} tickets", " to each")
        assumed = f" The guarantee assumes that {WORDS['first-answers']}."
        assumed = "" if self.stop is Stop.UNPROVED else assumed
        if assumed and self.problem.has_pool:
            assumed += " If an item always gets the same score, declare `reproducible`."
        return (
            f"{tickets} may have been measured more than once, because a measurement was interrupted, "
            f"failed or came late. The first answer{each} counts.{assumed}"
        )

    @property
    def ending(self) -> str:
        """Why the run ended, or why its rewards void the guarantee, as a sentence."""
        is_void = self.stop is Stop.UNPROVED and self.certificate is not None and self.certificate.is_void
        return self.certificate.why_nothing if is_void and self.certificate else self.stop.value

    @property
    def so_far(self) -> str:
        """What is certified although the strategy has not ended, as a sentence; empty if it has."""
        if self.certificate is None or self.stop in {Stop.CERTIFIED, Stop.UNPROVED}:
            return ""
        return " ".join(filter(None, (self.certificate.sentence, self._better_means)))

    @property
    def _better_means(self) -> str:
        """A sentence on arms that are not selected, although their observed means are better; else empty."""
        chosen, merits = self.indices, self.problem.merits(self.arms.means)
        if not len(chosen):
            return ""
        others = np.setdiff1d(np.flatnonzero(merits > merits[chosen].min()), chosen)
        if not len(others):
            return ""
        best = others[np.argsort(-merits[others], kind="stable")]
        names = [on_one_line(self.problem.name(arm)) for arm in best[:3].tolist()]
        some = ", ".join(
            f"{name} ({self.arms.means[arm]:.4g})" for name, arm in zip(names, best, strict=False)
        )
        more = "" if len(best) <= 3 else f" and of {len(best) - 3:,} more"
        return f"Observed means of {some}{more} are better, but less is certified for these arms so far."

    @property
    def notes(self) -> tuple[str, ...]:
        """What else the rewards show, as sentences, such as a reason to doubt an assumption."""
        return () if self.certificate is None else self.certificate.notes

    @cached_property
    def lower_bound(self) -> LowerBound | None:
        """The pulls below which no algorithm can stay on every instance.

        None if no bound is proved for this kind of rewards.
        """
        return lower_bound(self.problem)

    @property
    def gap(self) -> float | None:
        """The cost of the run as a multiple of the lower bound; None if there is no bound.

        The bound is for the worst instance. On an easier one an adaptive strategy may stay below it.
        """
        return None if self.lower_bound is None else self.lower_bound.gap(self.cost)

    @property
    def optimality(self) -> str:
        """A sentence that compares the run with the lower bound; empty if there is none, or it is 0."""
        if not self.lower_bound:
            return ""
        gap = self.lower_bound.gap(self.cost)
        said = (
            f"Lower bound: {self.lower_bound.meaning}. This run took {gap_words(gap)} times the lower bound"
        )
        if gap < 1:
            said += ". A run can stay below it by chance, or if its means are easier than the worst case"
        return f"{said}."

    @property
    def is_answer(self) -> bool:
        """Whether the requested answer is certified; it is not for screens and runs that stopped early."""
        return self.guarantee is not None and self.guarantee.answers(self.problem)

    def require_guarantee(self) -> Guarantee:
        """Return the guarantee; raise NoGuarantee if there is none."""
        if self.guarantee is None:
            raise NoGuarantee(f"this result has no guarantee. {self.ending}")
        return self.guarantee

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON."""
        promise = self.guarantee
        return {
            "selected": list(self.selected),
            "indices": self.indices.tolist(),
            "stop": self.stop.name.lower(),
            "guarantee": None if promise is None else promise.to_dict(),
            "certified_epsilon": None if math.isinf(self.certified_epsilon) else self.certified_epsilon,
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "strategy": self.strategy,
            "seed": self.seed,
            "n_pulls": self.n_pulls,
            "cost": self.cost,
            "n_rounds": self.n_rounds,
            "n_fed": self.n_fed,
            "n_scored": self.n_scored,
            "n_reissued": self.n_reissued,
            "n_ahead": self.n_ahead,
            "n_saved": self.n_saved,
            "problem": self.problem.to_dict(),
            "lower_bound": None if self.lower_bound is None else self.lower_bound.pulls,
            "gap": None if self.gap is None or math.isinf(self.gap) else self.gap,
            "arms": [
                {
                    "name": self.problem.name(arm),
                    "pulls": pulls,
                    "in_mean": in_mean,
                    "mean": _number(mean),
                    "status": status,
                }
                for arm, (pulls, in_mean, mean, status) in enumerate(
                    zip(
                        self.arms.pulls.tolist(),
                        self.arms.in_mean.tolist(),
                        self.arms.means.tolist(),
                        self.arms.statuses or (None,) * self.problem.n,
                        strict=True,
                    )
                )
            ],
        }

    def _repr_html_(self) -> str:
        """Return the result as HTML for notebooks; imported late, since reports are a layer above results."""
        view = import_module("shortlist.report.fragment")
        html: str = view.result_html(self)
        return html

    def __repr__(self) -> str:
        found = f"stop={self.stop.name}, certified_epsilon={self.certified_epsilon:g}"
        spent = f"n_pulls={self.n_pulls}, strategy={self.strategy!r}, seed={self.seed}"
        return f"Result(selected={named(self.problem, self.indices)}, {found}, {spent})"

    def __str__(self) -> str:
        names = ", ".join(map(on_one_line, self.selected[:10])) + (", ..." if len(self.indices) > 10 else "")
        lines = [
            f"Selected {len(self.indices)} of {self.problem.n} "
            f"{'arm' if self.problem.n == 1 else 'arms'}: {names or 'none yet'}",
            self.ending if self.guarantee is None else str(self.guarantee),
            self.so_far,
            self.effort,
            self.reissued,
            *self.notes,
            self.optimality if self.is_answer else "",
        ]
        return "\n".join(filter(None, lines))


def best_first(indices: IntArray, merits: FloatArray) -> IntArray:
    """Return the arms by decreasing observed merit; arms without pulls, and ties, keep their order."""
    observed = np.where(np.isnan(merits[indices]), -np.inf, merits[indices])
    return indices[np.argsort(-observed, kind="stable")]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
