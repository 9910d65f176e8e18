"""The largest of all lower bounds on the number of pulls, together with the others."""

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

from shortlist.bounds.classes import Classes
from shortlist.problem import Problem, checked

_ROUNDING = 1 - 1e-12  # allows for the rounding errors of any bound, so that none is overstated


@dataclass(frozen=True)
class Terms:
    """Three lower bounds, in pulls, from the three weightings from which the paper derives its three terms.

    They are not the paper's v1, v2 and v3 as printed. Where these have the entropies of all sets of m arms,
    there is a closed form here: at most as large for equal weights (Jensen's inequality), and the same for
    products, unless similar variances are merged. And the factor (n - m) / (n - m + 1) is included, which
    the paper's Lemma 6.3 omits. See sections 12 and 13 of `docs/theory.md`.

    Attributes
    ----------
    v1
        Equal weights on all sets: term I, the cost of confidence.
    v2
        Product weights inside the large variance groups, G^m: term II. Zero if there are none.
    v3
        Equal weights inside L, the 2m noisiest of the reduced set: term III.
    """

    v1: float
    v2: float
    v3: float


class LowerBound(float):
    """A number of pulls that no valid algorithm can promise to stay below, and its origin.

    It is a float that also records its proof. *Valid* means: correct with probability 1 - delta whatever the
    means. The number bounds the expected pulls on the worst instance; on an easy instance an adaptive
    algorithm may need fewer. The bounds, and the sections of `docs/theory.md` that prove them:

    - ``null-instance``, ``null-instance-shifted``: all arms but a few are equal (section 10)
    - ``swaps``: arms that are in and out exchange their means (section 14)
    - ``dual-exact``: the paper's dual program, solved (section 12); only for few arms or few variances
    - ``dual-product``: the same, with products of variances as weights (section 13)
    - ``dual-uniform``, ``dual-large-groups``, ``dual-noisiest``: the three `terms` (section 13)
    - ``whole-pulls``: a pull cannot be divided (section 11)

    Attributes
    ----------
    name
        The name of the largest bound.
    candidates
        All bounds that were computed, by name, in decreasing order.
    terms
        Closed forms below the paper's v1, v2 and v3 (its Section 6), with the corrected factor; see `Terms`.
    is_cost
        Whether it is about the cost of pulls, for a problem with `costs`, and not about their number.
    """

    name: str
    candidates: Mapping[str, float]
    terms: Terms
    is_cost: bool

    def __new__(cls, candidates: Mapping[str, float], terms: Terms, *, is_cost: bool = False) -> "LowerBound":
        """Return the largest of the candidates."""
        ranked = dict(sorted(candidates.items(), key=lambda item: -item[1]))
        name, pulls = next(iter(ranked.items()))
        made = super().__new__(cls, pulls)
        made.name, made.terms, made.is_cost = name, terms, is_cost
        made.candidates = MappingProxyType(ranked)
        return made

    @property
    def pulls(self) -> float:
        """The number itself."""
        return float(self)

    @property
    def words(self) -> str:
        """The number as text."""
        return f"{self.pulls:,.0f}" if self >= 100 else f"{self.pulls:.3g}"

    @property
    def meaning(self) -> str:
        """What the number says, as a clause."""
        pulls = "1 pull" if self.words == "1" else f"{self.words} pulls"
        least = f"costs at least {self.words}" if self.is_cost else f"needs at least {pulls}"
        return f"any algorithm with this guarantee {least} on average on its worst-case instance"

    def gap(self, pulls: float) -> float:
        """Return a number of pulls as a multiple of the bound.

        1 means that nothing could be saved in the worst case.
        """
        if self > 0:
            return pulls / self.pulls
        return math.inf if pulls else 1.0

    def __reduce__(self) -> tuple[Callable[..., "LowerBound"], tuple[Any, ...]]:
        return partial(LowerBound, is_cost=self.is_cost), (dict(self.candidates), self.terms)

    def __repr__(self) -> str:
        return f"LowerBound({self.pulls!r}, name={self.name!r})"


def lower_bound(problem: Problem) -> LowerBound | None:
    """Return the number of pulls that every valid algorithm needs on some instance of a problem.

    None if no bound is proved for this kind of rewards: if they lie within bounds, or if their variances are
    unknown. It is 0 if all arms are selected. If pulls have costs, it is about the cost of all pulls.

    Examples
    --------
    >>> bound = lower_bound(Problem(m=1, epsilon=0.1, delta=0.05, variances=[1.0] * 100))
    >>> bound.name, round(bound.pulls)
    ('null-instance-shifted', 58794)

    Source
    ------
    [ZT22] Section 6 for the dual bounds; the others are proved in `docs/theory.md`.
    """
    if not checked(problem).has_lower_bound:
        return None
    return _found(problem) if problem.costs is None or problem.m == problem.n else _least_cost(problem)


def _least_cost(problem: Problem) -> LowerBound:
    """Return the bound on cost: a unit of cost is worth as much as a pull of an arm that is noisier.

    If a pull of arm i costs k, then cost c of it has the information of ``c / k`` pulls at variance s, which
    is that of c pulls at variance ``k s``. So bounds by information hold with these variances.
    """
    costs, unit = problem.costs, problem.highest_cost
    assert costs is not None
    found = _found(problem.changed(variances=problem.variances * (costs / unit), costs=None))
    candidates = {name: unit * value for name, value in found.candidates.items()}
    whole = (1 - problem.delta) * float(costs.sum()) - min(1.0, 2 * problem.delta) * unit
    candidates["whole-pulls"] = max(0.0, whole) * _ROUNDING
    return LowerBound(candidates, Terms(*(unit * value for value in astuple(found.terms))), is_cost=True)


@lru_cache(maxsize=8)  # following a run computes the bound of one problem many times
def _found(problem: Problem) -> LowerBound:
    # scipy is slow to import, and a bound is not always needed
    from shortlist.bounds.exact import exact_value  # noqa: PLC0415
    from shortlist.bounds.null import null_instance, shifted_null_instance, whole_pulls  # noqa: PLC0415
    from shortlist.bounds.paper_bound import best_product_value, pulls_per_value, three_values  # noqa: PLC0415
    from shortlist.bounds.swap import swaps  # noqa: PLC0415

    n, delta = problem.n, problem.delta
    side = min(problem.m, n - problem.m)  # selecting m arms is the same as leaving out n - m
    if side == 0:
        return LowerBound({"whole-pulls": 0.0}, Terms(0.0, 0.0, 0.0))
    arms = Classes.of(problem)
    rivals = arms.noisiest(n - side + 1)
    values = {
        "null-instance": null_instance(rivals, delta),
        "null-instance-shifted": shifted_null_instance(rivals, delta),
    }
    if delta < 0.5:  # else the two-point lemma does not apply
        noisier = arms.noisiest(n - 1)
        unit = pulls_per_value(delta)
        values["swaps"] = swaps(arms, side, delta)
        values["dual-product"] = unit * best_product_value(noisier, side, delta)
        if (optimum := exact_value(noisier, side, delta)) is not None:
            values["dual-exact"] = unit * optimum.value
    candidates = {
        name: max(0.0, value) * _ROUNDING / problem.epsilon / problem.epsilon
        for name, value in values.items()
    }
    candidates["whole-pulls"] = whole_pulls(n, delta) * _ROUNDING
    terms = Terms(*(value * _ROUNDING for value in three_values(problem)))
    if delta < 0.5:
        names = ("dual-uniform", "dual-large-groups", "dual-noisiest")
        candidates |= dict(zip(names, astuple(terms), strict=True))
    return LowerBound(candidates, terms)
