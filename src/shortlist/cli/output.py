"""What commands print: JSON, tables, and the sentences that several of them say."""

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

    from shortlist.unknown import Question


def print_json(data: Any) -> None:
    """Print what `--json` asks for."""
    click.echo(json.dumps(data, indent=2))


def show(text: "RenderableType") -> None:
    """Print text or a table to the width of the terminal."""
    from rich.console import Console

    Console(highlight=False).print(text)


def asked_text(problem: "Question") -> str:
    """Return what is asked, in one phrase."""
    if problem.goal == "maximise":
        best = "best arm" if problem.m == 1 else f"{problem.m:,} best"
    else:
        best = "smallest" if problem.m == 1 else f"{problem.m:,} smallest"
    return f"the {best} of {problem.n:,} arms to within {problem.epsilon:g}"
