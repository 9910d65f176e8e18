"""Results, plans and simulations as text for a terminal."""

import math
from itertools import compress

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shortlist.arrays import FloatArray
from shortlist.certificates import Scope
from shortlist.planning import Plan, Usual, gap_words
from shortlist.report.text_format import decimals_for
from shortlist.result import Result
from shortlist.simulation import Simulation, is_bad, is_wrong

_MOST_ROWS = 20


def result_text(result: Result, true_means: FloatArray | None = None) -> RenderableType:
    """Return a result as text: a table of the selected arms, the guarantee, and the cost.

    Given the true means of simulated arms, it also says whether the answer is right.
    """
    is_screen = result.guarantee is not None and result.guarantee.scope is Scope.SCREENING
    deed = "kept (a screen, not yet a selection)" if is_screen else "selected"
    parts: list[RenderableType] = [
        Text(f"{len(result.indices)} of {result.problem.n} arms {deed}", style="bold")
    ]
    if len(result.indices):
        parts += [_selected(result, true_means), Text()]
    if result.guarantee is None and result.certified_epsilon < math.inf:
        parts += [Text(result.so_far, style="green"), Text(result.stop.value, style="yellow")]
    elif result.guarantee is None:
        parts.append(
            Text(
                "No guarantee. " + " ".join(filter(None, [result.stop.value, result.so_far])), style="yellow"
            )
        )
    else:
        parts.append(Text(result.guarantee.sentence, style="green"))
        note = f"Proof: {result.guarantee.source}, provided that {result.guarantee.assumption}."
        parts.append(Text(note, style="dim"))
        if not result.is_answer:
            parts.append(Text("This is weaker than requested.", style="yellow"))
    parts.append(Text(result.effort))
    if result.reissued:
        parts.append(Text(result.reissued, style="yellow"))
    parts += [Text(note, style="yellow") for note in result.notes]
    if result.is_answer and result.optimality:
        parts.append(Text(result.optimality))
    if true_means is not None and len(result.indices):
        parts.append(_truth(result, true_means))
    return Group(*parts)


def _selected(result: Result, true_means: FloatArray | None) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("arm")
    is_compared = result.problem.has_blocks and not result.problem.is_bounded
    mean = "estimated mean" if is_compared else "observed mean"
    for heading in [mean, "pulls"] + (["true mean"] if true_means is not None else []):
        table.add_column(heading, justify="right")
    decimals = decimals_for(result.problem.epsilon)
    for arm in result.indices[:_MOST_ROWS]:
        row: list[RenderableType] = [
            Text(result.problem.name(int(arm))),
            f"{result.arms.means[arm]:.{decimals}f}",
            f"{result.arms.pulls[arm]:,}",
        ]
        if true_means is not None:
            row.append(f"{true_means[arm]:.{decimals}f}")
        table.add_row(*row)
    if len(result.indices) > _MOST_ROWS:
        table.add_row(Text(f"and {len(result.indices) - _MOST_ROWS} more", style="dim"))
    return table


def _truth(result: Result, true_means: FloatArray) -> Text:
    known = "The arms are simulated, so the truth is known:"
    if not is_wrong(result.problem, true_means, result.indices[None])[0]:
        return Text(f"{known} the answer is right.", style="dim")
    bad = is_bad(result.problem, true_means)
    names = [result.problem.name(int(arm)) for arm in result.indices if bad[arm]]
    return Text(f"{known} {', '.join(names[:5])} should not be here.", style="red")


