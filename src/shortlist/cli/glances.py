"""All runs of a store at a glance, also those that cannot be read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shortlist.errors import NoSuchRun, StoreTrouble

if TYPE_CHECKING:
    from rich.table import Table

    from shortlist.run.follower import Follower
    from shortlist.store import Store


@dataclass(frozen=True, eq=False)
class Glance:
    """A run as its log has it; or what is wrong with the log."""

    name: str
    log: "Follower | None"
    trouble: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended by its own rule."""
        return self.log is not None and self.log.history.is_final

    def to_dict(self) -> dict[str, Any]:
        """Return the main facts as plain data, fit for JSON."""
        from shortlist.report.run_text import run_dict

        if self.log is None:
            return {"run": self.name, "state": "damaged", "trouble": self.trouble}
        return run_dict(self.log)


def glances(store: "Store", runs: Iterable[str] = ()) -> Iterator[Glance]:
    """Yield some runs of a store, all by default."""
    from shortlist.run.follower import Follower

    known = store.runs()
    for run in runs:
        if run not in known:
            there = f"There are: {', '.join(known[:10])}" if known else "There are none"
            raise NoSuchRun(f"there is no run {run!r} in the store. {there}.")
    for run in dict.fromkeys(runs) or known:
        log = Follower(store, run)
        try:
            log.catch_up()
            if log.has_begun:  # it may have been removed meanwhile
                yield Glance(run, log)
        except StoreTrouble as error:
            yield Glance(run, None, str(error))


def table_of(some: Iterable[Glance]) -> "Table":
    """Return runs as a table."""
    from rich.table import Table
    from rich.text import Text

    from shortlist.report.moments import in_table
    from shortlist.report.run_text import state_of

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("run", overflow="fold")
    table.add_column("question")
    table.add_column("strategy")
    table.add_column("pulls", justify="right")
    table.add_column("state")
    table.add_column("last change", no_wrap=True)
    for one in some:
        if one.log is None:
            table.add_row(Text(one.name), Text(one.trouble), "", "", Text("damaged", style="red"), "")
            continue
        history = one.log.history
        table.add_row(
            Text(one.name),
            history.problem.words,
            history.began.strategy,
            f"{history.n_pulls:,}",
            state_of(history),
            in_table(one.log.changed_at or 0.0),
        )
    return table
