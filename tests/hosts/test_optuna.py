"""`confirm` with the real Optuna: the best trials of a study, measured again."""

import doctest
import json
import math
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

import shortlist as sl
from shortlist.adapters import optuna as adapter
from shortlist.adapters.optuna import ATTRIBUTE, Confirmed, confirm
from shortlist.errors import ChangedRun

optuna.logging.set_verbosity(optuna.logging.WARNING)

TRUE = {number: 0.3 * number for number in range(12)}  # the mean of each trial


def objective(trial: Any, seed: int) -> float:
    """Return a noisy value, whose mean is that of the place of the trial's parameter."""
    x = trial.suggest_int("x", 0, 11)
    return TRUE[x] + random.Random(f"{seed}").gauss(0, 1)


def study_of(values: dict[int, float], direction: str = "maximize", **more: Any) -> optuna.study.Study:
    """Return a study in which each parameter has a value."""
    study = optuna.create_study(direction=direction, **more)
    space = {"x": optuna.distributions.IntDistribution(0, 11)}
    for x, value in values.items():
        study.add_trial(optuna.create_trial(params={"x": x}, distributions=space, value=value))
    return study


def test_the_example_of_the_docstring() -> None:
    assert doctest.testmod(adapter) == (0, 7)


def test_lucky_trials_are_found_out() -> None:
    """The study says that the first trial is the best by far; it was lucky."""
    study = study_of({0: 9.0} | {x: TRUE[x] for x in range(1, 12)})
    assert study.best_params == {"x": 0}
    confirmed = confirm(study, objective, epsilon=0.2, top=5)
    assert confirmed.best_params == {"x": 11}
    assert confirmed.best_trial.number == 11
    assert [trial.params["x"] for trial in confirmed.trials] == [0, 11, 10, 9, 8]
    assert confirmed.means[0] == pytest.approx(0, abs=0.5)
    assert confirmed.means.keys() == {0, 8, 9, 10, 11}
    assert confirmed.result.is_answer
    assert str(confirmed) == str(confirmed.result)
    assert "trial 11" in str(confirmed)


def test_values_of_the_study_have_no_effect_on_the_answer() -> None:
    one, other = (
        confirm(study_of({x: base + x / 100 for x in range(5)}), objective, epsilon=0.3) for base in (0, 1e6)
    )
    assert one.result.to_dict() == other.result.to_dict()


def test_the_direction_is_that_of_the_study() -> None:
    study = study_of(TRUE, "minimize")
    confirmed = confirm(study, objective, epsilon=0.2, top=4, m=2)
    assert confirmed.result.problem.goal == "minimise"
    assert {trial.params["x"] for trial in confirmed.trials} == {0, 1, 2, 3}
    assert {trial.params["x"] for trial in confirmed.selected} == {0, 1}


def test_only_completed_feasible_and_different_trials_are_compared() -> None:
    study = study_of({1: 1.0, 2: 2.0})
    space = {"x": optuna.distributions.IntDistribution(0, 11)}
    states = optuna.trial.TrialState
    for x, value, state in (
        (2, 3.0, states.COMPLETE),
        (1, 9.0, states.COMPLETE),
        (7, 8.0, states.PRUNED),
        (8, None, states.FAIL),
    ):
        study.add_trial(optuna.create_trial(params={"x": x}, distributions=space, value=value, state=state))

    def infeasible(trial: Any) -> float:
        x = trial.suggest_int("x", 9, 9)
        trial.set_constraint("x", 1.0)
        return float(x)

    study.optimize(infeasible, n_trials=1)
    assert study.trials[-1].value == 9
    study.enqueue_trial({"x": 5})
    confirmed = confirm(study, objective, epsilon=0.2)
    assert [trial.number for trial in confirmed.trials] == [3, 2]


def test_the_objective_gets_a_trial_with_all_that_belongs_to_it() -> None:
    study = optuna.create_study(direction="maximize")
    study.enqueue_trial({"x": 3, "kind": "b"}, user_attrs={"data": [1, 2]})
    study.enqueue_trial({"x": 1, "kind": "a"}, user_attrs={"data": [1, 2]})
    seen = []

    def whole(trial: Any, seed: int = 0) -> float:
        x = trial.suggest_float("x", 0, 10, step=1)
        kind = trial.suggest_categorical("kind", ["a", "b"])
        trial.report(1.0, 0)
        assert not trial.should_prune()
        seen.append((trial.number, x, kind, trial.user_attrs["data"]))
        return float(x + random.Random(seed).gauss(0, 0.1))

    study.optimize(whole, n_trials=2)
    seen.clear()
    confirm(study, whole, epsilon=0.2)
    assert {str(one) for one in seen} == {"(0, 3.0, 'b', [1, 2])", "(1, 1.0, 'a', [1, 2])"}


