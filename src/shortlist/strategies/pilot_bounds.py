"""Run a strategy for known variances on upper bounds of the variances from a pilot.

With probability 1 - share all variances are below their bounds. Then rewards are sub-Gaussian with these
bounds as variance proxies, and the strategy's own proof holds for rewards drawn after the pilot
(docs/theory.md, section 31). The pilot's means are not used again. Bounds that hold for all arms at once are
large; `t-race` avoids them and is usually preferable.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certificates import Guarantee, Ledger, Scope, Share
from shortlist.certificates.assumptions import UNKNOWN_VARIANCES
from shortlist.problem import Problem
from shortlist.strategies import pilot
from shortlist.strategies.protocol import Batch, Done, Moments, Strategy

SHARE = 0.3  # of delta for the bounds; for any n, the best share would save at most a few percent


@dataclass(frozen=True, eq=False)
class Open:
    """The strategy's own state for the problem with these bounds; the pilot took `n_before` pulls."""

    problem: Problem
    inner: Any
    n_before: int


def with_pilot(rules: Strategy[Any]) -> Strategy[Any]:
    """Return a strategy for known variances as one for unknown variances."""

    def begin(question: Problem, _: FloatArray, variances: FloatArray) -> Open | Done:
        problem = bounded(question, variances)
        return Open(problem, rules.init(problem, ()), pilot.size(question) * question.n)

    def ask(state: Open) -> Batch:
        return rules.ask(state.inner)

    def tell(state: Open, told: Moments) -> Open | Done:
        after = rules.tell(state.inner, told)
        verdict = rules.verdict(after)
        return Done(verdict.selected) if verdict.is_final else replace(state, inner=after)

    def cap(state: Open) -> int | None:
        most = rules.worst_case_pulls(state.problem)
        return None if most is None else most + state.n_before

    return pilot.strategy(
        rules.name,
        rules.summary,
        rules.source,
        begin=begin,
        ask=ask,
        tell=tell,
        guarantee=lambda question: _guarantee(rules, question),
        cap=cap,
        unfit=lambda question: _unfit(rules, question),
    )


def bounded(question: Problem, variances: FloatArray) -> Problem:
    """Return the problem with upper bounds as variances, which all hold with probability 1 - share."""
    factor = inflation(question.n, pilot.size(question), SHARE * question.delta)
    least = max((question.epsilon * 1e-6) ** 2, 1e-100)  # a variance must be positive
    return question.with_variances(np.maximum(variances * factor, least), delta=(1 - SHARE) * question.delta)


@lru_cache(maxsize=256)
def inflation(n: int, n_pilot: int, share: float) -> float:
    """Return the factor that turns n sample variances into upper bounds that hold simultaneously."""
    from scipy.special import gammaincinv  # noqa: PLC0415  (scipy is slow to import)

    alpha = -np.expm1(np.log1p(-share) / n)  # arms are independent
    return float((n_pilot - 1) / (2 * gammaincinv((n_pilot - 1) / 2, alpha)))


def _stand_in(question: Problem) -> Problem:
    """Return a stand-in for the problem after the pilot; variances do not affect whether it is accepted."""
    return bounded(question.changed(epsilon=1.0), np.ones(question.n))


def _guarantee(rules: Strategy[Any], question: Problem) -> Guarantee | None:
    if question.m == question.n:
        return rules.guarantee(question.with_variances(np.ones(question.n)))
    inner = rules.guarantee(_stand_in(question))
    if inner is None:
        return None
    share = Share("some arm's variance exceeds its bound from the pilot", SHARE * question.delta)
    rest = Share(f"{rules.name} fails although all bounds are true", inner.delta)
    source = f"{inner.source}; docs/theory.md, section 31"
    ledger = Ledger((share, rest))
    return Guarantee.of(question, source, ledger, inner.scope, assumptions=UNKNOWN_VARIANCES)


def _unfit(rules: Strategy[Any], question: Problem) -> str:
    problem = _stand_in(question)
    if reason := rules.unfit(problem):
        return reason
    promise = rules.guarantee(problem)
    if promise is None:
        return "nothing is proved after a pilot"
    return "it only screens" if promise.scope is Scope.SCREENING else ""
