"""``shortlist certify``: say what results that exist already prove."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.exits import status_of_answer
from shortlist.cli.options import json_option, result_file_options
from shortlist.cli.output import print_json, show_plain
from shortlist.errors import InvalidAnswers, InvalidProblem, MeasurementFailed

if TYPE_CHECKING:
    from shortlist.cli.questions import TableOptions
    from shortlist.problem import Problem
    from shortlist.session.result_sheet import ResultSheet


@click.command("certify")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("-m", default=1, show_default=True, help="How many arms to select.")
@click.option(
    "--epsilon", type=float, required=True, help="How far from the m-th best arm a selected arm may be."
)
@click.option("--delta", default=0.05, show_default=True, help="The accepted failure probability.")
@click.option(
    "--bounds",
    nargs=2,
    type=float,
    metavar="LOW HIGH",
    help="For means: two numbers between which all rewards lie.",
)
@click.option("--variance", type=float, help="For means: the variance of a reward, or an upper bound on it.")
@click.option("--minimise", is_flag=True, help="Select the arms with the smallest means.")
@click.option(
    "--within-blocks",
    is_flag=True,
    help="Compare arms within blocks, because rates may change between blocks. Blocks are in the column "
    "`block`, or `day` (or label).",
)
@click.option("--scores", "is_table", is_flag=True, help="FILE has scores of all arms on shared items.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="With --scores: the seed of the order of items.",
)
@result_file_options
@json_option("the certificate")
def command(
    file: Path,
    m: int,
    epsilon: float,
    delta: float,
    bounds: tuple[float, float] | None,
    variance: float | None,
    minimise: bool,
    within_blocks: bool,
    is_table: bool,
    seed: int | None,
    metric: str | None,
    on_failure: float | None,
    as_json: bool,
) -> None:
    """Say what the results in FILE prove about the m best arms; FILE is - for standard input.

    The output names the m arms with the strongest certificate, and the epsilon that is certified for them.
    You may look as often as you like, and stop when the answer is good enough. But fix m, epsilon and delta
    before you look, and include everything that was measured.

    FILE is a CSV file with the columns `arm` (or variant), `pulls` (or visitors), and `successes` (or
    conversions) or `mean`. Rows of the same arm are added up. Two rows of the same arm with the same date (or
    day, label or block) are refused. A row of totals is skipped. If FILE has means, use --bounds to say
    between which numbers all rewards lie, or --variance to say how much rewards vary at most.

    Rates must be constant. If they change from day to day, compare arms within blocks: add a column `block`,
    or use a column `day` with --within-blocks. Every block should contain all arms. Decide this, too, before
    you look at the results.

    With --scores, FILE has scores on items that all arms share: a table, or a file or folder of results of an
    evaluation tool. `shortlist simulate` takes the same files. If the table has gaps, every arm must have
    been measured on the first items of one random order, and --seed must be the seed of that order. Other
    tables with gaps prove nothing, and are refused.

    With --scores and --within-blocks, every line of the table is a block, such as a day, or simulations with
    the same random numbers. Lines are in the order of measuring, and arms are compared line by line. Rewards
    are assumed to be Gaussian, unless all of them are 0 or 1, or you give --bounds. If an arm was stopped
    early, its last cells are blank.

    \b
      shortlist certify week.csv --epsilon 0.005
      shortlist certify scores.csv -m 3 --epsilon 0.02 --bounds 0 1
      shortlist certify evaluation.csv --scores --epsilon 0.02 --seed 7
      shortlist certify days.csv --scores --within-blocks --epsilon 0.5

    \b
    Exit status:
      0  the answer is certified to within epsilon
      2  FILE or the command line is wrong
      3  the answer is not yet certified to within epsilon
    """
    from dataclasses import replace

    from shortlist.cli.questions import TableOptions
    from shortlist.cli.tell import data_of
    from shortlist.report.verdict import blocks_words, status_words
    from shortlist.session.result_sheet import read_results

    name = "standard input" if str(file) == "-" else str(file)
    asked = {"m": m, "epsilon": epsilon, "delta": delta, "goal": "minimise" if minimise else "maximise"}
    for option, given in (("--seed", seed), ("--metric", metric), ("--on-failure", on_failure)):
        if given is not None and not is_table:
            raise InvalidProblem(f"{option} is for a table of --scores; omit it.")
    warning, skipped, n_blocks = "", "", 0
    data = b"" if is_table else data_of(file)
    try:
        if is_table:
            if variance is not None:
                raise InvalidProblem(
                    "--variance is for means. With --scores, give --bounds if scores do not lie between "
                    "0 and 1."
                )
            options = TableOptions(file, bounds, metric, on_failure, within_blocks)
            found = _certified_table(options, asked, seed)
        else:
            sheet, skipped = _without_totals(read_results(data))
            sheet.refuse_sum()
            sheet.refuse_doubles()
            problem = _question(sheet, bounds, variance, asked)
            blocks = _blocks(sheet, is_wanted=within_blocks)
            found, warning = _certified(sheet, problem, blocks)
            n_blocks = 0 if blocks is None else len(set(blocks))
    except (InvalidAnswers, InvalidProblem, MeasurementFailed) as error:
        raise InvalidAnswers(f"{name}: {error}") from None
    names = [found.problem.name(arm) for arm in range(found.problem.n)]
    if as_json:
        found = replace(found, notes=(*found.notes, *filter(None, (warning,))))
        statuses = dict(zip(names, found.statuses, strict=True))
        print_json(found.to_dict() | {"statuses": statuses, "skipped": skipped})
    else:
        if skipped:
            show_plain(skipped)
        if warning:
            show_plain(warning)
        show_plain(str(found))
        if found.guarantee is not None:
            show_plain(status_words(found))
        if found.guarantee is not None and n_blocks:
            show_plain(blocks_words(n_blocks))
    sys.exit(status_of_answer(found.is_answer))


def _certified_table(given: "TableOptions", asked: dict[str, Any], seed: int | None) -> Any:
    """Return what a table of scores on shared items certifies."""
    from shortlist.cli.questions import question_of_scores
    from shortlist.totals import certify

    problem, scores = question_of_scores(given, asked)
    return certify(problem, scores=scores, seed=seed)


def _without_totals(sheet: "ResultSheet") -> tuple["ResultSheet", str]:
    """Return a sheet without rows of totals, and a sentence that names them; refuse those that do not add up.

    Other rows may be sums by chance: nobody has listed the arms.
    """
    from shortlist.session.result_sheet import is_total

    names = [arm for arm in dict.fromkeys(sheet.arms) if not is_total(arm)]
    sheet, skipped = sheet.without_sums(names)
    sheet.arms_among(names)
    return sheet, skipped


def _question(
    sheet: "ResultSheet",
    bounds: tuple[float, float] | None,
    variance: float | None,
    asked: dict[str, Any],
) -> "Problem":
    """Return the question about the arms of a sheet."""
    import numpy as np

    from shortlist.problem import Problem
    from shortlist.rewards import Bernoulli, Bounded

    names = list(dict.fromkeys(sheet.arms))
    if sheet.successes is not None:
        if bounds or variance:
            raise InvalidProblem("with successes, every reward is 0 or 1; omit --bounds and --variance.")
        return Problem(**asked, names=names, rewards=Bernoulli())
    if (bounds is None) == (variance is None):
        raise InvalidProblem(
            "with means, give either --bounds LOW HIGH, two numbers between which all rewards lie, "
            "or --variance."
        )
    if bounds is not None:
        return Problem(**asked, names=names, rewards=Bounded(*bounds))
    return Problem(**asked, names=names, variances=np.full(len(names), variance))


def _blocks(sheet: "ResultSheet", *, is_wanted: bool) -> tuple[str, ...] | None:
    """Return the block of each row, if arms are to be compared within blocks."""
    blocks = sheet.blocks or (sheet.labels if is_wanted else None)
    if is_wanted and blocks is None:
        raise InvalidAnswers("there is no column `block` (or day) to compare arms within.")
    if blocks is not None and not all(blocks):
        raise InvalidAnswers(f"{sheet.places[blocks.index('')]} has no block.")
    return blocks


def _certified(sheet: "ResultSheet", problem: "Problem", blocks: tuple[str, ...] | None) -> tuple[Any, str]:
    """Return what a sheet certifies, and a warning to be read first, if rates change; else an empty text."""
    from dataclasses import replace

    import numpy as np

    from shortlist.drift import Drift, drift_note
    from shortlist.totals import Totals, certify, certify_rows

    rows = Totals.of(
        problem,
        list(sheet.arms),
        sheet.counts,
        sheet.means,
        sheet.variances,
        sheet.successes,
        keep_empty=True,
    )
    days = blocks or sheet.labels
    drift = Drift() if days is None else drift_note(problem, rows, days, is_by_block=blocks is not None)
    if blocks is not None:
        found = certify_rows(problem, rows, blocks)
        if drift.may_harm:
            return found, drift.words
        return replace(found, notes=(*found.notes, *filter(None, (drift.words,)))), ""
    counts = np.bincount(rows.arms, rows.counts, problem.n)
    sums = np.bincount(rows.arms, rows.counts * rows.means, problem.n)
    if sheet.successes is not None:
        found = certify(problem, counts.tolist(), successes=np.round(sums).tolist())
    else:
        found = certify(problem, counts.tolist(), (sums / np.maximum(counts, 1)).tolist())
    return found, drift.words
