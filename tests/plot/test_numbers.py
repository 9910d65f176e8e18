"""What figures show are the numbers that direct computation gives."""

import math

import numpy as np
import pytest
from scipy.stats import beta

import shortlist as sl
from shortlist.plot.curves import checked_strategies, spread
from shortlist.plot.heterogeneity import geometric, ratio_for
from shortlist.strategies import vmedelim, wnelim
from tests.plot.made import observed, question, result, session
from tests.questions import bound_of, known

pytestmark = pytest.mark.slow

# --- arms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", ["maximise", "minimise"])
def test_arms_are_ordered_and_cut(goal: str) -> None:
    problem = question(5, 2, goal=goal)
    data = sl.plot.arms_data(result(problem))
    rising = sorted(observed(5), reverse=goal == "maximise")
    assert data.means.tolist() == rising
    assert data.cut == pytest.approx((rising[1] + rising[2]) / 2)
    loss = 0.5 if goal == "maximise" else -0.5
    assert data.good == pytest.approx((rising[1], rising[1] - loss))
    assert data.is_selected.tolist() == [True, True, False, False, False]
    for arm, error, pulls in zip(data.arms.tolist(), data.errors, data.pulls, strict=True):
        assert pulls == arm % 7 + 1
        assert error == pytest.approx(2 * math.sqrt((1 + arm % 3) / (arm % 7 + 1)))
    assert data.names == tuple(f"arm-{arm}" for arm in data.arms)
    assert data.better is data.worse is None


def test_arms_without_pulls_come_last_and_have_no_interval() -> None:
    is_pulled = np.array([False, True, True, False, True])
    data = sl.plot.arms_data(result(question(5, 2), is_final=False, is_pulled=is_pulled))
    assert set(data.arms[-2:].tolist()) == {0, 3}
    assert np.isnan(data.means[-2:]).all()
    assert np.isnan(data.errors[-2:]).all()
    assert np.isfinite(data.errors[:3]).all()
    assert not data.is_selected.any()
    assert data.cut is not None


@pytest.mark.parametrize(
    ("n_pulled", "has_good", "has_cut"), [(1, False, False), (2, True, False), (3, True, True)]
)
def test_there_is_no_cut_before_enough_arms_have_pulls(n_pulled: int, has_good: bool, has_cut: bool) -> None:
    data = sl.plot.arms_data(result(question(5, 2), is_final=False, is_pulled=np.arange(5) < n_pulled))
    assert (data.good is not None, data.cut is not None) == (has_good, has_cut)


def test_unknown_variances_give_no_interval() -> None:
    data = sl.plot.arms_data(result(question(5, 2, known=False)))
    assert np.isnan(data.errors).all()
    assert data.cut is not None


@pytest.mark.parametrize(("m", "n_better"), [(1, 0), (15, 0), (400, 385), (990, 970)])
def test_of_many_arms_those_at_the_cut_are_shown(m: int, n_better: int) -> None:
    found = result(question(1000, m))
    data = sl.plot.arms_data(found)
    order = np.argsort(-found.arms.means)
    assert data.arms.tolist() == order[n_better : n_better + 30].tolist()
    assert (data.better.n_arms if data.better else 0) == n_better
    worse = data.worse
    assert (worse.n_arms if worse else 0) == 970 - n_better
    if worse is not None:
        rest = order[n_better + 30 :]
        assert worse.means == (found.arms.means[rest].min(), found.arms.means[rest].max())
        assert worse.pulls == (found.arms.pulls[rest].min(), found.arms.pulls[rest].max())
        assert worse.average_pulls == pytest.approx(found.arms.pulls[rest].mean())
        assert worse.n_selected == max(0, m - n_better - 30)
    if data.better is not None:
        assert data.better.n_selected == n_better


def test_up_to_sixty_arms_are_all_shown() -> None:
    assert len(sl.plot.arms_data(result(question(60, 7))).arms) == 60
    assert len(sl.plot.arms_data(result(question(61, 7))).arms) == 30
    assert len(sl.plot.arms_data(result(question(61, 7)), most=10).arms) == 10


# --- rounds and pulls -----------------------------------------------------------------------------


