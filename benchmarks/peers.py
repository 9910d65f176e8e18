"""Other tools beside Shortlist, on the same questions: pulls, time, and whether answers are right.

It runs in an environment of its own, outside the repository, with the peers and Shortlist. The versions that
were measured are in the results.

    python -m venv ../peers
    ../peers/bin/python -m pip install . sim-tools pyprs optuna scikit-learn
    ../peers/bin/python -m benchmarks.peers

`hyperfine` must be on the path. A peer that is not installed, or fails, is named with the reason. It writes
benchmarks/results/peers.md; `--only NAME` measures one part, and the others stay as they are in the file.
`--tables FOLDER` adds tables of scores, as for benchmarks/items.py.
"""

import argparse
import contextlib
import functools
import importlib
import io
import math
import os
import platform
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import shortlist as sl
from benchmarks import items
from shortlist.arrays import FloatArray
from shortlist.simulation import is_wrong

RESULTS = Path(__file__).parent / "results" / "peers.md"
N, EPSILON, DELTA = 20, 0.5, 0.05
RUNS = 20
LEVEL = 10.0  # of all means: sim-tools 1.3.0 computes variances for positive means only


class Row(NamedTuple):
    """What a tool took on average over some runs."""

    tool: str
    promise: str
    right: str
    pulls: float
    seconds: float

    @property
    def cells(self) -> str:
        """The row of the table."""
        each = 1e6 * self.seconds / self.pulls
        return (
            f"| {self.tool} | {self.promise} | {self.right} | {self.pulls:,.0f} | {self.seconds:.3g} | "
            f"{each:,.3g} |"
        )


HEADER = ["| tool | promises | right | pulls | seconds | µs per pull |", "|---|---|---|---|---|---|"]


# --- the best of Gaussian arms ----------------------------------------------------------------------------


def gaussian_means(m: int) -> list[float]:
    """Return means of which the m best are just over epsilon ahead."""
    return [LEVEL + 1.1 * EPSILON] * m + [LEVEL] * (N - m)


class Arms:
    """Simulated arms, as sim-tools calls them: it is told every reward."""

    def __init__(self, means: Sequence[float], seed: int) -> None:
        self.means, self.rng = means, np.random.default_rng(seed)
        self.n_pulls = 0
        self.observer: Any = None

    def register_observer(self, observer: Any) -> None:
        """Note who is to be told rewards."""
        self.observer = observer

    def simulate(self, design: int) -> None:
        """Draw a reward."""
        self.n_pulls += 1
        self.observer.feedback(self, design, float(self.rng.normal(self.means[design], 1.0)))


def timed(name: str, promise: str, run: Callable[[int], tuple[Sequence[int], int]], m: int = 1) -> Row:
    """Return the row of a tool; `run(seed)` returns what it selects, and the number of pulls."""
    right, pulls, start = 0, 0, time.perf_counter()
    for seed in range(RUNS):
        selected, n_pulls = run(seed)
        right += all(arm < m for arm in selected)
        pulls += n_pulls
    seconds = (time.perf_counter() - start) / RUNS
    return Row(name, promise, f"{right} of {RUNS}", pulls / RUNS, seconds)


def own(m: int, guarantee: str = "pac") -> Callable[[int], tuple[Sequence[int], int]]:
    """Return a run of Shortlist with one call of a function for each batch of an arm."""
    means = gaussian_means(m)
    question = sl.Problem(m, EPSILON, DELTA, n=N, rewards=sl.Gaussian(), guarantee=guarantee)

    def run(seed: int) -> tuple[Sequence[int], int]:
        def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
            return rng.normal(means[arm], 1.0, count)

        found = sl.select(measure, question, seed=seed)
        return found.indices.tolist(), found.n_pulls

    return run


