"""The faults that `tools.mutants` plants: wrong constants and wrong decisions, one line each."""

from typing import NamedTuple


class Fault(NamedTuple):
    """A replacement in one source file that makes the library wrong."""

    what: str
    file: str
    old: str
    new: str


FAULTS = (
    Fault(
        "wnelim: error epsilon instead of epsilon/2",
        "strategies/wnelim.py",
        "-2 / (epsilon / 2) ** 2",
        "-2 / epsilon**2",
    ),
    Fault(
        "wnelim: twice the failure probability",
        "strategies/wnelim.py",
        "share = delta / variances",
        "share = 2 * delta / variances",
    ),
    Fault(
        "one batch: selects the worst means",
        "strategies/one_batch.py",
        "at_largest(state.arms, means, state.m)",
        "at_largest(state.arms, -means, state.m)",
    ),
    Fault(
        "pulls rounded down", "problem.py", "np.ceil(rounded, out=rounded)", "np.floor(rounded, out=rounded)"
    ),
    Fault("medelim: delta not divided by 4", "strategies/medelim.py", "(delta / 4) / 2**", "delta / 2**"),
    Fault(
        "medelim: delta not halved by level", "strategies/medelim.py", "(delta / 4) / 2**number", "delta / 4"
    ),
    Fault("medelim: losses add up to more", "strategies/medelim.py", "(epsilon / 3) *", "(epsilon / 2) *"),
    Fault(
        "medelim: union over m forgotten",
        "strategies/medelim.py",
        "math.log(m / delta_l)",
        "math.log(1 / delta_l)",
    ),
    Fault(
        "medelim: keeps m instead of 2m",
        "strategies/medelim.py",
        "keep = max(n_arms // 2, 2 * m)",
        "keep = max(n_arms // 2, m)",
    ),
    Fault("medelim: keeps a third", "strategies/medelim.py", "max(n_arms // 2,", "max(n_arms // 3,"),
    Fault(
        "vmedelim: groups screened with all of epsilon",
        "strategies/vmedelim.py",
        "n_arms, problem.m, problem.epsilon / 2",
        "n_arms, problem.m, problem.epsilon",
    ),
    Fault(
        "vmedelim: final batch spends all of delta",
        "strategies/vmedelim.py",
        "problem.variances[kept], problem.epsilon / 2, problem.delta / 2",
        "problem.variances[kept], problem.epsilon / 2, problem.delta",
    ),
    Fault(
        "vmedelim: means given to the wrong group",
        "strategies/vmedelim.py",
        "told += n_arms",
        "told += 0",
    ),
    Fault(
        "medelim-max: union without its 3",
        "strategies/medelim_max.py",
        "math.log(3 * m / delta_l)",
        "math.log(m / delta_l)",
    ),
    Fault(
        "medelim-max: first loss too large",
        "strategies/medelim_max.py",
        "problem.epsilon / 4",
        "problem.epsilon / 2",
    ),
    Fault(
        "medelim-max: keeps half rounded down", "strategies/medelim_max.py", "-(-n_arms // 2)", "n_arms // 2"
    ),
    Fault(
        "medelim-max: the least variance",
        "strategies/medelim_max.py",
        "variances.max(keepdims=True)",
        "variances.min(keepdims=True)",
    ),
    Fault(
        "adapted-medelim: the published split",
        "strategies/adapted_medelim.py",
        "return delta / (1 + 1 / ratio)",
        "return ratio * delta",
    ),
    Fault(
        "adapted-medelim: the weakest reduction",
        "strategies/adapted_medelim.py",
        "return min(after / before",
        "return max(after / before",
    ),
    Fault(
        "adapted-medelim: ties at the cut decided by rounding",
        "strategies/adapted_medelim.py",
        "doubt = len(sums)",
        "doubt = 0 * len(sums)",
    ),
    Fault(
        "elimination: survivors renumbered",
        "strategies/elimination.py",
        "at_largest(state.arms, means, state.levels[0].keep)",
        "at_largest(np.broadcast_to(np.arange(means.shape[-1]), means.shape), means, state.levels[0].keep)",
    ),
    Fault(
        "groups: powers of two in the lower group",
        "heterogeneity.py",
        "(significands < least[0])",
        "(significands <= least[0])",
    ),
    Fault(
        "groups: 2m arms count as many",
        "heterogeneity.py",
        "more = _union([group for group in groups if len(group) > limit])",
        "more = _union([group for group in groups if len(group) >= limit])",
    ),
    Fault(
        "reduced set: moves in the wrong order",
        "heterogeneity.py",
        "np.lexsort((owner, kappas))",
        "np.lexsort((owner, -kappas))",
    ),
    Fault(
        "complexity: ln(2m) for ln(m)",
        "bounds/complexity.py",
        "math.log(problem.m)",
        "math.log(2 * problem.m)",
    ),
    Fault(
        "lucb: union over arms forgotten",
        "strategies/lucb.py",
        "5 * problem.n * n_pulls**4",
        "5 * n_pulls**4",
    ),
    Fault(
        "lucb: upper bounds for the arms in",
        "strategies/lucb.py",
        "means_in - at(half_widths, selected)",
        "means_in + at(half_widths, selected)",
    ),
    Fault(
        "lucb: arms out of focus forgotten",
        "strategies/lucb.py",
        "(highest_out > rest.upper)",
        "(highest_out > -np.inf)",
    ),
    Fault("ugape: rate of a shorter union", "strategies/ugape.py", "n_pulls**3", "n_pulls**2"),
    Fault(
        "ugape: least instead of largest regret",
        "strategies/ugape.py",
        "at(regrets, selected).max(axis=-1)",
        "at(regrets, selected).min(axis=-1)",
    ),
    Fault("ugape: arms out of focus forgotten", "strategies/ugape.py", "(next_upper > rest.upper) & ", ""),
    Fault(
        "intervals: half the variance",
        "strategies/confidence.py",
        "np.sqrt(2 * variances / n_each)",
        "np.sqrt(variances / n_each)",
    ),
    Fault(
        "intervals: stops at twice epsilon",
        "strategies/confidence.py",
        "choice.gap < state.problem.epsilon",
        "choice.gap < 2 * state.problem.epsilon",
    ),
    Fault(
        "ties go to the higher arm",
        "arrays.py",
        "is_tied.cumsum(axis=-1) > n_tied - excess",
        "is_tied.cumsum(axis=-1) <= excess",
    ),
    Fault(
        "simulation: errors up to 2 epsilon pass",
        "simulate.py",
        "(cut - means) - problem.epsilon > rounding",
        "(cut - means) - 2 * problem.epsilon > rounding",
    ),
    Fault("groups: runs joined across a gap", "heterogeneity.py", "last.stop == start", "True"),
    Fault(
        "survivors taken from the first block",
        "arrays.py",
        "items.reshape(-1)[block][places]",
        "items.reshape(-1)[places]",
    ),
    Fault("null: twice the bound", "bounds/null.py", "2 * _at_multiplier", "4 * _at_multiplier"),
    Fault("null: the multiplier's price forgotten", "bounds/null.py", ".sum()) - multiplier", ".sum())"),
    Fault(
        "shift: what the others' move costs forgotten",
        "bounds/null.py",
        "(rivals.variances - lost) / (1 - 2 * shift)",
        "rivals.variances / (1 - 2 * shift)",
    ),
    Fault("whole pulls: no failure allowed", "bounds/null.py", "(1 - delta) * n_arms - min", "n_arms - min"),
    Fault(
        "two-point: entropy not divided",
        "bounds/two_point.py",
        "-entropy([delta, 1 - delta]) / (1 - delta)",
        "-entropy([delta, 1 - delta])",
    ),
    Fault(
        "dual: the paper's missing factor",
        "bounds/dual.py",
        "corrected = (n - m) / (n - m + 1)",
        "corrected = 1.0",
    ),
    Fault("dual: kept for left out", "bounds/dual.py", "clip(tails * all_but", "clip(heads * all_but"),
    Fault("dual: arms of F charged too", "bounds/dual.py", "(total - inside.total + left)", "total"),
    Fault(
        "dual: no loss for classes put together",
        "bounds/dual.py",
        "math.log(m) - loss)",
        "math.log(m))",
    ),
    Fault(
        "dual: entropy not lessened for a random set",
        "bounds/dual.py",
        "inside.entropy - math.log(inside.n / m)",
        "inside.entropy",
    ),
    Fault("exact: like arms counted once", "bounds/exact.py", " + np.log(members)", ""),
    Fault(
        "exact: the least noisy arm stays",
        "bounds/lower.py",
        "noisier = arms.noisiest(n - 1)",
        "noisier = arms",
    ),
    Fault(
        "bounds: one rival too many",
        "bounds/lower.py",
        "arms.noisiest(n - side + 1)",
        "arms.noisiest(n - side + 2)",
    ),
    Fault(
        "bounds: always the side of m",
        "bounds/lower.py",
        "side = min(problem.m, n - problem.m)",
        "side = problem.m if problem.m < n else 0",
    ),
    Fault("swaps: confidence forgotten", "bounds/swap.py", "2 * (1 - delta) * (weight", "2 * (weight"),
    Fault(
        "swaps: the noisiest of a group counts",
        "bounds/swap.py",
        "groups[-1] = (groups[-1][0] + float(count), float(variance))",
        "groups[-1] = (groups[-1][0] + float(count), top)",
    ),
    Fault(
        "plan: screens pass for selections",
        "plan.py",
        "elif guarantee.scope is Scope.SCREENING:",
        "elif not guarantee.scope:",
    ),
    Fault("budget: one step too small", "budget.py", "float(enough * unit)", "float(short * unit)"),
    Fault(
        "convolution: an error of epsilon forgotten",
        "certificates/convolution.py",
        "math.fsum([best[-1], *(",
        "math.fsum([*(",
    ),
    Fault(
        "convolution: bounded from below",
        "certificates/convolution.py",
        "(best[:-1] - best[1:]) * others[1:]",
        "(best[:-1] - best[1:]) * others[:-1]",
    ),
    Fault(
        "convolution: only one best arm",
        "certificates/convolution.py",
        "np.clip(m - before, 0.0, counts)",
        "np.clip(1 - before, 0.0, counts)",
    ),
    Fault(
        "convolution: the best informed arms are best",
        "certificates/convolution.py",
        'order = np.argsort(information, kind="stable")',
        'order = np.argsort(-information, kind="stable")',
    ),
    Fault(
        "single-stage: half the pulls",
        "strategies/single_stage.py",
        "return 2 * variances * spread",
        "return variances * spread",
    ),
    Fault(
        "single-stage: classes informed as their least noisy arm",
        "strategies/single_stage.py",
        "noisiest = np.minimum(least * ratio, 1.0)",
        "noisiest = least",
    ),
    Fault(
        "bechhofer: m best arms counted once",
        "strategies/bechhofer.py",
        "(m - 1) * log_ndtr(-z)",
        "m * log_ndtr(-z)",
    ),
    Fault(
        "bechhofer: promised whatever the noise",
        "strategies/bechhofer.py",
        'if problem.noise != "gaussian":',
        "if problem.noise is None:",
    ),
    Fault(
        "an indifference zone passes for more",
        "certificates/guarantee.py",
        'self.scope is Scope.CORRECT and problem.guarantee == "indifference"',
        "self.scope is Scope.CORRECT",
    ),
    Fault(
        "kn: a pair's share is delta",
        "strategies/kn.py",
        "math.log1p(-problem.delta) / (problem.n - 1)",
        "math.log1p(-problem.delta)",
    ),
    Fault(
        "kn: both sides of the triangle charged", "strategies/kn.py", "math.log(2 * beta)", "math.log(beta)"
    ),
    Fault(
        "kn: bar falls twice as fast", "strategies/kn.py", "- problem.epsilon / 2\n", "- problem.epsilon\n"
    ),
    Fault(
        "kn: only one of the variances counts", "strategies/kn.py", "gaps - a * spreads", "gaps - 0 * spreads"
    ),
    Fault(
        "kn: promised whatever the noise", "strategies/kn.py", 'problem.noise != "gaussian"', "not problem"
    ),
    Fault(
        "kn: the cap forgets that the noisiest has a rival",
        "strategies/kn.py",
        "[places[0], *places]",
        "[places[-1], *places]",
    ),
    Fault(
        "biz: dropped arms are not charged",
        "strategies/biz.py",
        "hurdle * float(left[0] / left[n_out])",
        "hurdle",
    ),
    Fault(
        "biz: odds of twice the gap", "strategies/biz.py", "problem.epsilon * b", "2 * problem.epsilon * b"
    ),
    Fault(
        "biz: arms dropped too easily",
        "strategies/biz.py",
        "math.log1p(-problem.delta) / (problem.n - 1)",
        "math.log1p(-problem.delta)",
    ),
    Fault(
        "biz: promised for unequal variances", "strategies/biz.py", "np.ptp(problem.variances) > 0", "False"
    ),
    Fault("mixture: one of the m best pays for all", "strategies/mixture.py", "delta / (2 * m)", "delta / 2"),
    Fault(
        "mixture: lower bounds without a union",
        "strategies/mixture.py",
        "delta / (2 * (n - m))",
        "delta / 2",
    ),
    Fault(
        "mixture: holds at one time only",
        "strategies/mixture.py",
        "np.sqrt(1 + counts / prior) / alpha",
        "1 / alpha",
    ),
    Fault(
        "mixture: the weight costs nothing",
        "strategies/mixture.py",
        "(counts + prior) * logs",
        "counts * logs",
    ),
    Fault(
        "racing: an arm goes out if m may lie above it",
        "strategies/racing.py",
        "least = np.sort(lower[~is_in])[-wanted]",
        "least = np.sort(upper[~is_in])[-wanted]",
    ),
    Fault("racing: comes in too easily", "strategies/racing.py", "rival - epsilon", "rival - 2 * epsilon"),
    Fault(
        "racing: a rival too few",
        "strategies/racing.py",
        "ranked[wanted], ranked[wanted - 1])",
        "ranked[-1], ranked[-1])",
    ),
    Fault(
        "racing: goes out though one of m - 1",
        "strategies/racing.py",
        "np.sort(lower[~is_in])[-wanted]",
        "np.sort(lower[~is_in])[-1]",
    ),
    Fault(
        "lucb-mixture: stops at twice epsilon",
        "strategies/lucb_mixture.py",
        "<= problem.epsilon or not",
        "<= 2 * problem.epsilon or not",
    ),
    Fault(
        "lucb-mixture: the strongest in for the weakest",
        "strategies/lucb_mixture.py",
        "lower[selected].argmin()",
        "lower[selected].argmax()",
    ),
    Fault(
        "lucb-mixture: contenders rest too soon",
        "strategies/lucb_mixture.py",
        "counts[pair] < state.most[pair]",
        "4 * counts[pair] < state.most[pair]",
    ),
    Fault(
        "top-two: no union over arms",
        "strategies/top_two.py",
        "(problem.n - 1) / problem.delta",
        "1 / problem.delta",
    ),
    Fault(
        "top-two: the leader's own cost forgotten",
        "strategies/top_two.py",
        "+ costs + costs[leader]",
        "+ costs",
    ),
    Fault(
        "top-two: epsilon counted twice",
        "strategies/top_two.py",
        "- means + problem.epsilon",
        "- means + 2 * problem.epsilon",
    ),
    Fault(
        "top-two: the leader's mean is taken for exact",
        "strategies/top_two.py",
        "(spreads + spreads[leader])",
        "spreads",
    ),
    Fault(
        "level-race: m forgotten in the price",
        "strategies/level_course.py",
        "math.log(problem.m * (problem.n - problem.m) / delta)",
        "math.log((problem.n - problem.m) / delta)",
    ),
    Fault(
        "level-race: n - m forgotten in the price",
        "strategies/level_course.py",
        "math.log(problem.m * (problem.n - problem.m) / delta)",
        "math.log(problem.m / delta)",
    ),
    Fault(
        "level-race: leads of the wrong sign",
        "strategies/level_race.py",
        "(least[:, None, :] - leads).min(axis=-1)",
        "(least[:, None, :] + leads).min(axis=-1)",
    ),
    Fault(
        "pairwise: weights add up to more than 1",
        "certificates/pairwise.py",
        "np.array([0.4, 0.25, 0.2, 0.15])",
        "np.array([0.5, 0.25, 0.2, 0.15])",
    ),
    Fault(
        "level-race: an incumbent left out",
        "strategies/level_race.py",
        "np.nonzero(~np.isnan(scores))",
        "np.nonzero(~np.isnan(scores[:, : max(1, scores.shape[1] - 1)]))",
    ),
    Fault(
        "level-race: outsiders one level above not looked at",
        "strategies/level_race.py",
        "is_above = state.reached > level",
        "is_above = state.reached > level + 1",
    ),
    Fault(
        "level-race: late incumbents never called",
        "strategies/level_race.py",
        "late = late if is_wanted.any() and state.climbs == 1 else late[is_wanted]",
        "late = late[:0]",
    ),
    Fault(
        "level-race: weights counted twice",
        "strategies/level_race.py",
        "scores[arms] += 2 * plan.weights[level]",
        "scores[arms] += 4 * plan.weights[level]",
    ),
    Fault(
        "level-race: the spread of one batch only",
        "strategies/level_race.py",
        "spreads[arms] += plan.spread_added",
        "spreads[arms] = plan.spread_added",
    ),
    Fault(
        "level-race: a level's batch taken again to catch up",
        "strategies/level_race.py",
        "usual_batch(state.reached[arms] + 1, arms)",
        "usual_batch(state.reached[arms], arms)",
    ),
    Fault(
        "level-race: favour for arms that catch up",
        "strategies/level_race.py",
        "counts = state.course.usual_batch(state.reached[arms] + 1, arms)",
        "counts = FAVOUR * state.course.usual_batch(state.reached[arms] + 1, arms)",
    ),
    Fault(
        "level-race: spreads rounded down",
        "strategies/level_course.py",
        "np.floor(powers - 1e-9)",
        "np.ceil(powers - 1e-9)",
    ),
    Fault(
        "pairwise: half the spread",
        "certificates/pairwise.py",
        "* TILTS - np.asarray(spread)[..., None] * TILTS**2",
        "* TILTS - 0.5 * np.asarray(spread)[..., None] * TILTS**2",
    ),
    Fault(
        "swap: with unequal variances",
        "strategies/level_course.py",
        'problem.noise == "gaussian" and is_one and',
        'problem.noise == "gaussian" and',
    ),
    Fault(
        "swap: whatever the noise",
        "strategies/level_course.py",
        'problem.noise == "gaussian" and is_one and',
        "is_one and",
    ),
    Fault(
        "swap: arms favoured",
        "strategies/level_course.py",
        "return 0 if self.is_swapping else int(",
        "return int(",
    ),
    Fault(
        "swap: all of delta beside the evidence's share",
        "strategies/level_course.py",
        "return delta_pairs, problem.delta - delta_pairs",
        "return delta_pairs, problem.delta if is_swappable(problem) else 0.0",
    ),
    Fault(
        "swap: incumbents that came later count as present",
        "strategies/level_race.py",
        "is_known = record.is_present[state.incumbents].all()",
        "is_known = not np.isnan(record.scores[state.incumbents]).any()",
    ),
    Fault(
        "swap: accounts not carried forward",
        "strategies/level_race.py",
        "return replace(state, accounts=accounts, is_resting=",
        "return replace(state, is_resting=",
    ),
    Fault(
        "swap: rests forgotten at the end",
        "strategies/level_race.py",
        "accounts[here] += charges(scores[here], scores[is_open])",
        "accounts[here] = charges(scores[here], scores[is_open])",
    ),
    Fault(
        "swap: only incumbents pay for a rest",
        "strategies/level_race.py",
        "here = np.flatnonzero(record.is_present)",
        "here = state.incumbents",
    ),
    Fault(
        "swap: only the fullest account counts",
        "certificates/swap.py",
        "np.partition(accounts, len(accounts) - m)[len(accounts) - m :].sum()",
        "accounts.max()",
    ),
    Fault(
        "swap: resting arms never wake",
        "strategies/level_race.py",
        "is_open &= ~(state.is_resting & (state.scores <= _rest_thresholds(state)[state.reached]))",
        "is_open &= ~state.is_resting",
    ),
    Fault(
        "level-race: pulls of some levels weigh less while swapping",
        "strategies/level_course.py",
        "levels = _whole(levels, float(unit[0]))",
        "levels = np.array(levels)",
    ),
    Fault(
        "swap: charges vanish beside a far larger one",
        "certificates/swap.py",
        "np.logaddexp.accumulate(ordered)",
        "np.log(np.cumsum(np.exp(ordered - ordered[-1]))) + ordered[-1]",
    ),
    Fault(
        "cut: m forgotten in the price below",
        "certificates/cut.py",
        "math.log(m / (BELOW * delta))",
        "math.log(1 / (BELOW * delta))",
    ),
    Fault(
        "cut: n - m forgotten in the price above",
        "certificates/cut.py",
        "math.log((n - m) / (ABOVE * delta))",
        "math.log(1 / (ABOVE * delta))",
    ),
    Fault(
        "cut: weights add up to more than 1",
        "certificates/cut.py",
        "BELOW, ABOVE, PAIRS = 0.45, 0.05, 0.5",
        "BELOW, ABOVE, PAIRS = 0.45, 0.05, 1.0",
    ),
    Fault(
        "cut: delta counted twice for products",
        "certificates/cut.py",
        "PAIRS / (BELOW * ABOVE * delta)",
        "PAIRS / (BELOW * ABOVE * delta**2)",
    ),
    Fault(
        "cut: what products save is more than they may",
        "certificates/cut.py",
        "np.log1p(np.exp(self.discount + given))",
        "np.log1p(np.exp(self.discount + given / 2))",
    ),
    Fault(
        "cut: the factor of the prior forgotten",
        "certificates/cut.py",
        "math.log(2) + 0.5 * np.log(prior / (information + prior)) + z**2",
        "math.log(2) + z**2",
    ),
    Fault(
        "cut: tilts of both signs weigh twice",
        "certificates/cut.py",
        "z**2 / 2 + log_ndtr(z)",
        "z**2 / 2 + 0 * log_ndtr(z)",
    ),
    Fault(
        "cut: small deviations count although they may fade",
        "certificates/cut.py",
        "least: FloatArray = 1 / np.sqrt(information)",
        "least: FloatArray = 0.1 / np.sqrt(information)",
    ),
    Fault(
        "cut: evidence of equal means taken at the better ends",
        "certificates/cut.py",
        "below[:-1] >= self.still_needed(above[1:])",
        "below[1:] >= self.still_needed(above[:-1])",
    ),
    Fault(
        "race: cuts less epsilon, the other way",
        "strategies/race_course.py",
        "lowest[some, None] - (cuts - 1.0)",
        "lowest[some, None] - (cuts - 2.0)",
    ),
    Fault(
        "race: incumbents' evidence at the better end of a cell",
        "strategies/race_course.py",
        "self.above(gaps, rungs, cuts[1:])",
        "self.above(gaps, rungs, cuts[:-1])",
    ),
    Fault(
        "race: outsiders' evidence at the better end of a cell",
        "strategies/race_course.py",
        "(cuts[:-1] - self.reaches[:, places])",
        "(cuts[1:] - self.reaches[:, places])",
    ),
    Fault(
        "race: what is needed rounded down",
        "strategies/race_course.py",
        "np.ceil((needed - self.targets[0]) / spacing)",
        "np.floor((needed - self.targets[0]) / spacing)",
    ),
    Fault(
        "race: the highest incumbent of a rung stands for all",
        "strategies/race_course.py",
        "np.minimum.at(lowest, rungs, gaps)",
        "lowest[rungs] = gaps.max()",
    ),
    Fault(
        "race: cuts begin above where all incumbents are clear",
        "strategies/race_course.py",
        "(gaps - self.clearances[rungs, 0]).min()",
        "(gaps - self.clearances[rungs, 0]).max()",
    ),
    Fault(
        "race: arms stand a rung too high",
        "strategies/race_course.py",
        'information, side="right") - 1',
        'information, side="right")',
    ),
    Fault(
        "race: the top is too low",
        "strategies/race_course.py",
        "    enough = prices.enough()\n",
        "    enough = 0.9 * prices.enough()\n",
    ),
    Fault(
        "race: outsiders need no help from too low a cut",
        "strategies/race.py",
        "plan.rungs.reaches[rungs, -2]",
        "plan.rungs.reaches[rungs, -9]",
    ),
    Fault(
        "race: cautious incumbents are taken at the top",
        "strategies/race.py",
        "for caution in (CAUTION, 0.0):",
        "for caution in (CAUTION,):",
    ),
    Fault(
        "race: more pulls beyond the top than promised",
        "strategies/race.py",
        "_excess(state, arms, counts) > plan.excess",
        "_excess(state, arms, counts) > 9 * plan.excess + 9",
    ),
    Fault(
        "race: batches too small beyond the top",
        "strategies/race.py",
        "return _climbing(state, arms, rungs, np.maximum(rungs, top))",
        "return counts",
    ),
    Fault(
        "race: a batch is pooled as if it were all",
        "strategies/race.py",
        "* (state.counts / pulls[arms])",
        "* 1.0",
    ),
)
