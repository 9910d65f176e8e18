"""Each algorithm written down a second time: as a plain generator, slow and obvious.

An oracle yields ``{arm: pulls}`` and is sent ``{arm: mean of those pulls}``; it returns the set of
arms selected. It shares no code with the package. (Only the outcomes of numerical searches are taken from
there, and checked by themselves: how a single stage spreads its pulls, Bechhofer's constant, the levels of
a race by levels, the rungs and deviations of a race and how far its arms should climb, on which no answer
depends, and when the intervals of a mixture are short enough.)
"""

from collections.abc import Callable, Generator
from typing import TypeAlias

from shortlist import Problem

from .adapted_medelim import adapted_medelim, adapted_medelim_published
from .bechhofer import bechhofer
from .biz import biz
from .confidence import lucb, ugape
from .kn import kn
from .level_race import level_race
from .medelim import medelim, medelim_max
from .mixture import lucb_mixture, racing, top_two
from .race import race
from .single_stage import gaussian_single_stage, single_stage, uniform
from .vmedelim import vmedelim
from .wnelim import wnelim

Oracle: TypeAlias = Generator[dict[int, int], dict[int, float], set[int]]

ORACLES: dict[str, Callable[[Problem], Oracle]] = {
    "wnelim": wnelim,
    "medelim": medelim,
    "medelim-max": medelim_max,
    "vmedelim": vmedelim,
    "adapted-medelim": adapted_medelim,
    "adapted-medelim-published": adapted_medelim_published,
    "lucb": lucb,
    "ugape": ugape,
    "single-stage": single_stage,
    "gaussian-single-stage": gaussian_single_stage,
    "uniform": uniform,
    "bechhofer": bechhofer,
    "race": race,
    "level-race": level_race,
    "short-race": lambda problem: level_race(problem, most_levels=6),
    "kn": kn,
    "biz": biz,
    "racing": racing,
    "lucb-mixture": lucb_mixture,
    "top-two": top_two,
}
