"""Pulls with costs: the race spends less, budgets are hard, bounds and plans count cost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.client.questions import question_dict, question_from
from shortlist.errors import ChangedRun, InvalidProblem
from shortlist.files.problem_file import read_problem
from shortlist.store.codec import decoded, encoded
from shortlist.store.events import Began
from tests.questions import bound_of

pytestmark = pytest.mark.slow

COSTS = np.array([1.0, 5.0, 0.5, 2.0, 1.0, 1.0])
VARIANCES = np.array([1.0, 1.0, 2.0, 0.5, 1.0, 1.0])
MEANS = np.array([0.0, 0.9, 0.7, 0.3, 0.2, 0.1])


def question(**changes: Any) -> sl.Problem:
    given: dict[str, Any] = {"m": 2, "epsilon": 0.3, "delta": 0.1, "variances": VARIANCES, "costs": COSTS}
    return sl.Problem(**(given | changes))


def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
    return rng.normal(MEANS[arm], VARIANCES[arm] ** 0.5, count)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([1.0] * 5, "5 entries"),
        ([1.0] * 5 + [0.0], "contains 0"),
        ([1.0] * 5 + [-1.0], "contains -1"),
        ([1.0] * 5 + [np.inf], "contains inf"),
        ([1.0] * 5 + [np.nan], "contains nan"),
        ("cheap", "costs"),
    ],
)
def test_wrong_costs_are_refused(costs: Any, message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        question(costs=costs)


def test_costs_are_part_of_the_question_everywhere(tmp_path: Path) -> None:
    problem, free = question(), question(costs=None)
    assert problem != free != question(costs=COSTS * 2)
    assert free.digest == sl.Problem(2, 0.3, 0.1, VARIANCES).digest
    back = decoded(*encoded(Began(problem, "race", 0, "race", "c", "9")))
    assert isinstance(back, Began)
    assert back.problem == problem
    assert question_from(question_dict(problem) | {"digest": problem.digest}) == problem
    assert problem.changed(epsilon=0.2).costs is not None
    unknown = sl.Problem(m=1, epsilon=0.3, delta=0.1, n=6, rewards=sl.Gaussian(), costs=COSTS)
    assert unknown.digest != sl.Problem(m=1, epsilon=0.3, delta=0.1, n=6, rewards=sl.Gaussian()).digest
    (tmp_path / "arms.csv").write_text(
        "name,variance,cost\n" + "".join(f"a{k},{VARIANCES[k]},{COSTS[k]}\n" for k in range(6))
    )
    asked = tmp_path / "asked.toml"
    asked.write_text('[problem]\nm = 2\nepsilon = 0.3\ndelta = 0.1\narms = "arms.csv"\n')
    assert (read_problem(asked).costs == COSTS).all()  # type: ignore[union-attr]
    asked.write_text('[problem]\nm = 2\nepsilon = 0.3\ndelta = 0.1\narms = "arms.csv"\ncosts = [1, 1]\n')
    with pytest.raises(InvalidProblem, match="give the costs once"):
        read_problem(asked)
    with sl.Session(problem, "race", store=tmp_path / "r.db"):
        pass
    with pytest.raises(ChangedRun, match=r"cost of arm-1 was 5\.0, is 4\.0"):
        sl.Session(question(costs=[1, 4, 0.5, 2, 1, 1]), "race", store=tmp_path / "r.db")
    with pytest.raises(ChangedRun, match="costs of pulls were removed"):
        sl.Session(free, "race", store=tmp_path / "r.db")


def test_a_result_has_its_cost() -> None:
    result = sl.select(measure, question(), "race")
    assert result.cost == pytest.approx(float(COSTS @ result.arms.pulls))
    assert f"at a cost of {result.cost:,.6g}" in str(result)
    assert result.to_dict()["cost"] == result.cost
    assert result.gap == pytest.approx(result.cost / bound_of(question()).pulls)
    assert "costs at least" in result.optimality
    free = sl.select(measure, question(costs=None), "race")
    assert free.cost == free.n_pulls


def test_the_race_spends_less_where_pulls_are_expensive() -> None:
    """Two good arms, one of them expensive to measure, and many bad ones: the cheap one is pulled more."""
    costs = np.array([1.0, 30.0, *[1.0] * 20])
    means = np.array([1.0, 1.0, *[0.4] * 20])
    free = sl.Problem(m=2, epsilon=0.3, delta=0.1, variances=np.ones(22))
    priced = free.changed(costs=costs)
    spent = {}
    for name, problem in (("free", free), ("priced", priced)):
        found = sl.simulate(problem, means, "race", replications=30, seed=1)
        assert found.errors <= 3
        spent[name] = float(np.mean([costs @ pulls for pulls in _pulls(problem, means)]))
    assert spent["priced"] < 0.9 * spent["free"]


def _pulls(problem: sl.Problem, means: Any) -> list[Any]:
    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        return rng.normal(means[arm], 1.0, count)

    return [sl.select(measure, problem, "race", seed=seed).arms.pulls for seed in range(12)]


@pytest.mark.parametrize("budget", [0, 10.5, 60, 173.25])
@pytest.mark.parametrize("together", [1, 3])
def test_a_budget_is_in_the_units_of_costs_and_hard(budget: float, together: int) -> None:
    spent: list[float] = []

    def one(arm: int, count: int, rng: np.random.Generator) -> Any:
        spent.append(float(COSTS[arm] * count))
        return measure(arm, count, rng)

    def several(arms: Any, counts: Any, rng: np.random.Generator) -> Any:
        rows = zip(arms.tolist(), counts.tolist(), strict=True)
        return [one(arm, count, rng) for arm, count in rows]

    source: Any = one if together == 1 else sl.vectorised(several, block=together)
    result = sl.select(source, question(), "race", budget=budget, pulls_per_call=2)
    assert result.stop is sl.Stop.BUDGET
    assert sum(spent) <= budget
    assert sum(spent) > budget - 30


def test_a_budget_without_costs_is_a_whole_number_of_pulls() -> None:
    with pytest.raises(InvalidProblem, match="whole number"):
        sl.select(measure, question(costs=None), "race", budget=10.5)
    with pytest.raises(InvalidProblem, match="in the units of `costs`"):
        sl.select(measure, question(), "race", budget=-1.0)


def test_lower_bounds_scale_with_costs_and_count_what_is_expensive() -> None:
    free = question(costs=None)
    least = bound_of(free)
    same, double = bound_of(question(costs=np.ones(6))), bound_of(question(costs=np.full(6, 2.0)))
    assert same.pulls == pytest.approx(least.pulls)
    assert double.pulls == pytest.approx(2 * least.pulls)
    assert double.is_cost
    assert not least.is_cost
    dear = bound_of(question(costs=COSTS))
    noisier = bound_of(sl.Problem(2, 0.3, 0.1, VARIANCES * COSTS))
    for name in ("null-instance", "swaps", "dual-product", "dual-uniform"):
        assert dear.candidates[name] == pytest.approx(noisier.candidates[name])
    easy = sl.Problem(m=2, epsilon=1e6, delta=0.1, variances=VARIANCES, costs=COSTS)
    assert bound_of(easy).candidates["whole-pulls"] == pytest.approx(0.9 * COSTS.sum() - 0.2 * COSTS.max())


def test_plans_count_cost() -> None:
    problem = question()
    found = sl.plan(problem)
    for row in found.rows:
        if row.worst_case_pulls is None or not row.is_certified:
            continue
        assert row.worst_case_cost is not None
        assert row.worst_case_cost <= row.worst_case_pulls * COSTS.max()
        assert row.worst_case_cost >= row.worst_case_pulls * COSTS.min()
    single = found["single-stage"]
    result = sl.select(measure, problem, "single-stage")
    assert result.cost == pytest.approx(single.worst_case_cost)
    assert found.gap == pytest.approx((found.best.worst_case_cost or 0) / bound_of(problem).pulls)
    reverse = sl.plan(problem, budget=2000)
    assert (reverse.best.worst_case_cost or 0) <= 2000
    assert reverse.problem.costs is not None
    race = found["race"]
    for seed in range(5):
        assert sl.select(measure, problem, "race", seed=seed).cost <= (race.worst_case_cost or 0)


PRICES = np.array([0.1, 0.3, 0.7, 1.1, 2.3, 0.01, 3.3])  # none of them is exact in binary
KINDS: dict[str, dict[str, Any]] = {
    "race": {"variances": [0.5, 1.0, 2.0, 1.0, 0.7]},
    "level-race": {"variances": [0.5, 1.0, 2.0, 1.0, 0.7]},
    "t-cut-race": {"n": 5, "rewards": sl.Gaussian()},
    "paired-race": {"n": 5, "rewards": sl.Gaussian(), "items": sl.Blocks()},
    "shared-items": {"n": 5, "rewards": sl.Bounded(-0.3, 1.1), "items": list(range(200))},
}


@pytest.mark.parametrize("number", range(30))
def test_budgets_and_resumed_runs_change_no_bit(number: int, tmp_path: Path) -> None:
    """On shared items, a budget may divide a round: then means are those of the scores, in their order."""
    rng, strategy = np.random.default_rng(number), [*KINDS][number % len(KINDS)]
    epsilon = 0.05 if strategy == "shared-items" else 0.5
    costs = rng.choice(PRICES, 5)
    problem = sl.Problem(m=2, epsilon=epsilon, delta=0.1, costs=costs, **KINDS[strategy])
    means = rng.random(5)
    table = rng.random((5, 200)) ** (0.5 + means[:, None])

    def rewards(arm: int, count: int, rng: np.random.Generator) -> Any:
        return rng.normal(means[arm], 1.0, count)

    def scores(arm: int, items: list[int]) -> Any:
        if problem.has_pool:
            return table[arm, items]
        return [np.random.default_rng([seed, arm]).normal(means[arm]) for seed in items]

    def run(name: str, budget: float | None = None) -> sl.Result:
        how: dict[str, Any] = {"pulls_per_call": [None, 1, 7][number % 3], "turns": [None, 3][number % 2]}
        where: dict[str, Any] = {"store": tmp_path / "runs.db", "name": name, "budget": budget}
        found: Any = rewards if problem.items is None else scores
        return sl.select(found, problem, strategy, seed=number, **where, **how)

    whole = run("whole")
    stops = [run("parts", float(share * whole.cost)).stop for share in sorted(rng.uniform(0.05, 0.95, 4))]
    parts = run("parts")
    assert stops.count(sl.Stop.BUDGET) >= 2
    if not problem.has_pool:
        assert parts.to_dict() == whole.to_dict()
        return
    order = problem.order(number)
    for result in (whole, parts):
        folded = [
            np.cumsum(row[order[:n]])[-1] / n
            for row, n in zip(table, result.arms.pulls.tolist(), strict=True)
        ]
        assert result.arms.means.tolist() == folded
