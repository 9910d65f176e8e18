"""How often timings find the fastest program, on a simulated machine that drifts and with real programs.

1. A simulated machine becomes a tenth slower half-way through a run. Three programs differ by 3 %; an answer
   is wrong if the program selected is more than 2 % slower than the fastest.
2. Real programs that sleep, for times that differ by 3 %, are timed by `shortlist.time` and by hyperfine,
   which must be installed.

Figures go to benchmarks/results/timing.md.
"""

import json
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import shortlist as sl
from shortlist.measure.timing import TimingSource, epsilon_of
from shortlist.timings import TimingRun, Timings, timing_problem

RESULTS = Path(__file__).parent / "results" / "timing.md"
RUNS, REPETITIONS = 200, 50
RATIOS, WITHIN, NOISE, DRIFT = (1.0, 1.03, 1.06), 0.02, 0.03, 0.1
SLEEP = 0.1  # seconds

Shape: TypeAlias = Callable[[float], float]
SHAPES: dict[str, Shape] = {
    "no drift": lambda _: 0.0,
    "10 % slower, half-way": lambda share: DRIFT if share > 0.5 else 0.0,
    "10 % slower, steadily": lambda share: DRIFT * min(share, 1.0),
}


@dataclass
class Machine:
    """Times programs; its speed depends on the share of the run that has passed."""

    ratios: Sequence[float]
    rng: np.random.Generator
    shape: Shape = SHAPES["no drift"]
    total: int = 1
    n_timed: int = 0

    def log_time(self, arm: int) -> float:
        """Return the logarithm of a time."""
        level = math.log1p(self.shape(self.n_timed / self.total))
        self.n_timed += 1
        return level + math.log(self.ratios[arm]) + float(self.rng.normal(0, NOISE))


def by_blocks(machine: Machine, seed: int) -> sl.Result:
    """Return the answer of `shortlist time`."""
    names = list(map(str, range(len(machine.ratios))))
    timers = [lambda arm=arm: math.exp(machine.log_time(arm)) for arm in range(len(names))]
    run = TimingRun(timing_problem(names, WITHIN), TimingSource(timers, names, warmup=0))
    with run.session(seed=seed) as session:
        return run.driven(session).result


def arm_by_arm(strategy: str) -> Callable[[Machine, int], sl.Result]:
    """Return a function that asks the same, with one program timed after the other in each round."""

    def answer(machine: Machine, seed: int) -> sl.Result:
        items = sl.Blocks() if strategy == "paired-race" else None
        problem = sl.Problem(
            m=1,
            epsilon=epsilon_of(WITHIN),
            delta=0.05,
            n=len(machine.ratios),
            rewards=sl.Gaussian(),
            goal="minimise",
            items=items,
        )

        def measure(arm: int, what: Any, *_: Any) -> list[float]:
            return [machine.log_time(arm) for _ in range(what if items is None else len(what))]

        return sl.select(measure, problem, strategy, seed=seed, turns=1)

    return answer


def one_after_the_other(machine: Machine, seed: int) -> sl.Result:
    """Return the smallest mean of as many times of each program as blocks take, timed one by one."""
    quiet = by_blocks(Machine(machine.ratios, np.random.default_rng([seed, 1])), seed)
    size = math.ceil(quiet.n_pulls / len(machine.ratios))
    machine.total = size * len(machine.ratios)
    means = [np.mean([machine.log_time(arm) for _ in range(size)]) for arm in range(len(machine.ratios))]
    return sl.Result(**(vars(quiet) | {"indices": np.array([np.argmin(means)])}))


WAYS: dict[str, Callable[[Machine, int], sl.Result]] = {
    "`shortlist time`: blocks in lockstep": by_blocks,
    "arm by arm, `t-race` (certified)": arm_by_arm("t-race"),
    "arm by arm, `paired-race` (certified)": arm_by_arm("paired-race"),
    "arm by arm, equal numbers, smallest mean": one_after_the_other,
}


def wrong_answers(
    way: Callable[[Machine, int], sl.Result], shape: Shape, runs: int = RUNS
) -> tuple[int, float]:
    """Return how many runs select a program that is too slow, and how many timings a run takes."""
    n_wrong, n_timed = 0, []
    for seed in range(runs):
        ratios = np.random.default_rng(seed).permutation(RATIOS).tolist()
        still = way(Machine(ratios, np.random.default_rng([seed, 1])), seed)
        moving = Machine(ratios, np.random.default_rng([seed, 1]), shape, still.n_pulls)
        found = way(moving, seed)
        n_wrong += ratios[int(found.indices[0])] > 1 + WITHIN
        n_timed.append(moving.n_timed)
    return n_wrong, float(np.mean(n_timed))


