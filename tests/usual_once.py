"""What a question usually costs, simulated only once in each process of the tests."""

from typing import Any

from shortlist import usual_cost
from shortlist.arrays import FloatArray
from shortlist.planning import UsualPulls
from shortlist.problem import Problem

_simulated = usual_cost._simulated
_found: dict[tuple[object, ...], UsualPulls | None] = {}


def simulated(
    problem: Problem,
    strategy: str,
    means: FloatArray,
    how: dict[str, Any],
    n_runs: int,
    effort: float,
) -> UsualPulls | None:
    """Return what `usual_cost` would simulate, which depends on these arguments alone."""
    given = repr({name: value.tolist() if hasattr(value, "tolist") else value for name, value in how.items()})
    key = (problem.digest, strategy, means.tobytes(), given, n_runs, effort)
    if key not in _found:
        _found[key] = _simulated(problem, strategy, means, how, n_runs, effort)
    return _found[key]