def test_values_that_were_measured_before_a_crash_are_not_measured_again(tmp_path: Path) -> None:
    class Crash(BaseException):
        pass

    n_measured = 0

    def crashing(trial: Any, seed: int) -> float:
        nonlocal n_measured
        if n_measured == 17:
            raise Crash
        n_measured += 1
        return objective(trial, seed)

    given: dict[str, Any] = {"epsilon": 0.3, "top": 3, "store": tmp_path / "runs.db"}
    with pytest.raises(Crash):
        confirm(study_of(TRUE), crashing, **given)
    assert sl.Session.resume(given["store"]).n_made == 17
    n_measured = 100_000
    result = confirm(study_of(TRUE), crashing, **given).result
    assert n_measured - 100_000 == result.n_pulls - 17


def test_every_measurement_has_a_seed_of_its_own() -> None:
    seeds: list[int] = []

    def noting(trial: Any, *, seed: int) -> float:
        seeds.append(seed)
        return objective(trial, seed)

    first = confirm(study_of(TRUE), noting, epsilon=0.3, top=3, seed=5)
    assert len(set(seeds)) == len(seeds) == first.result.n_pulls
    assert all(0 <= seed < 2**31 for seed in seeds)
    before = seeds.copy()
    seeds.clear()
    again = confirm(study_of(TRUE), noting, epsilon=0.3, top=3, seed=5)
    assert seeds == before
    assert again.result.to_dict() == first.result.to_dict()


def test_an_objective_without_seed_draws_from_the_global_generators() -> None:
    def plain(trial: Any) -> float:
        return TRUE[trial.suggest_int("x", 0, 11)] + np.random.random() + random.random()  # noqa: NPY002

    one, other = (confirm(study_of(TRUE), plain, epsilon=0.3, top=3) for _ in range(2))
    assert one.best_params == {"x": 11}
    assert one.result.to_dict() == other.result.to_dict()


def test_an_argument_that_is_no_seed_is_left_alone() -> None:
    def with_data(trial: Any, data: str = "all") -> float:
        assert data == "all"
        return TRUE[trial.suggest_int("x", 0, 11)] + random.gauss(0, 1)

    assert confirm(study_of(TRUE), with_data, epsilon=0.5, top=2).best_params == {"x": 11}


def test_an_objective_that_fixes_its_seeds_is_found_out() -> None:
    with pytest.raises(sl.MeasurementFailed, match="are equal") as caught:
        confirm(study_of(TRUE), lambda trial: float(trial.suggest_int("x", 0, 11)), epsilon=0.3, retries=0)
    assert "let it take an argument `seed`" in caught.value.__notes__[0]


def test_values_within_bounds() -> None:
    def success(trial: Any, seed: int) -> bool:
        return bool(random.Random(seed).random() < trial.suggest_int("x", 0, 11) / 12)

    study = study_of(TRUE)
    confirmed = confirm(study, success, epsilon=0.1, top=3, m=2, rewards=sl.Bernoulli())
    assert {trial.number for trial in confirmed.selected} <= {9, 10, 11}
    assert confirmed.result.problem.is_binary
    with pytest.raises(sl.MeasurementFailed, match="0 or 1"):
        confirm(study, objective, epsilon=0.1, rewards=sl.Bernoulli(), retries=0)


