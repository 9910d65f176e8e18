"""The guarantee of a strategy, in words and numbers, and its ledger: how its proof divides delta."""

import math
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context
from enum import Enum
from typing import Any

from shortlist.certificates.assumptions import BOUNDED, SUB_GAUSSIAN, in_words, listed
from shortlist.problem import Problem


class Scope(Enum):
    """Which statement is guaranteed; the value is the sentence that the user sees."""

    TOP_M = (
        "With probability at least {confidence}, the true mean of {subject} is {within} the "
        "{ordinal}{best} true mean."
    )
    EVERY_BLOCK = (
        "With probability at least {confidence}, {not_beaten}. On average over all blocks, another arm may "
        "be better."
    )
    CORRECT = (
        "With probability at least {confidence}, {wanted} selected, provided that {leading} by at least "
        "{epsilon}."
    )
    SCREENING = (
        "For every k from 1 to {m}: with probability at least 1 - k/{m} * {delta:g}, the k-th {best} "
        "true mean of the arms kept is at most {epsilon} {worse} the k-th {best} true mean of all arms."
    )


@dataclass(frozen=True)
class Share:
    """One failure event and the probability reserved for it."""

    event: str
    delta: float


@dataclass(frozen=True)
class Ledger:
    """All failure events of a proof; their probabilities sum to at most delta."""

    shares: tuple[Share, ...]

    @property
    def total(self) -> float:
        """The sum of all shares."""
        return math.fsum(share.delta for share in self.shares)


@dataclass(frozen=True)
class Guarantee:
    """A guarantee that holds once the strategy has ended by its own rule.

    Attributes
    ----------
    scope
        What is guaranteed: the m best arms, arms that are not beaten in every block, or a screened set that
        keeps contenders for every rank.
    epsilon, delta, m
        The numbers in the guarantee.
    source
        The theorem that proves it.
    ledger
        How the failure probability is divided among the events of that proof.
    assumptions
        The ids of what is assumed, under which docs/theory lists it; see `certificates/assumptions.py`.
    words
        The same in words, clause by clause; `assumption` is the sentence.
    goal
        Whether large means are good ("maximise") or small ones ("minimise").
    """

    scope: Scope
    epsilon: float
    delta: float
    m: int
    source: str
    ledger: Ledger
    assumptions: tuple[str, ...]
    words: tuple[str, ...] = field(compare=False)
    goal: str = "maximise"

    @classmethod
    def of(
        cls,
        problem: Problem,
        source: str,
        ledger: Ledger,
        scope: Scope = Scope.TOP_M,
        *,
        assumptions: tuple[str, ...] = (),
    ) -> "Guarantee":
        """Return the guarantee that `source` proves for a problem.

        If no assumptions are given, rewards are independent, with constant means, and sub-Gaussian with at
        most the stated variances, or within bounds.
        """
        assumptions = assumptions or (BOUNDED if problem.is_bounded else SUB_GAUSSIAN)
        numbers = (problem.epsilon, problem.delta, problem.m)
        words = in_words(problem, assumptions)
        return cls(scope, *numbers, source, ledger, assumptions, words, problem.goal)

    def provided(self, problem: Problem, *assumptions: str) -> "Guarantee":
        """Return the same guarantee with more assumptions, unless it has them."""
        new = tuple(one for one in assumptions if one not in self.assumptions)
        return replace(self, assumptions=self.assumptions + new, words=self.words + in_words(problem, new))

    @property
    def assumption(self) -> str:
        """What is assumed, in words that follow "provided that"."""
        return listed(self.words)

    def answers(self, problem: Problem) -> bool:
        """Return whether this is the guarantee that the problem asks for, or a stronger one."""
        return self.scope in {Scope.TOP_M, Scope.EVERY_BLOCK} or (
            self.scope is Scope.CORRECT and problem.guarantee == "indifference"
        )

    @property
    def sentence(self) -> str:
        """The guarantee in words, without its source."""
        within = f"at most {at_least(self.epsilon)}" if self.epsilon else "not"
        return self.scope.value.format(
            confidence=_confidence(self.delta),
            subject="the selected arm" if self.m == 1 else f"each of the {self.m} selected arms",
            wanted=_wanted(self.goal, self.m),
            leading=_leading(self.goal, self.m),
            not_beaten=_not_beaten(self.m, self.epsilon),
            m=self.m,
            within=f"{within} {_WORDS[self.goal]['worse']}",
            epsilon=at_least(self.epsilon),
            delta=self.delta,
            ordinal=ordinal(self.m),
            **_WORDS[self.goal],
        )

    def sentence_beside(self, epsilon: float) -> str:
        """Return the same with the epsilon that was asked for, after what is guaranteed."""
        promise, dot, more = self.sentence.removesuffix(".").partition(". ")
        return f"{promise} (asked: {epsilon:g}){dot}{more}."

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain data for JSON."""
        return {
            "scope": self.scope.name.lower(),
            "sentence": self.sentence,
            "source": self.source,
            "assumption": self.assumption,
            "assumptions": list(self.assumptions),
            "ledger": [{"event": share.event, "delta": share.delta} for share in self.ledger.shares],
        }

    def __str__(self) -> str:
        return f"{self.sentence} Proof: {self.source}, provided that {self.assumption}."


_WORDS = {
    "maximise": {"best": "best", "worse": "below"},
    "minimise": {"best": "smallest", "worse": "above"},
}


def at_least(epsilon: float, digits: int = 6) -> str:
    """Return a certified epsilon with few digits; it is rounded up, so that "at most" stays true."""
    nearest = f"{epsilon:.{digits}g}"
    if float(nearest) >= epsilon * (1 - 1e-12):  # 0.1 + 0.2 is 0.3
        return nearest
    return f"{Context(prec=digits, rounding=ROUND_CEILING).create_decimal(epsilon):.{digits}g}"


def _wanted(goal: str, m: int) -> str:
    if goal == "maximise":
        return "the best arm is" if m == 1 else f"the {m} best arms are"
    return "the arm with the smallest mean is" if m == 1 else f"the {m} arms with the smallest means are"


def _leading(goal: str, m: int) -> str:
    """Return the condition of an indifference zone: by how much the m best arms lead is said after it."""
    if goal == "maximise":
        return (
            "its true mean exceeds that of every other arm"
            if m == 1
            else "their true means exceed those of all other arms"
        )
    return (
        "its true mean lies below that of every other arm"
        if m == 1
        else "their true means lie below those of all other arms"
    )


def _not_beaten(m: int, epsilon: float) -> str:
    """Return that fewer than m arms are better than a selected one, by more than epsilon, in every block."""
    at_most = f"at most {at_least(epsilon)} better" if epsilon else "not better"
    if m == 1:
        return f"every other arm has at least one block in which it is {at_most} than the selected arm"
    exceptions = "1 exception" if m == 2 else f"{m - 1} exceptions"
    return (
        f"for each of the {m} selected arms, every other arm, with at most {exceptions}, has at least "
        f"one block in which it is {at_most} than the selected arm"
    )


def _confidence(delta: float) -> str:
    return f"{100 * (1 - delta):.10g} %" if delta >= 1e-6 else f"1 - {delta:g}"


def ordinal(rank: int) -> str:
    """Return the rank as an ordinal to precede the word "best" or "smallest"."""
    if rank == 1:
        return ""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank}{'th' if 10 <= rank % 100 <= 13 else suffix} "
