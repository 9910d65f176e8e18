"""Results, plans and simulations as text for a terminal."""

import math
from itertools import compress

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shortlist.arrays import FloatArray
from shortlist.certificates import Scope
from shortlist.escaping import on_one_line
from shortlist.planning import Plan, UsualCost, gap_words
from shortlist.report.text_format import counted, decimals_for, large, mean_words
from shortlist.report.verdict import closer, spared
from shortlist.result import Result
from shortlist.simulation import Simulation, is_bad, is_wrong

_MOST_ROWS, _MOST_OTHERS = 20, 5


def result_text(result: Result, true_means: FloatArray | None = None) -> RenderableType:
    """Return a result as text: the selected arms, the next best ones, the guarantee, and the cost.

    Given the true means of simulated arms, it also says whether the answer is right.
    """
    is_screen = result.guarantee is not None and result.guarantee.scope is Scope.SCREENING
    deed = "kept (a screen, not yet a selection)" if is_screen else "selected"
    parts: list[RenderableType] = [
        Text(f"{len(result.indices):,} of {counted(result.problem.n, 'arm')} {deed}", style="bold")
    ]
    if len(result.indices):
        parts += [_arms(result, true_means), Text()]
    if result.guarantee is None and result.certified_epsilon < math.inf:
        parts += [Text(result.so_far, style="green"), Text(result.stop.value, style="yellow")]
    elif result.guarantee is None:
        is_void = result.certificate is not None and result.certificate.is_void
        why_none = ("" if is_void else "No guarantee.", result.ending, result.so_far)
        parts.append(Text(" ".join(filter(None, why_none)), style="yellow"))
    else:
        said = " ".join(filter(None, (result.guarantee.sentence, closer(result))))
        parts.append(Text(said, style="green"))
        note = f"Proof: {result.guarantee.source}, provided that {result.guarantee.assumption}."
        parts.append(Text(note, style="dim"))
        if not result.is_answer:
            parts.append(Text("This is weaker than the guarantee requested.", style="yellow"))
    parts.append(Text(" ".join(filter(None, (result.effort, spared(result))))))
    if result.reissued:
        parts.append(Text(result.reissued, style="yellow"))
    parts += [Text(note, style="yellow") for note in result.notes]
    if result.is_answer and result.optimality:
        parts.append(Text(result.optimality))
    if true_means is not None and len(result.indices):
        parts.append(_truth(result, true_means))
    return Group(*parts)


def _arms(result: Result, true_means: FloatArray | None) -> Table:
    """Return the selected arms and the next best ones, with how far these are behind the last selected."""
    problem, means = result.problem, result.arms.means
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("arm")
    is_compared = problem.has_blocks and not problem.is_bounded
    # On shared items, arms that stopped early have other items, so that their means cannot be compared.
    has_gaps = not problem.has_pool and len(result.indices) < problem.n
    has_more = result.arms.left_out is not None
    columns = (
        "estimated mean" if is_compared else "observed mean",
        "behind",
        "pulls",
        "in mean",
        "true mean",
    )
    for heading in compress(columns, (True, has_gaps, True, has_more, true_means is not None)):
        table.add_column(heading, justify="right")
    decimals = decimals_for(problem.epsilon)
    merits = np.nan_to_num(problem.merits(means), nan=-np.inf)

    def add(arm: int, behind: str) -> None:
        pulls = f"{result.arms.pulls[arm]:,}", f"{result.arms.in_mean[arm]:,}"
        cells = (mean_words(float(means[arm]), problem.epsilon), behind, *pulls)
        row: list[RenderableType] = [
            Text(on_one_line(problem.name(arm))),
            *compress(cells, (True, has_gaps, True, has_more)),
        ]
        table.add_row(*row, *(() if true_means is None else (f"{true_means[arm]:.{decimals}f}",)))

    for arm in result.indices[:_MOST_ROWS].tolist():
        add(arm, "")
    if len(result.indices) > _MOST_ROWS:
        table.add_row(Text(f"and {len(result.indices) - _MOST_ROWS:,} more", style="dim"))
    n_others = problem.n - len(result.indices)
    if n_others:
        table.add_row(Text("not selected", style="dim"))
    last = merits[result.indices].min()
    merits[result.indices] = -np.inf
    for arm in np.argsort(-merits, kind="stable")[: min(n_others, _MOST_OTHERS)].tolist():
        add(arm, "" if np.isinf(merits[arm]) else mean_words(float(last - merits[arm]), problem.epsilon))
    if n_others > _MOST_OTHERS:
        table.add_row(Text(f"and {n_others - _MOST_OTHERS:,} more", style="dim"))
    return table


