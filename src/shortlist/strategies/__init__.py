"""The strategies: one algorithm per file, looked up here by name.

To add one, write its file (see CONTRIBUTING.md) and add one line to `_ALL`. `planning.resolve` decides
which strategy "auto" means.
"""

from difflib import get_close_matches
from typing import Any

from shortlist.checks import one_of
from shortlist.errors import InvalidProblem
from shortlist.problem import Problem
from shortlist.strategies.adapted_medelim import ADAPTED_MEDELIM, PUBLISHED
from shortlist.strategies.bechhofer import BECHHOFER
from shortlist.strategies.biz import BIZ
from shortlist.strategies.block_race import BLOCK_RACE
from shortlist.strategies.dudewicz_dalal import DUDEWICZ_DALAL
from shortlist.strategies.gaussian_single_stage import GAUSSIAN_SINGLE_STAGE
from shortlist.strategies.kim_nelson import KIM_NELSON
from shortlist.strategies.kn import KN
from shortlist.strategies.level_race import LEVEL_RACE, SHORT_RACE
from shortlist.strategies.lucb import LUCB
from shortlist.strategies.lucb_mixture import LUCB_MIXTURE
from shortlist.strategies.medelim import MEDELIM
from shortlist.strategies.medelim_max import MEDELIM_MAX
from shortlist.strategies.paired_race import PAIRED_RACE
from shortlist.strategies.paired_streams import PAIRED_STREAMS
from shortlist.strategies.pilot_bounds import with_pilot
from shortlist.strategies.protocol import Batch, Strategy, Verdict
from shortlist.strategies.race import RACE
from shortlist.strategies.racing import RACING
from shortlist.strategies.rinott import RINOTT
from shortlist.strategies.shared_items import SHARED_ITEMS
from shortlist.strategies.single_stage import SINGLE_STAGE
from shortlist.strategies.t_cut_race import T_CUT_RACE, T_CUT_RACE_0_2
from shortlist.strategies.t_race import T_RACE
from shortlist.strategies.top_two import TOP_TWO
from shortlist.strategies.ugape import UGAPE
from shortlist.strategies.uniform import UNIFORM
from shortlist.strategies.vmedelim import VMEDELIM
from shortlist.strategies.wnelim import WNELIM

__all__ = ["Batch", "OwnName", "Strategy", "Verdict", "named", "names", "strategy_for", "strategy_named"]

_ALL: tuple[Strategy[Any], ...] = (
    WNELIM,
    MEDELIM,
    MEDELIM_MAX,
    VMEDELIM,
    ADAPTED_MEDELIM,
    PUBLISHED,
    LUCB,
    UGAPE,
    SINGLE_STAGE,
    GAUSSIAN_SINGLE_STAGE,
    UNIFORM,
    BECHHOFER,
    RACE,
    LEVEL_RACE,
    SHORT_RACE,
    KN,
    BIZ,
    RACING,
    LUCB_MIXTURE,
    TOP_TWO,
)
_UNKNOWN_ONLY: tuple[Strategy[Any], ...] = (
    PAIRED_STREAMS,
    T_CUT_RACE,
    T_RACE,
    DUDEWICZ_DALAL,
    RINOTT,
    KIM_NELSON,
)
_BY_NAME = {strategy.name: strategy for strategy in _ALL}
_FOR_ITEMS = {strategy.name: strategy for strategy in (SHARED_ITEMS, PAIRED_RACE)}
_FOR_CHANGING = {BLOCK_RACE.name: BLOCK_RACE}
_FOR_UNKNOWN = {strategy.name: strategy for strategy in (*_UNKNOWN_ONLY, *map(with_pilot, _ALL))}
_EARLIER = {(T_CUT_RACE.name, "0.2.0"): T_CUT_RACE_0_2}  # the version in which a run began
_KINDS = (_BY_NAME, _FOR_ITEMS, _FOR_CHANGING, _FOR_UNKNOWN)


def names(variances: str = "known") -> tuple[str, ...]:
    """Return the names of all strategies for known variances or, with "unknown", for unknown ones.

    The latter are the strategies designed for unknown variances, followed by those for known variances run
    on upper bounds from a pilot. With "items", the names of those for shared items; with "changing", of those
    for means that change between blocks, such as days.
    """
    kinds = {"known": _BY_NAME, "unknown": _FOR_UNKNOWN, "items": _FOR_ITEMS, "changing": _FOR_CHANGING}
    return tuple(kinds[one_of(variances, "variances", tuple(kinds))])


class OwnName(str):
    """The name of a strategy that is not listed here, for runs in memory; it knows its strategy."""

    rules: Strategy[Any]

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Return the name alone: the functions of a strategy often cannot be pickled."""
        return str, (str(self),)


def named(strategy: str | Strategy[Any]) -> str:
    """Return the name of a strategy, under which `strategy_for` finds it; a name is returned as it is."""
    if not isinstance(strategy, Strategy):
        return strategy
    listed = [kind[strategy.name] for kind in _KINDS if strategy.name in kind]
    if any(strategy is one for one in listed):
        return strategy.name
    if listed or strategy.name in {"", "auto"}:
        raise InvalidProblem(
            f"the strategy given has the name {strategy.name!r}, which is taken. Give it another name: "
            f"dataclasses.replace(strategy, name='my-strategy')."
        )
    own = OwnName(strategy.name)
    own.rules = strategy
    return own


def strategy_named(name: str) -> Strategy[Any]:
    """Return the strategy for known variances with this name."""
    if isinstance(name, str) and name in _FOR_ITEMS:
        raise InvalidProblem(f"strategy {name} is for shared items; use a `Problem` with `items`.")
    if isinstance(name, str) and name in _FOR_CHANGING:
        raise InvalidProblem(
            f"strategy {name} is for rewards of 0 or 1, or within bounds; use a `Problem` with "
            f"`rewards=shortlist.Bernoulli()` or `shortlist.Bounded(low, high)`."
        )
    if isinstance(name, str) and name in {strategy.name for strategy in _UNKNOWN_ONLY}:
        raise InvalidProblem(
            f"strategy {name} is for unknown variances; use a `Problem` with `rewards=shortlist.Gaussian()`."
        )
    return _one(name, _BY_NAME)


def strategy_for(name: str, problem: Problem, version: str | None = None) -> Strategy[Any]:
    """Return the strategy with this name for a problem, whose variances may be known or unknown.

    If `version` is given, return the strategy as it was in that version of Shortlist, in which a run began.
    """
    if isinstance(name, OwnName):
        return name.rules
    if problem.items is not None:
        return _one(name, _FOR_ITEMS)
    if problem.is_bounded and isinstance(name, str) and name in _FOR_CHANGING:
        return _FOR_CHANGING[name]
    if not problem.knows_variances:
        release = (version or "").partition("+")[0]  # a local build says more behind the plus sign
        return _EARLIER.get((name, release)) or _one(name, _FOR_UNKNOWN)
    return strategy_named(name)


def _one(name: str, among: dict[str, Strategy[Any]]) -> Strategy[Any]:
    if not isinstance(name, str) or name not in among:
        near = get_close_matches(str(name).lower(), among, n=1)
        meant = f"did you mean {near[0]!r}? Otherwise use" if near else "use"
        raise InvalidProblem(f"there is no strategy {name!r}; {meant} one of: {', '.join(among)}, or auto.")
    return among[name]
