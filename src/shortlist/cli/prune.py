"""``shortlist prune``: remove runs from a store."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shortlist.cli.options import Span, json_option, store_option
from shortlist.cli.output import print_json, show
from shortlist.cli.run_summaries import RunSummary, run_summaries, table_of
from shortlist.cli.stores import shown, writing
from shortlist.errors import InvalidProblem

if TYPE_CHECKING:
    from shortlist.store import Store


@click.command("prune")
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--finished", is_flag=True, help="Only runs that have ended.")
@click.option("--older-than", type=Span(), help="Only runs without any change for this long, such as 30d.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, without removing it.")
@store_option
@json_option("the runs removed")
def command(
    runs: tuple[str, ...],
    finished: bool,
    older_than: float | None,
    yes: bool,
    dry_run: bool,
    where: str,
    as_json: bool,
) -> None:
    """Remove runs from the store permanently.

    Give names of runs, options, or both. With both, only those of the named runs are removed that match the
    options. The command lists the runs and asks for confirmation. Without a terminal it needs --yes.

    To keep data that may be needed later, use `shortlist export` or `copy` first. Workers that measure for a
    removed run stop.

    \b
      shortlist prune drilling-seed7
      shortlist prune --finished --older-than 30d --dry-run

    \b
    Exit status:
      0  success
      2  there is no such run, no run was chosen, or no confirmation is possible
      4  the store failed
    """
    if not runs and not finished and older_than is None:
        raise InvalidProblem("no runs were chosen. Give their names, --finished, or --older-than 30d.")
    with writing(where, must_exist=True) as store:
        chosen = list(_chosen(store, runs, finished, older_than))
        if chosen and not as_json:
            show(table_of(chosen))
        removed = [] if dry_run or not chosen or not (yes or _confirmed(chosen)) else chosen
        for one in removed:
            store.remove(one.name)
    if as_json:
        print_json({"removed": [one.name for one in removed], "chosen": [one.name for one in chosen]})
    else:
        click.echo(_said(removed, chosen, where))


def _chosen(
    store: "Store", runs: tuple[str, ...], finished: bool, older_than: float | None
) -> Iterator[RunSummary]:
    for one in run_summaries(store, runs):
        age = 0.0 if one.progress is None else store.now(one.name) - (one.progress.changed_at or 0.0)
        if (not finished or one.is_finished) and (older_than is None or age > older_than):
            yield one


def _confirmed(chosen: list[RunSummary]) -> bool:
    if not sys.stdin.isatty():
        raise InvalidProblem(
            "this needs confirmation, but there is no terminal to ask; nothing was removed. Give --yes."
        )
    many = "this run" if len(chosen) == 1 else f"these {len(chosen):,} runs"
    return click.confirm(f"Remove {many} permanently?", err=True)


def _said(removed: list[RunSummary], chosen: list[RunSummary], where: str) -> str:
    if not chosen:
        return f"No run in {shown(where)} matches; nothing was removed."
    if not removed:
        return "Nothing was removed."
    return f"{len(removed):,} run{'s' if len(removed) > 1 else ''} removed from {shown(where)}."
