"""All strategies against each other on built-in instances."""

import csv
from pathlib import Path

import pytest

import shortlist as sl
from tests.cli.calling import Calls
from tests.questions import bound_of

SMALL = ("-n", "8", "-m", "2", "--epsilon", "0.5", "--replications", "4")


def test_pulls_are_shown_as_multiples_of_the_lower_bound_the_least_first(call: Calls) -> None:
    done = call("bench", *SMALL, "--strategy", "wnelim", "--strategy", "single-stage", "--instance", "equal")
    assert done.status == 0
    problem = sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0] * 8)
    bound = bound_of(problem).pulls
    gaps = {
        name: (sl.plan(problem)[name].worst_case_pulls or 0) / bound for name in ("wnelim", "single-stage")
    }
    rows = [line.split() for line in done.out.splitlines()[1:3]]
    assert rows == [
        [name, f"{gap:.2f}", f"{gap:.2f}"] for name, gap in sorted(gaps.items(), key=lambda g: g[1])
    ]
    assert f"equal {bound:,.0f}" in done.out


def test_the_last_column_is_the_geometric_mean(call: Calls) -> None:
    done = call("bench", *SMALL, "--strategy", "race", "--instance", "equal", "--instance", "linear")
    _, equal, linear, overall = done.out.splitlines()[1].split()
    assert float(overall) == pytest.approx((float(equal) * float(linear)) ** 0.5, abs=0.011)


def test_figures_are_those_of_simulate(call: Calls) -> None:
    (one,) = call("bench", *SMALL, "--strategy", "race", "--instance", "slippage", "--json").data
    problem = sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0] * 8)
    found = sl.instances.slippage(problem)
    again = sl.simulate(problem, found.means, "race", replications=4)
    assert one["mean_pulls"] == again.pulls.mean()
    assert (one["errors"], one["replications"], one["instance"]) == (again.errors, 4, "slippage")
    assert one["gap"] == pytest.approx(again.pulls.mean() / bound_of(problem).pulls)


def test_by_default_every_strategy_with_a_cap_plays_four_instances(call: Calls) -> None:
    found = call("bench", *SMALL[:-1], "2", "--json").data
    assert list(dict.fromkeys(one["instance"] for one in found)) == ["equal", "slippage", "linear", "random"]
    assert {"race", "wnelim", "vmedelim", "medelim", "single-stage"} <= {one["strategy"] for one in found}


def test_errors_are_starred(call: Calls) -> None:
    how = ("--delta", "0.9", "--replications", "60", "--instance", "slippage", "--strategy", "bechhofer")
    shape = ("-n", "8", "-m", "2", "--epsilon", "0.5")
    (one,) = call("bench", *shape, *how, "--json").data
    assert one["errors"] >= 3, "the instance is of no use for this test"
    assert "***" in call("bench", *shape, *how).out.splitlines()[1]


def test_every_run_is_a_line_of_the_file(call: Calls) -> None:
    done = call("bench", *SMALL, "--strategy", "race", "--instance", "equal", "-o", "pulls.csv")
    assert "Written to pulls.csv." in done.out
    rows = list(csv.DictReader(Path("pulls.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["replication"] for row in rows] == ["0", "1", "2", "3"]
    (told,) = call("bench", *SMALL, "--strategy", "race", "--instance", "equal", "--json").data
    assert sum(int(row["pulls"]) for row in rows) / 4 == told["mean_pulls"]


def test_a_strategy_that_refuses_an_instance_has_a_dash_and_no_mean(call: Calls) -> None:
    names = ("--strategy", "bechhofer", "--strategy", "race", "--strategy", "medelim")
    done = call("bench", *SMALL, *names, "--instance", "equal", "--instance", "random")
    assert done.status == 0
    for line in done.out.splitlines()[1:4]:
        cells = line.split()[1:]
        assert (cells[-1] == "-") == ("-" in cells[:-1])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--instance", "nowhere"), "there is no instance 'nowhere'"),
        (("-o", "there/is/no/folder.csv"), "in an existing folder"),
        (("--strategy", "luck"), "luck"),
        (("-m", "9"), "`m` is 9"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_played(
    call: Calls, words: tuple[str, ...], said: str
) -> None:
    done = call("bench", *SMALL, *words)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
