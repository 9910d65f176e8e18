"""Write docs/cli.md: the command line, command by command, from what `--help` says.

`make docs-reference` runs it.
"""

import inspect
import re
from pathlib import Path

import click

from shortlist.cli import shortlist

ROOT = Path(__file__).parent.parent
TARGET = Path("docs") / "cli.md"
_HEAD = """# Command line

Every command with all its options. Written by `make docs-reference` from what `--help` says; do not edit.
With `--json` a command prints JSON, and nothing else.

| exit status | meaning |
|---|---|
| 0 | the answer is certified, or the command succeeded |
| 2 | the question or the command is wrong |
| 3 | stopped without a certificate: the budget ended first, or nothing is proved |
| 4 | a measurement or the store failed, or `doctor` found errors; a run can be resumed |
| 130 | interrupted |
"""


def build() -> str:
    """Return the text of docs/cli.md."""
    context = click.Context(shortlist, info_name="shortlist", **shortlist.context_settings)
    parts = [_HEAD, "## shortlist\n", *_description(shortlist), _commands(context)]
    for name in shortlist.list_commands(context):
        command = shortlist.commands[name]
        inner = click.Context(command, info_name=name, parent=context)
        parts += [f"## shortlist {name}\n", f"```text\n{_usage(inner)}\n```\n"]
        parts += [*_description(command), _options(inner)]
    return "\n".join(parts)


def _usage(context: click.Context) -> str:
    return f"{context.command_path} {' '.join(context.command.collect_usage_pieces(context))}"


def _commands(context: click.Context) -> str:
    rows = [
        f"| [{name}](#shortlist-{name}) | {shortlist.commands[name].get_short_help_str(limit=200)} |"
        for name in shortlist.list_commands(context)
    ]
    return "\n".join(["| command | what it does |", "|---|---|", *rows, ""])


def _description(command: click.Command) -> list[str]:
    """Return the paragraphs of a command's help; those that click leaves as they are, as text."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return [
        f"```text\n{inspect.cleandoc(part.removeprefix(chr(8)))}\n```\n"
        if part.startswith("\b")
        else f"{_escaped(part)}\n"
        for part in paragraphs
    ]


def _options(context: click.Context) -> str:
    rows = ["| option | meaning |", "|---|---|"]
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            rows.append(f"| `{_piped(record[0])}` | {_piped(_escaped(record[1]))} |")
    return "\n".join([*rows, ""])


def _escaped(text: str) -> str:
    """Return a text of which Markdown leaves all as it is, apart from what stands in backticks."""
    parts = re.split(r"(`[^`\n]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<>\[\]])", r"\\\1", part) for part in parts)


def _piped(text: str) -> str:
    return text.replace("|", r"\|")


def main() -> None:
    """Write the file."""
    (ROOT / TARGET).write_text(build(), encoding="utf-8")


if __name__ == "__main__":
    main()
