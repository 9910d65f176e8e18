"""The command line: one module for each command, which calls it `command`.

To add one, write its file and put it into `COMMANDS`. ``--help`` imports every one of them and must answer at
once: so at the top of its file a command imports click, errors and its neighbours here, and what else it
needs when it is called.
"""

import sys

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
    replay,
    report,
    run,
    serve,
    simulate,
    status,
    strategies,
    tell,
)
from shortlist.cli.exits import CERTIFIED, INTERRUPTED, TROUBLE, WRONG, status_of
from shortlist.errors import ShortlistError

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
    try:
        shortlist(standalone_mode=False)
    except click.exceptions.Abort:
        _leave("Interrupted.", INTERRUPTED)
    except KeyboardInterrupt:
        _leave("Interrupted.", INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(WRONG)
    except ShortlistError as error:
        _leave(f"Error: {error}", status_of(error))
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(CERTIFIED)
    except OSError as error:
        _leave(f"Error: the output could not be written: {error.strerror}.", TROUBLE)


def _leave(message: str, status: int) -> None:
    from shortlist.run.printable import printable

    click.echo(printable(message), err=True)
    sys.exit(status)
