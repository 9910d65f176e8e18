"""Faults in blocks: paired evidence, its use, and the seeds of blocks."""

from tools.faults.fault import Fault

_EVIDENCE = "certificates/paired_t.py"
_STRATEGY = "strategies/paired_race.py"
_ITEMS = "items.py"

FAULTS = (
    Fault(
        "blocks: two-sided evidence is doubled without taking off the other side",
        _EVIDENCE,
        "np.log(2 - np.exp(-exponents))",
        "np.log(2 + 0 * exponents)",
    ),
    Fault(
        "blocks: the prior of the effect is not paid for",
        _EVIDENCE,
        " - np.log(shrunk) / 2",
        "",
    ),
    Fault(
        "blocks: one more block in the exponent",
        _EVIDENCE,
        "exponents = n_blocks / 2 * odds",
        "exponents = (n_blocks + 1) / 2 * odds",
    ),
    Fault(
        "blocks: weights of the mixture do not add up to 1",
        _EVIDENCE,
        "axis=0) - math.log(len(GAINS))",
        "axis=0)",
    ),
    Fault(
        "blocks: equal differences are infinite evidence",
        _EVIDENCE,
        "np.where(np.isinf(ratios), np.log(shrunk), odds)",
        "np.where(np.isinf(ratios), np.inf, odds)",
    ),
    Fault(
        "blocks: ratios that are not quite enough",
        _EVIDENCE,
        "np.where(is_possible, np.exp(high), np.inf)",
        "np.where(is_possible, np.exp(high) * 0.9, np.inf)",
    ),
    Fault(
        "blocks: the union over outsiders forgotten",
        _STRATEGY,
        "math.log(problem.m * (problem.n - problem.m) / delta)",
        "math.log(problem.m / delta)",
    ),
    Fault(
        "blocks: the union over the best forgotten",
        _STRATEGY,
        "math.log(problem.m * (problem.n - problem.m) / delta)",
        "math.log((problem.n - problem.m) / delta)",
    ),
    Fault(
        "blocks: deviations are not from the mean",
        _STRATEGY,
        "deviations = np.maximum(squares - sums**2 / n_blocks, 0.0)",
        "deviations = squares",
    ),
    Fault(
        "blocks: too few equal differences settle a pair",
        _STRATEGY,
        "np.where(np.isinf(ratios), np.inf, leads)",
        "np.where(np.isnan(leads), 0.0, leads)",
    ),
    Fault(
        "blocks: differences are squared before a common level is taken off",
        _STRATEGY,
        "found.origins[chunk] = differences[:, 0]",
        "found.origins[chunk] = 0.0 * differences[:, 0]",
    ),
    Fault(
        "blocks: what was certified after fewer blocks is forgotten",
        _STRATEGY,
        "np.minimum(found.epsilons[chunk], np.maximum(leads.min(axis=1), 0.0))",
        "np.maximum(leads[:, -1], 0.0)",
    ),
    Fault(
        "blocks: an outsider that is ahead is taken to be behind",
        _STRATEGY,
        "differences = state.scores[arm, start:end] - state.scores[chunk, start:end]",
        "differences = np.abs(state.scores[arm, start:end] - state.scores[chunk, start:end])",
    ),
    Fault(
        "blocks: incumbents are compared on different blocks",
        _STRATEGY,
        "(state.scores.sum(axis=1) - level[state.seen]) / state.seen + level[top] / top",
        "state.scores.sum(axis=1) / state.seen",
    ),
    Fault(
        "blocks: every arm has its own blocks",
        _ITEMS,
        "numbers = (np.arange(first, min(first + count, self.n)) + start) & _SEEDS",
        "numbers = (np.arange(0, min(count, self.n)) + start) & _SEEDS",
    ),
    Fault(
        "blocks: the same seeds in all runs",
        _ITEMS,
        "return state.astype(np.int64) & _SEEDS",
        "return 0 * state.astype(np.int64)",
    ),
    Fault(
        "blocks: a stored run forgets them",
        "store/codec.py",
        'items = Blocks() if head.get("blocks") else Items(',
        "items = Items(",
    ),
    Fault(
        "blocks: a run goes on with another kind of question",
        "session/question_changes.py",
        '    "blocks",\n',
        "",
    ),
)
