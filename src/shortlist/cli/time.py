"""``shortlist time``: find the fastest of some commands."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shortlist.cli.exits import INTERRUPTED, status_of_answer
from shortlist.cli.options import Share, Span, json_option
from shortlist.cli.output import print_json, say, show_plain, write_whole
from shortlist.cli.resuming import LIMITS, naming_another_run, saying_how_to_go_on, this_command
from shortlist.cli.stores import writing
from shortlist.errors import InvalidProblem

if TYPE_CHECKING:
    from shortlist.timings import Timings


@click.command("time")
@click.argument("commands", nargs=-1, required=True)
@click.option("-m", "--best", "m", default=1, show_default=True, help="How many commands to select.")
@click.option(
    "--within",
    default=0.02,
    show_default=True,
    type=Share(min=0),
    help="How much slower a selected command may be than the fastest (m-th fastest) one: 0.02 or 2%.",
)
@click.option("--delta", default=0.05, show_default=True, help="The accepted failure probability.")
@click.option(
    "--warmup",
    default=1,
    show_default=True,
    type=click.IntRange(min=0),
    help="How often each command is run before the first timing that counts.",
)
@click.option("--budget", type=click.IntRange(min=0), help="Maximum number of timings.")
@click.option("--deadline", type=Span(), metavar="TIME", help="Stop after this time: 90s, 15min, 2h.")
@click.option(
    "-n",
    "--command-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Name of a command. Give one name for each command, in the same order.",
)
@click.option(
    "--shell", is_flag=True, help="Run the commands with /bin/sh. The start of the shell is timed as well."
)
@click.option(
    "--ignore-failure",
    is_flag=True,
    help="Time failing commands like all others, instead of ending with an error.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the order within blocks.")
@click.option(
    "--store", "where", metavar="WHERE", help="Save the run in this store. The same command resumes it."
)
@click.option("--name", default="timing", show_default=True, help="Name of the run in the store.")
@json_option("the result")
@click.option(
    "--export-json",
    "export",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also write the result to FILE. Its `results` can be read like those of hyperfine.",
)
def command(
    commands: tuple[str, ...],
    m: int,
    within: float,
    delta: float,
    warmup: int,
    budget: int | None,
    deadline: float | None,
    names: tuple[str, ...],
    shell: bool,
    ignore_failure: bool,
    seed: int,
    where: str | None,
    name: str,
    as_json: bool,
    export: Path | None,
) -> None:
    """Find the fastest of some COMMANDS, to within 2 %, and say how sure that is.

    In every block, all commands are timed one after the other, in random order. Blocks are repeated until the
    answer is certified. Only ratios of times within a block count, so a machine that slows down during the
    run does no harm. A command that is certainly slower than the fastest is not timed any more.

    Commands run without a shell, and their output is discarded. If a command fails, the run ends with an
    error. Ctrl-C ends the run after the current block, and prints what is certified so far.

    \b
      shortlist time 'sleep 0.1' 'sleep 0.103'
      shortlist time 'sort words' 'sort -u words' --within 0.05 --warmup 3
      shortlist time 'xz -k big' 'gzip -k big' -n xz -n gzip --store runs.db

    For many commands, use a problem file with `kind = "timing"`. `shortlist docs timing` lists the
    assumptions.

    \b
    Exit status:
        0  the answer is certified
        2  the command line is wrong
        3  the answer is not certified: the budget or the deadline ended the run,
           ratios changed during the run, or ratios depend on earlier blocks
        4  a command failed
      130  interrupted
    """
    from shortlist.report.progress import pulls_shown
    from shortlist.report.text_format import counted
    from shortlist.timings import TimingRun

    if names and len(names) != len(commands):
        given = f"{counted(len(commands), 'command')} but {counted(len(names), 'name')}"
        raise InvalidProblem(f"there are {given} (--command-name); name all commands, or none.")
    called = names or commands
    if len(set(called)) < len(called):
        raise InvalidProblem("two commands have the same name; give each its own, with --command-name.")
    arms = dict(zip(called, commands, strict=True))
    how = {"shell": shell, "ignore_failure": ignore_failure}
    run = TimingRun.of(arms, within, m=m, delta=delta, warmup=warmup, **how)
    with (
        naming_another_run(name),
        nullcontext() if where is None else writing(where) as store,
        run.session(seed=seed, store=store, name=name) as session,
    ):
        is_interrupted = False
        with saying_how_to_go_on(session), pulls_shown(session, quiet=as_json) as progress:
            try:
                found = run.driven(session, budget=budget, deadline=deadline, progress=progress or False)
            except KeyboardInterrupt:
                found, is_interrupted = run.so_far(session), True
    _show(found, as_json, export)
    if where is not None and found.result.is_answer and not found.is_certified:
        say("To time again, start a new run: give it another name with --name.")
    elif where is not None and not found.is_certified:
        option, words = LIMITS.get(found.result.stop.name, ("", ""))
        say(f"To resume{words}:\n  {this_command(option)}")
    if is_interrupted:
        sys.exit(INTERRUPTED)
    sys.exit(status_of_answer(found.is_certified))


def _show(found: "Timings", as_json: bool, export: Path | None) -> None:
    """Print the result, and write it to a file if that is wanted."""
    if export is not None:
        write_whole(export, json.dumps(found.to_dict(), indent=2) + "\n")
    if as_json:
        print_json(found.to_dict())
    else:
        show_plain(str(found))
