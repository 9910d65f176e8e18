"""The summary and the figure of the benchmark on pulls."""

import math
import platform
from pathlib import Path
from typing import NamedTuple

import numpy as np

REFERENCE = "wnelim"
UNPROMISED = "†"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#999999")
MARKERS = "osD^vP*X<>"


class Task(NamedTuple):
    """One strategy on one instance, told one thing about the noise."""

    instance: str
    noise: str
    strategy: str


class Row(NamedTuple):
    """One replication."""

    instance: str
    noise: str
    strategy: str
    replication: int
    seed: int
    pulls: int
    is_error: bool
    is_final: bool


class Bounds(NamedTuple):
    """What is known of an instance beforehand.

    `scale` is the number of pulls that gives every arm information 1; `worst` is the lower bound for
    its problem, which speaks of the worst means, and `own` that for its own means. `unpromised` are the
    tasks whose strategies do not promise what is asked.
    """

    instance: str
    n: int
    m: int
    delta: float
    scale: float
    worst: float
    own: float
    unpromised: frozenset[Task] = frozenset()


class Figures(NamedTuple):
    """What is shown of one task."""

    replications: int
    mean: float
    error: float
    unfinished: int
    errors: int
    p_value: float


def figures(rows: list[Row], delta: float) -> Figures:
    """Return the mean pulls, their standard error, and how surprising so many errors would be at delta."""
    from scipy.stats import binom  # noqa: PLC0415  (scipy is slow to import)

    pulls = np.array([row.pulls for row in rows], dtype=np.float64)
    finished = sum(row.is_final for row in rows)
    errors = sum(row.is_error for row in rows)
    error = float(pulls.std(ddof=1)) / math.sqrt(len(pulls)) if len(pulls) > 1 else math.nan
    p_value = float(binom.sf(errors - 1, finished, delta))
    return Figures(len(rows), float(pulls.mean()), error, len(rows) - finished, errors, p_value)


def summary(known: list[Bounds], found: dict[Task, list[Row]], commit: str) -> str:
    """Return the whole record in Markdown."""
    lines = [
        "# Pulls",
        "",
        f"Commit {commit}; Python {platform.python_version()}, NumPy {np.__version__}. Mean pulls with their "
        "standard error; x is the average information, `pulls eps^2 / (2 sum of variances)`. *Worst* and "
        "*own* are multiples of the lower bound for the worst means and for the instance's own "
        f"([theory](../../docs/theory.md), section 20); *{REFERENCE}*, of its pulls. An error is a wrong "
        "answer; p is the chance of so many or more if each run erred with probability delta. Where all "
        f"figures are the same for both kinds of noise, they are shown once. {UNPROMISED} marks strategies "
        "that do not promise what the problem asks for; the lower bounds do not bind them.",
        "",
    ]
    for each in known:
        lines += _section(each, found)
    return "\n".join([*lines, *_closing(known, found), ""])