def sim_tools(procedure: str, n_best: int, **settings: Any) -> Callable[[int], tuple[Sequence[int], int]]:
    """Return a run of sim-tools."""
    of = "fixed_budget" if procedure.startswith("OCBA") else "indifference_zone"
    build = getattr(importlib.import_module(f"sim_tools.ovs.{of}"), procedure)

    def run(seed: int) -> tuple[Sequence[int], int]:
        arms = Arms(gaussian_means(n_best), seed)
        with np.errstate(all="ignore"):
            found = build(arms, N, obj="max", **settings).solve()
        return np.ravel(found).tolist(), arms.n_pulls

    return run


def gaussian() -> Iterator[Row]:
    """Yield the rows on the best of 20 arms, and on the 5 best."""
    said = "Shortlist"
    one = timed(f"{said}, `auto`", "within epsilon", own(1))
    yield one
    yield timed(f"{said}, `kim-nelson`", "best, if epsilon ahead", own(1, "indifference"))
    name = f"sim-tools {version('sim-tools')}"
    kn = {"delta": EPSILON, "alpha": DELTA}
    yield timed(f"{name}, KN, n_0 20", "best, if epsilon ahead", sim_tools("KN", 1, **kn, n_0=20))
    yield timed(f"{name}, KN++, n_0 10", "the same, asymptotically", sim_tools("KNPlusPlus", 1, **kn, n_0=10))
    budget = 5 * N + 20 * round((one.pulls - 5 * N) / 20)
    yield timed(
        f"{name}, OCBA, as many pulls", "nothing", sim_tools("OCBA", 1, budget=budget, delta=20, n_0=5)
    )
    yield timed(
        f"{name}, OCBA, half as many",
        "nothing",
        sim_tools("OCBA", 1, budget=5 * N + 20 * round((one.pulls / 2 - 5 * N) / 20), delta=20, n_0=5),
    )
    five = timed(f"{said}, `auto`, 5 best", "within epsilon", own(5), 5)
    yield five
    budget = round(five.pulls)
    yield timed(
        f"{name}, OCBA-m, 5 best, as many",
        "nothing",
        sim_tools("OCBAM", 5, budget=budget, delta=20, n_0=5, m=5),
        5,
    )


FUNCTION = """
import numpy as np

def simulation_function(args, seed):
    return args[1] + np.random.default_rng([abs(int(one)) for one in seed]).standard_normal()
"""