def _truth(result: Result, true_means: FloatArray) -> Text:
    known = "The arms are simulated, so the truth is known:"
    if not is_wrong(result.problem, true_means, result.indices[None])[0]:
        return Text(f"{known} the answer is right.", style="dim")
    bad = is_bad(result.problem, true_means)
    names = [result.problem.name(int(arm)) for arm in result.indices if bad[arm]]
    return Text(f"{known} {', '.join(names[:5])} should not have been selected.", style="red")


def plan_text(plan: Plan, usual: UsualCost | None = None) -> RenderableType:
    """Return a plan as text: the recommended strategy with its cost, why, and a table of all strategies."""
    parts: list[RenderableType] = [
        Text(plan_answer(plan, usual, has_options=True), style="bold"),
        *_promised(plan),
        Text(),
    ]
    parts.append(_strategies(plan, usual))
    if usual is not None and (said := dash_words(plan, usual)):
        parts.append(Text(said, style="dim"))
    if usual is not None and (said := usual_words(usual)):
        parts.append(Text(said, style="dim"))
    reasons: dict[str, list[str]] = {}
    for row in plan.rows:
        if not row.is_certified:
            reasons.setdefault(row.note, []).append(row.strategy)
    if reasons:
        left = "; ".join(f"{', '.join(names)} ({note})" for note, names in reasons.items())
        parts.append(Text(f"Not recommended here: {left}.", style="dim"))
    parts.append(Text())
    if plan.lower_bound is None and (plan.problem.knows_variances or plan.problem.items is not None):
        parts.append(Text("No lower bound is proved for rewards of this kind."))
    if plan.lower_bound:
        what = "expected cost" if plan.lower_bound.is_cost else "expected pulls"
        parts.append(Text(f"Lower bound: {plan.lower_bound.words} {what} ({plan.lower_bound.name})."))
    return Group(*parts, Text(f"Why this one: {plan.why}"), *_divided(plan))


def plan_answer(plan: Plan, usual: UsualCost | None = None, *, has_options: bool = False) -> str:
    """Return the recommended strategy and its cost, for which means or noise, and how to ask for others.

    That is done with the options of `shortlist plan`, or else in Python.
    """
    best, what = plan.best, "score" if plan.problem.has_pool else "pull"
    found = None if usual is None else usual.pulls.get(best.strategy)
    most, rounds = best.worst_case_pulls, best.rounds
    if most == 0:
        return f"{best.strategy}: no measurement is needed."
    in_rounds = "" if rounds is None else f" in {'' if rounds == 1 else 'at most '}{counted(rounds, 'round')}"
    if most is not None and rounds == 1:
        return f"{best.strategy}: {large(most)} {what}s{in_rounds}, whatever the rewards."
    said = []
    if found is not None:
        low, median, high = (large(float(f"{one:.2g}")) for one in (found.low, found.median, found.high))
        where = usual.condition if usual is not None else ""
        said.append(f"usually about {median} {what}s ({low} to {high}) {where}".rstrip())
    unit = f" {what}s" if found is None else ""
    said.append("no limit known in advance" if most is None else f"at most {large(most)}{unit}")
    answer = f"{best.strategy}: {', '.join(said)}{',' * bool(in_rounds)}{in_rounds}."
    return answer if found is None or usual is None else answer + _other_conditions(plan, usual, has_options)


def _other_conditions(plan: Plan, usual: UsualCost, has_options: bool) -> str:
    """Return how to ask for the usual pulls under other conditions than the assumed ones."""
    low, high = plan.problem.bounds or (0.0, 0.0)
    said, others = "", [name for name in usual.assumed if name != "rate"]
    if "rate" in usual.assumed and low <= 0.04 <= high:
        said += f" For other means, such as 0.04: {'--rate 0.04' if has_options else _usual_at('rate=0.04')}."
    if others:
        options = " and ".join(f"--{name}" for name in others)
        call = _usual_at(", ".join(f"{name}=..." for name in others))
        said += f" Set other values with {options if has_options else call}."
    return said


def _usual_at(given: str) -> str:
    return f"plan.usual_at({given})"


def _strategies(plan: Plan, usual: UsualCost | None) -> Table:
    """Return a table of the strategies that can be recommended, the best first."""
    rows = [row for row in plan.rows if row.is_certified]
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("strategy", no_wrap=True)
    is_known = any(row.worst_case_pulls is not None for row in rows)
    has_usual, has_costs = usual is not None and bool(usual.pulls), plan.problem.costs is not None
    shown = (has_usual, is_known, has_costs and is_known, plan.lower_bound is not None and is_known, is_known)
    for heading in compress(("usual pulls", "most pulls", "most cost", "x bound", "most rounds"), shown):
        table.add_column(heading, justify="right", no_wrap=True)
    if not is_known:
        table.add_column("proof")
    for row in rows:
        found, gap = None if usual is None else usual.pulls.get(row.strategy), plan.gap_of(row)
        cells = (
            "-" if found is None else large(found.median),
            "-" if row.worst_case_pulls is None else large(row.worst_case_pulls),
            large(row.worst_case_cost or 0),
            "-" if gap is None else gap_words(gap),
            "-" if row.rounds is None else f"{row.rounds:,}",
        )
        proof = () if is_known else ((row.certificate or "").split(";")[0],)
        style = "bold" if row is plan.best else ""
        table.add_row(row.strategy, *compress(cells, shown), *map(Text, proof), style=style)
    return table


