"""How templates write what a page shows; static/forms.js writes it in the same way when it changes."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from shortlist.report.amounts import percent
from shortlist.report.markup import plain_name
from shortlist.report.moments import universal

_MOST_LETTERS = 200  # of a name


def at(facts: Any, key: str) -> Any:
    """Return a part of plain data by its name, or by several with points between; None if it is not there."""
    for part in key.split("."):
        facts = facts.get(part) if isinstance(facts, Mapping) else None
    return facts


def formed(value: Any, form: str) -> str:
    """Return a value in words; nothing for None."""
    return "" if value is None else _FORMS[form](value)


def _moment(value: str) -> str:
    """Return a moment in universal time; in a browser it becomes that of whoever looks."""
    return universal(datetime.fromisoformat(value).timestamp())


_FORMS: dict[str, Callable[[Any], str]] = {
    "text": str,
    "count": lambda value: f"{value:,.0f}",
    "some": lambda value: f"{value:,.0f}" if value else "",
    "percent": percent,
    "moment": _moment,
    "name": lambda value: plain_name(value, _MOST_LETTERS),
}
