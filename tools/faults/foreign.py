"""Faults in what keeps foreign texts, files and programs from doing harm."""

from tools.faults.fault import Fault

FAULTS = (
    Fault(
        "items: JSON lines end at other signs than line feeds",
        "files/items_section.py",
        'enumerate(text_of(path).split("\\n"), 1)',
        "enumerate(text_of(path).splitlines(), 1)",
    ),
    Fault(
        "score tables: JSON lines end at other signs than line feeds",
        "measure/score_table.py",
        'enumerate(text.split("\\n"), 1)',
        "enumerate(text.splitlines(), 1)",
    ),
    Fault(
        "programs: a form feed ends a printed line",
        "measure/printed.py",
        'for line in text.split("\\n") if',
        "for line in text.splitlines() if",
    ),
    Fault(
        "sheets: the separator is that of a part of the first line",
        "session/sheet_format.py",
        'for line in io.StringIO(text, newline="") if',
        "for line in text.splitlines() if",
    ),
)
