"""What a question usually costs, simulated only once in each process of the tests."""

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
    variances: FloatArray | None,
    n_runs: int,
    effort: float,
) -> UsualPulls | None:
    """Return what `usual_cost` would simulate, which depends on these arguments alone."""
    spread = None if variances is None else variances.tobytes()
    key = (problem.digest, strategy, means.tobytes(), spread, n_runs, effort)
    if key not in _found:
        _found[key] = _simulated(problem, strategy, means, variances, n_runs, effort)
    return _found[key]
