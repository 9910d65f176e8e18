"""All answers of a run as rows and as plain data, for other programs."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from shortlist.measure import Call
from shortlist.measure.shared_items import ids_of, values_of
from shortlist.report.run_text import refused_dict, run_dict
from shortlist.report.text_format import iso
from shortlist.session.log import RunLog
from shortlist.session.sheet_format import cell_columns, cell_rows, ticket_text
from shortlist.session.state import split
from shortlist.store.events import Answered, Record, Told

COLUMNS = (
    *("ticket", "round", "arm", "name", "pulls", "first_pull"),
    *("mean", "variance", "worker", "time"),
)
"""The columns of an answer; `variance` is empty except in pilots."""


def answer_rows(log: RunLog) -> Iterator[dict[str, Any]]:
    """Yield the answers of a run in the order in which they arrived, as far as the log has been read.

    If the log contains an answer twice, the first one is yielded; those that were withdrawn are not.
    """
    repeated = {(one.round, one.arm) for one in log.history.repeats}
    yielded = set[tuple[int, int]]()
    withdrawn = Counter((one.round, one.arm) for one in log.history.withdrawn)
    for record in log.store.read(log.run):
        if record.number > log.n_events:
            return
        if isinstance(record.event, Told):
            for row in _rows(log, record, record.event):
                ticket = row["round"], row["arm"]
                if withdrawn[ticket]:
                    withdrawn[ticket] -= 1
                    continue
                if ticket in repeated:
                    if ticket in yielded:
                        continue
                    yielded.add(ticket)
                yield row


def unused_rows(log: RunLog) -> Iterator[dict[str, Any]]:
    """Yield the recorded answers to calls that belong to no answered ticket, in the order of arrival.

    They were measured ahead, or belong to tickets that are not complete.
    """
    history, items = log.history, log.history.problem.items
    parts = history.answered
    left = {*zip(parts.arms.tolist(), parts.first_pulls.tolist(), strict=True), *history.ahead}
    for record in log.store.read(log.run):
        if not left or record.number > log.n_events:
            return
        if not isinstance(event := record.event, Answered):
            continue
        scores = None if event.scores is None else split(event.scores, event.counts)
        for place, key in enumerate(zip(event.arms.tolist(), event.first_pulls.tolist(), strict=True)):
            if key not in left:
                continue
            left.remove(key)
            arm, first, count = *key, int(event.counts[place])
            row = {"arm": arm, "name": history.problem.name(arm), "pulls": count, "first_pull": first}
            row |= {"mean": float(event.means[place])}
            if scores is not None and items is not None:
                call = Call(history.entropy, arm, count, first)
                row |= {"items": ids_of(items, call), "rewards": scores[place].tolist()}
            yield row | {"worker": event.worker, "time": iso(record.at)}


def _rows(log: RunLog, record: Record, told: Told) -> Iterator[dict[str, Any]]:
    history = log.history
    round = history.find(told.round)
    tickets = round.tickets.take(round.places(told.arms))
    for place, ticket in enumerate(tickets):
        values = (
            ticket_text(history.began.code, ticket.round, ticket.arm),
            *(ticket.round, ticket.arm, ticket.name, ticket.count, ticket.first_pull),
            float(told.means[place]),
            None if told.variances is None else float(told.variances[place]),
            *(told.worker, iso(record.at)),
        )
        row: dict[str, Any] = dict(zip(COLUMNS, values, strict=True))
        if told.scores is not None and history.problem.items is not None:
            call = Call(history.entropy, ticket.arm, ticket.count, ticket.first_pull)
            scores = split(told.scores, tickets.counts)[place].tolist()
            row |= {"items": ids_of(history.problem.items, call), "rewards": scores}
            if history.problem.has_blocks:
                row["seeds"] = values_of(history.problem.items, call)
        yield row


def sheet_of_answers(log: RunLog) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
    """Return the columns and rows of a sheet of all answers; with shared items, a row for each score."""
    rows = answer_rows(log)
    if log.history.problem.items is None:
        return COLUMNS, rows
    return (*cell_columns(log.history.problem), "worker", "time"), cell_rows(rows)


def export_dict(log: RunLog) -> dict[str, Any]:
    """Return a run with all its answers as plain data for JSON."""
    history = log.history
    return run_dict(log) | {
        "question": history.problem.to_dict(),
        "asked_for": history.began.asked_for,
        "version": history.began.version,
        "settings": history.settings,
        "answers": list(answer_rows(log)),
        "unused": list(unused_rows(log)),
        "fed": [
            {
                "label": label,
                "arm": arm,
                "name": history.problem.name(arm),
                "pulls": row.count,
                "mean": row.mean,
                "block": row.block,
            }
            for (label, arm), row in history.fed.items()
        ],
        **refused_dict(history),
        "result": history.result.to_dict(),
    }
