"""Results that were measured elsewhere: their rows, and the events that add them to a run or remove them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shortlist.arrays import BoolArray
from shortlist.checks import shortened
from shortlist.errors import InvalidAnswers, InvalidProblem, MeasurementFailed, NotAsked
from shortlist.problem import MOST_PULLS, Problem, refuse_large_table
from shortlist.session.label_dates import date_of
from shortlist.session.result_sheet import read_results
from shortlist.session.run_changes import checked_by_trial
from shortlist.session.state import FedRow, RunState, fed_rows
from shortlist.store import Event, Fed
from shortlist.totals import Totals

if TYPE_CHECKING:
    from shortlist.session.session import Session

_MANY = 20  # rewards: with fewer, rows are the same by chance
_ROUND = 10  # numbers of rewards that are multiples of it may have been planned
_MOST_LETTERS = 200  # of a label, a block or a reason


@dataclass(frozen=True, eq=False)
class FedRows:
    """Validated rows of results that were measured elsewhere.

    Attributes
    ----------
    totals
        The arms, and the numbers and means of their rewards.
    labels
        A label for each row; rows with an empty one always add to the others.
    blocks
        The block of each row, such as a day; empty where there is none.
    worker
        Who fed them.
    skipped
        A sentence about rows of totals that were left out; empty without them.
    """

    totals: Totals
    labels: tuple[str, ...]
    blocks: tuple[str, ...]
    worker: str = ""
    skipped: str = ""

    @cached_property
    def keys(self) -> list[tuple[str, int]]:
        """The label and the arm of each row."""
        return list(zip(self.labels, self.totals.arms.tolist(), strict=True))

    def refuse_doubles(self, problem: Problem) -> None:
        """Raise InvalidProblem if two rows of an arm have the same label: one would replace the other."""
        seen: set[tuple[str, int]] = set()
        for label, arm in self.keys:
            if label and (label, arm) in seen:
                raise InvalidProblem(
                    f"there are two rows of {problem.name(arm)} with the label {label!r}. A row replaces an "
                    f"earlier one with the same label: add their numbers up, or give them different labels."
                )
            seen.add((label, arm))

    def refuse_parts(self, history: RunState) -> None:
        """Raise InvalidProblem if an arm would have two rows in a block: it counts when it is complete."""
        others = {(row.block, arm): label for (label, arm), row in history.fed.items()}
        for (label, arm), block, count in zip(
            self.keys, self.blocks, self.totals.counts.tolist(), strict=True
        ):
            if not count:
                continue
            other = others.setdefault((block, arm), label)
            if other != label:
                raise InvalidProblem(
                    f"block {block!r} has a row of {history.problem.name(arm)} already, under the label "
                    f"{other!r}. An arm has only one row per block, because a block is evaluated as a "
                    f"whole. Add the numbers up; or give this row the label {other!r}, so that it "
                    "replaces the earlier row; or give the remaining results a block of their own."
                )


@dataclass(frozen=True)
class FedCount:
    """How many fed rows were new, known already, and corrections of earlier ones."""

    new: int
    known: int
    corrected: int


def texts_of(given: object, n: int, name: str) -> tuple[str, ...]:
    """Return a label or a block for each of n rows: the same for all, or one each."""
    if given is None:
        return ("",) * n
    texts = [given] * n if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else []
    if len(texts) != n or not all(isinstance(one, str) for one in texts):
        raise InvalidProblem(
            f"`{name}` is {shortened(given)}; it must be a text, or a list with one per row."
        )
    return tuple(checked_text(one, name) for one in texts)


def in_blocks(history: RunState, rows: FedRows) -> FedRows:
    """Return rows of a run that compares arms within blocks: the label is the block, or the reverse."""
    if not history.is_by_block:
        return rows
    if not all(map(any, zip(rows.labels, rows.blocks, strict=True))):
        raise InvalidProblem(
            "this run compares arms within blocks: give the `block` of every row, such as its day, or a "
            "`label`, which is then its block."
        )
    both = [(label or block, block or label) for label, block in zip(rows.labels, rows.blocks, strict=True)]
    labels, blocks = zip(*both, strict=True) if both else ((), ())
    return replace(rows, labels=labels, blocks=blocks)


def checked_text(given: object, name: str) -> str:
    """Return a short text."""
    if not isinstance(given, str) or len(given) > _MOST_LETTERS or not given.isprintable():
        raise InvalidProblem(
            f"`{name}` is {shortened(given)}; it must be a text of at most {_MOST_LETTERS} printable letters."
        )
    return given


def rows_of_sheet(
    session: "Session",
    data: bytes,
    label: str,
    worker: str,
    block: str = "",
    *,
    default_label: str = "",
    label_has_no_effect: str = "the label has no effect. Omit it.",
) -> FedRows:
    """Return the rows of a CSV file; `label` is for a file without labels, or blocks for labels.

    Such a file has the `default_label` if `label` is empty.

    Raises
    ------
    InvalidAnswers
        If the file is invalid, or has labels of its own and a `label` is given. The message names the line.
    """
    try:
        problem = session.problem
        names = [problem.name(arm) for arm in range(problem.n)]
        sheet, skipped = read_results(data).without_sums(names)
        if sheet.labels is not None and not all(sheet.labels):
            raise InvalidAnswers(f"{sheet.places[sheet.labels.index('')]} has no label.")
        if sheet.blocks is not None and not all(sheet.blocks):
            raise InvalidAnswers(f"{sheet.places[sheet.blocks.index('')]} has no block.")
        if sheet.blocks is not None and block:
            raise InvalidAnswers(f"it has a column of blocks, and the block {block!r} was given as well.")
        own = sheet.labels or sheet.blocks
        if own is not None and label:
            raise InvalidAnswers(
                f"it has labels of its own (column `{sheet.label_column}`), so {label_has_no_effect}"
            )
        label = label or default_label
        if own is None and not label:
            raise InvalidAnswers(
                "it has no column `label` (or day, or date); give a label, so that nothing counts twice."
            )
        arms = sheet.arms_among(names)
        labels = label if own is None else list(own)
        moments = (sheet.means, sheet.variances, sheet.successes)
        blocks = block if sheet.blocks is None else list(sheet.blocks)
        rows = session.fed_rows(arms, sheet.counts, *moments, labels, blocks, worker)
        return replace(rows, skipped=skipped)
    except (InvalidAnswers, InvalidProblem, MeasurementFailed) as error:
        raise InvalidAnswers(f"{error} Nothing was added.") from None


def events_for_rows(history: RunState, rows: FedRows) -> list[Event]:
    """Return the event for rows that are new or correct earlier ones; none if all are known.

    Raises
    ------
    InvalidProblem
        If the strategy certifies nothing for results that it did not ask for.
    """
    refuse_feeding(history)
    totals = rows.totals
    keys = rows.keys
    if history.is_by_block:
        rows.refuse_parts(history)
        n_blocks = len({row.block for row in history.fed.values()} | set(rows.blocks))
        refuse_large_table(history.problem.n, n_blocks, "blocks", "add some blocks up")
    found = fed_rows(totals.counts, totals.means, totals.variances, rows.blocks)
    is_new = np.array(
        [_is_news(history.fed.get(key), row) for key, row in zip(keys, found, strict=True)], dtype=bool
    )
    if float(totals.counts[is_new].sum(dtype=np.float64)) + history.n_fed + history.n_pulls > MOST_PULLS:
        raise InvalidProblem("the run would have more than 2**53 rewards; no more can be counted exactly.")
    return checked_by_trial(history, [_event(rows, is_new)] if is_new.any() else [])


def _event(rows: FedRows, is_new: BoolArray) -> Fed:
    """Return the event for the new rows, block after block."""
    totals = rows.totals
    numbers = {block: number for number, block in enumerate(dict.fromkeys(rows.blocks))}
    order = np.argsort([numbers[block] for block in rows.blocks], kind="stable")
    places = order[is_new[order]]
    spreads = totals.variances[places]
    labels, blocks = (
        tuple(texts[place] for place in places.tolist()) for texts in (rows.labels, rows.blocks)
    )
    return Fed(
        totals.arms[places],
        totals.counts[places],
        totals.means[places],
        None if np.isnan(spreads).all() else spreads,
        labels,
        "" if len(set(blocks)) > 1 else blocks[0],
        rows.worker,
        blocks=blocks if len(set(blocks)) > 1 else (),
    )


def _is_news(before: FedRow | None, now: FedRow) -> bool:
    """Return whether a row changes anything; one without rewards does only if there is one to remove."""
    return before != now if now.count else before is not None


def rows_taken_back(history: RunState, label: str, why: str, by: str) -> list[Event]:
    """Return the event that removes all fed rows with a label; raise NotAsked if there are none."""
    arms = [arm for one, arm in history.fed if one == label]
    if not label or not arms:
        known = ", ".join(dict.fromkeys(one for one, _ in history.fed)) or "none"
        raise NotAsked(f"no rows were fed under the label {label!r}. Labels so far: {known[:300]}.")
    nothing = np.zeros(len(arms))
    counts = nothing.astype(np.int64)
    labels = (label,) * len(arms)
    fed = Fed(np.array(arms, dtype=np.int64), counts, nothing, None, labels, "", by, why)
    return checked_by_trial(history, [fed])


def same_as_other_label(history: RunState, rows: FedRows) -> tuple[str, str]:
    """Return a label that new rows may repeat or correct, and a sentence with the reason; else empty texts.

    It is the same date, or most rows are the same as those under that label, or all numbers of rewards are.
    """
    keys, totals = rows.keys, rows.totals
    if (same := _same_date(history, rows))[0]:
        return same
    new = [
        (arm, count, mean)
        for (label, arm), count, mean in zip(keys, totals.counts.tolist(), totals.means.tolist(), strict=True)
        if (label, arm) not in history.fed and count >= _MANY
    ]
    by_label: dict[str, int] = {}
    given = set(new)
    for (label, arm), row in history.fed.items():
        by_label[label] = by_label.get(label, 0) + ((arm, row.count, row.mean) in given)
    label, n_same = max(by_label.items(), key=lambda item: item[1], default=("", 0))
    if n_same >= 2 and 2 * n_same >= len(new):
        return label, f"{n_same} of {len(new)} rows are the same as those under the label {label}."
    return _same_counts(history, rows)


def _same_date(history: RunState, rows: FedRows) -> tuple[str, str]:
    """Return an earlier label with the same date as a new one, written differently, and a sentence."""
    before: dict[tuple[date | None, int], str] = {}
    known = {label for label, _ in history.fed}
    for label, arm in history.fed:
        before.setdefault((date_of(label), arm), label)
    same = {
        label: before[date_of(label), arm]
        for label, arm in rows.keys
        if label not in known and date_of(label) is not None and (date_of(label), arm) in before
    }
    if not same:
        return "", ""
    label, earlier = next(iter(same.items()))
    more = f" There are {len(same) - 1:,} more such labels." if len(same) > 1 else ""
    return (
        earlier,
        f"The label {label} is the same date as the label {earlier}, which has rows already.{more}",
    )


def _same_counts(history: RunState, rows: FedRows) -> tuple[str, str]:
    """Return an earlier label with the numbers of rewards of a new one, and a sentence; else empty texts.

    Numbers that were planned, all equal or round, say nothing.
    """
    before: dict[str, dict[int, int]] = {}
    for (label, arm), row in history.fed.items():
        before.setdefault(label, {})[arm] = row.count
    now: dict[str, dict[int, int]] = {}
    for (label, arm), count in zip(rows.keys, rows.totals.counts.tolist(), strict=True):
        if label not in before and count:
            now.setdefault(label, {})[arm] = count
    labels = {frozenset(counts.items()): label for label, counts in before.items() if label}
    for own, counts in now.items():
        sizes = set(counts.values())
        is_planned = len(sizes) < 2 or all(size % _ROUND == 0 for size in sizes) or min(sizes) < _MANY
        if not is_planned and (earlier := labels.get(frozenset(counts.items()))):
            of = f" of {own}" if len(now) > 1 else ""
            said = (
                f"The numbers of rewards{of} are the same as those under the label {earlier}, for all arms."
            )
            return earlier, said
    return "", ""


def can_be_fed(history: RunState) -> bool:
    """Return whether a run can use results that it did not ask for."""
    problem = history.problem
    return problem.items is None and problem.knows_variances and history.rules.anytime is not None


def refuse_feeding(history: RunState) -> None:
    """Raise InvalidProblem if a run cannot use results that it did not ask for."""
    if history.problem.items is not None:
        raise InvalidProblem(
            "with shared items, only scores that the run asked for can be used; `tell` them."
        )
    if not history.problem.knows_variances:
        raise InvalidProblem("with unknown variances, only results that the run asked for can be used.")
    if history.rules.anytime is None:
        by_day = ", or block-race if means change from day to day" if history.problem.is_bounded else ""
        raise InvalidProblem(
            f"the strategy {history.began.strategy} certifies nothing for results that it did not ask for. "
            f"Start a run with the strategy race, which does{by_day}."
        )


def counted_rows(before: Sequence[tuple[str, int]], rows: FedRows, events: Sequence[Event]) -> FedCount:
    """Return how many rows were new, known or corrections, given the labelled rows known before."""
    known = set(before)
    fed = [event for event in events if isinstance(event, Fed)]
    keys = [key for event in fed for key in zip(event.labels, event.arms.tolist(), strict=True)]
    corrected = sum(key in known for key in keys)
    return FedCount(len(keys) - corrected, len(rows.labels) - len(keys), corrected)
