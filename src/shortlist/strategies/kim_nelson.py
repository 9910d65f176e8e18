"""The sequential procedure of Kim and Nelson, for m = 1 and unknown variances.

After a pilot it continues like `kn` (`kn.py`, for known variances): all survivors are pulled equally often,
and an arm is dropped once another leads it by too much. The boundary uses the sample variances of the pilot
in place of the true ones and is higher to allow for their errors. There is no guarantee if another mean lies
within epsilon of the best.

Two departures from the paper. For each pair the paper uses the sample variance of the differences, which
needs the individual rewards; for independent arms the sum of both sample variances errs less often, with the
same constant (docs/theory.md, section 29). And survivors are compared as often as in `kn`, not after every
pull.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import FloatArray, IntArray, largest
from shortlist.certificates import Guarantee, Scope
from shortlist.problem import MOST_PULLS, Problem, countable
from shortlist.strategies import pilot
from shortlist.strategies.kn import is_behind, next_look
from shortlist.strategies.protocol import Batch, Done, Moments, only_one


@dataclass(frozen=True, eq=False)
class Open:
    """The survivors, their means after `n_pulls` pulls each; they await more.

    `variances` are the pilot's sample variances of all arms.
    """

    question: Problem
    variances: FloatArray
    arms: IntArray
    means: FloatArray
    n_pulls: int


def begin(question: Problem, means: FloatArray, variances: FloatArray) -> Open | Done:
    """Return the state after the pilot, which is also the first comparison."""
    state = Open(question, variances, question.arms, means, pilot.size(question))
    countable(cap(state), "The procedure of Kim and Nelson")
    return _screened(state)


def ask(state: Open) -> Batch:
    """Return the pulls of every survivor up to the next comparison."""
    return Batch(state.arms, np.full(len(state.arms), next_look(state.n_pulls) - state.n_pulls))


def tell(state: Open, told: Moments) -> Open | Done:
    """Return the state without the arms that another survivor beats."""
    n_pulls = next_look(state.n_pulls)
    share = (n_pulls - state.n_pulls) / n_pulls
    return _screened(replace(state, means=state.means + (told.means - state.means) * share, n_pulls=n_pulls))


def _screened(state: Open) -> Open | Done:
    spreads = state.variances[state.arms] / state.n_pulls
    is_kept = ~is_behind(state.means, spreads, slope(state.question), state.question.epsilon)
    arms = state.arms[is_kept]
    return Done(arms) if len(arms) == 1 else replace(state, arms=arms, means=state.means[is_kept])


def slope(question: Problem) -> float:
    """Return the slope of the boundary that gives each other arm an equal share of delta."""
    beta = -math.expm1(math.log1p(-question.delta) / (question.n - 1))  # [KN01] Setup, beta
    log = max(0.0, -math.log(2 * beta))
    return pilot.penalty(log, pilot.size(question) - 1) / question.epsilon  # [KN01] Setup, h^2


def cap(state: Open) -> int:
    """Return the most pulls: only one arm is left once the boundary has fallen to zero."""
    question, noisiest = state.question, largest(state.variances, 2)
    enough = 2 * slope(question) / question.epsilon * float(state.variances[noisiest].sum())
    enough = min(enough, 2.0 * MOST_PULLS)
    n_pulls = pilot.size(question)
    while n_pulls < enough * (1 + 1e-9):
        n_pulls = next_look(n_pulls)
    return n_pulls * question.n


def _guarantee(question: Problem) -> Guarantee:
    event = "another arm drops the best one, which lies at least epsilon above it"
    return pilot.promise(question, "[KN01]; docs/theory.md, section 29", event, Scope.CORRECT)


KIM_NELSON = pilot.strategy(
    "kim-nelson",
    "Kim and Nelson: after a pilot, drops arms until one is left, for an indifference zone.",
    "[KN01]",
    begin=begin,
    ask=ask,
    tell=tell,
    guarantee=_guarantee,
    cap=cap,
    unfit=only_one,
)
