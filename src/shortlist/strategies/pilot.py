"""Strategies for unknown variances: a pilot for every arm, then sampling based on its sample variances.

The proofs need the pilot's sample variances to be independent of its sample means and of all later rewards
(docs/theory.md, section 26). This holds for Gaussian rewards only. `pilot_bounds.py` makes such a strategy
of one for known variances.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certificates import Guarantee, Ledger, Scope, Share
from shortlist.certificates.assumptions import UNKNOWN_VARIANCES
from shortlist.problem import Problem
from shortlist.strategies.lanes import strategy as abreast
from shortlist.strategies.protocol import Batch, Done, Moments, Strategy

_MORE = 1.25  # a pilot is large enough if unknown variances cost at most this factor

S = TypeVar("S")
Begin: TypeAlias = Callable[[Problem, FloatArray, FloatArray], S | Done]
"""``begin(question, means, variances)``: the state after the pilot, given its sample means and variances."""


@dataclass(frozen=True, eq=False)
class Pilot:
    """Every arm awaits its first pulls."""

    question: Problem


def strategy(
    name: str,
    summary: str,
    source: str,
    *,
    begin: Begin[S],
    ask: Callable[[S], Batch],
    tell: Callable[[S, Moments], S | Done],
    guarantee: Callable[[Problem], Guarantee | None],
    cap: Callable[[S], int | None],
    n_rounds: int | None = None,
    unfit: Callable[[Problem], str] = lambda _: "",
) -> Strategy[Any]:
    """Return the strategy that starts with a pilot and continues with the given functions, for any lanes.

    The most pulls it can need are not known before the pilot; `cap` computes them from the state after it.
    """

    def first(question: Problem) -> Pilot | S:
        return Pilot(question)

    def ask_any(state: Pilot | S) -> Batch:
        if not isinstance(state, Pilot):
            return ask(state)
        arms = state.question.arms
        return Batch(arms, np.full(len(arms), size(state.question)))

    def tell_any(state: Pilot | S, told: Moments) -> Pilot | S | Done:
        if not isinstance(state, Pilot):
            return tell(state, told)
        if told.variances is None:
            raise TypeError("after a pilot, sample variances must be told as well")
        return begin(state.question, told.means, told.variances)

    return abreast(
        name,
        summary,
        source,
        init=first,
        ask=ask_any,
        tell=tell_any,
        guarantee=guarantee,
        worst_case_pulls=lambda _: None,
        n_rounds=lambda _: n_rounds,
        unfit=unfit,
        cap_from=lambda state: None if isinstance(state, Pilot) else cap(state),
    )


def size(question: Problem) -> int:
    """Return the number of pilot pulls per arm: the number asked for, or else a number chosen by a rule.

    The best number depends on noise that is not known yet. So the rule is: a pair of arms must not need more
    than a quarter more pulls than if variances were known.
    """
    if question.pilot is not None:
        return question.pilot
    log = math.log(2 * question.m * max(1, question.n - question.m) / question.delta)
    freedom = 1
    while penalty(log, freedom) > _MORE * log:
        freedom += 1
    return freedom + 1


def penalty(log: float, freedom: int) -> float:
    """Return the a for which E[exp(-a X / freedom)] = exp(-log), where X has a chi-square distribution.

    If the variance were known, a would be `log`.
    """
    exponent = 2 * log / freedom
    return math.expm1(exponent) * freedom / 2 if exponent < 700 else math.inf  # [KN01] Setup, eta


def promise(question: Problem, source: str, event: str, scope: Scope = Scope.TOP_M) -> Guarantee:
    """Return the guarantee of a proof with a single failure event."""
    ledger = Ledger((Share(event, question.delta),))
    return Guarantee.of(question, source, ledger, scope, assumptions=UNKNOWN_VARIANCES)
