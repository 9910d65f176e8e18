"""``shortlist strategies``: list the strategies."""

import click

from shortlist.cli.options import json_option
from shortlist.cli.output import print_json, show


@click.command("strategies")
@json_option("the list")
def command(as_json: bool) -> None:
    """List the strategies: what each one does and where it is defined. Baselines are last."""
    from rich.table import Table
    from rich.text import Text

    from shortlist.problem import Problem
    from shortlist.rewards import Bernoulli, Gaussian
    from shortlist.strategies import names, strategy_for, strategy_named

    # Any questions will do to find the strategies for unknown variances, for shared items and for blocks.
    question = Problem(m=1, epsilon=1.0, delta=0.05, n=2, rewards=Gaussian())
    on_items = Problem(m=1, epsilon=1.0, delta=0.05, n=2, rewards=Bernoulli(), items=2)
    in_blocks = Problem(m=1, epsilon=0.5, delta=0.05, n=2, rewards=Bernoulli())
    known = [strategy_named(name) for name in names()]
    known += [strategy_for(name, question) for name in names("unknown") if name not in names()]
    known += [strategy_for(name, on_items) for name in names("items")]
    known += [strategy_for(name, in_blocks) for name in names("changing")]
    known.sort(key=lambda strategy: strategy.is_baseline)
    if as_json:
        parts = ("name", "summary", "source", "is_baseline")
        print_json([{part: getattr(strategy, part) for part in parts} for strategy in known])
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("name", "what it does, and its source"):
        table.add_column(heading)
    for number, strategy in enumerate(known):
        if strategy.is_baseline and not known[number - 1].is_baseline:
            table.add_row()
            table.add_row(Text("baselines", style="dim"), Text("to compare others with", style="dim"))
        table.add_row(strategy.name, Text.assemble(f"{strategy.summary} ", (strategy.source, "dim")))
    show(table)
