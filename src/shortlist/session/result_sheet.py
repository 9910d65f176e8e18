"""Sheets of results that were measured elsewhere: a row for each arm, with numbers of rewards and means.

The columns may have the names that are usual where such sheets come from, such as variant, visitors and
conversions. This module only parses a sheet.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.errors import InvalidAnswers
from shortlist.session.sheet_format import comma_of, sheet_rows, sheet_text
from shortlist.session.typed_numbers import sheet_count, sheet_number

COLUMNS: dict[str, tuple[str, ...]] = {
    "arm": ("arm", "variant", "name", "option", "page", "model", "prompt"),
    "count": ("pulls", "visitors", "count", "n", "trials", "users", "samples"),
    "successes": ("successes", "conversions", "wins", "clicks"),
    "mean": ("mean", "rate", "average"),
    "sd": ("sd", "std"),
    "variance": ("variance",),
    "label": ("label", "day", "date"),
    "block": ("block",),
}
"""What a column means, and the names that it may have."""
_RATES = {
    "rate",
    "conversion rate",
    "conv rate",
    "success rate",
    "win rate",
    "click rate",
    "ctr",
    "cr",
    "cvr",
}
_DECIMAL = re.compile(r"[0-9]*\.?([0-9]*)")
_COUNTS, _REALS = ("count", "successes"), ("mean", "sd", "variance")
_TOTALS = {"", "total", "totals", "grand total", "overall total", "gesamt", "summe"}
_MOST_NAMED = 5
_NEAR = 0.01  # of the range of means: how near their mean is to that of all


@dataclass(frozen=True)
class ResultSheet:
    """The rows of a sheet.

    Attributes
    ----------
    arms
        The arms as written in the sheet.
    counts
        How many rewards each row is about.
    means, successes, variances
        Columns that the sheet has; None for others. It has either means or successes.
    labels
        A label for each row, if the sheet has such a column.
    blocks
        A block for each row, if the sheet has such a column.
    places
        Where each row is, for messages: "line 3".
    label_column
        The name of the column of labels or, if there is none, of blocks; empty without both.
    """

    arms: tuple[str, ...]
    counts: tuple[float, ...]
    means: tuple[float, ...] | None
    successes: tuple[float, ...] | None
    variances: tuple[float, ...] | None
    labels: tuple[str, ...] | None
    blocks: tuple[str, ...] | None
    places: tuple[str, ...]
    label_column: str

    def arms_among(self, names: Sequence[str]) -> list[int]:
        """Return the numbers of the arms, which are given by name or, if no arm has that name, by number.

        Capital letters do not matter, unless names differ by them only.
        """
        found = self._numbers_among(names)
        for place, (number, arm, where) in enumerate(zip(found, self.arms, self.places, strict=True)):
            if number < 0:
                if is_total(arm) and (said := self._other_sum(place, found)):
                    raise InvalidAnswers(f"{where}: row {arm or 'without a name'} does not add up: {said}")
                some = ", ".join(names if len(names) <= _MOST_NAMED + 1 else [*names[:_MOST_NAMED], "..."])
                raise InvalidAnswers(f"{where}: there is no arm {arm!r}; the arms are {some}.")
        return found

    def _numbers_among(self, names: Sequence[str]) -> list[int]:
        """Return the number of the arm of each row; -1 for names that are of no arm."""
        numbers = {name: number for number, name in enumerate(names)}
        folded = Counter(name.casefold() for name in names)
        alike = {name.casefold(): number for name, number in numbers.items() if folded[name.casefold()] == 1}
        found = []
        for arm in self.arms:
            digits = int(arm) if arm.isascii() and arm.isdigit() and len(arm) < 10 else -1
            number = numbers.get(arm, alike.get(arm.casefold(), digits))
            found.append(number if number < len(names) else -1)
        return found

    def without_sums(self, names: Sequence[str]) -> tuple["ResultSheet", str]:
        """Return the sheet without rows of totals, and a sentence that names them; it is empty without them.

        Only a row is left out whose name is of no arm, and that has the sum of all rows of arms, or of those
        with its label. At least two of them are needed.
        """
        numbers = self._numbers_among(names)
        labels = self.labels or self.blocks or ("",) * len(self.arms)
        by_label: dict[str, list[int]] = {}
        for place, (label, number) in enumerate(zip(labels, numbers, strict=True)):
            if number >= 0:
                by_label.setdefault(label, []).append(place)
        of_label = {label: self._sums_of(places) for label, places in by_label.items()}
        of_all = self._sums_of([place for place, number in enumerate(numbers) if number >= 0])
        sums = [
            place
            for place, (label, number) in enumerate(zip(labels, numbers, strict=True))
            if number < 0 and (self._is_sum(place, of_label.get(label)) or self._is_sum(place, of_all))
        ]
        if not sums:
            return self, ""
        named = [f"{self.arms[place] or 'without a name'} ({self.places[place]})" for place in sums]
        if len(sums) == 1:
            said = f"Row {named[0]} is skipped: it is the sum of the others."
        else:
            some = named if len(named) <= _MOST_NAMED + 1 else [*named[:_MOST_NAMED], "..."]
            said = f"{len(sums)} rows are skipped, which are sums of others: {', '.join(some)}."
        is_left_out = set(sums)
        return self._taking([place for place in range(len(self.arms)) if place not in is_left_out]), said

    def _sums_of(self, rows: Sequence[int]) -> tuple[float, float, float] | None:
        """Return the rewards of rows, their sum, and the range of the means; None for fewer than two."""
        if len(rows) < 2:
            return None
        counts, values = (
            np.array([column[row] for row in rows])
            for column in (self.counts, self.successes or self.means or ())
        )
        if self.successes is not None:
            return counts.sum(), values.sum(), 0.0
        return counts.sum(), (counts * values).sum(), float(np.ptp(values))

    def _is_sum(self, place: int, others: tuple[float, float, float] | None) -> bool:
        count = self.counts[place]
        if others is None or not count or count != others[0]:
            return False
        if self.means is None or self.successes is not None:
            return self.successes is not None and self.successes[place] == others[1]
        return bool(abs(self.means[place] - others[1] / count) <= _NEAR * others[2])

    def _other_sum(self, place: int, numbers: Sequence[int]) -> str:
        """Return how a row of totals differs from its sum; empty if fewer than two rows add up."""
        labels = self.labels or self.blocks or [""] * len(self.arms)
        own = [row for row, number in enumerate(numbers) if number >= 0 and labels[row] == labels[place]]
        rows = own or [row for row, number in enumerate(numbers) if number >= 0]
        if len(rows) < 2:
            return ""
        which = f"the others of {labels[place]}" if own and labels[place] else "the others"
        has, have = f"{self.counts[place]:,.15g} rewards", f"{sum(self.counts[row] for row in rows):,.15g}"
        if self.successes is not None:
            has += f" and {self.successes[place]:,.15g} successes"
            have += f" and {sum(self.successes[row] for row in rows):,.15g}"
        elif self.means is not None:
            total = sum(self.counts[row] * self.means[row] for row in rows)
            has += f" with the mean {self.means[place]:.6g}"
            have += f" with {total / max(sum(self.counts[row] for row in rows), 1):.6g}"
        return (
            f"it has {has}, {which} have {have}. Correct the numbers, or remove the row. If it is an arm, "
            f"give it another name."
        )

    def _taking(self, places: Sequence[int]) -> "ResultSheet":
        """Return some of the rows."""

        def some(column: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(column[place] for place in places)

        def some_if(column: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
            return None if column is None else some(column)

        return ResultSheet(
            some(self.arms),
            some(self.counts),
            some_if(self.means),
            some_if(self.successes),
            some_if(self.variances),
            some_if(self.labels),
            some_if(self.blocks),
            some(self.places),
            self.label_column,
        )

    def refuse_sum(self) -> None:
        """Raise InvalidAnswers if an arm has the sums of all others: spreadsheets end with such a row.

        At least two others are needed. A sum has as many rewards, and as many successes or the same mean, to
        within a hundredth of what means differ. Rows of the same arm add up.
        """
        numbers = {arm: number for number, arm in enumerate(dict.fromkeys(self.arms))}
        arms, places = [*numbers], np.array([numbers[arm] for arm in self.arms], dtype=np.int64)
        counts = np.bincount(places, self.counts, len(arms))
        own = np.array(self.successes or np.multiply(self.counts, self.means or 0.0))
        sums = np.bincount(places, own, len(arms))
        others, rest = counts.sum() - counts, sums.sum() - sums
        if self.successes is not None:
            is_sum = sums == rest
        else:
            means = sums / np.maximum(counts, 1)
            is_sum = np.abs(means - rest / np.maximum(others, 1)) <= _NEAR * np.ptp(means)
        is_sum &= (counts == others) & (counts > 0)
        if len(arms) > 2 and is_sum.any():
            arm = arms[int(np.argmax(is_sum))]
            where = self.places[self.arms.index(arm)]
            raise InvalidAnswers(
                f"{where}: row {arm or 'without a name'} is the sum of all others; remove it."
            )

    def refuse_doubles(self) -> None:
        """Raise InvalidAnswers if two rows of an arm have the same label, such as a day delivered twice."""
        labels = self.labels or self.blocks or ()
        first: dict[tuple[str, str], str] = {}
        for key, where in zip(zip(labels, self.arms, strict=False), self.places, strict=False):
            if all(key) and first.setdefault(key, where) != where:
                raise InvalidAnswers(
                    f"there are two rows of {key[1]} with the label {key[0]!r}: {first[key]} and "
                    f"{where}. If the file contains a day twice, remove one of the two rows. Otherwise "
                    "add their numbers up, or give them different labels."
                )


def is_total(name: str) -> bool:
    """Return whether a name is one of a row of totals, as spreadsheets write it."""
    return name.strip().casefold() in _TOTALS


def read_results(data: bytes) -> ResultSheet:
    """Return the rows of a CSV file of results; raise InvalidAnswers, naming the line, if it is invalid."""
    text = sheet_text(data)
    rows = list(sheet_rows(text))
    if len(rows) < 2:
        raise InvalidAnswers("it must have a header, such as variant,visitors,conversions, and some lines.")
    columns = _columns(rows[0][1])
    width = len(rows[0][1])
    for where, row in rows[1:]:
        if len(row) != width:
            raise InvalidAnswers(
                f"{where} has {len(row)} cells, but the header has {width}. Use a decimal point, not a "
                f"decimal comma; put quotes around text that contains commas."
            )

    places = [place for kind, (_, place) in columns.items() if kind in _REALS]
    comma = comma_of(text, (row[place] for _, row in rows[1:] for place in places))

    def numbers(kind: str) -> tuple[float, ...] | None:
        if kind not in columns:
            return None
        name, place = columns[kind]
        if kind in _COUNTS:
            return tuple(sheet_count(where, name, row[place]) for where, row in rows[1:])
        return tuple(sheet_number(where, name, row[place], comma) for where, row in rows[1:])

    def words(kind: str) -> tuple[str, ...] | None:
        return tuple(row[columns[kind][1]] for _, row in rows[1:]) if kind in columns else None

    counts, successes = numbers("count") or (), numbers("successes")
    if successes is not None:
        names = [(name, place) for place, name in enumerate(rows[0][1]) if _is_rate(name)]
        for (where, row), hits, count in zip(rows[1:], successes, counts, strict=True):
            for name, place in names:
                _check_rate(where, name, row[place], hits, count)
    deviations, variances = numbers("sd"), numbers("variance")
    if deviations is not None:
        variances = tuple(math.copysign(one * one, one) for one in deviations)  # negative ones are refused
    return ResultSheet(
        words("arm") or (),
        counts,
        numbers("mean"),
        successes,
        variances,
        words("label"),
        words("block"),
        tuple(where for where, _ in rows[1:]),
        columns.get("label", columns.get("block", ("", 0)))[0],
    )


def _columns(header: list[str]) -> dict[str, tuple[str, int]]:
    """Return the name and the position of each kind of column."""
    names = [name.strip().lower() for name in header]
    found = {}
    for kind, known in COLUMNS.items():
        places = [place for place, name in enumerate(names) if name in known]
        if len(places) > 1:
            both = " and ".join(f"`{names[place]}`" for place in places)
            raise InvalidAnswers(f"the columns {both} mean the same; keep one.")
        if places:
            found[kind] = names[places[0]], places[0]
    for kind in ("arm", "count"):
        if kind not in found:
            raise InvalidAnswers(
                f"there is no column `{COLUMNS[kind][0]}` (or {', '.join(COLUMNS[kind][1:])}) among "
                f"{', '.join(names)}."
            )
    if "successes" in found and "mean" in found and _is_rate(found["mean"][0]):
        del found["mean"]  # it says the same, which is checked
    if ("mean" in found) == ("successes" in found):
        has = "both" if "mean" in found else "neither"
        raise InvalidAnswers(
            f"there is {has} a column of means and of successes; give one of `mean` (or "
            f"{', '.join(COLUMNS['mean'][1:])}) and `successes` (or {', '.join(COLUMNS['successes'][1:])})."
        )
    if "sd" in found and "variance" in found:
        raise InvalidAnswers("there are columns of standard deviations and of variances; keep one.")
    return found


def _is_rate(name: str) -> bool:
    """Whether a column has rates, such as `conversion_rate` or `CTR (%)`, which counts and successes give."""
    return " ".join(re.sub(r"[^a-z]+", " ", name.lower()).split()).removesuffix(" in percent") in _RATES


def _check_rate(where: str, name: str, text: str, successes: float, count: float) -> None:
    """Refuse a rate that is not successes/count, or that in per cent, rounded to the digits that it has."""
    digits = text.rstrip("%\u00a0\u202f ").replace(",", ".")
    if not digits or not count:
        return
    found = _DECIMAL.fullmatch(digits)
    rate, scales = successes / count, (100.0,) if text.endswith("%") else (1.0, 100.0)
    if found is not None and digits != ".":
        half = 0.5001 * 10.0 ** -len(found[1])
        if any(abs(float(digits) - scale * rate) <= half for scale in scales):
            return
    raise InvalidAnswers(
        f"{where}: the {name.strip()} is {text!r:.60}, but {successes:,.15g} of {count:,.15g} are "
        f"{100 * rate:.4g} %. Correct the numbers, or remove the column."
    )