def test_the_verdict_is_written_to_the_study(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = study_of(TRUE, study_name="lucky", storage=storage)
    confirmed = confirm(study, objective, epsilon=0.3, top=3, m=2, delta=0.1, seed=1)
    loaded = optuna.load_study(study_name="lucky", storage=storage).user_attrs[ATTRIBUTE]
    assert loaded == json.loads(json.dumps(confirmed.to_dict()))
    assert loaded["selected"] == [trial.number for trial in confirmed.selected]
    assert (loaded["m"], loaded["epsilon"], loaded["delta"], loaded["seed"]) == (2, 0.3, 0.1, 1)
    assert loaded["is_certified"]
    assert loaded["guarantee"].startswith("With probability at least 90 %")
    assert [row["number"] for row in loaded["trials"]] == [11, 10, 9]
    assert [row["value"] for row in loaded["trials"]] == [TRUE[11], TRUE[10], TRUE[9]]
    assert sum(row["measurements"] for row in loaded["trials"]) == loaded["n_measurements"]
    assert loaded["trials"][0]["mean"] == confirmed.means[11]
    other = study_of(TRUE)
    confirm(other, objective, epsilon=0.3, top=3, attribute="mine")
    assert other.user_attrs.keys() == {"mine"}
    silent = study_of(TRUE)
    confirm(silent, objective, epsilon=0.3, top=3, attribute=None)
    assert silent.user_attrs == {}


def test_it_is_resumed_from_a_store(tmp_path: Path) -> None:
    study = study_of(TRUE)
    where: dict[str, Any] = {"store": tmp_path / "runs.db", "name": "top"}
    calls = 0

    def counting(trial: Any, seed: int) -> float:
        nonlocal calls
        calls += 1
        return objective(trial, seed)

    whole = confirm(study_of(TRUE), counting, epsilon=0.2, top=4)
    needed, calls = calls, 0
    part = confirm(study, counting, epsilon=0.2, top=4, budget=needed - 10, **where)
    assert not part.result.is_answer
    assert study.user_attrs[ATTRIBUTE]["stop"] == "budget"
    assert not study.user_attrs[ATTRIBUTE]["is_certified"]
    assert 0.2 < part.result.certified_epsilon < math.inf
    begun = confirm(study_of(TRUE), counting, epsilon=0.2, top=4, budget=8)
    calls -= 8
    with pytest.raises(
        sl.InvalidProblem, match=r"no trial is selected.*Call `confirm` with a larger `budget`"
    ):
        _ = begun.best_params
    done = confirm(study, counting, epsilon=0.2, top=4, **where)
    assert calls == needed
    assert done.result.to_dict() == whole.result.to_dict()
    study.add_trial(
        optuna.create_trial(params={"x": 5}, distributions=study.trials[0].distributions, value=99.0)
    )
    with pytest.raises(ChangedRun, match="trial"):
        confirm(study, counting, epsilon=0.2, top=4, **where)


def test_workers_give_the_same_answer() -> None:
    alone = confirm(study_of(TRUE), objective, epsilon=0.3, top=4)
    with ThreadPoolExecutor(3) as threads:
        together = confirm(study_of(TRUE), objective, epsilon=0.3, top=4, executor=threads, pulls_per_call=3)
    assert isinstance(together, Confirmed)
    assert together.best_params == alone.best_params
    apart = confirm(study_of(TRUE), objective, epsilon=0.3, top=4, executor=sl.Processes(2))
    assert apart.result.to_dict() == alone.result.to_dict()


def needs_more(trial: Any, data: Any, seed: int) -> float:
    return 0.0


def needs_data(trial: Any, data: Any) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": 13}, "`m` is 13, but 10 trials are compared"),
        ({"m": 4, "top": 3}, "`m` is 4, but 3 trials are compared"),
        ({"m": 0}, "`m` is 0"),
        ({"top": 0}, "`top` is 0"),
        ({"epsilon": 0}, "`epsilon` is 0"),
        ({"objective": 3}, "`objective` is 3; it must be a function"),
        ({"objective": needs_more}, r"cannot be called as objective\(trial, seed=0\)"),
        ({"objective": needs_data}, r"cannot be called as objective\(trial\)"),
    ],
)
def test_wrong_questions_are_refused(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"objective": objective, "epsilon": 0.1} | changes
    with pytest.raises(sl.InvalidProblem, match=message):
        confirm(study_of(TRUE), given.pop("objective"), **given)


def test_studies_that_cannot_be_confirmed() -> None:
    with pytest.raises(sl.InvalidProblem, match="2 objectives"):
        confirm(optuna.create_study(directions=["minimize", "maximize"]), objective, epsilon=0.1)
    with pytest.raises(sl.InvalidProblem, match="no completed trials"):
        confirm(optuna.create_study(), objective, epsilon=0.1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((1, 2), r"returned \(1, 2\) for trial 11; it must return one number"),
        (None, "returned None for trial 11"),
        (float("nan"), "nan"),
    ],
)
def test_an_objective_must_return_a_number(value: Any, message: str) -> None:
    def wrong(trial: Any, seed: int) -> Any:
        return value

    with pytest.raises(sl.MeasurementFailed, match=message):
        confirm(study_of(TRUE), wrong, epsilon=0.1, top=2, retries=0, turns=1)


def test_an_objective_that_prunes_is_refused_at_once() -> None:
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    n_calls = 0

    def pruning(trial: optuna.Trial, seed: int) -> float:
        nonlocal n_calls
        n_calls += 1
        raise optuna.TrialPruned

    with pytest.raises(sl.MeasurementFailed, match="the objective pruned trial"):
        confirm(study, pruning, top=2, epsilon=0.1)
    assert n_calls == 1


def test_trials_of_another_study_with_the_same_numbers_are_another_question(tmp_path: Path) -> None:
    def study(*values: float) -> optuna.Study:
        made = optuna.create_study()
        for x in values:
            made.enqueue_trial({"x": x})
        made.optimize(lambda trial: trial.suggest_float("x", 0, 10), n_trials=len(values))
        return made

    def objective(trial: optuna.Trial, seed: int) -> float:
        x: float = trial.suggest_float("x", 0, 10)
        return abs(x - 3) + random.Random(seed).gauss(0, 0.1)

    store = tmp_path / "runs.db"
    assert confirm(study(3.0, 4.5, 6.0), objective, epsilon=0.5, store=store).best_params == {"x": 3.0}
    with pytest.raises(ChangedRun, match="trial 0 was"):
        confirm(study(3.1, 4.5, 6.0), objective, epsilon=0.5, store=store)
