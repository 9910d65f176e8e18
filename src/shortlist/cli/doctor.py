"""``shortlist doctor``: the measurement of a file tried before a long run."""

import sys
from pathlib import Path

import click

from shortlist.cli.exits import CERTIFIED, TROUBLE
from shortlist.cli.options import json_option
from shortlist.cli.output import print_json, show


@click.command("doctor")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--arms", default=5, show_default=True, help="How many arms to try, spread over the list.")
@click.option("--pulls", default=30, show_default=True, help="How many pulls of each.")
@click.option("--seed", default=0, show_default=True, help="The seed of the trial calls.")
@json_option("what was found")
def command(file: Path, arms: int, pulls: int, seed: int, as_json: bool) -> None:
    """Try the measurement of FILE on a few arms before a long run.

    Looks for what would void the guarantee (cached or badly seeded rewards, more noise than declared,
    rewards out of bounds, drift, skewed rewards where Gaussian ones are assumed, arms that depend on each
    other) or the run (failures, what workers cannot be sent), and says how long a run will take. What it
    measures does not count towards a run.

    Exit status: 0 no errors were found, 2 the question is wrong, 4 errors were found.
    """
    from shortlist.doctor import examine
    from shortlist.files.problem_file import read_problem_file
    from shortlist.report.doctor_text import diagnosis_text

    asked = read_problem_file(file)
    declared = asked.reproducible
    found = examine(asked.source, asked.problem, arms=arms, pulls=pulls, seed=seed, reproducible=declared)
    if as_json:
        print_json(found.to_dict())
    else:
        tried = f"{len(found.arms)} arm{'s' if len(found.arms) > 1 else ''} tried, {found.n_pulls:,} pulls"
        click.echo(f"{file}: {asked.problem.words}\n{tried}, none of which will count")
        show(diagnosis_text(found))
    sys.exit(CERTIFIED if found.is_healthy else TROUBLE)
