"""The command line: one module for each command, which calls it `command`.

To add one, write its file and put it into `COMMANDS`. ``--help`` imports every one of them and must answer at
once: so at the top of its file a command imports click, errors and its neighbours here, and what else it
needs when it is called.
"""

import io
import os
import sys
import tempfile
import traceback
from contextlib import suppress

import click

from shortlist.cli import (
    ask,
    begin,
    bench,
    copy,
    doctor,
    export,
    list,
    plan,
    plot,
    prune,
    release,
    replay,
    report,
    run,
    serve,
    simulate,
    status,
    strategies,
    tell,
)
from shortlist.cli.exits import INTERRUPTED, TROUBLE, WRONG, status_of
from shortlist.cli.options import VARIABLE
from shortlist.errors import ShortlistError

_MOST_LETTERS = 4000  # of a message
COMMANDS = [
    ask.command,
    begin.command,
    bench.command,
    copy.command,
    doctor.command,
    export.command,
    list.command,
    plan.command,
    plot.command,
    prune.command,
    release.command,
    replay.command,
    report.command,
    run.command,
    serve.command,
    simulate.command,
    status.command,
    strategies.command,
    tell.command,
]


@click.group(
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(package_name="shortlist")
def shortlist() -> None:
    """Pick the m best of n noisy arms, with a guarantee, from few measurements.

    \b
    Start here:
      shortlist plan examples/drilling.toml        what an answer will cost
      shortlist doctor examples/drilling.toml      whether its measurement is sound
      shortlist run examples/drilling.toml         find the 5 best of 200 sites
      shortlist simulate examples/drilling.toml    compare strategies on it
      shortlist strategies                         what each strategy does

    \b
    Runs are kept, and go on where they stopped:
      shortlist list                               the runs there are
      shortlist status drilling                    how far one is
      shortlist report drilling -o drilling.html   a page to show to others
      shortlist plot arms drilling -o arms.svg     a figure of one
      shortlist begin FILE, then ask and tell      measure by hand, with sheets
      shortlist serve                              all of it in a browser
    """


def main() -> None:
    """Run the command line; turn errors into one clear line and the right exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may lack letters, a file name text
    try:
        try:
            shortlist(standalone_mode=False)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except SystemExit as end:
        if end.code == 1:  # by rich, where nobody takes the output
            sys.exit(TROUBLE)
        raise
    except (click.exceptions.Abort, KeyboardInterrupt):
        _leave("Interrupted.", INTERRUPTED)
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        _leave(said.getvalue().rstrip(), WRONG)
    except ShortlistError as error:
        _leave(f"Error: {error}", status_of(error))
    except BrokenPipeError:
        _hang_up()
        sys.exit(TROUBLE)
    except OSError as error:
        _hang_up()
        what = "the output" if error.filename is None else str(error.filename)
        _leave(f"Error: {what} could not be written: {error.strerror or error}.", TROUBLE)
    except MemoryError:
        _leave(
            "Error: there is not enough memory for this. Ask for fewer arms or replications, or use a larger "
            "machine.",
            TROUBLE,
        )
    except Exception as error:
        _leave(_bug(error), TROUBLE)


def _leave(message: str, status: int) -> None:
    from shortlist.escaping import printable

    message = _masked(message)
    if len(message) > _MOST_LETTERS:  # something endless was given; what to do stands at the end
        message = f"{message[: _MOST_LETTERS // 2]} ... {message[-_MOST_LETTERS // 2 :]}"
    with suppress(OSError):
        click.echo(printable(message), err=True)
    sys.exit(status)


def _masked(text: str) -> str:
    """Return text without the passwords of this command."""
    from shortlist.store.address import masked

    return masked(text, *sys.argv[1:], os.environ.get(VARIABLE, ""))


def _hang_up() -> None:
    """Send what is still to be printed nowhere, as nobody can take it."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(error: Exception) -> str:
    """Return what to do about an error that nobody foresaw; how it came about goes to a file."""
    from importlib.metadata import version

    kind = traceback.format_exception_only(error)[-1].strip()
    told = "".join(traceback.format_exception(error))
    where = "\n" + told
    with suppress(OSError):
        number, path = tempfile.mkstemp(".txt", "shortlist-bug-")
        with open(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(_masked(f"Shortlist {version('shortlist')}, Python {sys.version}\n{told}"))
        where = f" {path}"
    return (
        f"Error: this is a bug in Shortlist, and no mistake of yours: {kind}. Runs are as they were. Please "
        f"report it with what is in{where}"
    )