def test_rounds_are_those_of_the_log() -> None:
    made = session(8, 2, strategy="level-race")
    data = sl.plot.rounds_data(made)
    asked = [[len(event.arms) for event in made.events if event.round == number] for number in data.rounds]
    assert data.n_arms.tolist() == [sum(sizes) for sizes in asked]
    assert int(data.total[-1]) == int(data.pulls.sum()) == made.n_pulls == made.result.arms.pulls.sum()
    assert len(data.rounds) == made.result.n_rounds > 1
    assert data.is_whole


def test_of_a_round_under_way_counts_what_was_told() -> None:
    made = session(8, 2, tell=3)
    data = sl.plot.rounds_data(made)
    assert data.n_arms.tolist() == [3]
    assert data.total.tolist() == [made.n_pulls]
    assert not data.is_whole
    assert sl.plot.rounds_data(session(8, 2, tell=0)).rounds.tolist() == []


def test_spent_is_beside_what_the_paper_needs() -> None:
    made = session(30, 3, strategy="race")
    problem = made.problem
    assert isinstance(problem, sl.Problem)
    data = sl.plot.spent_data(made.result)
    assert data.n_pulls == made.n_pulls
    assert data.cap == made.worst_case_pulls
    assert sl.plot.spent_data(made.result, cap=77).cap == 77
    assert data.wnelim == wnelim.WNELIM.worst_case_pulls(problem)
    assert data.vmedelim == vmedelim.worst_case_pulls(problem)
    assert data.lower_bound == bound_of(problem).pulls
    unknown = sl.plot.spent_data(result(question(5, 2, known=False)), cap=77)
    assert (unknown.cap, unknown.wnelim, unknown.vmedelim, unknown.lower_bound) == (77, None, None, None)


# --- worst cases ----------------------------------------------------------------------------------


def test_heterogeneity_goes_from_halving_to_equal_at_one_sum() -> None:
    data = sl.plot.heterogeneity_data(16, 2, points=3, strategies=["wnelim", "medelim-max"], epsilon=0.2)
    halving = 0.5 ** np.arange(16)
    ends = [halving * 16 / halving.sum(), np.ones(16)]
    assert data.values[[0, 2]] == pytest.approx([sl.entropy(end) for end in ends])
    assert data.values[1] == pytest.approx((data.values[0] + data.values[2]) / 2)
    for place, end in zip((0, 2), ends, strict=True):
        row = sl.plan(sl.Problem(2, 0.2, 0.05, end))
        assert data.pulls["wnelim"][place] == row["wnelim"].worst_case_pulls
        assert data.pulls["medelim-max"][place] == row["medelim-max"].worst_case_pulls
        assert data.lower_bound[place] == pytest.approx(bound_of(row.problem).pulls, rel=1e-12)


def test_ratios_have_the_entropy_that_is_wanted() -> None:
    for wanted in (1.5, 3.0, 4.6):
        assert sl.entropy(geometric(100, ratio_for(100, wanted, 0.5))) == pytest.approx(wanted)


def test_many_arms_are_as_unequal_as_numbers_allow() -> None:
    data = sl.plot.heterogeneity_data(1000, 2, points=2, strategies=["wnelim"])
    assert np.isfinite(data.pulls["wnelim"]).all()
    assert data.values[0] < 3.0 < data.values[1]


@pytest.mark.parametrize("over", ["n", "m", "delta"])
def test_scaling_is_what_plans_say(over: str) -> None:
    choices: dict[str, list[float]] = {"n": [5, 40], "m": [1, 7], "delta": [1e-3, 0.2]}
    values = choices[over]
    data = sl.plot.scaling_data(over, values, n=20, m=2, epsilon=0.3, delta=0.05)
    for place, value in enumerate(values):
        numbers = {"n": 20, "m": 2, "delta": 0.05, over: value}
        asked = sl.Problem(int(numbers["m"]), 0.3, numbers["delta"], np.ones(int(numbers["n"])))
        plan = sl.plan(asked)
        assert data.lower_bound[place] == bound_of(asked).pulls
        for row in plan.rows:
            shown = data.pulls[row.strategy][place]
            assert shown == row.worst_case_pulls if row.is_certified else np.isnan(shown)
            if row.is_certified:
                assert data.multiples[row.strategy][place] == pytest.approx(plan.gap_of(row))
    assert np.isnan(data.pulls["medelim"]).all()
    assert np.isnan(data.pulls["lucb"]).all()


@pytest.mark.parametrize("over", ["n", "m", "delta"])
def test_scaling_chooses_rising_values(over: str) -> None:
    data = sl.plot.scaling_data(over, n=50, m=3, strategies=["wnelim"], points=4)
    assert (np.diff(data.values) > 0).all()
    assert len(data.values) >= 3
    assert np.isfinite(data.pulls["wnelim"]).all()


