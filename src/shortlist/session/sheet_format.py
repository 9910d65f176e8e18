"""Sheets of tickets and answers, as CSV or JSON.

This module only parses a sheet. `tell_sheet` checks its answers against the run.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from shortlist.errors import InvalidAnswers
from shortlist.measure import Calls
from shortlist.measure.command import seed_of
from shortlist.measure.shared_items import ids_of, values_of
from shortlist.problem import Problem
from shortlist.session.typed_numbers import Comma, sheet_count, sheet_number, typed_rewards, without_groups
from shortlist.tickets import Tickets

COLUMNS = ("ticket", "arm", "name", "pulls", "seed")
"""The columns of a sheet of tickets."""
CELL_COLUMNS = ("ticket", "arm", "name", "item", "reward")
"""The same with shared items: one line per item."""
BLOCK_COLUMNS = ("ticket", "arm", "name", "block", "seed", "reward")
"""The same with blocks: one line per block, with the seed that all arms share."""

_DELIMITERS = (",", ";", "\t")
_ANSWERS = ("reward", "mean", "variance", "count", "rewards")
_REALS = ("reward", "mean", "variance")  # cells with one number, which may have decimals
_SUMMARIES = ("mean", "variance", "count", "rewards")  # one line per ticket
_LABELS = ("arm", "name", "pulls")
_KNOWN = ("ticket", "item", *_ANSWERS, *_LABELS)


@dataclass(frozen=True)
class Entry:
    """The answer to one ticket in a sheet.

    Attributes
    ----------
    where
        The place in the sheet, for messages: "line 3".
    ticket
        The text of the ticket.
    rewards
        All its rewards; None if a summary is given instead, or nothing.
    mean, variance, count
        A summary of its rewards; None for values that are not given.
    labels
        The values of `arm`, `name` and `pulls` beside the ticket, each with its place in the sheet.
    items
        The ids of the items that the rewards are for; empty if they are not given.
    unfinished
        Where the first missing reward belongs, if only some are given; then there is no answer yet.
    may_be_filled_in
        Whether rewards may be missing because a person has not filled them in yet: it is in a CSV file.
    """

    where: str
    ticket: str
    rewards: list[float] | None = None
    mean: float | None = None
    variance: float | None = None
    count: float | None = None
    labels: dict[tuple[str, str], str] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    unfinished: str = ""
    may_be_filled_in: bool = False

    @property
    def is_open(self) -> bool:
        """Whether there is no answer yet."""
        return self.rewards is None and self.mean is None


def ticket_text(code: str, round: int, arm: int) -> str:
    """Return the text of a ticket of a run with this code."""
    return f"{code}-r{round}-a{arm}"


def ticket_rows(tickets: Tickets, code: str, entropy: int) -> Iterator[dict[str, Any]]:
    """Yield the row of each ticket; the seed is the one that a command would get.

    With shared items it also has the ids of the items to be measured, in order; with blocks, their numbers
    and their seeds.
    """
    items = tickets.problem.items
    for ticket, call in zip(tickets, Calls.for_tickets(entropy, tickets), strict=True):
        values = (ticket_text(code, ticket.round, ticket.arm), ticket.arm, ticket.name, ticket.count)
        row = dict(zip(COLUMNS, (*values, seed_of(call)), strict=True))
        if items is not None:
            row["items"] = ids_of(items, call)
            row |= {"seeds": values_of(items, call)} if tickets.problem.has_blocks else {}
        yield row


def cell_rows(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each item or block of some tickets, with its score if there is one."""
    for row in rows:
        scores = row.get("rewards") or [""] * len(row["items"])
        seeds = row.get("seeds") or [None] * len(row["items"])
        for item, seed, score in zip(row["items"], seeds, scores, strict=True):
            yield row | {"item": item, "block": item, "seed": seed, "reward": score}


def ticket_columns(tickets: Tickets) -> tuple[str, ...]:
    """Return the columns of a sheet with a line for each ticket, those to be filled in at the end."""
    return (*COLUMNS, "mean", "variance", "rewards") if tickets.needs_variances else (*COLUMNS, "mean")


def cell_columns(problem: Problem) -> tuple[str, ...]:
    """Return the columns of a sheet with a line for each item or block."""
    return BLOCK_COLUMNS if problem.has_blocks else CELL_COLUMNS


def read_sheet(data: bytes, form: str | None = None) -> list[Entry]:
    """Return the entries of a sheet of answers, including those without an answer.

    Raises
    ------
    InvalidAnswers
        If it cannot be parsed. The message names the line.
    """
    text = sheet_text(data)
    if form is None:
        form = "json" if text.lstrip()[:1] in ("[", "{") else "csv"
    return _of_json(text) if form == "json" else _of_csv(text)


