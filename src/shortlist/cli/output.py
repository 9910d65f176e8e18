"""Printing of JSON, tables and text, and writing of files."""

import csv
import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment


def print_json(data: Any) -> None:
    """Print a value as JSON, for `--json`."""
    click.echo(json.dumps(data, indent=2))


def print_csv(columns: Sequence[str], rows: Iterable[dict[str, Any]], out: TextIO | None = None) -> None:
    """Print CSV: a header, and one line per row.

    Names are escaped, so that spreadsheets do not run them as formulas and terminals not as control codes.
    """
    from shortlist.escaping import cell_of, printable

    if out is None and isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")  # a file for programs, wherever it is written
    out = out or sys.stdout
    cell = (lambda text: printable(cell_of(text))) if out.isatty() else cell_of
    writer = csv.DictWriter(out, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow(row | {key: cell(row[key]) for key in ("name", "worker", "item") if key in row})


def say(message: str) -> None:
    """Print a message to standard error, wrapped to the terminal; indented commands are not wrapped."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        message = "\n".join(
            line if line[:1].isspace() else _wrapped(line, width) for line in message.split("\n")
        )
    click.echo(message, err=True)


def _wrapped(line: str, width: int) -> str:
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: readers see the old content or the new one."""
    target = path.resolve()
    if target.exists() and not target.is_file():  # a device or a pipe
        target.write_text(text, encoding="utf-8", newline="")
        return
    beside = target.with_name(f".{target.name[:100]}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8", newline="")
        beside.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None  # the name that the user knows
    finally:
        beside.unlink(missing_ok=True)


def show(text: "RenderableType") -> None:
    """Print text or a table to the width of the terminal."""
    from rich.console import Console

    Console(highlight=False).print(Escaped(text))


@dataclass(frozen=True, eq=False)
class Escaped:
    """Text or a table whose control characters are escaped with `printable`; its colours are kept."""

    shown: "RenderableType"

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[Segment]":
        """Yield the escaped segments."""
        from rich.segment import Segment

        from shortlist.escaping import printable

        for text, style, control in console.render(self.shown, options):
            yield Segment(text if control else printable(text), style, control)


def show_plain(text: str, *, err: bool = False, is_command: bool = False) -> None:
    """Print plain text, wrapped to the terminal; commands are not wrapped, so that they can be copied."""
    from rich.console import Console
    from rich.text import Text

    from shortlist.escaping import printable

    Console(highlight=False, stderr=err).print(Text(printable(text)), soft_wrap=is_command)
