"""``shortlist examples``: list the examples, which are installed with the package, and copy one."""

import re
import shlex
import sys
from pathlib import Path

import click

from shortlist.cli.docs import shipped
from shortlist.cli.options import json_option
from shortlist.cli.output import print_json, show, show_plain
from shortlist.errors import InvalidProblem


@click.command("examples")
@click.argument("name", required=False)
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="Where to write the files; by default in the current folder.",
)
@json_option("the list, or what was written,")
def command(name: str | None, folder: Path, as_json: bool) -> None:
    """Write the example NAME and its data files to the current folder; without NAME, list the examples.

    The output contains the command that runs the example. If a file exists already with other content, you
    are asked before it is replaced.

    \b
      shortlist examples
      shortlist examples drilling
      shortlist examples training --to tryout
    """
    known = _examples()
    if name is None:
        _list(known, as_json)
        return
    main = known.get(name) or known.get(Path(name).stem)
    if main is None:
        raise InvalidProblem(f"there is no example {name!r}; choose one of: {', '.join(known)}.")
    written = [folder / path.name for path in _with_data(main)]
    if not _copy(main, folder):
        show_plain("Nothing was written.")
        return
    run = _command(folder / main.name)
    if as_json:
        print_json({"files": [str(path) for path in written], "command": run})
        return
    show_plain("Wrote " + ", ".join(str(path) for path in written) + ". To run it:")
    show_plain(f"  {run}", is_command=True)


def _examples() -> dict[str, Path]:
    """Return the file to run of each example, by name: a problem file rather than a Python file."""
    folder = shipped() / "examples"
    programs = {path.stem: path for path in sorted(folder.glob("*.py"))}
    questions = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    return dict(sorted((programs | questions).items()))


def _list(known: dict[str, Path], as_json: bool) -> None:
    from rich.table import Table

    if as_json:
        about = [{"example": name, "about": _about(path), "file": path.name} for name, path in known.items()]
        print_json(about)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("example", no_wrap=True)
    table.add_column("about")
    for name, path in known.items():
        table.add_row(name, _about(path).replace("[", r"\["))
    show(table)
    show_plain("\nTo copy one to the current folder: shortlist examples NAME")


def _about(path: Path) -> str:
    """Return the first sentence of the comment or docstring that a file begins with."""
    text = path.read_text("utf-8").split("\n\n", maxsplit=1)[0]
    words = " ".join(text.replace('"""', "").replace("# ", "").split())
    return re.split(r"(?<=[.?]) ", words)[0]


def _command(path: Path) -> str:
    return f"{'python' if path.suffix == '.py' else 'shortlist run'} {shlex.quote(str(path))}"


def _with_data(main: Path) -> list[Path]:
    """Return the file of an example, and the files beside it that it names."""
    text = main.read_text("utf-8")
    return [main, *(path for path in sorted(main.parent.iterdir()) if path.name in text and path != main)]


def _copy(main: Path, folder: Path) -> bool:
    """Write an example into a folder; return False, having written nothing, if the user does not agree."""
    contents = {folder / path.name: _content(path) for path in _with_data(main)}
    others = [path for path, content in contents.items() if path.exists() and path.read_bytes() != content]
    if others:
        names = ", ".join(str(path) for path in others)
        there = f"{names} {'exists' if len(others) == 1 else 'exist'} already, with other content."
        if not sys.stdin.isatty():
            raise InvalidProblem(f"{there} Nothing was written. Choose another folder with --to.")
        if not click.confirm(f"{there} Replace?", err=True):
            return False
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        path.write_bytes(content)
    return True


def _content(path: Path) -> bytes:
    """Return what to write; commands in comments name the file without the folder of the examples."""
    content = path.read_bytes()
    return content if path.suffix == ".gz" else content.replace(b"examples/", b"")