def dash_words(plan: Plan, usual: UsualCost, dash: str = "-") -> str:
    """Return why strategies for known variances have a dash for usual pulls; empty if there are none.

    Those whose simulation would take too long are named in `usual_words`.
    """
    if plan.problem.knows_variances or usual.skipped:
        return ""
    shown = {row.strategy for row in plan.rows if row.is_certified}
    if not shown - usual.pulls.keys() - set(usual.left_out):
        return ""
    return (
        f"{dash}: not simulated. These strategies are for known variances: here they need a pilot first, and "
        f"usually more pulls than {plan.best.strategy}."
    )


def usual_words(usual: UsualCost) -> str:
    """Return where the usual pulls come from, or why there are none; empty if they are the same always."""
    if usual.skipped:
        return f"Usual pulls: no estimate, since {usual.skipped}."
    if all(found.low == found.high for found in usual.pulls.values()) and not usual.left_out:
        return "" if not usual.pulls else "Usual pulls: the same on every instance."
    said = (
        f"The usual number of pulls is an estimate: the median of {usual.replications} simulated runs, with "
        f"10 % and 90 % quantiles in brackets. Simulated question: {usual.instance}."
    )
    if usual.rate is not None:
        said += (
            " The estimate assumes that pulls go where they help most. If all arms get equally many "
            "pulls, more are usually needed."
        )
    if usual.left_out:
        said += f" Not simulated, as it would take too long: {', '.join(usual.left_out)}."
    return said


def _promised(plan: Plan) -> list[RenderableType]:
    """Return the guarantee of the recommended strategy."""
    promise = plan.best.guarantee
    return [] if promise is None else [Text(promise.sentence, style="green")]


def _divided(plan: Plan) -> list[RenderableType]:
    """Return the proof of the recommended strategy, and how it divides delta."""
    if (promise := plan.best.guarantee) is None:
        return []
    said = (
        f"Proof: {promise.source}. {plan.best.strategy} divides delta among the events that may mislead it:"
    )
    shares = (f"  {share.delta:.3g}: {share.event}." for share in promise.ledger.shares)
    return [Text(line, style="dim") for line in (said, *shares)]


def simulations_text(simulations: list[Simulation]) -> RenderableType:
    """Return simulations of one problem by several strategies as a table."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("strategy", no_wrap=True)
    for heading in ("mean pulls", "most seen", "errors", "error rate at most"):
        table.add_column(heading, justify="right", no_wrap=True)
    first = simulations[0]
    for one in simulations:
        ended = one.pulls[one.is_final]
        cells = [large(ended.mean()), large(ended.max())] if len(ended) else ["-", "-"]
        if first.problem.items is not None and not first.problem.has_blocks and len(ended):
            cells[0] += f" ({ended.mean() / max(first.problem.n_cells, 1):.1%})"
        rate = f"{one.error_rate_limit():.2g}" if len(ended) else "-"
        table.add_row(one.strategy, *cells, f"{one.errors} of {len(ended)}", rate)
    rewards = f"{first.rewards} rewards"
    if first.problem.has_blocks:
        rewards += " in blocks"
    elif first.problem.items is not None:
        rewards = f"{first.problem.n_items:,} items in random order; pulls are scores, in % of the table"
    notes = [Text()]
    notes.append(
        Text(
            f"{first.problem.m} of {first.problem.n} arms, epsilon {first.problem.epsilon:g}, "
            f"delta {first.problem.delta:g}, {rewards}, seed {first.seed}. "
            f"The last column is an exact 95 % upper confidence limit.",
            style="dim",
        )
    )
    notes += [
        Text(
            f"{one.strategy}: {one.unfinished} of {len(one.pulls)} used up the budget; not counted.",
            style="yellow",
        )
        for one in simulations
        if one.unfinished
    ]
    for one in simulations:
        if one.guarantee is None:
            notes.append(Text(f"{one.strategy} has no guarantee.", style="yellow"))
        elif one.guarantee.scope is Scope.SCREENING:
            notes.append(Text(f"{one.strategy} only screens: an error is a screen that lost the m best."))
    return Group(table, *notes)
