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
    Fault(
        "items: ids may have lone surrogates",
        "items.py",
        'checks.encodable(str(key), f"the id of item number {place}")',
        "str(key)",
    ),
    Fault(
        "questions without files: ids of items may have lone surrogates",
        "files/items_section.py",
        'encodable(one, f"`item_ids[{place}]`")',
        "str(place)",
    ),
    Fault(
        "score tables: items may have lone surrogates",
        "measure/score_table.py",
        'encodable(str(item), f"{where}: the item")',
        "str(item)",
    ),
    Fault(
        "results of tools: arms may have lone surrogates",
        "measure/result_files/reading.py",
        'encodable(cell.arm, f"{cell.path}: the name of an arm")',
        "str(cell.arm)",
    ),
    Fault(
        "scored failures: reasons may have lone surrogates",
        "execution/failure_messages.py",
        'return str(error).encode("utf-8", "replace").decode()',
        "return str(error)",
    ),
    Fault(
        "terminals: marks of direction are printed",
        "escaping.py",
        '_TURNING = "\\u061c\\u200e\\u200f',
        '_TURNING = "',
    ),
    Fault(
        "terminals: a warning while measuring has control characters",
        "execution/scheduler.py",
        "_LOG.warning(printable(words))",
        "_LOG.warning(words)",
    ),
    Fault(
        "reports: names turn the direction of text around",
        "report/text_format.py",
        "if is_none or is_turning(letter) else",
        "if is_none else",
    ),
    Fault(
        "messages: the id of an item begins a line",
        "measure/shared_items.py",
        "[on_one_line(one)[:_LONGEST_ID]",
        "[one[:_LONGEST_ID]",
    ),
    Fault(
        "results: the name of an arm begins a line",
        "result.py",
        "map(on_one_line, self.selected[:10])",
        "self.selected[:10]",
    ),
)
