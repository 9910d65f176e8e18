"""The question in reverse: what a given number of pulls can certify."""

import math
from collections.abc import Callable
from decimal import Decimal

from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem, NoGuarantee
from shortlist.planning import Plan, is_within, plan_within
from shortlist.problem import Problem, checked
from shortlist.unknown import Question, Unknown

_DIGITS = 6
_EPSILONS = (1e-100, 1e100)
_LEAST_DELTA = 1e-50
_FEW = 512  # up to so many arms every m is tried


def plan_for_budget(problem: Question, budget: int, *, vary: str = "epsilon") -> Plan:
    """Return the plan for the sharpest question that a budget of pulls can certify.

    Parameters
    ----------
    problem
        What is asked, apart from the number that is to be found.
    budget
        The most pulls.
    vary
        What to find: the smallest "epsilon" or "delta", to six digits, or the largest "m" below n (where
        some strategy's cost does not depend on m, that is n - 1; among more than 512 arms, it is
        looked for between powers of two).

    Returns
    -------
    A plan whose `problem` has the number found, and whose best strategy stays within the budget.

    Raises
    ------
    NoGuarantee
        If no value will do.

    Examples
    --------
    >>> problem = Problem(m=3, epsilon=0.1, delta=0.05, variances=[0.25] * 10)
    >>> found = plan_for_budget(problem, 1000)
    >>> found.problem.epsilon, found.best.worst_case_pulls
    (0.269817, 1000)
    """
    if isinstance(problem, Unknown):
        raise InvalidProblem(
            "what a budget can certify depends on the variances, and they are unknown. State upper bounds on "
            "them, if you have any; or try `budget` with a run, which says whether it was enough."
        )
    checked(problem)
    budget = whole_number(budget, "budget", 0)
    searches: dict[str, Callable[[Problem, int], Problem]] = {
        "epsilon": _least_epsilon,
        "delta": _least_delta,
        "m": _largest_m,
    }
    if vary not in searches:
        raise InvalidProblem(f"`vary` is {vary!r}; it must be one of: {', '.join(searches)}.")
    if problem.m == problem.n and vary != "m":
        raise InvalidProblem(
            "all arms are to be selected: that takes no pulls, whatever epsilon and delta are."
        )
    return plan_within(searches[vary](problem, budget), budget)


def _least_epsilon(problem: Problem, budget: int) -> Problem:
    def asked(epsilon: float) -> Problem:
        return problem.changed(epsilon=epsilon)

    if not _is_enough(asked, _EPSILONS[1], budget):
        raise NoGuarantee(
            f"a budget of {budget:,} pulls certifies nothing, however large epsilon is: every strategy pulls "
            f"each of the {problem.n:,} arms at least once. Allow more pulls, or leave arms out."
        )
    return asked(_least(lambda epsilon: _is_enough(asked, epsilon, budget), *_EPSILONS))


def _least_delta(problem: Problem, budget: int) -> Problem:
    def asked(delta: float) -> Problem:
        return problem.changed(delta=delta)

    most = max(0.5, problem.delta)
    if not _is_enough(asked, most, budget):
        raise NoGuarantee(
            f"a budget of {budget:,} pulls certifies nothing within epsilon = {problem.epsilon:g}, for no "
            f"delta up to {most:g}. Allow more pulls or a larger epsilon."
        )
    return asked(_least(lambda delta: _is_enough(asked, delta, budget), _LEAST_DELTA, most))


def _largest_m(problem: Problem, budget: int) -> Problem:
    def asked(m: float) -> Problem:
        return problem.changed(m=int(m))

    last = problem.n - 1  # to select all arms takes no pulls
    for m in _falling(last):
        if _is_enough(asked, m, budget):
            # Between this m and the next larger one tried, look for the last that is certified.
            above = min((tried for tried in _falling(last) if tried > m), default=m)
            while above - m > 1:
                middle = (m + above) // 2
                m, above = (middle, above) if _is_enough(asked, middle, budget) else (m, middle)
            return asked(m)
    raise NoGuarantee(
        f"a budget of {budget:,} pulls certifies no m within epsilon = {problem.epsilon:g} and delta = "
        f"{problem.delta:g}. Allow more pulls or a larger epsilon."
    )


def _falling(last: int) -> list[int]:
    """Return the numbers of arms to try, the largest first: all if they are few, else ever sparser."""
    if last < _FEW:
        return list(range(last, 0, -1))
    return sorted({last, *(2**power for power in range(last.bit_length()))}, reverse=True)


def _is_enough(asked: Callable[[float], Problem], value: float, budget: int) -> bool:
    try:
        return is_within(asked(value), budget)
    except InvalidProblem:  # not even countable
        return False


def _least(is_enough: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least number of six digits that is enough, given that larger ones are if any is."""
    if is_enough(low):
        return low
    while high / low > 10:
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    decade = math.ceil(math.log10(low))
    if low < (border := float(f"1e{decade}")) < high:  # so that all numbers between have as many digits
        low, high = (low, border) if is_enough(border) else (border, high)
    unit = Decimal(10) ** (math.floor(math.log10(low)) - _DIGITS + 1)
    short, enough = int(Decimal(low) / unit), math.ceil(Decimal(high) / unit)
    while enough - short > 1:
        middle_units = (short + enough) // 2
        is_middle = is_enough(float(middle_units * unit))
        short, enough = (short, middle_units) if is_middle else (middle_units, enough)
    return float(enough * unit)
