"""Faults in strategies that eliminate, follow confidence bounds or take one batch, and in what they share."""

from tools.faults.fault import Fault

FAULTS = (
    Fault(
        "bechhofer: promises whatever the variances",
        "strategies/bechhofer.py",
        "any(noise_hurts_before(h, k, least) and noise_hurts_after(h, n - k) for k in (m, n - m))",
        "True",
    ),
    Fault(
        "bechhofer: past the mode of the others alone",
        "strategies/bechhofer.py",
        "weights = np.exp(-((h - x) ** 2) / 2 - x**2 / 2 + (k - 1) * log_ndtr(x))",
        "weights = np.exp(-((h - x) ** 2) / 2 - x**2 / 2 + (k - 1) / 2 * log_ndtr(x))",
    ),
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
        "at_largest(state.arms, told.means, state.m)",
        "at_largest(state.arms, -told.means, state.m)",
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
        "first += n_arms",
        "first += 0",
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
        "at_largest(state.arms, told.means, state.levels[0].keep)",
        "at_largest(np.argsort(np.argsort(state.arms)), told.means, state.levels[0].keep)",
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
        "simulation.py",
        "(cut - merits) - problem.epsilon > rounding",
        "(cut - merits) - 2 * problem.epsilon > rounding",
    ),
    Fault(
        "survivors taken from the first block",
        "arrays.py",
        "items.reshape(-1)[block][places]",
        "items.reshape(-1)[places]",
    ),
    Fault(
        "single-stage: half the pulls",
        "strategies/single_stage.py",
        "return 2 * variances * information",
        "return variances * information",
    ),
    Fault(
        "single-stage: classes informed as their least noisy arm",
        "strategies/single_stage.py",
        "noisiest = np.minimum(least * ratio, 1.0)",
        "noisiest = least",
    ),
    Fault(
        "gaussian-single-stage: the pulls of the least noisy arm",
        "strategies/gaussian_single_stage.py",
        "pulls_for(problem, allocation(problem).information, ",
        "pulls_for(problem, lambda v: 0 * v + allocation(problem).information(problem.variances).min(), ",
    ),
    Fault(
        "gaussian-single-stage: promised whatever the noise",
        "strategies/gaussian_single_stage.py",
        'if problem.noise != "gaussian":',
        "if problem.noise is None:",
    ),
    Fault(
        "auto: a single batch wherever a race takes more on hard instances",
        "planning.py",
        "return usual / _WORTHWHILE if",
        "return usual if",
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
        'if problem.noise != "gaussian" or',
        "if problem.noise is None or",
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
    Fault("kn: bar falls twice as fast", "strategies/kn.py", "- epsilon / 2\n", "- epsilon\n"),
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
    Fault(
        "racing: comes in too easily",
        "strategies/racing.py",
        "rival - epsilon",
        "rival - 2 * epsilon",
    ),
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
        "simulation: sample variances with a degree of freedom too many",
        "simulation.py",
        "freedom = counts[asked] - 1",
        "freedom = counts[asked]",
    ),
)