def plan_text(plan: Plan) -> RenderableType:
    """Return a plan as text: a table of strategies, the lower bound, and why the first is recommended."""
    if not plan.problem.knows_variances and plan.problem.m < plan.problem.n:
        return _plan_before_the_pilot(plan)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("strategy", no_wrap=True)
    bound = plan.lower_bound
    has_costs = plan.problem.costs is not None
    headings = ["most pulls", "most cost", "x bound", "most rounds"]
    for heading in compress(headings, (True, has_costs, bound is not None, True)):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("proof, or why not", min_width=12)
    for row in plan.rows:
        gap = plan.gap_of(row)
        table.add_row(
            row.strategy,
            "-" if row.worst_case_pulls is None else _large(row.worst_case_pulls),
            *((_large(row.worst_case_cost or 0),) if has_costs else ()),
            *(("-" if gap is None else gap_words(gap),) if bound is not None else ()),
            "-" if row.rounds is None else f"{row.rounds:,}",
            Text((row.certificate or "").split(";")[0] if row.is_certified else row.note),
            style="bold" if row is plan.best else "" if row.is_certified else "dim",
        )
    parts: list[RenderableType] = [table, Text()]
    if bound is None:
        parts.append(Text("No lower bound is proved for rewards of this kind.", style="bold"))
    elif bound:
        what = "expected cost" if bound.is_cost else "expected pulls"
        parts.append(Text(f"Lower bound: {bound.words} {what} ({bound.name}).", style="bold"))
    parts.append(Text(f"Why this one: {plan.why}"))
    return Group(*parts, *_promised(plan))


def usual_text(usual: Usual) -> RenderableType:
    """Return the usual pulls of strategies that adapt, marked as an estimate, or why there are none."""
    if usual.skipped:
        return Text(f"Usual pulls: no estimate, since {usual.skipped}.", style="dim")
    shown = {name: found for name, found in usual.pulls.items() if found.low < found.high}
    if not shown and not usual.left_out:
        return Text("Usual pulls: the same on every instance.", style="dim")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("usual pulls", no_wrap=True)
    for heading in ("median", "10 %", "90 %"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, found in sorted(shown.items(), key=lambda item: item[1].median):
        table.add_row(name, *(_large(pulls) for pulls in (found.median, found.low, found.high)))
    said = f"An estimate, from {usual.replications} simulated runs each: {usual.instance}."
    if usual.left_out:
        said += f" Not simulated, as it would take too long: {', '.join(usual.left_out)}."
    return Group(Text(), table, Text(said, style="dim"))


def _plan_before_the_pilot(plan: Plan) -> RenderableType:
    """Return what is known before the variances are: the strategies, and the pulls of the pilot."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("strategy", no_wrap=True)
    table.add_column("proof, or why not")
    for row in plan.rows:
        said = Text((row.certificate or "").split(";")[0] if row.is_certified else row.note)
        style = "bold" if row is plan.best else "" if row.is_certified else "dim"
        table.add_row(row.strategy, said, style=style)
    return Group(table, Text(), Text(plan.why, style="bold"), *_promised(plan))


def _promised(plan: Plan) -> list[RenderableType]:
    """Return the guarantee of the recommended strategy, and how it divides delta."""
    parts: list[RenderableType] = []
    if (promise := plan.best.guarantee) is not None:
        parts.append(Text(promise.sentence, style="green"))
        spent = "; ".join(
            f"{share.delta:.3g} for the event that {share.event}" for share in promise.ledger.shares
        )
        parts.append(Text(f"How {plan.best.strategy} divides delta: {spent}.", style="dim"))
    return parts


def _large(count: float) -> str:
    return f"{count:,.0f}" if count < 1e11 else f"{count:.4g}"


def simulations_text(simulations: list[Simulation]) -> RenderableType:
    """Return simulations of one problem by several strategies as a table."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("strategy", no_wrap=True)
    for heading in ("mean pulls", "most pulls", "errors", "error rate at most"):
        table.add_column(heading, justify="right", no_wrap=True)
    first = simulations[0]
    for one in simulations:
        ended = one.pulls[one.is_final]
        cells = [_large(ended.mean()), _large(ended.max())] if len(ended) else ["-", "-"]
        if first.problem.items is not None and not first.problem.has_blocks and len(ended):
            cells[0] += f" ({ended.mean() / (first.problem.n * first.problem.n_items):.1%})"
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
