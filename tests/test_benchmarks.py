"""The benchmark of pulls writes down what simulation gives, row by row and in its summary."""

import csv
import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks import pulls
from benchmarks.pulls_cases import CASES, Case, cases
from benchmarks.pulls_report import Row, figures

import shortlist as sl
from shortlist.rewards import KINDS
from shortlist.simulation import is_bad
from tests.questions import bound_of

pytestmark = pytest.mark.slow

NAMES = ["n10-m1-equal", "n10-m3-slippage-delta-.1"]
STRATEGIES = ["wnelim", "uniform", "lucb", "bechhofer"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pulls")
    only = [word for name in NAMES for word in ("--only", name)]
    pulls.main(["--quick", *only, "--strategies", ",".join(STRATEGIES), "--output", str(path)])
    return path


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, str]]:
    text = gzip.decompress((folder / "pulls.csv.gz").read_bytes()).decode()
    return list(csv.DictReader(text.splitlines()))


def of(rows: list[dict[str, str]], name: str, noise: str, strategy: str) -> list[dict[str, str]]:
    return [
        row for row in rows if (row["instance"], row["noise"], row["strategy"]) == (name, noise, strategy)
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("strategy", "noise"),
    [("wnelim", "sub-gaussian"), ("uniform", "sub-gaussian"), ("bechhofer", "gaussian")],
)
def test_rows_are_what_simulate_gives(
    rows: list[dict[str, str]], name: str, noise: str, strategy: str
) -> None:
    found = cases([name])[0].build()
    problem = found.problem.changed(rewards=KINDS[noise])
    outcome = sl.simulate(problem, found.means, strategy, replications=10, seed=pulls.SEED)
    mine = of(rows, name, noise, strategy)
    assert [int(row["replication"]) for row in mine] == list(range(10))
    assert {row["seed"] for row in mine} == {str(pulls.SEED)}
    assert [int(row["pulls"]) for row in mine] == outcome.pulls.tolist()
    assert [row["is_error"] == "1" for row in mine] == outcome.is_error.tolist()
    assert all(row["is_final"] == "1" for row in mine)
    x = outcome.pulls * problem.epsilon**2 / (2 * problem.variances.sum())
    assert [float(row["x"]) for row in mine] == pytest.approx(x.tolist(), rel=1e-5)


def test_what_does_not_finish_is_said_so(folder: Path, rows: list[dict[str, str]]) -> None:
    mine = of(rows, NAMES[0], "sub-gaussian", "lucb")
    assert len(mine) == pulls.QUICK.trial
    assert {row["is_final"] for row in mine} == {"0"}
    assert all(int(row["pulls"]) <= pulls.QUICK.budget for row in mine)
    assert not of(rows, NAMES[0], "gaussian", "lucb")
    assert not of(rows, NAMES[0], "gaussian", "wnelim"), "the same for any noise is run once"
    text = (folder / "pulls.md").read_text(encoding="utf-8")
    assert "| lucb | sub-gaussian | 2 | did not finish: 2 of 2" in text


def test_the_summary_shows_means_and_ratios(folder: Path) -> None:
    text = (folder / "pulls.md").read_text(encoding="utf-8")
    found = cases([NAMES[0]])[0].build()
    wnelim, uniform = (
        float(sl.simulate(found.problem, found.means, name, replications=10, seed=pulls.SEED).pulls.mean())
        for name in ("wnelim", "uniform")
    )
    (line,) = re.findall(r"^\| uniform \| sub-gaussian \| 10 \| .*$", text.split("## ")[1], re.MULTILINE)
    columns = [word.strip() for word in line.strip("|").split("|")]
    assert columns[3] == f"{uniform:,.0f} ± 0"
    assert columns[5] == f"{uniform / bound_of(found.problem):,.2f}"
    assert columns[7] == f"{uniform / wnelim:.3f}"
    assert re.search(r"^Commit [0-9a-f]{12}( \(dirty\))?;|^Commit unknown", text, re.MULTILINE)
    assert "## Geometric means of the ratio to wnelim" in text