def _section(each: Bounds, found: dict[Task, list[Row]]) -> list[str]:
    lines = [
        f"## {each.instance}",
        "",
        f"n = {each.n:,}, m = {each.m}, delta = {each.delta:g}. Lower bounds: {each.worst:,.0f} for the "
        f"worst means, {each.own:,.0f} for these.",
        "",
        "| strategy | noise | runs | pulls | x | worst | own | " + REFERENCE + " | errors (p) |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    mine = {task: rows for task, rows in found.items() if task.instance == each.instance}
    for task, rows in mine.items():
        twin = mine.get(task._replace(noise="sub-gaussian"), [])
        if task.noise == "gaussian" and _same(rows, twin):
            continue
        lines.append(_line(each, task, rows, mine))
    return [*lines, ""]


def _same(rows: list[Row], twin: list[Row]) -> bool:
    return [row[3:] for row in rows] == [row[3:] for row in twin]


def _line(each: Bounds, task: Task, rows: list[Row], mine: dict[Task, list[Row]]) -> str:
    mark = UNPROMISED if task in each.unpromised else ""
    start = f"| {task.strategy}{mark} | {task.noise} "
    if not rows:
        return f"{start}| 0 | not run: it would not finish | | | | | |"
    got = figures(rows, each.delta)
    if got.unfinished:
        most = max(row.pulls for row in rows)
        left = f"did not finish: {got.unfinished} of {got.replications}, after {most:,}"
        return f"{start}| {got.replications} | {left} | | | | | {got.errors} |"
    reference = _reference(task, mine)
    times = f"{got.mean / figures(reference, each.delta).mean:.3f}" if reference else ""
    return (
        f"{start}| {got.replications} | {got.mean:,.0f} ± {got.error:,.0f} | {got.mean / each.scale:.2f} "
        f"| {_ratio(got.mean, each.worst)} | {_ratio(got.mean, each.own)} | {times} "
        f"| {got.errors} ({got.p_value:.2g}) |"
    )


def _reference(task: Task, found: dict[Task, list[Row]]) -> list[Row] | None:
    """Return the rows to compare with; those of the reference are the same for any noise."""
    here = task._replace(strategy=REFERENCE)
    return found.get(here) or found.get(here._replace(noise="sub-gaussian"))


def _ratio(pulls: float, bound: float) -> str:
    return f"{pulls / bound:,.2f}" if bound > 0 else ""


def _closing(known: list[Bounds], found: dict[Task, list[Row]]) -> list[str]:
    lines = [
        f"## Geometric means of the ratio to {REFERENCE}",
        "",
        "Over the instances that a strategy finished; so means over different instances do not compare.",
        "",
        "| strategy | noise | instances | ratio | errors | runs |",
        "|---|---|---|---|---|---|",
    ]
    deltas = {each.instance: each.delta for each in known}
    for noise, strategy in dict.fromkeys((task.noise, task.strategy) for task in found):
        logs, errors, runs = [], 0, 0
        for task, rows in found.items():
            base = _reference(task, found)
            if (task.noise, task.strategy) != (noise, strategy) or not rows or not base:
                continue
            got = figures(rows, deltas[task.instance])
            if not got.unfinished:
                logs.append(math.log(got.mean / figures(base, deltas[task.instance]).mean))
                errors, runs = errors + got.errors, runs + got.replications
        ratio = f"{math.exp(sum(logs) / len(logs)):.3f}" if logs else ""
        lines.append(f"| {strategy} | {noise} | {len(logs)} | {ratio} | {errors} | {runs:,} |")
    return lines


def draw(path: Path, known: list[Bounds], found: dict[Task, list[Row]]) -> None:
    """Draw mean pulls as multiples of the instance's own lower bound, a line for each instance."""
    import matplotlib as mpl  # noqa: PLC0415  (only the figure needs it)

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "shortlist"
    from matplotlib import pyplot as plt  # noqa: PLC0415  (after the choice of the backend)

    names = list(dict.fromkeys(task.strategy for task in found))
    figure, axes = plt.subplots(figsize=(9, 1.6 + 0.3 * len(known)), layout="constrained")
    for place, each in enumerate(known):
        for task, rows in found.items():
            if task.instance != each.instance or not rows or each.own <= 0:
                continue
            got, style = figures(rows, each.delta), names.index(task.strategy)
            if got.unfinished:
                continue
            is_gaussian = task.noise == "gaussian"
            axes.plot(
                got.mean / each.own,
                place + (0.18 if is_gaussian else -0.18),
                MARKERS[style % len(MARKERS)],
                color=COLOURS[style % len(COLOURS)],
                fillstyle="none" if is_gaussian else "full",
                markersize=5,
            )
    for style, name in enumerate(names):
        axes.plot([], [], MARKERS[style % len(MARKERS)], color=COLOURS[style % len(COLOURS)], label=name)
    axes.set(
        xscale="log",
        yticks=range(len(known)),
        yticklabels=[each.instance for each in known],
        xlabel="mean pulls, as a multiple of the instance's own lower bound (hollow: known to be Gaussian)",
    )
    axes.invert_yaxis()
    axes.grid(axis="both", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(loc="outside right upper", fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
