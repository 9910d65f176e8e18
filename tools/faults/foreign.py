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
    Fault(
        "programs: one that does not stop printing fills the memory",
        "measure/command.py",
        "found[0] = stream.read(most + 1)",
        "found[0] = stream.read()",
    ),
    Fault(
        "programs: one that prints too much is not stopped",
        "measure/command.py",
        "            if len(found[0]) > most:\n                _kill(process)",
        "            if len(found[0]) > most:\n                process.wait()",
    ),
    Fault(
        "open programs: a line may have any length",
        "measure/open_programs.py",
        "while line := stream.readline(LONGEST_LINE + 1):",
        "while line := stream.readline():",
    ),
    Fault(
        "open programs: any number of blank lines may come before an answer",
        "measure/open_programs.py",
        "if len(line) > LONGEST_LINE or self._n_bytes > self._most:",
        "if len(line) > LONGEST_LINE:",
    ),
    Fault(
        "open programs: what they may print is counted from their start",
        "measure/open_programs.py",
        "self._most = self._n_bytes + most_bytes(len(requests))",
        "self._most = most_bytes(len(requests))",
    ),
    Fault(
        "programs: a line of stderr without an end fills the memory",
        "measure/program_output.py",
        'iter(partial(stream.readline, _LONGEST_PART), b"")',
        'iter(stream.readline, b"")',
    ),
    Fault(
        "score tables: a compressed one may have any size",
        "measure/score_table.py",
        "        if size > MOST_UNPACKED:",
        "        if size < 0:",
    ),
    Fault(
        "items: nested brackets end the program",
        "files/items_section.py",
        "    except RecursionError:",
        "    except ZeroDivisionError:",
    ),
    Fault(
        "items: nested values end the program",
        "items.py",
        "except (TypeError, ValueError, RecursionError) as error:",
        "except (TypeError, ValueError) as error:",
    ),
    Fault(
        "settings: nested values end the program",
        "session/settings.py",
        "except (TypeError, ValueError, RecursionError) as error:",
        "except (TypeError, ValueError) as error:",
    ),
    Fault(
        "items: the repeated id is found by comparing all of them",
        "files/items_section.py",
        "twice = Counter(ids).most_common(1)[0][0]",
        "twice = max(ids, key=ids.count)",
    ),
)
