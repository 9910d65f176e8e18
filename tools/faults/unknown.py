"""Faults in strategies for unknown variances."""

from tools.faults.fault import Fault

FAULTS = (
    Fault(
        "limits: earlier leaders are forgotten for certificates",
        "strategies/t_cut_race.py",
        "state = replace(state, incumbents=best, earlier=remembered(state.earlier, state.incumbents, best))",
        "state = replace(state, incumbents=best)",
    ),
    Fault(
        "paired race: earlier leaders are forgotten for certificates",
        "strategies/paired_race.py",
        "earlier = remembered(state.earlier, state.incumbents, best)",
        "earlier = ()",
    ),
    Fault(
        "dudewicz-dalal: promises where its constant is 0",
        "strategies/dudewicz_dalal.py",
        "pilot.size(question), question.delta) > 0",
        "pilot.size(question), question.delta) >= 0",
    ),
    Fault(
        "pilot: sample variances taken for the truth",
        "strategies/pilot.py",
        "return math.expm1(exponent) * freedom / 2 if exponent < 700 else math.inf",
        "return exponent * freedom / 2",
    ),
    Fault(
        "pilot: one degree of freedom too many",
        "strategies/t_race.py",
        "return tuple(pilot.penalty(log, pilot.size(question) - 1) for log in logs)",
        "return tuple(pilot.penalty(log, pilot.size(question)) for log in logs)",
    ),
    Fault(
        "rinott: as many degrees of freedom as pulls",
        "strategies/rinott.py",
        "failure(h, n, n_pilot - 1)",
        "failure(h, n, n_pilot)",
    ),
    Fault("rinott: one rival too few", "strategies/rinott.py", "(n - 1) * np.log1p", "(n - 2) * np.log1p"),
    Fault(
        "rinott: the pilot is not pooled",
        "strategies/rinott.py",
        "state.counts / (state.counts + state.n_pilot)",
        "state.counts / state.counts",
    ),
    Fault(
        "rinott: scales in place of variances",
        "strategies/rinott.py",
        "variances[block] * root**2",
        "np.sqrt(variances[block]) * root**2",
    ),
    Fault(
        "dudewicz-dalal: as many degrees of freedom as pulls",
        "strategies/dudewicz_dalal.py",
        "failure(h, n, m, n_pilot - 1)",
        "failure(h, n, m, n_pilot)",
    ),
    Fault(
        "dudewicz-dalal: batches weighted by their sizes",
        "strategies/dudewicz_dalal.py",
        "n_pilot / pulls * (1 + spread)",
        "n_pilot / pulls * (1 + 0 * spread)",
    ),
    Fault(
        "dudewicz-dalal: only one of the m best may fall",
        "strategies/dudewicz_dalal.py",
        "-np.expm1(m * np.log1p(",
        "-np.expm1(np.log1p(",
    ),
    Fault(
        "kim-nelson: union forgotten",
        "strategies/kim_nelson.py",
        "math.log1p(-question.delta) / (question.n - 1)",
        "math.log1p(-question.delta)",
    ),
    Fault(
        "kim-nelson: variances of the wrong arms",
        "strategies/kim_nelson.py",
        "state.variances[state.arms] / state.n_pulls",
        "state.variances[: len(state.arms)] / state.n_pulls",
    ),
    Fault(
        "kim-nelson: promised whatever the means",
        "strategies/kim_nelson.py",
        "event, Scope.CORRECT",
        "event",
    ),
    Fault(
        "t-race: rates for free",
        "strategies/t_race.py",
        "math.log(2 * n_pairs / (share * question.delta))",
        "math.log(n_pairs / (share * question.delta))",
    ),
    Fault(
        "t-race: union over incumbents forgotten",
        "strategies/t_race.py",
        "n_pairs = question.m * (question.n - question.m)",
        "n_pairs = question.n - question.m",
    ),
    Fault(
        "t-race: every line has all of delta",
        "strategies/t_race.py",
        "/ (share * question.delta)) for share",
        "/ question.delta) for share",
    ),
    Fault(
        "t-race: lines too low",
        "strategies/t_race.py",
        "a / (2 * tilt) * spreads + tilt",
        "a / (4 * tilt) * spreads + tilt",
    ),
    Fault(
        "t-race: epsilon given away twice",
        "strategies/t_race.py",
        ", arms)) / epsilon + 1",
        ", arms)) / epsilon + 2",
    ),
    Fault(
        "t-race: the incumbent's variance forgotten",
        "strategies/t_race.py",
        "state.rates[arms] + own)",
        "state.rates[arms])",
    ),
    Fault(
        "t-race: new incumbents inherit what was settled",
        "strategies/t_race.py",
        "places = {arm: place for place, arm in enumerate(state.incumbents.tolist())}",
        "places = dict(zip(incumbents.tolist(), range(len(state.incumbents)), strict=False))",
    ),
    Fault(
        "t-race: the pilot counts as more rounds than it has pulls for",
        "strategies/t_race.py",
        "looks=(n_pilot // most,)",
        "looks=(n_pilot,)",
    ),
    Fault(
        "t-race: laggards left behind",
        "strategies/t_race.py",
        "is_open & (theirs <= mine)",
        "is_open & (theirs == mine)",
    ),
    Fault(
        "bounds from a pilot: union over arms forgotten",
        "strategies/pilot_bounds.py",
        "np.log1p(-share) / n)",
        "np.log1p(-share))",
    ),
    Fault(
        "bounds from a pilot: all of delta for the strategy as well",
        "strategies/pilot_bounds.py",
        "delta=(1 - SHARE) * question.delta)",
        "delta=question.delta)",
    ),
    Fault(
        "bounds from a pilot: sample variances taken for bounds",
        "strategies/pilot_bounds.py",
        "variances * factor, least",
        "variances, least",
    ),
)
