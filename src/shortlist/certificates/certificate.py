"""What is certified at any moment: the m arms that look best, and how far from the m best they can be.

The cut certificate (`cut`, `bounded`) holds at all times and for every epsilon simultaneously, whoever chose
what to measure, as long as the choice depended on earlier rewards only. So whoever stops early can be told
the smallest epsilon that is certified then (docs/theory.md, section 36).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, largest
from shortlist.certificates.bounded import BoundedEvidence
from shortlist.certificates.cut import ABOVE, BELOW, PAIRS, NormalEvidence, Prices
from shortlist.certificates.guarantee import Guarantee, Ledger, Scope, Share
from shortlist.certificates.settled_pairs import Evidence, open_outsiders, smallest_epsilons
from shortlist.checks import shortened
from shortlist.escaping import on_one_line
from shortlist.problem import Problem

IN, OPEN, OUT = "in", "open", "out"
"""The statuses of arms: selected for certain, not decided, and not needed."""

_MOST_NAMED = 5
_DIGITS = 4  # significant ones of a certified epsilon, which is rounded up


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is certified at some moment.

    Attributes
    ----------
    problem
        The question.
    indices
        The selected arms, the best observed mean first; none if nothing is certified.
    epsilon
        The smallest epsilon that is certified for the selected arms: with probability 1 - delta none of them
        lies more than this below the true m-th best. Infinite if nothing of that kind is certified. It may
        rise from one moment to the next, when other arms look best.
    epsilons
        For each selected arm, in the order of `indices`, its own smallest epsilon.
    statuses
        For each arm of the problem: "in" for a selected arm that lies within the problem's epsilon of the
        m-th best; "out" for an arm that is not needed: some right answer contains none of those that are out;
        otherwise "open".
    guarantee
        The guarantee of the selected arms; None if nothing is certified.
    why_nothing
        Why nothing is certified, as a sentence; otherwise empty.
    notes
        What else the results show, as sentences.
    is_void
        Whether nothing is guaranteed, even at the end, because the results contradict what the proof assumes.
    """

    problem: Problem
    indices: IntArray
    epsilon: float
    epsilons: FloatArray
    statuses: tuple[str, ...]
    guarantee: Guarantee | None
    why_nothing: str = ""
    notes: tuple[str, ...] = ()
    is_void: bool = False

    @classmethod
    def of_nothing(
        cls,
        problem: Problem,
        why: str = "Nothing is certified yet.",
        notes: tuple[str, ...] = (),
        *,
        is_void: bool = False,
    ) -> Certificate:
        """Return the certificate of nothing."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(problem, nothing, math.inf, np.empty(0), (OPEN,) * problem.n, None, why, notes, is_void)

    @classmethod
    def of_all(cls, problem: Problem, promise: Guarantee) -> Certificate:
        """Return the certificate of all arms, if all are to be selected: they are the best to within 0."""
        return replace(cls.at_end(problem, problem.arms, promise), epsilon=0.0, epsilons=np.zeros(problem.n))

    @classmethod
    def at_end(cls, problem: Problem, selected: IntArray, promise: Guarantee) -> Certificate:
        """Return the certificate of a strategy that ended by its own rule, with this guarantee."""
        statuses = np.full(problem.n, OUT)
        statuses[selected] = IN
        epsilon = promise.epsilon if promise.scope in {Scope.TOP_M, Scope.EVERY_BLOCK} else math.inf
        epsilons = np.full(len(selected), epsilon)
        return cls(problem, selected, epsilon, epsilons, tuple(statuses.tolist()), promise)

    @classmethod
    def of_epsilons(
        cls,
        problem: Problem,
        selected: IntArray,
        epsilons: FloatArray,
        *,
        is_out: BoolArray,
        merits: FloatArray,
        promise: Guarantee,
        notes: tuple[str, ...] = (),
    ) -> Certificate:
        """Return the certificate of selected arms, each of which has an epsilon of its own.

        `is_out` and `merits` are of all arms. Arms that are not selected are out where it says so. If an
        epsilon is infinite, nothing is certified.
        """
        if np.isinf(epsilons).any():
            return cls.of_nothing(problem, notes=notes)
        epsilon = float(epsilons.max())
        statuses = np.where(is_out, OUT, OPEN)
        statuses[selected] = np.where(epsilons <= problem.epsilon, IN, OPEN)
        order = np.argsort(-merits[selected], kind="stable")
        return cls(
            problem,
            selected[order],
            epsilon,
            epsilons[order],
            tuple(statuses.tolist()),
            replace(promise, epsilon=epsilon),
            notes=notes,
        )

    @property
    def selected(self) -> tuple[str, ...]:
        """The names of the selected arms, in the order of `indices`."""
        return tuple(self.problem.name(int(arm)) for arm in self.indices)

    @property
    def is_answer(self) -> bool:
        """Whether the problem's epsilon is certified."""
        return self.epsilon <= self.problem.epsilon

    @property
    def sentence(self) -> str:
        """What is certified, in words, beside what was asked for."""
        if self.guarantee is None:
            return self.why_nothing
        is_short = self.problem.epsilon < self.epsilon < math.inf
        return self.guarantee.sentence_beside(self.problem.epsilon) if is_short else self.guarantee.sentence

    def provided(self, *assumptions: str) -> Certificate:
        """Return the same with more assumptions, unless it has them."""
        promise = self.guarantee and self.guarantee.provided(self.problem, *assumptions)
        return replace(self, guarantee=promise)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain data for JSON, without the status of each arm."""
        return {
            "selected": list(self.selected),
            "indices": self.indices.tolist(),
            "epsilon": _finite(self.epsilon),
            "epsilons": [_finite(epsilon) for epsilon in self.epsilons.tolist()],
            "asked": self.problem.epsilon,
            "sentence": self.sentence,
            "assumption": None if self.guarantee is None else self.guarantee.assumption,
            "assumptions": [] if self.guarantee is None else list(self.guarantee.assumptions),
            "notes": list(self.notes),
            "is_void": self.is_void,
            "n_arms": {status: self.statuses.count(status) for status in (IN, OPEN, OUT)},
        }

    def _repr_html_(self) -> str:
        """Return the certificate as HTML for notebooks; imported late, since reports are a layer above."""
        html: str = import_module("shortlist.report.fragment").certificate_html(self)
        return html

    def __repr__(self) -> str:
        n_in, n_open, n_out = (self.statuses.count(status) for status in (IN, OPEN, OUT))
        counts = f"n_in={n_in}, n_open={n_open}, n_out={n_out}"
        return (
            f"Certificate(selected={named(self.problem, self.indices)}, epsilon={self.epsilon:g}, {counts})"
        )

    def __str__(self) -> str:
        if self.guarantee is None:
            return " ".join((self.sentence, *self.notes))
        names = ", ".join(map(on_one_line, self.selected[:10])) + (", ..." if len(self.indices) > 10 else "")
        proof = f"Proof: {self.guarantee.source}, provided that {self.guarantee.assumption}."
        return "\n".join((f"Best certified so far: {names}", f"{self.sentence} {proof}", *self.notes))


def named(problem: Problem, arms: IntArray) -> str:
    """Return the names of the first few arms, for a `repr`."""
    names = [shortened(problem.name(int(arm))) for arm in arms[:_MOST_NAMED]]
    return f"[{', '.join(names)}{', ...' if len(arms) > _MOST_NAMED else ''}]"


def guarantee_by_cuts(problem: Problem) -> Guarantee:
    """Return the guarantee of whoever stops by the cut certificate.

    To mislead means: the weighted sum of all e-values against the true means reaches 1/delta. The shares are
    those of its three kinds of terms: for the best arms, for the others, and for products of one of each.
    """
    below = "one of the m best arms looks much worse than it is"
    above = "one of the other arms looks much better than it is"
    pairs = "an arm of each kind does so to a lesser degree, and both together mislead"
    deltas = (BELOW * problem.delta, ABOVE * problem.delta, PAIRS * problem.delta)
    ledger = Ledger(tuple(map(Share, (below, above, pairs), deltas)))
    sections = "section 35" if problem.is_bounded else "sections 32 and 33"
    sections = "sections 35 and 40" if problem.is_graded else sections
    return Guarantee.of(problem, f"docs/theory.md, {sections}", ledger)


def certificate_of(
    problem: Problem,
    pulls: IntArray,
    merits: FloatArray,
    *,
    squares: FloatArray | None = None,
    selected: IntArray | None = None,
    scale: float | None = None,
) -> Certificate:
    """Return what totals certify.

    Parameters
    ----------
    problem
        The question; its variances must be known, or bounds of its rewards.
    pulls, merits
        Of each arm: the number of its rewards and their mean, larger being better; any mean without rewards.
    squares
        For graded rewards within bounds: the mean of the squared shares of each arm, or NaN.
    selected
        The arms to be selected, if known; by default those for which most is certified.
    scale
        The epsilon for which evidence is tightest, if not the problem's. It must not depend on the rewards.
    """
    promise = guarantee_by_cuts(problem)
    if problem.m == problem.n:
        return Certificate.of_all(problem, promise)
    evidence, unit = _evidence(problem, pulls, merits, squares, scale or problem.epsilon)
    possible = _candidates(problem, pulls, merits) if selected is None else [selected]
    chosen, epsilons = min(
        ((arms, smallest_epsilons(evidence, arms)) for arms in possible),
        key=lambda found: float(found[1].max()),
    )
    if np.isinf(epsilons).any() or (problem.is_bounded and epsilons.max() >= 1):
        return Certificate.of_nothing(problem)
    own = all_rounded_up(unit * epsilons)
    is_out = ~open_outsiders(evidence, chosen, problem.epsilon / unit)
    return Certificate.of_epsilons(problem, chosen, own, is_out=is_out, merits=merits, promise=promise)


def _evidence(
    problem: Problem, pulls: IntArray, merits: FloatArray, squares: FloatArray | None, scale: float
) -> tuple[Evidence, float]:
    """Return the evidence, and the unit of its cuts in that of the rewards."""
    if problem.is_bounded:
        evidence = BoundedEvidence.of(
            problem.n, problem.m, problem.delta, scale / problem.width, is_graded=problem.is_graded
        )
        sums = np.where(pulls > 0, problem.shares(merits) * pulls, 0.0)
        return evidence.about(sums, pulls, None if squares is None else squares * pulls), problem.width
    prices = Prices.of(problem.n, problem.m, problem.delta)
    means = np.where(pulls > 0, merits, 0.0) / scale
    return NormalEvidence(prices, means, pulls * scale**2 / problem.variances), scale


def _candidates(problem: Problem, pulls: IntArray, merits: FloatArray) -> list[IntArray]:
    """Return selections that may be best: by means, lowered more or less for arms with few pulls."""
    measured = np.where(pulls > 0, merits, -np.finfo(np.float64).max)
    spreads = np.sqrt(problem.variances / np.maximum(pulls, 1))
    caution = math.sqrt(2 * math.log(problem.n))
    found = [largest(measured - factor * spreads, problem.m) for factor in (caution, caution / 2, 0.0)]
    return [arms for place, arms in enumerate(found) if not any((arms == one).all() for one in found[:place])]


def _finite(epsilon: float) -> float | None:
    return None if math.isinf(epsilon) else epsilon


def all_rounded_up(epsilons: FloatArray) -> FloatArray:
    """Return numbers with few digits, none of them smaller."""
    return np.array([rounded_up(epsilon) for epsilon in epsilons.tolist()])


def rounded_up(epsilon: float) -> float:
    """Return a number with few digits, not smaller."""
    if epsilon == 0 or math.isinf(epsilon):
        return epsilon
    step = 10.0 ** (math.floor(math.log10(epsilon)) + 1 - _DIGITS)
    return float(f"{math.ceil(epsilon / step) * step:.{_DIGITS}g}")
