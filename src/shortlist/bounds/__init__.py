"""What is possible: the paper's worst-case complexity, and the pulls that no algorithm can do without.

The bounds one by one: `null`, `swap`, `dual` (on `two_point`), `exact` and, to check it, `primal`. What an
instance itself demands: `characteristic` (on `alternatives`).
"""

from shortlist.bounds.complexity import Complexity, complexity
from shortlist.bounds.lower import LowerBound, Terms, lower_bound

__all__ = ["Complexity", "LowerBound", "Terms", "complexity", "lower_bound"]
