"""Every example is run as its page says, prints what the page shows, and answers rightly.

The truth of each comes from a formula that has nothing to do with the run.
"""

import csv
import functools
import math
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from benchmarks.inventory import moments, systems
from benchmarks.throughput import lines, throughputs
from examples import evaluation, inventory, leaderboard, training
from examples import warehouse as few_policies

from shortlist.files.problem_file import read_problem_file

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")
CONSOLE = dict(re.findall(r"^```console\n\$ (.*?)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL))


class Case(NamedTuple):
    """What an example asks, and the true mean of every arm."""

    command: str
    m: int
    epsilon: float
    truth: Callable[[], dict[str, float]]
    is_small_good: bool = False


def column_of(file: str) -> dict[str, float]:
    with (EXAMPLES / file).open(encoding="utf-8") as lines:
        return {row["name"]: float(row["mean"]) for row in csv.DictReader(lines)}


def erlang() -> dict[str, float]:
    """Return the mean time in each call centre: the talk, and a wait by Erlang's formula C."""
    found = {}
    with (EXAMPLES / "call-centre.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            agents, load = int(row["agents"]), float(row["talk"])  # one call per minute
            all_busy = load**agents / math.factorial(agents) / (1 - load / agents)
            rest = sum(load**k / math.factorial(k) for k in range(agents))
            found[row["name"]] = load + all_busy / (all_busy + rest) * load / (agents - load)
    return found


def trained() -> dict[str, float]:
    return {f"rate {rate:g}, batch {batch}": training.expected_loss(rate, batch) for rate, batch in SETTINGS}


@functools.cache
def warehouse() -> dict[str, float]:
    found = systems()
    names = (f"({s},{S})" for s, S in zip(found.reorder, found.level, strict=True))
    return dict(zip(names, found.means.tolist(), strict=True))


@functools.cache
def few() -> dict[str, float]:
    reorder, level = map(np.array, zip(*few_policies.POLICIES, strict=True))
    return dict(zip(few_policies.NAMES, moments(reorder, level)[0].tolist(), strict=True))


@functools.cache
def flow_lines() -> dict[str, float]:
    every = lines(10)
    names = [every.name(arm) for arm in range(len(every.rates))]
    return dict(zip(names, (1 / throughputs(every)).tolist(), strict=True))


SETTINGS = training.SETTINGS
CASES = {
    "drilling": Case("shortlist run examples/drilling.toml", 5, 0.5, lambda: column_of("drilling-sites.csv")),
    "evaluation": Case("python examples/evaluation.py", 3, 0.03, evaluation.accuracies),
    "call-centre": Case("shortlist run examples/call-centre.toml", 1, 0.1, erlang, is_small_good=True),
    "training": Case(
        "shortlist run examples/training.toml --workers 2", 1, 0.03, trained, is_small_good=True
    ),
    "ab-test": Case(
        "shortlist run examples/ab-test.toml", 1, 0.01, lambda: column_of("ab-test-variants.csv")
    ),
    "leaderboard": Case("python examples/leaderboard.py", 5, 0.03, leaderboard.means),
    "best-model": Case("shortlist run examples/best-model.toml", 1, 0.03, leaderboard.means),
    "inventory": Case("python examples/inventory.py", 10, 0.5, warehouse, is_small_good=True),
    "warehouse": Case("python examples/warehouse.py", 1, 0.5, few, is_small_good=True),
    "flow_line": Case(
        "python examples/flow_line.py --size 10 --cpu", 1, 0.0151, flow_lines, is_small_good=True
    ),
    "policies": Case("shortlist run examples/policies.toml", 1, 0.5, few, is_small_good=True),
}
each_case = pytest.mark.parametrize("name", CASES)


@functools.cache
def done(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the page from the project's root, at 80 columns."""
    program, *arguments = shlex.split(command)
    start = {"shortlist": [sys.executable, "-m", "shortlist"], "python": [sys.executable]}[program]
    environment = os.environ | {"COLUMNS": "80", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [*start, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def selected(out: str, case: Case) -> list[str]:
    """Return the arms that an output lists as selected: a line each, before any truth is told."""
    told = re.split(r"The truth|^not selected", out, maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line.strip() for line in told.splitlines()]
    return [name for name in case.truth() if any(line.startswith(f"{name}  ") for line in lines)]


def is_right(case: Case, names: list[str]) -> bool:
    """Whether these are m arms, none of them more than epsilon worse than the m-th best."""
    merits = {name: -mean if case.is_small_good else mean for name, mean in case.truth().items()}
    least = sorted(merits.values())[-case.m] - case.epsilon
    return len(set(names)) == case.m and all(merits[name] >= least for name in names)


# --- what they answer -----------------------------------------------------------------------------


@each_case
def test_the_answer_is_right(name: str) -> None:
    case = CASES[name]
    run = done(case.command)
    assert run.returncode == 0, run.stderr
    assert is_right(case, selected(run.stdout, case)), run.stdout
    assert "With probability at least 95 %" in run.stdout
    assert not re.search("Traceback|Warning", run.stderr)
    assert "Error" not in run.stderr


@each_case
def test_a_wrong_answer_would_be_seen(name: str) -> None:
    case = CASES[name]
    best_first = sorted(case.truth(), key=lambda arm: case.truth()[arm], reverse=not case.is_small_good)
    assert is_right(case, best_first[: case.m])
    assert not is_right(case, best_first[-case.m :])
    assert not is_right(case, [*best_first[: case.m - 1], best_first[len(best_first) // 2]])
    assert not is_right(case, best_first[: case.m - 1])
    assert not is_right(case, [])


@each_case
def test_an_answer_is_worth_asking_for(name: str) -> None:
    case = CASES[name]
    n_right = sum(is_right(case._replace(m=1), [arm]) for arm in case.truth())
    assert n_right <= len(case.truth()) / 3  # most arms would be wrong


@pytest.mark.parametrize("name", ["drilling", "call-centre", "training", "ab-test", "best-model", "policies"])
def test_the_question_is_that_of_the_file(name: str) -> None:
    case, asked = CASES[name], read_problem_file(EXAMPLES / f"{name}.toml").problem
    assert (asked.m, asked.epsilon, asked.delta) == (case.m, case.epsilon, 0.05)
    assert asked.goal == ("minimise" if case.is_small_good else "maximise")
    assert [asked.name(arm) for arm in range(asked.n)] == list(case.truth())


def test_the_evaluation_leaves_its_files_where_it_is_told(tmp_path: Path) -> None:
    run = done(f"python examples/evaluation.py --folder {tmp_path / 'new'} --questions 100")
    assert run.returncode == 0
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "answers.npy",
        "evaluation-0.03.toml",
        "shortlist.db",
    }
    assert np.load(tmp_path / "new" / "answers.npy").shape == (24, 100)


def test_the_leaderboard_counts_every_call() -> None:
    out = done("python examples/leaderboard.py").stdout
    counts = re.findall(r"^calls: ([\d,]+) of 40,000 \(([\d.]+)%\)$", out, flags=re.MULTILINE)
    told = re.findall(r"^([\d,]+) of 40,000 scores \(([\d.]+)%\)", out, flags=re.MULTILINE)
    assert counts == told
    assert [float(share) < 50 for _, share in counts] == [True, True]
    assert is_right(
        CASES["best-model"], re.findall(r"^Selected 1 of 50 arms: (.*)$", out, flags=re.MULTILINE)
    )
    assert re.search(r"^whole table +\|#{40}\| 40,000$", out, flags=re.MULTILINE)


# --- what they measure ----------------------------------------------------------------------------


def off(sample: object, truth: object) -> float:
    """Return by how many standard errors the means of samples, a row each, miss the truth at most."""
    rewards = np.asarray(sample, dtype=np.float64)
    errors = rewards.std(axis=-1, ddof=1) / np.sqrt(rewards.shape[-1])
    return float(np.abs((rewards.mean(axis=-1) - np.asarray(truth)) / errors).max())


@pytest.mark.parametrize(("calls", "count"), [(1, 20_000), (1000, 400)])  # a first call shows how it begins
def test_the_call_centre_is_the_queue_of_the_formula(calls: int, count: int) -> None:
    with (EXAMPLES / "call-centre.csv").open(encoding="utf-8") as lines:
        designs = list(csv.DictReader(lines))
    for design in designs:
        settings = [f"agents={design['agents']}", f"talk={design['talk']}", f"count={count}", "seed=5"]
        settings.append(f"calls={calls}")
        options = [part for setting in settings for part in ("-v", setting)]
        command = ["awk", "-f", "examples/call-centre.awk", *options]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert off([float(line) for line in run.stdout.split()], erlang()[design["name"]]) < 4.5


def test_trainings_have_the_expected_loss() -> None:
    for arm in (3, 6, 10, 11):
        losses = training.measure(arm, 150, np.random.default_rng(arm))
        assert off(losses, training.expected_loss(*SETTINGS[arm])) < 4.5


def test_better_models_answer_better() -> None:
    shares = evaluation.accuracies(4000)
    assert list(shares.values()) == evaluation.recorded(4000).mean(axis=1).tolist()
    assert shares["huge-tuned, both"] > shares["medium, both"] > shares["tiny, both"] > shares["tiny, bare"]


def test_the_warehouse_is_that_of_the_exact_moments() -> None:
    found, arms = systems(), np.arange(0, 1600, 40)
    counts = np.full(len(arms), 500)
    sample = inventory.costs(arms, counts, np.random.default_rng(1))
    assert off(sample, found.means[arms]) < 4.5
    uneven = inventory.costs(np.array([3, 900]), np.array([2, 5]), np.random.default_rng(1))
    assert [len(one) for one in uneven] == [2, 5]


def test_common_random_numbers_are_those_of_the_same_demand() -> None:
    blocks = list(range(400))
    rewards = {
        one: np.array([one(arm, blocks) for arm in (6, 10)])
        for one in (few_policies.measure, few_policies.measure_apart)
    }
    truth = [list(few().values())[arm] for arm in (6, 10)]
    assert all(off(sample, truth) < 4.5 for sample in rewards.values())
    correlations = [float(np.corrcoef(sample)[0, 1]) for sample in rewards.values()]
    assert correlations[0] > 0.8
    assert abs(correlations[1]) < 0.2
    times = re.search(r"([\d.]+) times as many", done("python examples/warehouse.py").stdout)
    assert times is not None
    assert float(times[1]) > 2


# --- the page -------------------------------------------------------------------------------------


def masked(name: str, text: str) -> list[str]:
    """Return the lines of an output; of the call centre without what depends on the kind of awk."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    if name != "call-centre":
        return lines
    best = [arm for arm in erlang() if is_right(CASES[name], [arm])]
    return [re.sub(r"\d+", "#", re.sub(f"^({'|'.join(best)}) ", "best ", line)) for line in lines]


@each_case
def test_the_page_shows_what_the_example_prints(name: str) -> None:
    command = CASES[name].command
    printed, shown = masked(name, done(command).stdout), masked(name, CONSOLE[command])
    if shown[0] != "...":
        assert printed[0] == shown[0]
    rest = iter(printed)
    for line in shown:
        assert line == "..." or line in rest, f"put what `{command}` prints into examples/README.md"


def test_the_page_and_the_files_name_all_commands() -> None:
    assert set(CONSOLE) == {case.command for case in CASES.values()}
    for name, case in CASES.items():
        (file,) = (path for path in EXAMPLES.glob(f"{name}.*") if path.suffix in {".toml", ".py"} - OWN[name])
        header = file.read_text(encoding="utf-8")[:1200]
        assert case.command.replace(" --workers 2", "") in header
        assert f"]({file.name})" in PAGE


OWN: dict[str, set[str]] = {name: set() for name in CASES} | {"training": {".py"}}
"""Files of the same name that are not run themselves."""


@pytest.mark.parametrize(
    ("name", "arms"),
    [
        ("call-centre", ["2 experts", "3 seniors"]),
        ("training", ["rate 0.1, batch 16", "rate 0.03, batch 4"]),
        ("ab-test", ["free trial", "free trial and photo"]),
        ("leaderboard", ["knn-1", "mlp-32", "svm-rbf-C10"]),
        ("best-model", ["knn-1", "knn-3"]),
        ("inventory", ["(18,53)", "(17,54)"]),
        ("warehouse", ["(18,53)", "(14,49)"]),
        ("flow_line", ["(3,4,3,5,5)"]),
    ],
)
def test_the_page_tells_the_truth(name: str, arms: list[str]) -> None:
    truth = CASES[name].truth()
    (said,) = (part for part in PAGE.split("\n## ") if CASES[name].command in part)
    assert all(f"{truth[arm]:.3f}" in said.split("```")[-1] for arm in arms)


def test_the_output_fits_80_columns() -> None:
    for case in CASES.values():
        if case.command.startswith("shortlist"):
            assert max(len(line.rstrip()) for line in done(case.command).stdout.splitlines()) <= 80
