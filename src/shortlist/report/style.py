"""The style sheet of reports."""

from functools import lru_cache
from importlib.resources import files

PAGE_STYLE = (
    "html{background:#fff}@media (prefers-color-scheme:dark){html{background:#14171b}}"
    "@media print{html{background:#fff}}body{margin:0}@page{margin:16mm}"
)
"""Style of the whole page, if the report is a page of its own."""


@lru_cache(maxsize=1)
def style() -> str:
    """Return the CSS rules for elements of class `shortlist`."""
    return (files("shortlist.report") / "report.css").read_text(encoding="utf-8")
