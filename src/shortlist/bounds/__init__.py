"""Lower bounds: the paper's worst-case complexity, and the number of pulls that every algorithm needs.

The largest of all bounds is found in `largest`. The individual ones are in `null`, `swap`, `paper_bound`
(based on `two_point`), `exact` and, to check it, `primal`. The bound for a given instance is in
`characteristic` (based on `alternatives`).
"""

from shortlist.bounds.complexity import Complexity, complexity
from shortlist.bounds.largest import LowerBound, Terms, lower_bound

__all__ = ["Complexity", "LowerBound", "Terms", "complexity", "lower_bound"]
