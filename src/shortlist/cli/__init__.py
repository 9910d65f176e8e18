"""The command line: one module per command, each with a function named `command`.

To add a command, write its module and add it to `COMMANDS`. ``--help`` imports all of them and must be fast:
at the top of its module a command imports only click, the errors and other modules of this folder. It imports
everything else when it is called.
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
    certify,
    copy,
    docs,
    doctor,
    examples,
    export,
    feed,
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
    stop,
    strategies,
    tell,
    time,
    withdraw,
)
from shortlist.cli.exits import INTERRUPTED, TROUBLE, WRONG, status_of
from shortlist.cli.options import VARIABLE
from shortlist.errors import ShortlistError

_MOST_LETTERS = 4000  # in a message
_SETTINGS = {"--epsilon", "--delta", "--m", "-m"}  # of problem files; some commands have them as options
COMMANDS = [
    ask.command,
    begin.command,
    bench.command,
    certify.command,
    copy.command,
    docs.command,
    doctor.command,
    examples.command,
    export.command,
    feed.command,
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
    stop.command,
    strategies.command,
    tell.command,
    time.command,
    withdraw.command,
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
      shortlist examples drilling                  copy an example to this folder
      shortlist plan drilling.toml                 how many pulls it will take
      shortlist doctor drilling.toml               test its measurement
      shortlist run drilling.toml                  find the 5 best of 200 sites
      shortlist simulate drilling.toml             compare strategies on it
      shortlist strategies                         what each strategy does
      shortlist docs start                         read the documentation

    \b
    Runs are saved, and resume where they stopped:
      shortlist list                               list all runs
      shortlist status drilling                    show the progress of a run
      shortlist report drilling -o drilling.html   write a report to share
      shortlist plot arms drilling -o arms.svg     draw a figure of a run
      shortlist begin FILE, then ask and tell      measure by hand, with CSV files
      shortlist begin FILE, then feed              add results as they come in
      shortlist certify results.csv ...            what your own results prove
      shortlist time 'cmd A' 'cmd B'               which command is the fastest
      shortlist serve                              use all of this in a browser
    """


def main() -> None:
    """Run the command line; print each error as one line and exit with the right status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for letters that the terminal lacks
    try:
        try:
            shortlist(standalone_mode=False)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except SystemExit as end:
        if end.code == 1:  # from rich: broken pipe
            sys.exit(TROUBLE)
        raise
    except (click.exceptions.Abort, KeyboardInterrupt):
        _leave("Interrupted.", INTERRUPTED)
    except click.ClickException as error:
        said = io.StringIO()
        _naming_the_file(error).show(said)
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
            "Error: out of memory. Use fewer arms or replications, or a machine with more memory.",
            TROUBLE,
        )
    except Exception as error:
        _leave(_bug(error), TROUBLE)


def _naming_the_file(error: click.ClickException) -> click.ClickException:
    """Return the error; if it is about an option that is a setting of the problem file, it says so."""
    if not isinstance(error, click.NoSuchOption) or error.option_name not in _SETTINGS or error.ctx is None:
        return error
    if all(param.name != "file" for param in error.ctx.command.params):
        return error
    setting = error.option_name.lstrip("-")
    said = f"{error.message.rstrip('.')}. The question is in FILE: set `{setting}` there."
    return click.UsageError(said, error.ctx)


def _leave(message: str, status: int) -> None:
    from shortlist.cli.output import say
    from shortlist.escaping import printable

    message = _masked(message)
    if len(message) > _MOST_LETTERS:  # some input was very long; the end of a message says what to do
        message = f"{message[: _MOST_LETTERS // 2]} ... {message[-_MOST_LETTERS // 2 :]}"
    with suppress(OSError):
        say(printable(message))
    sys.exit(status)


def _masked(text: str) -> str:
    """Return text with the passwords of this command line masked."""
    from shortlist.store.address import masked

    return masked(text, *sys.argv[1:], os.environ.get(VARIABLE, ""))


def _hang_up() -> None:
    """Discard pending output, since nothing can be written to it any more."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(error: Exception) -> str:
    """Return a message for an unexpected error; write its traceback to a file."""
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
        f"Error: this is a bug in Shortlist: {kind}. Stored runs are not affected. Please report it, and "
        f"attach{where}"
    )
