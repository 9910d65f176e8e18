"""Runs stored on a server: its address and the token."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.options import is_given
from shortlist.cli.output import write_whole
from shortlist.errors import InvalidProblem, ShortlistError
from shortlist.input_files import MOST_TOKEN_BYTES, read_bytes

if TYPE_CHECKING:
    from shortlist.client import RemoteSession
    from shortlist.execution.session_protocol import DrivenSession
    from shortlist.problem import Problem
    from shortlist.result import Result

TOKEN = "SHORTLIST_TOKEN"
_KINDS = ("write", "read")


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options --server and --token-file."""
    command = click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        help=f"For --server: the file that contains the token. Or set {TOKEN}.",
    )(command)
    return click.option(
        "--server",
        metavar="URL",
        help="Instead of --store: the address of the `shortlist serve` that stores the run.",
    )(command)


@contextmanager
def on_server(
    problem: "Problem", url: str, token_file: Path | None, **began: Any
) -> "Iterator[RemoteSession]":
    """Yield a session of a run on a server; create the run if it does not exist."""
    if is_given("where"):
        raise InvalidProblem("--store has no effect with --server, which has its own store. Omit it.")
    token = token_of(token_file)
    from shortlist.client import Client

    with Client(url, token, on_wait=lambda words: click.echo(f"Warning: {words}", err=True)) as client:
        yield client.begin(problem, **began).session()


def token_of(file: Path | None) -> str | None:
    """Return the token for a server, from a file or from the environment.

    The file may be the server's own token file; its write token is used then.
    """
    if file is None:
        return os.environ.get(TOKEN) or None
    try:
        text = read_bytes(file, MOST_TOKEN_BYTES).decode()
        mode = stat.S_IMODE(file.stat().st_mode)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise InvalidProblem(f"the token in {file} cannot be read: {why}.") from None
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if os.name == "posix" and mode & 0o077:
        raise InvalidProblem(
            f"other users of this machine can read the token in {file}. Use: chmod 600 {file}"
        )
    known = {words[0]: words[1] for words in lines if len(words) == 2 and words[0] in _KINDS}
    if len(lines) == 1 and len(lines[0]) == 1:
        return lines[0][0]
    if len(known) != len(lines) or not known:
        raise InvalidProblem(
            f"{file} must contain a token and nothing else, or be the server's own token file."
        )
    return known.get("write") or known["read"]


@contextmanager
def server_reporting(session: "DrivenSession", output: Path | None) -> "Iterator[Callable[[Result], None]]":
    """Write the server's report on a run on exit, also after an error."""
    if output is not None and output.suffix.lower() == ".json":
        raise InvalidProblem(
            f"--report is {output}; with --server a report is always HTML: give a name that ends in .html."
        )
    try:
        yield lambda _: None
    except BaseException:
        if output is not None:
            try:
                _write(session, output)
            except (OSError, ShortlistError) as error:  # the first error matters more
                click.echo(f"The report could not be written: {error}", err=True)
        raise
    if output is not None:
        _write(session, output)


def _write(session: Any, output: Path) -> None:
    write_whole(output, session.run.report())