def test_strategies_to_compare_are_checked() -> None:
    assert checked_strategies(None) == sl.strategies.names()
    assert checked_strategies("race") == ("race",)
    assert checked_strategies(["race", "race", "wnelim"]) == ("race", "wnelim")
    for wrong in ([], ["auto"], ["nobody"], ["t-race"]):
        with pytest.raises(sl.InvalidProblem):
            checked_strategies(wrong)


@pytest.mark.parametrize(
    "call",
    [
        lambda: sl.plot.scaling_data("k"),
        lambda: sl.plot.scaling_data("n", []),
        lambda: sl.plot.scaling_data("n", [2.5]),
        lambda: sl.plot.scaling_data("n", [3], m=10),
        lambda: sl.plot.heterogeneity_data(1),
        lambda: sl.plot.heterogeneity_data(points=1),
        lambda: sl.plot.illustrative_data([]),
        lambda: sl.plot.illustrative_data([1]),
        lambda: sl.plot.rounds_data("drilling"),  # type: ignore[arg-type]
    ],
)
def test_nonsense_is_refused(call: object) -> None:
    with pytest.raises(sl.InvalidProblem):
        call()  # type: ignore[operator]


def test_illustrative_is_the_example() -> None:
    (row,) = sl.plot.illustrative_data([3])
    problem = sl.instances.illustrative(3).problem
    assert row.factors[1] == pytest.approx(sl.entropy(problem.variances))
    assert row.factors[2] == pytest.approx(math.log(8))


# --- simulation -----------------------------------------------------------------------------------


def test_failures_are_those_of_simulations_with_exact_intervals() -> None:
    problem = known(1, 0.5, 0.2, np.ones(4), noise="gaussian")
    means = [0.5, 0.0, 0.0, 0.0]
    data = sl.plot.epsilon_data(
        problem, means, ["bechhofer", "wnelim"], epsilons=[0.6, 0.4, 0.49], replications=50, seed=3
    )
    assert data.epsilons.tolist() == [0.4, 0.49, 0.6]
    for name, found in data.outcomes.items():
        for place, epsilon in enumerate(data.epsilons):
            run = sl.simulate(problem.changed(epsilon=epsilon), means, name, replications=50, seed=3)
            errors = int(found.errors[place])
            assert (errors, found.pulls[place], found.runs[place]) == (run.errors, run.pulls.mean(), 50)
            low = beta.ppf(0.025, errors, 51 - errors) if errors else 0.0
            assert found.lowest[place] == pytest.approx(low)
            assert found.highest[place] == pytest.approx(beta.ppf(0.975, errors + 1, 50 - errors))
            assert found.rates[place] == errors / 50
    assert data.outcomes["bechhofer"].errors[1] > 0
    assert data.outcomes["bechhofer"].errors[2] == 0, "where epsilon exceeds the gap, every answer is right"
    assert data.lower_bound is not None
    assert data.lower_bound[1] == bound_of(problem.changed(epsilon=0.49)).pulls


def test_runs_without_an_end_are_no_failures() -> None:
    problem = sl.Problem(1, 0.5, 0.2, np.ones(4))
    data = sl.plot.epsilon_data(problem, np.arange(4.0), "wnelim", epsilons=[0.1], replications=5, budget=10)
    found = data.outcomes["wnelim"]
    assert (found.runs[0], found.lowest[0], found.highest[0]) == (0, 0.0, 1.0)
    assert np.isnan(found.rates[0])


# --- places of names ------------------------------------------------------------------------------


def test_names_move_apart_and_no_further_than_needed() -> None:
    assert spread([0.1, 0.5, 0.9], 0.1) == pytest.approx([0.1, 0.5, 0.9])
    assert spread([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])
    assert spread([0.9, 0.1, 0.9], 0.2) == pytest.approx([0.8, 0.1, 1.0])
    assert spread([], 0.1) == []
    rng = np.random.default_rng(0)
    for _ in range(50):
        places = rng.random(9)
        found = np.array(spread(places.tolist(), 0.05))
        assert (np.diff(np.sort(found)) > 0.05 - 1e-12).all()
        assert (np.argsort(found) == np.argsort(places)).all()
        assert found.mean() == pytest.approx(places.mean())
