"""``shortlist doctor``: test the measurement of a problem file before a long run."""

import sys
from pathlib import Path

import click

from shortlist.cli.exits import CERTIFIED, TROUBLE
from shortlist.cli.options import json_option
from shortlist.cli.output import print_json, show


@click.command("doctor")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--arms", default=5, show_default=True, help="Number of arms to test, spread over the list.")
@click.option("--pulls", default=30, show_default=True, help="Number of pulls per arm.")
@click.option("--seed", default=0, show_default=True, help="Seed of the test calls.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Number of workers for which the time is estimated.  [default: one per processor, 16 if calls "
    "mostly wait]",
)
@json_option("the findings")
def command(file: Path, arms: int, pulls: int, seed: int, workers: int | None, as_json: bool) -> None:
    """Test the measurement of FILE on a few arms before a long run.

    \b
    The command looks for problems that would void the guarantee:
      - rewards that are cached or badly seeded;
      - more noise than declared;
      - rewards outside their bounds;
      - drift;
      - skewed rewards, where Gaussian ones are assumed;
      - arms that depend on each other.

    It also looks for problems that would stop a run: failures, and objects that cannot be sent to workers.
    Test measurements do not count towards any run.

    The output then says how many pulls a run usually makes, and how long they take with one worker. If
    several workers help, it gives their time, too. It also says if a run is not worth while, because
    measuring everything is as cheap, or because a run would take days.

    The usual number of pulls is an estimate from simulated runs, with the rates or the noise of the test
    pulls. If the true means are farther apart than in the simulation, a run takes fewer pulls.

    \b
    Exit status:
      0  no errors were found
      2  the problem file is invalid
      4  errors were found
    """
    from shortlist.doctor import examine
    from shortlist.files.problem_file import read_problem_file
    from shortlist.report.doctor_text import diagnosis_text

    asked = read_problem_file(file)
    declared = asked.reproducible
    how = {"arms": arms, "pulls": pulls, "seed": seed}
    found = examine(asked.source, asked.problem, reproducible=declared, workers=workers, **how)
    if as_json:
        print_json(found.to_dict())
    else:
        tried = f"{len(found.arms)} arm{'s' if len(found.arms) > 1 else ''} tested, {found.n_pulls:,} pulls"
        click.echo(f"{file}: {asked.problem.words}\n{tried} (they do not count towards a run)")
        show(diagnosis_text(found))
    sys.exit(CERTIFIED if found.is_healthy else TROUBLE)