def test_the_figure_is_drawn(folder: Path) -> None:
    drawn = (folder / "pulls.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")
    assert len(drawn) > 5000


def test_the_p_value_is_that_of_the_binomial_distribution() -> None:
    rows = [Row("a", "gaussian", "b", place, 0, 100 + place, place < 3, True) for place in range(10)]
    got = figures(rows, 0.1)
    assert (got.mean, got.errors, got.unfinished) == (104.5, 3, 0)
    assert got.p_value == pytest.approx(1 - 0.9**10 - 10 * 0.1 * 0.9**9 - 45 * 0.01 * 0.9**8)


def test_what_the_bound_rules_out_is_not_run() -> None:
    case = cases([NAMES[0]])[0]
    task = next(task for task in pulls.tasks(case, ["lucb"]))
    assert pulls.run(task, case, pulls.QUICK, own=1e9) == []


def test_strategies_that_promise_less_are_marked() -> None:
    problem = cases([NAMES[0]])[0].build().problem
    assert pulls.is_promised("wnelim", problem)
    assert not pulls.is_promised("bechhofer", problem.changed(rewards=sl.Gaussian))
    assert not pulls.is_promised("medelim", problem)


# --- the panel ----------------------------------------------------------------------------------------


def test_names_are_different_and_patterns_find_them() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) >= 30
    assert [case.name for case in cases(["n20-m1-*"])] == [
        name for name in names if name.startswith("n20-m1-")
    ]
    with pytest.raises(SystemExit, match="no instance matches nothing"):
        cases(["nothing"])


SMALL = [case for case in CASES if not case.name.startswith(("n100000", "n10000-"))]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_every_case_is_what_its_name_says(case: Case) -> None:
    found = case.build()
    problem = found.problem
    if case.name.startswith("n"):
        assert case.name.startswith(f"n{problem.n}-m{problem.m}-")
        assert problem.epsilon == 0.1
    assert len(found.means) == problem.n
    good = int((~is_bad(problem, found.means)).sum())
    if "slippage" in case.name or "gap-1.1" in case.name or "gap-2" in case.name:
        assert good == problem.m
    if "equal" in case.name or "gap-0.5" in case.name:
        assert good == problem.n
    if "powers" in case.name:
        assert sorted(problem.variances) == [2.0**i for i in range(20)]
    if "linear" in case.name:
        assert np.sort(found.means) == pytest.approx(np.linspace(0, 1, problem.n))


def test_other_strategies_are_kept_where_that_is_wanted(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pulls.csv.gz").write_bytes((folder / "pulls.csv.gz").read_bytes())
    given = [
        "--quick",
        "--only",
        NAMES[0],
        "--strategies",
        "single-stage",
        "--keep",
        "--output",
        str(tmp_path),
    ]
    pulls.main(given)
    before, after = (pulls.read_csv(path / "pulls.csv.gz") for path in (folder, tmp_path))
    kept = {task: rows for task, rows in before.items() if task.instance == NAMES[0]}
    assert {task: after[task] for task in kept} == kept
    assert {task.strategy for task in after.keys() - kept.keys()} == {"single-stage"}
    text = (tmp_path / "pulls.md").read_text(encoding="utf-8")
    assert "| single-stage |" in text
    assert "| bechhofer" in text


def test_it_is_said_at_which_commit_which_rows_were_measured() -> None:
    assert pulls.provenance("abc", []) == "abc"
    assert pulls.provenance("abc", ["race", "biz"]) == "abc for race, biz, earlier ones for other strategies"


def test_rows_that_are_kept_are_said_to_be_older(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pulls.csv.gz").write_bytes((folder / "pulls.csv.gz").read_bytes())
    given = ["--quick", "--keep", "--only", NAMES[0], "--strategies", "wnelim", "--output", str(tmp_path)]
    pulls.main(given)
    text = (tmp_path / "pulls.md").read_text(encoding="utf-8")
    assert " for wnelim, earlier ones for other strategies; Python" in text
    assert "| uniform |" in text
