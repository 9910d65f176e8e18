"""Results for a terminal: the verdict first, then what supports it."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shortlist.arrays import FloatArray
from shortlist.result import Result
from shortlist.simulate import Simulation, is_bad

_MOST_ROWS = 20


def result_text(result: Result, true_means: FloatArray | None = None) -> RenderableType:
    """Return a result as a table of the selected arms, the guarantee in words, and the cost.

    With the true means of simulated arms it also says whether the answer is right.
    """
    head = f"{len(result.indices)} of {result.problem.n} arms selected"
    parts: list[RenderableType] = [Text(head, style="bold"), _selected(result, true_means), Text()]
    if result.guarantee is None:
        parts.append(Text("No guarantee. " + result.stop.value, style="yellow"))
    else:
        parts.append(Text(result.guarantee.sentence, style="green"))
        note = f"Proof: {result.guarantee.source}, provided that {result.guarantee.assumption}."
        parts.append(Text(note, style="dim"))
    parts.append(Text(result.cost))
    if true_means is not None and len(result.indices):
        parts.append(_truth(result, true_means))
    return Group(*parts)


def _selected(result: Result, true_means: FloatArray | None) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("arm")
    for heading in ["mean observed", "pulls"] + (["true mean"] if true_means is not None else []):
        table.add_column(heading, justify="right")
    for arm in result.indices[:_MOST_ROWS]:
        row: list[RenderableType] = [
            Text(result.problem.name(int(arm))),
            f"{result.arms.means[arm]:.4g}",
            f"{result.arms.pulls[arm]:,}",
        ]
        if true_means is not None:
            row.append(f"{true_means[arm]:.4g}")
        table.add_row(*row)
    if len(result.indices) > _MOST_ROWS:
        table.add_row(Text(f"and {len(result.indices) - _MOST_ROWS} more", style="dim"))
    return table


def _truth(result: Result, true_means: FloatArray) -> Text:
    wrong = [arm for arm in result.indices if is_bad(result.problem, true_means)[arm]]
    if wrong:
        names = ", ".join(result.problem.name(int(arm)) for arm in wrong[:5])
        return Text(
            f"The arms are simulated, so the truth is known: {names} should not be here.", style="red"
        )
    return Text("The arms are simulated, so the truth is known: the answer is right.", style="dim")


def simulations_text(simulations: list[Simulation]) -> RenderableType:
    """Return simulations of one problem by several strategies as a table."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("strategy")
    for heading in ("mean pulls", "most pulls", "errors", "error rate <"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in simulations:
        ended = one.pulls[one.is_final]
        cells = [f"{ended.mean():,.0f}", f"{ended.max():,}"] if len(ended) else ["-", "-"]
        rate = f"{one.error_rate_limit():.2g}" if len(ended) else "-"
        table.add_row(one.strategy, *cells, f"{one.errors} of {len(ended)}", rate)
    notes = [Text()]
    first = simulations[0]
    notes.append(
        Text(
            f"{first.problem.m} of {first.problem.n} arms, epsilon {first.problem.epsilon:g}, "
            f"delta {first.problem.delta:g}, {first.rewards} rewards, seed {first.seed}. "
            f"The last column is an exact upper limit on the error rate at 95 % confidence.",
            style="dim",
        )
    )
    notes += [
        Text(
            f"{one.strategy}: {one.unfinished} replications ran out of budget and are left out.",
            style="yellow",
        )
        for one in simulations
        if one.unfinished
    ]
    notes += [
        Text(f"{one.strategy} carries no guarantee.", style="yellow")
        for one in simulations
        if one.guarantee is None
    ]
    return Group(table, *notes)
