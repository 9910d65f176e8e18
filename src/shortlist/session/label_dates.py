"""Dates in labels, so that a day that is written in two ways is not counted twice."""

import re
from contextlib import suppress
from datetime import date

_YEAR_FIRST = re.compile(r"([0-9]{4})([./-])([0-9]{1,2})\2([0-9]{1,2})")
_YEAR_LAST = re.compile(r"([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4})")


def date_of(label: str) -> date | None:
    """Return the date that a label is, or the name of a CSV file; None if it is none, or could be two.

    `2026-03-21`, `21.03.2026`, `21/03/2026` and `03/21/2026` are the same date. `03/04/2026` could be two.
    """
    text = label.strip().lower().removesuffix(".csv")
    year_first, year_last = _YEAR_FIRST.fullmatch(text), _YEAR_LAST.fullmatch(text)
    with suppress(ValueError):  # no such day
        if year_first:
            year, _, month, day = year_first.groups()
            return date(int(year), int(month), int(day))
        if year_last:
            first, separator, second, year = year_last.groups()
            if separator == "." or int(first) > 12 or first == second:
                return date(int(year), int(second), int(first))
            if int(second) > 12:
                return date(int(year), int(first), int(second))
    return None