def sheet_text(data: bytes) -> str:
    """Return the text of a file. Tickets and numbers are ASCII; other text may have any encoding."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


# --- CSV ------------------------------------------------------------------------------------------


def _of_csv(text: str) -> list[Entry]:
    rows = sheet_rows(text)
    try:
        _, header = next(rows)
    except StopIteration:
        raise InvalidAnswers("it is empty; it needs a header and one line per answer.") from None
    columns, width = _columns(header), len(header)
    lines = list(rows)
    places = [columns[name] for name in _REALS if name in columns]
    comma = comma_of(text, (row[place] for _, row in lines for place in places if place < len(row)))

    def is_used(name: str) -> bool:
        return name in columns and any(_cell(where, row, columns, name, width) for where, row in lines)

    if "reward" not in columns:
        return [_summary(where, row, columns, width, comma) for where, row in lines]
    if used := [name for name in _SUMMARIES if is_used(name)]:
        if is_used("reward"):
            raise InvalidAnswers(
                f"there are answers in both columns `reward` and `{used[0]}`. Use `reward` with one line "
                "per pull, or the other columns with one line per ticket."
            )
        return [_summary(where, row, columns, width, comma) for where, row in lines]
    return _with_rewards(lines, columns, width, comma)


def sheet_rows(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the non-empty lines as lists of cells, each with its place."""
    skipped = 0
    if text[:4].lower() == "sep=":  # some spreadsheets declare their delimiter this way
        text, skipped = text.partition("\n")[2], 1
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield f"line {reader.line_num + skipped}", cells
    except csv.Error as error:
        raise InvalidAnswers(f"line {reader.line_num + skipped} is not valid CSV: {error}.") from None


def comma_of(text: str, numbers: Iterable[str]) -> Comma:
    """Return what a comma means in the numbers of a sheet: its cells may be separated by commas."""
    return Comma.REFUSED if _delimiter(text) == "," else Comma.among(numbers)


def _delimiter(text: str) -> str:
    """Return the delimiter, detected from the first non-empty line."""
    first = next((line for line in io.StringIO(text, newline="") if line.strip()), "")
    return max(_DELIMITERS, key=first.count)


def _columns(header: list[str]) -> dict[str, int]:
    names = [name.lower() for name in header]
    if "item" not in names:
        names = ["item" if name == "block" else name for name in names]
    for name in _KNOWN:
        if names.count(name) > 1:
            raise InvalidAnswers(f"the column `{name}` occurs {names.count(name)} times; keep one.")
    found = {name: names.index(name) for name in _KNOWN if name in names}
    if "ticket" not in found:
        raise InvalidAnswers(
            f"there is no column `ticket` among {_listed(names)}. Keep the header and the tickets that "
            f"`shortlist ask -o FILE` wrote."
        )
    if not {"reward", "mean", "rewards"} & set(found):
        raise InvalidAnswers(
            "there is neither `reward` nor `mean`. Add a column `mean` with the mean of each ticket's pulls, "
            "a column `rewards` with all of them, separated by spaces, or a column `reward` with one line "
            "per pull."
        )
    return found


def _with_rewards(
    rows: Iterable[tuple[str, list[str]]], columns: dict[str, int], width: int, comma: Comma
) -> list[Entry]:
    """Return one entry per ticket, with the rewards of all its lines."""
    places: dict[str, str] = {}
    rewards: dict[str, list[float]] = {}
    items: dict[str, list[str]] = {}
    blank: dict[str, str] = {}  # for tickets with a line without a reward: the place of that line
    labels: dict[str, dict[tuple[str, str], str]] = {}
    for where, row in rows:
        ticket, cell = (_cell(where, row, columns, name, width) for name in ("ticket", "reward"))
        key = _ticket(where, ticket).lower()
        places.setdefault(key, where)
        for label in _labels(where, row, columns, width):
            labels.setdefault(key, {}).setdefault(label, where)
        if cell:
            rewards.setdefault(key, []).append(sheet_number(where, "reward", cell, comma))
            if "item" in columns:
                items.setdefault(key, []).append(_cell(where, row, columns, "item", width))
        else:
            blank.setdefault(key, where)
    unfinished = {key: blank[key] for key in blank.keys() & rewards.keys()}
    return [
        Entry(where, key, labels=labels.get(key, {}), unfinished=unfinished[key])
        if key in unfinished
        else Entry(
            where,
            key,
            rewards.get(key),
            labels=labels.get(key, {}),
            items=tuple(items.get(key, ())),
            may_be_filled_in=True,
        )
        for key, where in places.items()
    ]


