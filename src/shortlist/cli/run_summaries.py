"""Summaries of all runs of a store, including those that cannot be read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shortlist.errors import NoSuchRun, StoreTrouble

if TYPE_CHECKING:
    from rich.table import Table

    from shortlist.session.run_progress import RunProgress
    from shortlist.store import Store


@dataclass(frozen=True, eq=False)
class RunSummary:
    """The progress of a run, or what is wrong with its log."""

    name: str
    progress: "RunProgress | None"
    trouble: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended by its own rule."""
        return self.progress is not None and self.progress.is_final

    def to_dict(self) -> dict[str, Any]:
        """Return the main facts as plain data for JSON."""
        from shortlist.report.run_text import progress_dict

        if self.progress is None:
            return {"run": self.name, "state": "damaged", "trouble": self.trouble}
        return progress_dict(self.progress)


def run_summaries(store: "Store", runs: Iterable[str] = ()) -> Iterator[RunSummary]:
    """Yield a summary of each named run of a store; by default of all runs."""
    from shortlist.session.run_progress import read_progress

    known = store.runs()
    for run in runs:
        if run not in known:
            there = f"Existing runs: {', '.join(known[:10])}" if known else "The store is empty"
            raise NoSuchRun(f"there is no run {run!r} in the store. {there}.")
    for run in dict.fromkeys(runs) or known:
        try:
            if found := read_progress(store, run):  # it may have been removed in the meantime
                yield RunSummary(run, found)
        except StoreTrouble as error:
            yield RunSummary(run, None, str(error))


def table_of(some: Iterable[RunSummary]) -> "Table":
    """Return a table of runs."""
    from rich.table import Table
    from rich.text import Text

    from shortlist.report.run_text import progress_state
    from shortlist.report.text_format import in_table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("run", overflow="fold")
    table.add_column("question")
    table.add_column("strategy")
    table.add_column("pulls", justify="right")
    table.add_column("state")
    table.add_column("last change", no_wrap=True)
    for one in some:
        if one.progress is None:
            table.add_row(Text(one.name), Text(one.trouble), "", "", Text("damaged", style="red"), "")
            continue
        began = one.progress.began
        table.add_row(
            Text(one.name),
            began.problem.words,
            began.strategy,
            f"{one.progress.n_pulls + one.progress.n_partial:,}",
            progress_state(one.progress),
            in_table(one.progress.changed_at or 0.0),
        )
    return table