def pyprs() -> Iterator[Row]:
    """Yield the rows of PyPRS, which runs on Ray with two processes; its start is not counted."""
    procedure = importlib.import_module("PyPRS.Procedures.procedure")
    name = f"PyPRS {version('PyPRS')} with Ray {version('ray')}"
    common: dict[str, Any] = {"Number of Processors": 2, "Repeat": RUNS, "Reference Seed": [1, 2, 3]}
    gsp = {"n0": 0, "n1": 20, "r_bar": 5, "beta": 10, "alpha1": DELTA / 2, "alpha2": DELTA / 2}
    survivors = {"n0": 20, "Delta": 10, "c": -2 * math.log(2 * DELTA), "Worker Elimination": True}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        lines = [f"{arm} {mean}" for arm, mean in enumerate(gaussian_means(1))]
        Path("arms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        Path("simulation.py").write_text(FUNCTION, encoding="utf-8")
        files = {"Alternatives Information File": "arms.txt", "Simulation Function File": "simulation.py"}
        files = {key: str(Path(file).absolute()) for key, file in files.items()}
        for kind, promise, settings in (
            ("GSP", "within epsilon", gsp | {"delta": EPSILON}),
            ("PASS", "few good arms lost", survivors | {"Termination Sample Size": 500}),
        ):
            with contextlib.redirect_stdout(io.StringIO()):
                found = procedure.Procedure(kind).run_procedure(common | files | settings)
            left = [one.get("Surviving Alternatives", [one.get("Best Alternative")]) for one in found]
            pulls = np.mean([one["Total Sample Size"] for one in found])
            seconds = np.mean([one["Wall-Clock Time (s)"] for one in found])
            right = f"{sum(any(int(arm[0]) == 0 for arm in arms) for arms in left)} of {RUNS}"
            yield Row(f"{name}, {kind}", promise, right, float(pulls), float(seconds))


# --- a table of scores ------------------------------------------------------------------------------------


def scores(name: str, table: FloatArray) -> Iterator[Row]:
    """Yield the rows on a table of scores: the best arm, to within 0.05."""
    asked = items.Real(name, table, 1, 0.05)
    means = table.mean(axis=1)
    runs, start = items.FEWER, time.perf_counter()
    results = [
        sl.select(lambda arm, chosen: table[arm, chosen], asked.problem, seed=seed) for seed in range(runs)
    ]
    seconds = (time.perf_counter() - start) / runs
    wrong = is_wrong(asked.problem, means, np.array([one.indices for one in results])).sum()
    pulls = float(np.mean([one.n_pulls for one in results]))
    tool = f"{asked.title}: Shortlist, `shared-items`"
    yield Row(tool, "within epsilon", f"{runs - wrong} of {runs}", pulls, seconds)
    start = time.perf_counter()
    share, answers = items.pruned(table, runs)
    seconds = (time.perf_counter() - start) / runs
    wrong = is_wrong(asked.problem, means, np.array(answers)[:, None]).sum()
    tool = f"{asked.title}: Optuna {version('optuna')}, WilcoxonPruner"
    yield Row(tool, "nothing", f"{runs - wrong} of {runs}", share * table.size, seconds)


# --- programs and grids -----------------------------------------------------------------------------------


def programs() -> Iterator[Row]:
    """Yield the rows on the fastest of three programs, 3 % apart, to within 2 %."""
    timing = importlib.import_module("benchmarks.timing")
    if shutil.which("hyperfine") is None:
        raise RuntimeError("hyperfine is not installed")
    said = subprocess.run(
        ["hyperfine", "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    with contextlib.redirect_stdout(io.StringIO()):
        tallies, *_ = timing.real_programs(REPETITIONS)
    for tool, tally in tallies.items():
        name = tool.replace("hyperfine", said).replace("`shortlist time`", "Shortlist, `shortlist time`")
        promise = "within 2 %" if "shortlist" in tool else "nothing"
        right = f"{tally.n_right} of {len(tally.runs)}"
        yield Row(name, promise, right, float(np.median(tally.runs)), float(np.median(tally.seconds)))


REPETITIONS = 5


def grids() -> Iterator[Row]:
    """Yield the rows on a grid of 40 candidates and 50 splits of the wine data, to within 0.01."""
    warnings.simplefilter("ignore")  # small parts of the samples lack classes
    grid = importlib.import_module("benchmarks.grid")
    data, classes = grid.load_wine(return_X_y=True)
    cv = grid.RepeatedStratifiedKFold(n_splits=grid.FOLDS, n_repeats=grid.REPEATS, random_state=0)
    start = time.perf_counter()
    table = grid.scores(data, classes, cv)
    full = time.perf_counter() - start
    means = table.mean(axis=1)
    name = f"scikit-learn {version('scikit-learn')}"
    yield Row(f"{name}, GridSearchCV", "the best on these splits", "1 of 1", float(table.size), full)
    start = time.perf_counter()
    raced = grid.RaceSearchCV(grid.MODEL, grid.GRID, cv=cv, epsilon=0.01, random_state=0).fit(data, classes)
    seconds = time.perf_counter() - start
    right = int(means[raced.result_.indices[0]] >= means.max() - 0.01)
    fits = float(raced.result_.n_pulls)
    yield Row("Shortlist, `RaceSearchCV`", "within epsilon", f"{right} of 1", fits, seconds)
    start = time.perf_counter()
    halved = grid.halvings(data, classes, cv, table)
    seconds = (time.perf_counter() - start) / grid.HALVINGS
    fits = float(np.mean(halved.fits)) * table.size
    yield Row(f"{name}, HalvingGridSearchCV", "nothing", halved.right(means, 0.01), fits, seconds)


class Part(NamedTuple):
    """A part of the page."""

    title: str
    text: str
    rows: tuple[Callable[[], Iterator[Row]], ...]


def table_part(folder: Path | None) -> Part:
    """Return the part about tables of scores."""
    tables = items.real_tables(folder)
    text = "The best arm of a table, to within 0.05. A pull is a score of the table."
    return Part(
        "Tables of scores",
        f"{text} {items.FEWER} runs, in random order. {items.described(tables)}",
        tuple(functools.partial(scores, *of) for of in tables.items()),
    )


PARTS = {
    "gaussian": Part(
        "The best of 20 simulated arms",
        "Gaussian rewards with standard deviation 1, unknown to all tools. The best arm is "
        f"{1.1 * EPSILON:g} ahead of 19 equal ones; epsilon is {EPSILON:g}, delta {DELTA:g}, {RUNS} runs. "
        "A pull draws one number. OCBA and OCBA-m are given a budget. PyPRS has two worker processes, and "
        "its GSP a first stage of 20 and 5 rounds of 10; its PASS ends with one survivor or 500 pulls of "
        "each, and is right if the best arm survives. The start of Ray is not counted.",
        (gaussian, pyprs),
    ),
    "programs": Part(
        "The fastest of three programs",
        "`sleep 0.1` and two programs that take 3 % and 6 % longer, in random order; medians over "
        f"{REPETITIONS} repetitions. A pull is a timing, of about 0.1 s.",
        (programs,),
    ),
    "grids": Part(
        "A grid of parameters",
        "40 candidates of `SVC` on the wine data, 50 splits; right is a mean accuracy within 0.01 of the "
        "best. A pull is a fit. HalvingGridSearchCV fits most candidates to a part of the samples only.",
        (grids,),
    ),
}
NAMES = ("gaussian", "scores", "programs", "grids")
INTRODUCTION = """\
# Peers

Written by `python -m benchmarks.peers`. Others used the machine heavily at the same time. So times are for
comparison within a table only. *Seconds* are of one run, measurements included; *µs per pull* is the same
divided by pulls.
"""
MISSING = """## Not measured

- irace (racing of algorithm configurations, in R): R was not installed, and pip finds no `iracepy`; the
  package `iRace` that it finds is something else.
- Ax, TensorZero, SimOpt and banditpylib answer other questions; see docs/compared.md.
"""


def lines_of(part: Part) -> list[str]:
    """Return a part of the page; a tool that fails is named with the reason."""
    measured = (
        f"Measured with Shortlist {version('shortlist')} and later changes, Python "
        f"{platform.python_version()}, numpy {np.__version__}, on a machine with {os.cpu_count()} cores."
    )
    lines, notes = [f"## {part.title}", "", f"{part.text} {measured}", "", *HEADER], []
    for rows in part.rows:
        try:
            for row in rows():
                lines.append(row.cells)
                print(row.cells, flush=True)
        except Exception as error:  # whatever a peer raises
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            notes += ["", f"Not measured ({getattr(rows, '__name__', part.title)}): {reason}"]
            print(notes[-1], flush=True)
    return [*lines, *notes, ""]


def main() -> None:
    """Measure, print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=NAMES)
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="a folder with more tables of scores")
    given = parser.parse_args()
    parts = PARTS | {"scores": table_part(given.tables)}
    earlier = RESULTS.read_text(encoding="utf-8").split("\n## ")[1:] if RESULTS.is_file() else []
    known = {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in earlier}
    for name in NAMES:
        if given.only in {None, name}:
            known[parts[name].title] = "\n".join(lines_of(parts[name]))
    text = [
        INTRODUCTION,
        *(known[parts[name].title] for name in NAMES if parts[name].title in known),
        MISSING,
    ]
    RESULTS.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