def _summary(where: str, row: list[str], columns: dict[str, int], width: int, comma: Comma) -> Entry:
    ticket = _ticket(where, _cell(where, row, columns, "ticket", width))
    given: dict[str, float | None] = {}
    for name in ("mean", "variance"):
        cell = _cell(where, row, columns, name, width) if name in columns else ""
        given[name] = sheet_number(where, name, cell, comma) if cell else None
    cell = _cell(where, row, columns, "count", width) if "count" in columns else ""
    given["count"] = sheet_count(where, "count", cell) if cell else None
    labels = dict.fromkeys(_labels(where, row, columns, width), where)
    cell = _cell(where, row, columns, "rewards", width) if "rewards" in columns else ""
    asked = dict(_labels(where, row, columns, width)).get("pulls", "")
    wanted = int(asked) if asked.isdecimal() and len(asked) < 10 else None
    if rewards := typed_rewards(where, cell, wanted):
        if any(one is not None for one in given.values()):
            raise InvalidAnswers(
                f"{where}: there are both `rewards` and a summary of them; give only one of the two."
            )
        if wanted is not None and len(rewards) < wanted:
            return Entry(where, ticket, labels=labels, unfinished=where)
        return Entry(where, ticket, rewards, labels=labels, may_be_filled_in=True)
    return _whole(Entry(where, ticket, None, **given, labels=labels))  # type: ignore[arg-type]


def _labels(where: str, row: list[str], columns: dict[str, int], width: int) -> list[tuple[str, str]]:
    """Return the labels of a ticket in a line."""
    cells = ((name, _cell(where, row, columns, name, width)) for name in _LABELS if name in columns)
    return [(name, without_groups(cell) if name == "pulls" else cell) for name, cell in cells if cell]


def _cell(where: str, row: list[str], columns: dict[str, int], name: str, width: int) -> str:
    if len(row) > width and any(row[width:]):
        raise InvalidAnswers(
            f"{where} has {len(row)} cells, but the header has {width}. Use a decimal point, not a "
            f"decimal comma; put quotes around text that contains commas."
        )
    return row[columns[name]] if columns[name] < len(row) else ""


# --- JSON -----------------------------------------------------------------------------------------


def _of_json(text: str) -> list[Entry]:
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # also for a number with thousands of digits
        raise InvalidAnswers(f"it is not valid JSON: {error}.") from None
    entries = data.get("tickets") if isinstance(data, dict) else data
    if not isinstance(entries, list):
        raise InvalidAnswers(
            'it must be a list of objects such as {"ticket": "...", "rewards": [1.5, 2.5]}, or '
            '{"ticket": "...", "mean": 2.0}; or an object that has such a list as "tickets".'
        )
    return entries_of(entries)


def entries_of(given: Iterable[Any]) -> list[Entry]:
    """Return the entries of a parsed JSON list of answers; raise InvalidAnswers as `read_sheet` does."""
    return [_of_object(f"entry {number}", entry) for number, entry in enumerate(given, 1)]


def _of_object(where: str, entry: Any) -> Entry:
    if not isinstance(entry, dict) or not isinstance(entry.get("ticket"), str):
        raise InvalidAnswers(f'{where} has no "ticket"; it must be an object with the ticket as text.')
    numbers = {name: _real(where, name, entry.get(name)) for name in ("mean", "variance", "count")}
    rewards = entry.get("rewards")
    if rewards is not None:
        if any(number is not None for number in numbers.values()):
            raise InvalidAnswers(
                f'{where} has both "rewards" and a summary of them; give only one of the two.'
            )
        if not isinstance(rewards, list):
            raise InvalidAnswers(f'{where}: "rewards" must be a list of numbers, one per pull.')
        rewards = [_real(where, f"reward {place}", reward) for place, reward in enumerate(rewards, 1)]
        if None in rewards:
            raise InvalidAnswers(f"{where}: reward {rewards.index(None) + 1} is null; it must be a number.")
    labels = {(name, str(entry[name])): where for name in _LABELS if entry.get(name) is not None}
    ids = entry.get("items")
    if ids is not None and not isinstance(ids, list):
        raise InvalidAnswers(f'{where}: "items" must be a list of ids, one for each reward.')
    items = tuple(map(str, ids or ())) if rewards is not None else ()
    told = Entry(where, _ticket(where, entry["ticket"]), rewards, **numbers, labels=labels)  # type: ignore[arg-type]
    return _whole(replace(told, items=items))


def _real(where: str, name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidAnswers(f"{where}: the {name} is {value!r}; it must be a number.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidAnswers(f"{where}: the {name} is {value!r:.40}; it must be a finite number.")
    return number


def _refuse_constant(name: str) -> float:
    raise InvalidAnswers(f"it contains {name}, which is not a reward; leave out failed measurements")


# --- both -----------------------------------------------------------------------------------------


def _ticket(where: str, text: str) -> str:
    if not text.strip():
        raise InvalidAnswers(f"{where} has no ticket; copy it from the output of `shortlist ask`.")
    return text.strip()


def _whole(entry: Entry) -> Entry:
    """Return an entry, unless its summary is incomplete."""
    half = entry.variance is not None or entry.count is not None
    if half and entry.is_open:
        raise InvalidAnswers(f"{entry.where}: there is no mean. Fill it in, or leave the whole answer empty.")
    return entry


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