# --- real programs ----------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What a tool found, repetition by repetition."""

    n_right: int = 0
    runs: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def note(self, fastest: str, right: str, n_runs: int, began: float) -> None:
        """Add a repetition."""
        self.n_right += fastest == right
        self.runs.append(n_runs)
        self.seconds.append(time.perf_counter() - began)

    def cells(self) -> str:
        """Return the figures as cells of a table."""
        runs, seconds = np.array(self.runs), np.array(self.seconds)
        return f"{self.n_right} of {len(runs)} | {np.median(runs):.0f} | {np.median(seconds):.1f}"


def hyperfine(commands: Sequence[str], n_runs: int | None) -> tuple[str, int, str]:
    """Return its fastest command, the number of all timings, and the end of what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        options = ["-N", "--style", "basic", "--export-json", str(file)]
        options += [] if n_runs is None else ["--runs", str(n_runs)]
        said = subprocess.run(["hyperfine", *options, *commands], capture_output=True, text=True, check=True)
        results = json.loads(file.read_text())["results"]
    fastest = min(results, key=lambda one: one["mean"])["command"]
    summary = said.stdout[said.stdout.index("Summary") :].rstrip()
    return fastest, sum(len(one["times"]) for one in results), summary


def real_programs(repetitions: int) -> tuple[dict[str, Tally], Timings, str, int]:
    """Return what each tool found, an example of each one's words, and how often ours had notes."""
    tools = ("`shortlist time`", "hyperfine, by default", "hyperfine, as many runs")
    tallies = {tool: Tally() for tool in tools}
    n_noted = 0
    for seed in range(repetitions):
        ratios = np.random.default_rng(seed).permutation(RATIOS)
        commands = [f"sleep {SLEEP * ratio:g}" for ratio in ratios]
        right = f"sleep {SLEEP:g}"
        began = time.perf_counter()
        found = sl.time(commands, WITHIN, seed=seed)
        n_timed = found.result.n_pulls
        tallies[tools[0]].note(found.fastest[0], right, n_timed, began)
        n_noted += any("cancels out" not in note for note in found.notes)
        for tool, n_runs in zip(tools[1:], (None, math.ceil(n_timed / 3)), strict=True):
            began = time.perf_counter()
            fastest, n_all, summary = hyperfine(commands, n_runs)
            tallies[tool].note(fastest, right, n_all, began)
        print(seed, *(tally.cells() for tally in tallies.values()), sep=" | ", flush=True)
    return tallies, found, summary, n_noted


def main() -> None:
    """Count right and wrong answers, and write the figures."""
    lines = [
        "# Timings",
        "",
        f"Which of three programs is the fastest, to within {100 * WITHIN:g} %, with delta = 0.05? "
        "They differ by 3 %. An answer is wrong if the program selected is more "
        f"than {100 * WITHIN:g} % slower than the fastest.",
        "",
        "## A simulated machine that becomes slower",
        "",
        f"Wrong answers among {RUNS} runs, and the mean number of timings of a run. The noise is "
        f"{100 * NOISE:g} %, and the order of the programs is random.",
        "",
        "| way | " + " | ".join(SHAPES) + " | timings |",
        "|---|" + "---|" * (len(SHAPES) + 1),
    ]
    for name, way in WAYS.items():
        found = [wrong_answers(way, shape) for shape in SHAPES.values()]
        counts = " | ".join(str(n_wrong) for n_wrong, _ in found)
        lines.append(f"| {name} | {counts} | {found[0][1]:.0f} |")
        print(lines[-1], flush=True)
    if shutil.which("hyperfine") is None:
        raise SystemExit("hyperfine is not installed")
    version = subprocess.run(["hyperfine", "--version"], capture_output=True, text=True, check=True).stdout
    tallies, example, summary, n_noted = real_programs(REPETITIONS)
    lines += [
        "",
        "## Real programs",
        "",
        f"`sleep {SLEEP:g}`, `sleep {SLEEP * RATIOS[1]:g}` and `sleep {SLEEP * RATIOS[2]:g}`, in random "
        f"order, on a machine with 2 cores that others use as well; {REPETITIONS} repetitions. Beside "
        f"`shortlist time`: {version.strip()}, without a shell (`-N`), by default and with as many runs. "
        "Its answer is the command of the smallest mean. Medians over the repetitions:",
        "",
        "| tool | right | timings | seconds |",
        "|---|---|---|---|",
        *(f"| {tool} | {tally.cells()} |" for tool, tally in tallies.items()),
        "",
        f"In {n_noted} of {REPETITIONS} repetitions `shortlist time` noted doubts about its assumptions. "
        "What it says in the last repetition:",
        "",
        "```text",
        str(example),
        "```",
        "",
        "What hyperfine says, with as many runs:",
        "",
        "```text",
        summary,
        "```",
        "",
        "hyperfine times all runs of a command, then those of the next, and prints a mean and a standard "
        "deviation of each. It promises nothing about the order, and the number of runs does not depend on "
        "how clear the answer is.",
        "",
    ]
    RESULTS.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
