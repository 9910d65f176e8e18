"""How it decides: one algorithm per file, found here by name.

To add one: write the file (see CONTRIBUTING.md), then add one line to `_ALL`.
"""

from typing import Any

from shortlist.errors import InvalidProblem
from shortlist.strategies.adapted_medelim import ADAPTED_MEDELIM, PUBLISHED
from shortlist.strategies.bechhofer import BECHHOFER
from shortlist.strategies.biz import BIZ
from shortlist.strategies.kn import KN
from shortlist.strategies.level_race import LEVEL_RACE, SHORT_RACE
from shortlist.strategies.lucb import LUCB
from shortlist.strategies.lucb_mixture import LUCB_MIXTURE
from shortlist.strategies.medelim import MEDELIM
from shortlist.strategies.medelim_max import MEDELIM_MAX
from shortlist.strategies.protocol import Batch, Strategy, Verdict
from shortlist.strategies.race import RACE
from shortlist.strategies.racing import RACING
from shortlist.strategies.single_stage import SINGLE_STAGE
from shortlist.strategies.top_two import TOP_TWO
from shortlist.strategies.ugape import UGAPE
from shortlist.strategies.uniform import UNIFORM
from shortlist.strategies.vmedelim import VMEDELIM
from shortlist.strategies.wnelim import WNELIM

__all__ = ["Batch", "Strategy", "Verdict", "strategies", "strategy_named"]

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
_BY_NAME = {strategy.name: strategy for strategy in _ALL}


def strategies() -> tuple[str, ...]:
    """Return the names of all strategies."""
    return tuple(_BY_NAME)


def strategy_named(name: str) -> Strategy[Any]:
    """Return the strategy with this name."""
    if not isinstance(name, str) or name not in _BY_NAME:
        raise InvalidProblem(f"there is no strategy {name!r}; use one of: {', '.join(_BY_NAME)}, or auto.")
    return _BY_NAME[name]
