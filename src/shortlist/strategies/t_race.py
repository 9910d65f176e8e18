"""A race for unknown variances: any m, an (epsilon, delta) guarantee, Gaussian rewards.

After a pilot, arm i is pulled in rounds of `rates[i]` pulls, more if its pilot was noisier. The m arms with
the largest scores are the incumbents. A pair of an incumbent and an outsider is *settled* once it is clear
that the outsider does not beat the incumbent by epsilon, which is when their difference crosses one of a few
straight lines. In an open pair the arm that is behind in rounds is pulled, and the race ends when no pair is
open.

The height of the lines depends on both sample variances. A line that is crossed wrongly with probability
exp(-a) if variances are known is crossed with probability exp(-a S^2/s^2), S^2 being the sample variance of
one of the two arms. The average of that is a power of 1 + 2a/(pilot - 1), and a is chosen accordingly. So no
union bound over bounds on all variances is needed, and unknown variances cost little (docs/theory.md, section
30).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, largest
from shortlist.certificates import Guarantee
from shortlist.problem import MOST_PULLS, Problem, countable
from shortlist.strategies import pilot
from shortlist.strategies.protocol import Batch, Done, Moments

TILTS = (0.5, 1.0, 2.0, 4.0, 8.0)  # slopes of the lines in epsilon; steep ones settle pairs far apart
SHARES = (0.6, 0.1, 0.1, 0.1, 0.1)  # of the delta of a pair
_MOST_RATE = 8  # pulls of the noisiest arm in a round
_PACE = 16  # the next look is due when the rounds have grown by 1 / _PACE


@dataclass(frozen=True, eq=False)
class Open:
    """All arms, each at its own level; some pairs are open.

    Attributes
    ----------
    variances, rates
        The sample variances of the pilot, and the number of pulls of each arm per round.
    looks
        The numbers of rounds after which arms are compared; level 0 is the pilot.
    levels
        The last level completed by each arm.
    pilots, movers, scores
        The scores at level 0; the arms that have gone further, in order; and for each level from 1 on the
        score of each mover, NaN beyond its own level.
    incumbents, is_settled
        The m incumbents, and per arm and incumbent whether the pair is settled.
    moving
        The arms that proceed to their next level.
    """

    question: Problem
    variances: FloatArray
    rates: IntArray
    looks: tuple[int, ...]
    levels: IntArray
    pilots: FloatArray
    movers: IntArray
    scores: FloatArray
    incumbents: IntArray
    is_settled: BoolArray
    moving: IntArray


def begin(question: Problem, means: FloatArray, variances: FloatArray) -> Open | Done:
    """Return the state after the pilot, which is also the first comparison."""
    n_pilot, n = pilot.size(question), question.n
    most, nobody = min(_MOST_RATE, n_pilot), np.empty(0, dtype=np.int64)
    state = Open(
        question=question,
        variances=variances,
        rates=rates(variances, most),
        looks=(n_pilot // most,),
        levels=np.zeros(n, dtype=np.int64),
        pilots=means,
        movers=nobody,
        scores=np.empty((0, 0)),
        incumbents=nobody,
        is_settled=np.empty((n, 0), dtype=np.bool_),
        moving=nobody,
    )
    countable(cap(state), "The race for unknown variances")
    return _compared(state)


def rates(variances: FloatArray, most: int) -> IntArray:
    """Return the pulls of each arm per round: proportional to its scale, from 1 to `most`."""
    scales = np.sqrt(variances)
    top = float(scales.max())
    return np.maximum(1, np.ceil(most * (scales / top if top > 0 else scales))).astype(np.int64)


def ask(state: Open) -> Batch:
    """Return the pulls that take each moving arm to its next level."""
    looks = np.array([*state.looks, _next(state.looks[-1])])
    rounds = np.diff(looks)[state.levels[state.moving]]
    return Batch(state.moving, rounds * state.rates[state.moving])


def tell(state: Open, told: Moments) -> Open | Done:
    """Return the state with these arms one level further."""
    arms, levels, looks = state.moving, state.levels.copy(), state.looks
    before = levels[arms]
    levels[arms] += 1
    if levels.max() == len(looks):
        looks = (*looks, _next(looks[-1]))
    movers = np.union1d(state.movers, arms)
    scores = np.full((len(looks) - 1, len(movers)), np.nan)
    scores[: len(state.scores), np.searchsorted(movers, state.movers)] = state.scores
    earlier, rounds = scores_at(state, before, arms), np.array(looks)
    share = 1 - rounds[before] / rounds[before + 1]
    scores[before, np.searchsorted(movers, arms)] = earlier + (told.means - earlier) * share
    return _compared(replace(state, levels=levels, looks=looks, movers=movers, scores=scores))


def scores_at(state: Open, levels: IntArray, arms: IntArray) -> FloatArray:
    """Return the scores of arms at these levels, which they have completed."""
    found, is_later = state.pilots[arms], levels > 0
    columns = np.searchsorted(state.movers, arms[is_later])
    found[is_later] = state.scores[levels[is_later] - 1, columns]
    return np.asarray(found)


def _compared(state: Open) -> Open | Done:
    """Return the state with incumbents, settled pairs and moving arms updated."""
    arms = state.question.arms
    incumbents = largest(scores_at(state, state.levels, arms), state.question.m)
    is_settled = np.zeros((len(arms), len(incumbents)), dtype=np.bool_)
    places = {arm: place for place, arm in enumerate(state.incumbents.tolist())}
    for column, incumbent in enumerate(incumbents.tolist()):
        settled = is_settled[:, column]
        if incumbent in places:
            settled[:] = state.is_settled[:, places[incumbent]]
            still_open = np.flatnonzero(~settled)
            common = np.minimum(state.levels[still_open], state.levels[incumbent])
            settled[still_open] = is_crossed(state, incumbent, still_open, common)
            continue
        for level in range(int(state.levels[incumbent]) + 1):  # a new incumbent is compared at all its levels
            still_open = np.flatnonzero(~settled & (state.levels >= level))
            common = np.full(len(still_open), level)
            settled[still_open] = is_crossed(state, incumbent, still_open, common)
    moving = _moving(state.levels, incumbents, is_settled)
    if not len(moving):
        return Done(incumbents)
    return replace(state, incumbents=incumbents, is_settled=is_settled, moving=moving)


def _moving(levels: IntArray, incumbents: IntArray, is_settled: BoolArray) -> IntArray:
    """Return the arms that are behind, or level, in an open pair."""
    is_open = ~is_settled
    is_open[incumbents] = False
    outside = np.flatnonzero(is_open.any(axis=1))
    is_open, mine, theirs = is_open[outside], levels[outside][:, None], levels[incumbents]
    lagging = outside[(is_open & (mine <= theirs)).any(axis=1)]
    return np.union1d(lagging, incumbents[(is_open & (theirs <= mine)).any(axis=0)])


def is_crossed(state: Open, incumbent: int, arms: IntArray, levels: IntArray) -> BoolArray:
    """Return which of some arms, at these levels, are settled not to beat an incumbent by epsilon."""
    epsilon = state.question.epsilon
    theirs = scores_at(state, levels, np.full(len(arms), incumbent))
    leads = (theirs - scores_at(state, levels, arms)) / epsilon + 1
    own = state.variances[incumbent] / state.rates[incumbent]
    spreads = (state.variances[arms] / state.rates[arms] + own) / epsilon / epsilon
    return np.asarray(leads >= bar(state.question, spreads / np.array(state.looks)[levels]))


def bar(question: Problem, spreads: FloatArray) -> FloatArray:
    """Return the lead that an incumbent's score, raised by epsilon, must have: the lowest of the lines.

    `spreads` are the estimated variances of the difference of scores; everything is in units of epsilon.
    """
    lines = (a / (2 * tilt) * spreads + tilt for a, tilt in zip(penalties(question), TILTS, strict=True))
    return np.asarray(np.minimum.reduce(list(lines)))


def penalties(question: Problem) -> tuple[float, ...]:
    """Return a for each line, such that a pair crosses it wrongly with at most its share of delta."""
    n_pairs = question.m * (question.n - question.m)
    logs = (math.log(2 * n_pairs / (share * question.delta)) for share in SHARES)  # either variance may err
    return tuple(pilot.penalty(log, pilot.size(question) - 1) for log in logs)


def cap(state: Open) -> int:
    """Return the most pulls; once the first line has reached 1, the higher score settles any pair."""
    question = state.question
    with np.errstate(over="ignore"):
        parts = state.variances / state.rates / question.epsilon / question.epsilon
    enough = min(2 * penalties(question)[0] * float(parts[largest(parts, 2)].sum()), 2.0 * MOST_PULLS)
    first = looks = state.looks[0]
    while looks < enough * (1 + 1e-9):
        looks = _next(looks)
    return int(state.rates.sum()) * (looks - first) + pilot.size(question) * question.n


def _next(look: int) -> int:
    return look + max(1, look // _PACE)


def _guarantee(question: Problem) -> Guarantee:
    event = "a pair is settled in favour of a bad arm, against one of the m best"
    return pilot.promise(question, "docs/theory.md, section 30", event)


T_RACE = pilot.strategy(
    "t-race",
    "After a pilot, pulls only open arms until every pair of arms is settled.",
    "docs/theory.md, section 30",
    begin=begin,
    ask=ask,
    tell=tell,
    guarantee=_guarantee,
    cap=cap,
)
