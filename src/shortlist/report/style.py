"""The style sheet of reports."""

from functools import lru_cache
from importlib.resources import files

PAGE_STYLE = (
    "html{background:#fff}@media (prefers-color-scheme:dark){html{background:#14171b}}"
    "@media print{html{background:#fff}}body{margin:0}@page{margin:16mm}"
)
"""What holds for the whole page, where a report is one."""


@lru_cache(maxsize=1)
def style() -> str:
    """Return the rules for elements of class `shortlist`."""
    return (files("shortlist.report") / "report.css").read_text(encoding="utf-8")
