"""``shortlist prune``: runs removed from a store."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shortlist.cli.glances import Glance, glances, table_of
from shortlist.cli.options import Span, json_option, store_option
from shortlist.cli.output import print_json, show
from shortlist.cli.stores import shown, writing
from shortlist.errors import InvalidProblem

if TYPE_CHECKING:
    from shortlist.store import Store


@click.command("prune")
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--finished", is_flag=True, help="Only runs that have ended.")
@click.option("--older-than", type=Span(), help="Only runs in which nothing happened for so long: 30d.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@store_option
@json_option("what was removed")
def command(
    runs: tuple[str, ...],
    finished: bool,
    older_than: float | None,
    yes: bool,
    dry_run: bool,
    where: str,
    as_json: bool,
) -> None:
    """Remove runs from the store, for good.

    Those named are removed; or all that fit the options; or, with both, those named that fit. It shows them
    and asks first; where nobody can be asked, --yes is needed. `shortlist export` or `copy` keeps what may
    be needed later. A run that somebody is measuring for stops when it is removed.

    \b
      shortlist prune drilling-seed7
      shortlist prune --finished --older-than 30d --dry-run

    Exit status: 0, or 2 if there is no such run, none was chosen or nobody can be asked, 4 the store failed.
    """
    if not runs and not finished and older_than is None:
        raise InvalidProblem("say which runs to remove: their names, --finished, or --older-than 30d.")
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
) -> Iterator[Glance]:
    for one in glances(store, runs):
        age = 0.0 if one.outline is None else store.now(one.name) - (one.outline.changed_at or 0.0)
        if (not finished or one.is_finished) and (older_than is None or age > older_than):
            yield one


def _confirmed(chosen: list[Glance]) -> bool:
    if not sys.stdin.isatty():
        raise InvalidProblem("nobody can be asked to confirm here, so nothing was removed; say --yes.")
    many = "this run" if len(chosen) == 1 else f"these {len(chosen):,} runs"
    return click.confirm(f"Remove {many} for good?", err=True)


def _said(removed: list[Glance], chosen: list[Glance], where: str) -> str:
    if not chosen:
        return f"No run in {shown(where)} fits; nothing was removed."
    if not removed:
        return "Nothing was removed."
    return f"{len(removed):,} run{'s' if len(removed) > 1 else ''} removed from {shown(where)}."
