"""Faults in blocks: paired evidence, its use, and the seeds of blocks."""

from tools.faults.fault import Fault

_EVIDENCE = "certificates/paired_t.py"
_STRATEGY = "strategies/paired_race.py"
_ITEMS = "items.py"
_CALLS = "session/call_plan.py"
_SCHEDULER = "execution/scheduler.py"

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
        "np.minimum(found.epsilons[chunk], leads.min(axis=1))",
        "leads[:, -1]",
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
        'items = Blocks(lockstep) if head.get("blocks") else Items(',
        "items = Items(",
    ),
    Fault(
        "blocks: a run goes on with another kind of question",
        "session/question_changes.py",
        '    "blocks",\n',
        "",
    ),
    Fault(
        "lockstep: an arm stops that is only not much better than the incumbents",
        _STRATEGY,
        "state.pairs[arm].epsilons < 0 for arm",
        "state.pairs[arm].epsilons < state.problem.epsilon for arm",
    ),
    Fault(
        "lockstep: one incumbent that is better is enough to stop an arm",
        _STRATEGY,
        "is_worse = np.all([",
        "is_worse = np.any([",
    ),
    Fault(
        "lockstep: an arm that has stopped may be an incumbent again",
        _STRATEGY,
        "largest(np.where(state.is_out, -np.inf, means), state.problem.m)",
        "largest(means, state.problem.m)",
    ),
    Fault(
        "lockstep: an arm that has stopped is compared with later incumbents",
        _STRATEGY,
        "    is_open[:, state.is_out] = False\n",
        "",
    ),
    Fault(
        "lockstep: all blocks of an arm are measured at once",
        _CALLS,
        "pulls_per_call = 1 if is_lockstep else pulls_per_call",
        "pulls_per_call = pulls_per_call",
    ),
    Fault(
        "lockstep: one arm after the other, over all blocks of a round",
        _CALLS,
        "(turns > 1 or is_lockstep) and len(tickets) > 1",
        "turns > 1 and len(tickets) > 1",
    ),
    Fault(
        "lockstep: the arms of a block are always measured in the same order",
        _CALLS,
        "np.lexsort([times, self.parts(np.arange(self.n_calls)).first_pulls])",
        "np.lexsort([self.parts(np.arange(self.n_calls)).first_pulls])",
    ),
    Fault(
        "lockstep: a budget buys a part of a block",
        _SCHEDULER,
        "(np.cumsum(sums)[parts.first_pulls] <= budget) | ~self.is_wanted",
        "(np.cumsum(prices) <= budget) | ~self.is_wanted",
    ),
    Fault(
        "lockstep: the arms of a block are recorded one by one",
        _SCHEDULER,
        "size = int((starts == starts[0]).sum())",
        "size = 1",
    ),
    Fault(
        "lockstep: blocks are measured ahead",
        _SCHEDULER,
        "is_parallel = is_parallel and not job.session.problem.is_lockstep",
        "is_parallel = is_parallel",
    ),
    Fault(
        "lockstep: a stored run forgets it",
        "store/codec.py",
        'lockstep = head.get("lockstep", False)',
        "lockstep = False",
    ),
    Fault(
        "blocks: simulated arms do not share their conditions",
        "measure/simulated.py",
        "np.sqrt(correlation) * common",
        "np.sqrt(correlation) * own",
    ),
    Fault(
        "blocks: the first simulated arm has no noise of its own",
        "measure/simulated.py",
        "np.random.default_rng([block, arm + 1])",
        "np.random.default_rng([block, arm])",
    ),
    Fault(
        "blocks: a command gets a seed of its own for every arm",
        "measure/command.py",
        "values_of(items, call)[0] if isinstance(items, Blocks) else seed_of(call)",
        "seed_of(call)",
    ),
    Fault(
        "blocks: rows with gaps are closed up",
        "files/measure_section.py",
        "problem, may_be_blank=False",
        "problem, may_be_blank=True",
    ),
    Fault(
        "blocks: a simulation of a file forgets the correlation",
        "files/problem_file.py",
        "        correlation=found.correlation,\n",
        "",
    ),
    Fault(
        "blocks: sheets have the seed of the ticket",
        "session/sheet_format.py",
        'row | {"item": item, "block": item, "seed": seed, "reward": score}',
        'row | {"item": item, "block": item, "reward": score}',
    ),
    Fault(
        "blocks: answers on other blocks are taken",
        "session/sheet_format.py",
        'names = ["item" if name == "block" else name for name in names]',
        "names = list(names)",
    ),
    Fault(
        "blocks: a question over HTTP forgets them",
        "files/items_section.py",
        'return found | {"blocks": True} | (',
        "return found | (",
    ),
    Fault(
        "blocks: means of different blocks are shown side by side",
        "session/state.py",
        "if self.rules.estimates is not None and self._pulls.all():",
        "if False:",
    ),
    Fault(
        "blocks: the forecast counts blocks that were measured",
        "session/state.py",
        "float(self.rules.likely_ends(self.state).max() - self.n_blocks)",
        "float(self.rules.likely_ends(self.state).max())",
    ),
    Fault(
        "blocks: a table whose arms skipped blocks is certified",
        "totals.py",
        "has_gaps = (~np.isnan(table) != (np.arange(table.shape[1]) < seen[:, None])).any(axis=1)",
        "has_gaps = np.zeros(len(table), dtype=bool)",
    ),
    Fault(
        "blocks: blocks in which an arm was not measured count as rewards of 0",
        _STRATEGY,
        "state = replace(init(problem), scores=merits, seen=seen)",
        "state = replace(init(problem), scores=merits, seen=np.full(problem.n, seen.max()))",
    ),
    Fault(
        "blocks: a table is certified for the other goal",
        _STRATEGY,
        "merits = np.where(is_seen, problem.merits(scores), 0.0)",
        "merits = np.where(is_seen, scores, 0.0)",
    ),
    Fault(
        "blocks: the check-up tests rewards instead of their differences",
        "doctor/blocks.py",
        "apart = rewards[0] - rewards[1]",
        "apart = rewards[0] + rewards[1]",
    ),
    Fault(
        "blocks: the check-up takes the best of all pairs for one alone",
        "doctor/blocks.py",
        "return float(2 * len(pairs) * ndtr(-scores[place])), pairs[place]",
        "return float(2 * ndtr(-scores[place])), pairs[place]",
    ),
    Fault(
        "blocks: noise that grows is not seen",
        "doctor/blocks.py",
        "_trend_score(np.abs(apart - np.median(apart)))",
        "_trend_score(apart - np.median(apart))",
    ),
    Fault(
        "blocks: the check-up looks for correlation of the same block",
        "doctor/blocks.py",
        "apart[1:] @ apart[:-1] / (apart @ apart)",
        "apart[2:] @ apart[:-2] / (apart @ apart)",
    ),
)
