"""Faults in bounds, in plans and in what is known of a problem."""

from tools.faults.fault import Fault

FAULTS = (
    Fault(
        "groups: powers of two in the lower group",
        "variance_groups.py",
        "(significands < least[0])",
        "(significands <= least[0])",
    ),
    Fault(
        "groups: 2m arms count as many",
        "variance_groups.py",
        "more = _union([group for group in groups if len(group) > limit])",
        "more = _union([group for group in groups if len(group) >= limit])",
    ),
    Fault(
        "reduced set: moves in the wrong order",
        "variance_groups.py",
        "np.lexsort((owner, kappas))",
        "np.lexsort((owner, -kappas))",
    ),
    Fault(
        "complexity: ln(2m) for ln(m)",
        "bounds/complexity.py",
        "math.log(problem.m)",
        "math.log(2 * problem.m)",
    ),
    Fault("groups: runs joined across a gap", "variance_groups.py", "last.stop == start", "True"),
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
        "bounds/paper_bound.py",
        "corrected = (n - m) / (n - m + 1)",
        "corrected = 1.0",
    ),
    Fault("dual: kept for left out", "bounds/paper_bound.py", "clip(tails * all_but", "clip(heads * all_but"),
    Fault("dual: arms of F charged too", "bounds/paper_bound.py", "(total - inside.total + left)", "total"),
    Fault(
        "dual: no loss for classes put together",
        "bounds/paper_bound.py",
        "math.log(m) - loss)",
        "math.log(m))",
    ),
    Fault(
        "dual: entropy not lessened for a random set",
        "bounds/paper_bound.py",
        "inside.entropy - math.log(inside.n / m)",
        "inside.entropy",
    ),
    Fault("exact: like arms counted once", "bounds/exact.py", " + np.log(members)", ""),
    Fault(
        "exact: the least noisy arm stays",
        "bounds/largest.py",
        "noisier = arms.noisiest(n - 1)",
        "noisier = arms",
    ),
    Fault(
        "bounds: one rival too many",
        "bounds/largest.py",
        "arms.noisiest(n - side + 1)",
        "arms.noisiest(n - side + 2)",
    ),
    Fault(
        "bounds: always the side of m",
        "bounds/largest.py",
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
        "bounds: that of Gaussian rewards is claimed for rewards within bounds",
        "problem.py",
        "(self.knows_variances and self.bounds is None)",
        "(self.knows_variances and not self.is_bounded)",
    ),
    Fault(
        "usual cost: the reference is easier than it is said to be",
        "usual_cost.py",
        "gap = min(problem.epsilon * (1 + ABOVE), high - low)",
        "gap = min(2 * problem.epsilon * (1 + ABOVE), high - low)",
    ),
    Fault(
        "usual cost: strategies without a certified worst case are listed",
        "usual_cost.py",
        "if row.is_certified and row.strategy not in own",
        "if row.worst_case_pulls is not None and row.strategy not in own",
    ),
    Fault(
        "plan: screens pass for selections",
        "planning.py",
        "elif guarantee.scope is Scope.SCREENING:",
        "elif not guarantee.scope:",
    ),
    Fault(
        "budget: only the first strategy that suffices is tried again",
        "planning.py",
        "enough or self._candidates",
        "enough[:1] or self._candidates",
    ),
    Fault("budget: one step too small", "planning.py", "float(enough * unit)", "float(short * unit)"),
)
