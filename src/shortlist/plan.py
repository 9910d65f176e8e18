"""What we promise: which strategy a problem is best given to."""

from shortlist.certificates import Scope
from shortlist.errors import InvalidProblem
from shortlist.problem import Problem
from shortlist.strategies import strategies, strategy_named


def best_strategy(problem: Problem) -> str:
    """Return the name of the strategy with the smallest certified worst case.

    Only strategies that promise the m best arms, and never need more than a number of pulls known
    in advance, are considered.
    """
    certified: dict[str, int] = {}
    too_long: InvalidProblem | None = None
    for name in strategies():
        strategy = strategy_named(name)
        guarantee = strategy.guarantee(problem)
        if guarantee is None or guarantee.scope is not Scope.TOP_M:
            continue
        try:
            worst = strategy.worst_case_pulls(problem)
        except InvalidProblem as error:  # its pulls cannot be counted; another's may
            too_long = too_long or error
            continue
        if worst is not None:
            certified[name] = worst
    if not certified:
        raise too_long or InvalidProblem("no strategy has a certified worst case for this problem.")
    return min(certified, key=certified.__getitem__)


def resolve(name: str, problem: Problem) -> str:
    """Return the strategy meant by a name: itself, or the best one for "auto"."""
    return best_strategy(problem) if name == "auto" else strategy_named(name).name
