"""RaceSearchCV with the real scikit-learn: a grid search in all respects, with fewer fits."""

import doctest
import itertools
import pickle
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import joblib  # type: ignore[import-untyped]
import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import (
    accuracy_score,
    adjusted_rand_score,
    get_scorer,
    get_scorer_names,
    make_scorer,
    matthews_corrcoef,
)
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

import shortlist as sl
from shortlist.adapters import scikit_learn
from shortlist.adapters.scikit_learn import BOUNDS, RaceSearchCV
from shortlist.errors import FinalFailure
from shortlist.measure.shared_items import RecordedScores
from shortlist.result import Stop

IRIS = load_iris(return_X_y=True)
MANY = RepeatedStratifiedKFold(n_splits=5, n_repeats=8, random_state=0)  # 40 splits of 30
TREE = DecisionTreeClassifier(random_state=0)
GRID = {"max_depth": [1, 2, 3], "min_samples_leaf": [1, 5, 40, 60]}
MASKS = [(np.arange(150) % 3 != part, np.arange(150) % 3 == part) for part in range(3)]  # of train and test
EXACT: list[tuple[Any, dict[str, Any]]] = [(RaceSearchCV, {"epsilon": 0.0}), (GridSearchCV, {})]


ESTIMATORS = (
    RaceSearchCV(LogisticRegression(), {"C": [0.1, 1, 10]}, cv=2),
    RaceSearchCV(
        make_pipeline(StandardScaler(), GaussianNB()),
        {"gaussiannb__var_smoothing": [1e-9, 1e-3, 10.0]},
        cv=ShuffleSplit(12, test_size=0.4, random_state=0),
        epsilon=0.1,
        m=2,
    ),
)


def checks() -> Iterator[Any]:
    """Yield scikit-learn's own checks, but for those with arrays of libraries that are not installed here."""
    for place, one in enumerate(ESTIMATORS):
        for estimator, check in estimator_checks_generator(one, mark=None):
            name = getattr(check, "func", check).__name__
            if "array_api" not in name:
                yield pytest.param(estimator, check, id=f"{place}-{name}")


@pytest.mark.parametrize(("estimator", "check"), checks())
def test_it_is_an_estimator(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_there_are_checks() -> None:
    assert len(list(checks())) >= 90


def test_the_example_of_the_docstring() -> None:
    assert doctest.testmod(scikit_learn) == (0, 7)


def test_it_is_shown_in_notebooks() -> None:
    """scikit-learn parses docstrings of estimators for that."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "RaceSearchCV" in RaceSearchCV(TREE, GRID).fit(*IRIS)._repr_html_()


# --- the answer --------------------------------------------------------------------------------------


def table_of(search: Any) -> Any:
    columns = [search.cv_results_[f"split{place}_test_score"] for place in range(search.n_splits_)]
    return np.column_stack(columns)


@pytest.fixture(scope="module")
def full() -> Any:
    return GridSearchCV(TREE, GRID, cv=MANY).fit(*IRIS)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("epsilon", [0.0, 0.02])
def test_it_selects_what_the_full_grid_shows_from_fewer_fits(full: Any, epsilon: float, seed: int) -> None:
    race = RaceSearchCV(TREE, GRID, cv=MANY, epsilon=epsilon, random_state=seed).fit(*IRIS)
    means = full.cv_results_["mean_test_score"]
    assert means[race.best_index_] >= means.max() - epsilon
    assert race.best_params_ == full.cv_results_["params"][race.best_index_] == race.selected_[0]
    assert race.best_estimator_.get_params()["max_depth"] == race.best_params_["max_depth"]
    assert race.n_fits_ == race.result_.n_pulls < 0.8 * len(means) * 40
    assert race.result_.certified_epsilon <= epsilon
    assert race.certificate_ is race.result_.certificate
    np.testing.assert_array_equal(race.predict(IRIS[0]), race.best_estimator_.predict(IRIS[0]))


class Noting(sl.Session):
    """A session that keeps what it is told."""

    told: ClassVar[list[tuple[Any, Any]]] = []

    def tell(self, tickets: Any, rewards: Any = None, **more: Any) -> None:
        self.told.extend(zip(tickets, rewards, strict=True))
        super().tell(tickets, rewards, **more)


def test_it_is_the_race_over_the_whole_table(full: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every score goes to its candidate and its split."""
    monkeypatch.setattr(scikit_learn, "Session", Noting)
    Noting.told.clear()
    race: Any = RaceSearchCV(TREE, GRID, cv=MANY, m=2, epsilon=0.03, random_state=0).fit(*IRIS)
    problem, seed, table = race.result_.problem, race.result_.seed, table_of(full)
    for ticket, scores in Noting.told:
        places = problem.order(seed)[ticket.first_pull : ticket.first_pull + ticket.count]
        assert scores == table[ticket.arm, places].tolist()
    recorded = sl.select(RecordedScores.of(problem, table), problem, seed=seed)
    assert race.result_.indices.tolist() == recorded.indices.tolist()
    assert race.result_.arms.pulls.tolist() == recorded.arms.pulls.tolist()
    assert race.result_.certified_epsilon == recorded.certified_epsilon
    assert sum(ticket.count for ticket, _ in Noting.told) == race.n_fits_
    assert race.n_splits_ == full.n_splits_ == 40


def test_a_score_that_is_shown_is_that_of_the_full_grid(full: Any) -> None:
    race = RaceSearchCV(TREE, GRID, cv=MANY, random_state=0, return_train_score=True).fit(*IRIS)
    scores, known = table_of(full), ~np.isnan(table_of(race))
    np.testing.assert_array_equal(table_of(race)[known], scores[known])
    assert known.sum() == race.n_fits_
    columns = race.cv_results_
    np.testing.assert_array_equal(columns["n_splits"], known.sum(axis=1))
    for arm in range(12):
        row = scores[arm][known[arm]]
        assert columns["mean_test_score"][arm] == row.mean()
        assert columns["std_test_score"][arm] == row.std()
        both = known[arm] & known[race.best_index_]
        assert columns["diff_test_score"][arm] == (scores[arm] - scores[race.best_index_])[both].mean()
        assert np.isnan(columns[f"split{np.argmin(known[arm])}_train_score"][arm]) == (not known[arm].all())
    assert np.isfinite(columns["mean_train_score"]).all()
    assert (columns["mean_fit_time"] > 0).all()
    assert race.best_score_ == columns["mean_test_score"][race.best_index_]
    assert {*columns} - {*full.cv_results_} >= {"n_splits", "is_selected", "diff_test_score"}
    assert {*full.cv_results_} < {*columns}
    assert columns["params"] == full.cv_results_["params"]
    np.testing.assert_array_equal(columns["param_max_depth"], full.cv_results_["param_max_depth"])


def test_all_candidates_take_the_splits_in_one_order() -> None:
    race: Any = RaceSearchCV(TREE, GRID, cv=MANY, random_state=3).fit(*IRIS)
    known = ~np.isnan(table_of(race))[:, race.result_.problem.order(race.result_.seed)]
    assert all(row[:count].all() and not row[count:].any() for row in known for count in [row.sum()])


def test_the_selected_are_ranked_first_and_the_others_by_their_differences() -> None:
    race = RaceSearchCV(TREE, GRID, cv=MANY, m=3, random_state=0).fit(*IRIS)
    ranks, columns = race.cv_results_["rank_test_score"], race.cv_results_
    assert ranks.dtype == np.int32
    selected = [race.cv_results_["params"].index(params) for params in race.selected_]
    assert selected == race.result_.indices.tolist()
    assert ranks[selected].tolist() == [1, 2, 3]
    assert race.best_index_ == selected[0]
    assert np.flatnonzero(columns["is_selected"]).tolist() == sorted(selected)
    others = sorted(set(range(12)) - set(selected), key=lambda arm: ranks[arm])
    assert ranks[others[0]] == 4
    for one, next_one in itertools.pairwise(others):
        step = columns["diff_test_score"][next_one] - columns["diff_test_score"][one]
        assert step <= 0
        assert (step == 0) == (ranks[one] == ranks[next_one])


def test_names_are_the_parameters() -> None:
    race = RaceSearchCV(TREE, GRID, cv=MANY, random_state=0).fit(*IRIS)
    assert race.result_.problem.name(0) == "max_depth=1, min_samples_leaf=1"
    steps = {
        "gaussiannb": [GaussianNB(), LogisticRegression(C=10, class_weight={0: 1, 1: 2, 2: 3}, tol=1e-3)]
    }
    steps["standardscaler"] = ["passthrough"]
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    race = RaceSearchCV(pipeline, steps, cv=3, random_state=0).fit(*IRIS)
    assert race.result_.problem.name(1).startswith("1: gaussiannb=LogisticRegression(C=10,")
    assert RaceSearchCV(TREE, {}, cv=3).fit(*IRIS).result_.problem.names == ("0: ",)


def test_if_all_are_selected_all_are_scored(full: Any) -> None:
    race = RaceSearchCV(TREE, GRID, cv=MANY, m=12).fit(*IRIS)
    np.testing.assert_array_equal(table_of(race), table_of(full))
    means = [
        full.cv_results_["mean_test_score"][full.cv_results_["params"].index(one)] for one in race.selected_
    ]
    assert means == sorted(means, reverse=True)
    assert race.best_score_ == full.best_score_
    single = RaceSearchCV(TREE, {"max_depth": [2]}, cv=MANY).fit(*IRIS)
    assert (single.n_fits_, single.best_params_) == (40, {"max_depth": 2})


def test_few_splits_are_the_full_grid(full: Any) -> None:
    race, grid = (search(TREE, GRID, cv=5).fit(*IRIS) for search in (RaceSearchCV, GridSearchCV))
    np.testing.assert_array_equal(table_of(race), table_of(grid))
    assert race.best_score_ == grid.best_score_
    assert race.n_splits_ == grid.n_splits_ == 5


class Counting(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that writes down what it was fitted on."""

    fits: ClassVar[list[tuple[int, bytes]]] = []

    def __init__(self, guess: int = 0) -> None:
        self.guess = guess

    def fit(self, X: Any, y: Any) -> "Counting":
        self.fits.append((self.guess, X.tobytes()))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.guess)


def test_nothing_is_fitted_twice() -> None:
    Counting.fits.clear()
    race = RaceSearchCV(Counting(), {"guess": [0, 1, 2, 3]}, cv=MANY, epsilon=0.1, refit=False).fit(*IRIS)
    fits = Counter(Counting.fits)
    assert max(fits.values()) == 1
    assert len(fits) == race.n_fits_ < 160
    assert not hasattr(race, "best_estimator_")
    assert race.best_params_ == race.selected_[0]


# --- reproducible, whoever fits ----------------------------------------------------------------------


def same(one: Any, other: Any) -> bool:
    is_same = np.array_equal(table_of(one), table_of(other), equal_nan=True)
    return is_same and one.selected_ == other.selected_ and one.result_.seed == other.result_.seed


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_the_answer_does_not_depend_on_the_number_of_jobs(backend: str) -> None:
    alone, parallel = (
        RaceSearchCV(TREE, {"max_depth": [1, 2, 3]}, cv=MANY, random_state=1, n_jobs=jobs)
        for jobs in (None, 2)
    )
    with joblib.parallel_backend(backend):
        assert same(alone.fit(*IRIS), parallel.fit(*IRIS))


def test_the_random_state_follows_the_convention() -> None:
    def fitted(state: Any) -> Any:
        return RaceSearchCV(TREE, {"max_depth": [1, 2]}, cv=20, epsilon=0.1, random_state=state).fit(*IRIS)

    assert same(fitted(4), fitted(4))
    assert same(fitted(np.random.RandomState(4)), fitted(4))
    assert fitted(4).result_.seed != fitted(5).result_.seed
    assert fitted(None).result_.seed != fitted(None).result_.seed
    shared = np.random.RandomState(4)
    assert fitted(shared).result_.seed != fitted(shared).result_.seed


def test_splits_are_drawn_once() -> None:
    """With a splitter that never draws the same splits twice, all candidates have the same ones."""
    cv = StratifiedShuffleSplit(20, test_size=0.5)
    race = RaceSearchCV(TREE, {"max_depth": [3, 3, 3], "min_samples_leaf": [1]}, cv=cv, epsilon=0).fit(*IRIS)
    table = table_of(race)
    assert len({tuple(row) for row in table}) == 1
    assert len(set(table[0])) > 3
    pairs = (pair for pair in StratifiedKFold(10).split(*IRIS))
    assert RaceSearchCV(TREE, GRID, cv=pairs).fit(*IRIS).n_splits_ == 10


def test_it_is_cloned_pickled_nested_and_leaves_nothing_behind() -> None:
    race = RaceSearchCV(TREE, GRID, cv=MANY, random_state=0, epsilon=0.02)
    assert clone(race).get_params()["epsilon"] == 0.02
    race.set_params(estimator__max_features=2, delta=0.1)
    assert (race.estimator.max_features, race.delta) == (2, 0.1)
    before = {*vars(race)}
    race.fit(*IRIS)
    more = {"selected_", "result_", "certificate_", "summary_", "n_fits_"}
    plain = GridSearchCV(TREE, {"max_depth": [1]}).fit(*IRIS)
    assert {*vars(race)} - before == {*vars(plain)} - {*vars(clone(plain))} | more
    copied = pickle.loads(pickle.dumps(race))
    assert same(copied, race)
    assert str(copied.result_) == str(race.result_)
    np.testing.assert_array_equal(copied.predict_proba(IRIS[0]), race.predict_proba(IRIS[0]))
    inner = make_pipeline(StandardScaler(), RaceSearchCV(TREE, GRID, cv=20, random_state=0))
    assert cross_val_score(inner, *IRIS, cv=3).min() > 0.85


# --- scores and their bounds -------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_every_scorer_with_bounds_exists_and_stays_within_them(name: str) -> None:
    assert name in get_scorer_names()
    low, high = BOUNDS[name]
    if "samples" in name:
        return  # for several labels per sample
    X, y = IRIS if "_" in name and name != "top_k_accuracy" else load_breast_cancer(return_X_y=True)
    if name in ("average_precision", "neg_brier_score", "roc_auc"):
        X, y = load_breast_cancer(return_X_y=True)
    for model in (GaussianNB(), DummyClassifier(strategy="uniform", random_state=0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            score = get_scorer(name)(model.fit(X, y), X, y)
        assert low <= score <= high


def test_bounds_are_reached() -> None:
    assert adjusted_rand_score([0, 0, 1, 1], [0, 1, 0, 1]) == BOUNDS["adjusted_rand_score"][0]
    assert matthews_corrcoef([0, 1], [1, 0]) == BOUNDS["matthews_corrcoef"][0]


def test_scorers_without_bounds_are_not_among_them() -> None:
    without = {name for name in get_scorer_names() if name not in BOUNDS}
    assert all(
        name in ("r2", "explained_variance", "adjusted_mutual_info_score", "mutual_info_score")
        or name.startswith(("neg_", "d2_"))
        or "likelihood" in name
        for name in without
    )


def test_brier_scores_have_other_bounds_with_two_classes() -> None:
    kwargs: dict[str, Any] = {
        "param_grid": {"var_smoothing": [1e-9, 1.0]},
        "scoring": "neg_brier_score",
        "cv": 12,
    }
    two = RaceSearchCV(GaussianNB(), **kwargs).fit(*load_breast_cancer(return_X_y=True))
    assert two.result_.problem.bounds == (-1, 0)
    three = RaceSearchCV(GaussianNB(), **kwargs).fit(*load_wine(return_X_y=True))
    assert three.result_.problem.bounds == (-2, 0)
    X, y = np.repeat([[0.0], [1.0], [2.0]], 4, axis=0), np.repeat([0, 1, 2], 4)
    wrong = DecisionTreeClassifier().fit(X, (y + 1) % 3)
    assert get_scorer("neg_brier_score")(wrong, X, y) == -2
    assert get_scorer("neg_brier_score")(wrong.fit(X, y == 0), X, y > 0) == -1


@pytest.mark.parametrize(
    ("estimator", "scoring"),
    [
        (Ridge(), None),
        (Ridge(), "r2"),
        (Ridge(), "neg_mean_squared_error"),
        (KMeans(), None),
        (TREE, make_scorer(accuracy_score)),
        (TREE, "neg_log_loss"),
    ],
)
def test_scores_without_known_bounds_are_refused(estimator: Any, scoring: Any) -> None:
    search = RaceSearchCV(estimator, {}, scoring=scoring)
    with pytest.raises(sl.InvalidProblem, match=r"bounds of .* not known.*score_bounds=\(0, 1\)"):
        search.fit(*IRIS)


def clipped_r2(estimator: Any, X: Any, y: Any) -> float:
    return max(-1.0, float(estimator.score(X, y)))


def test_bounds_can_be_given() -> None:
    grid = {"alpha": [0.1, 1.0, 100.0, 1e6]}
    race = RaceSearchCV(
        Ridge(),
        grid,
        scoring=clipped_r2,
        score_bounds=(-1, 1),
        cv=KFold(30, shuffle=True, random_state=0),
        epsilon=0.2,
    ).fit(*IRIS)
    assert race.best_params_["alpha"] < 1e6
    assert race.result_.problem.bounds == (-1, 1)
    with pytest.raises(sl.InvalidProblem, match=r"`score_bounds` is \(1, 0\)"):
        race.set_params(score_bounds=(1, 0)).fit(*IRIS)


def test_a_score_out_of_bounds_is_named() -> None:
    search = RaceSearchCV(
        Ridge(),
        {"alpha": [1e9, 1.0]},
        scoring="r2",
        score_bounds=(0.5, 1),
        cv=KFold(10, shuffle=True, random_state=0),
    )
    with pytest.raises(
        FinalFailure, match=r"candidate 0 \(alpha=1000000000.0\) on split \d is .*between 0.5 and 1"
    ):
        search.fit(*IRIS)
    search = RaceSearchCV(TREE, GRID, scoring=undefined, score_bounds=(0, 1), cv=MANY)
    with pytest.raises(FinalFailure, match=r"max_depth=2.* on split \d+ is nan; scores were taken"):
        search.fit(*IRIS)


def undefined(estimator: Any, X: Any, y: Any) -> float:
    return np.nan if estimator.max_depth == 2 else float(estimator.score(X, y))


@pytest.mark.parametrize("excess", [2**-50, 2**-20])
def test_rounding_is_no_error_but_more_is(excess: float) -> None:
    def above(estimator: Any, X: Any, y: Any) -> float:
        return 1 + excess if estimator.max_depth == 2 else 0.5

    race = RaceSearchCV(TREE, {"max_depth": [1, 2]}, scoring=above, score_bounds=(0, 1), cv=9)
    if excess > 1e-9:
        with pytest.raises(FinalFailure, match=r"is 1\.00000095"):
            race.fit(*IRIS)
        return
    assert race.fit(*IRIS).best_params_ == {"max_depth": 2}
    assert race.best_score_ > 1  # the score as it was


@pytest.mark.parametrize(
    ("changes", "data", "step"),
    [
        ({}, IRIS, 1 / 30),
        ({"scoring": "accuracy"}, IRIS, 1 / 30),
        ({"estimator": make_pipeline(StandardScaler(), TREE), "param_grid": {}}, IRIS, 1 / 30),
        ({"scoring": "balanced_accuracy"}, IRIS, None),
        ({"error_score": 0.5}, IRIS, None),
        ({"error_score": 0.0}, IRIS, 1 / 30),
        ({"cv": 7}, IRIS, None),
        ({"cv": MASKS}, IRIS, 1 / 50),
        ({"cv": LeaveOneOut(), "param_grid": {"max_depth": [1, 2]}, "epsilon": 0.1}, IRIS, 1.0),
        ({"score_bounds": (0, 2)}, IRIS, None),
        ({}, load_wine(return_X_y=True), None),
    ],
)
def test_accuracies_have_steps_if_all_tests_have_the_same_size(
    changes: Any, data: Any, step: float | None
) -> None:
    race = RaceSearchCV(TREE, GRID, cv=MANY, epsilon=0.05).set_params(**changes).fit(*data)
    assert race.result_.problem.step == step


class OwnScore(GaussianNB):  # type: ignore[misc]
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return float(np.sqrt(super().score(X, y, sample_weight)))


def test_scores_that_are_no_accuracies_have_no_step() -> None:
    race = RaceSearchCV(OwnScore(), {}, cv=5).fit(*IRIS)
    assert race.result_.problem.step is None
    steps = {"gaussiannb": [OwnScore(), GaussianNB()]}
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    assert RaceSearchCV(pipeline, steps, cv=5).fit(*IRIS).result_.problem.step is None


def test_weights_and_groups_are_passed_on() -> None:
    X, y = IRIS
    weights, groups = np.where(y == 0, 5.0, 0.1), np.arange(150) % 30
    grid = {"max_depth": [1, 2, 3]}
    race, full = (
        search(TREE, grid, cv=GroupKFold(30), **more).fit(X, y, sample_weight=weights, groups=groups)
        for search, more in EXACT
    )
    known = ~np.isnan(table_of(race))
    np.testing.assert_array_equal(table_of(race)[known], table_of(full)[known])
    assert race.result_.problem.step is None
    plain = GridSearchCV(TREE, grid, cv=GroupKFold(30)).fit(X, y, groups=groups)
    assert not np.array_equal(table_of(plain), table_of(full))
    assert race.best_score_ == pytest.approx(full.best_score_)


def test_metadata_are_routed() -> None:
    X, y = IRIS
    weights, groups = np.where(y == 0, 5.0, 0.1), np.arange(150) % 30
    with sklearn.config_context(enable_metadata_routing=True):
        tree = DecisionTreeClassifier(random_state=0).set_fit_request(sample_weight="importance")
        tree.set_score_request(sample_weight=False)
        race, full = (
            search(tree, {"max_depth": [1, 2, 3]}, cv=GroupKFold(30), **more).fit(
                X, y, importance=weights, groups=groups
            )
            for search, more in EXACT
        )
    known = ~np.isnan(table_of(race))
    np.testing.assert_array_equal(table_of(race)[known], table_of(full)[known])


# --- several metrics ---------------------------------------------------------------------------------


def both(estimator: Any, X: Any, y: Any) -> dict[str, float]:
    return {"right": estimator.score(X, y), "wrong": 1 - estimator.score(X, y)}


@pytest.mark.parametrize(
    ("scoring", "refit", "more"),
    [
        (["f1_macro", "accuracy"], "accuracy", {}),
        (("accuracy", "f1_macro"), "f1_macro", {}),
        ({"a": "accuracy", "b": "f1_macro"}, "b", {}),
        (both, "right", {"score_bounds": (0, 1)}),
    ],
)
def test_one_of_several_metrics_decides(scoring: Any, refit: str, more: Any) -> None:
    race = RaceSearchCV(TREE, GRID, cv=MANY, scoring=scoring, refit=refit, m=2, random_state=0, **more).fit(
        *IRIS
    )
    full = GridSearchCV(TREE, GRID, cv=MANY, scoring=scoring, refit=refit).fit(*IRIS)
    assert race.multimetric_
    means = full.cv_results_[f"mean_test_{refit}"]
    assert means[race.best_index_] >= means.max() - 0.01
    assert race.best_score_ == race.cv_results_[f"mean_test_{refit}"][race.best_index_]
    names = [key for key in race.cv_results_ if key.startswith("rank_test_")]
    assert len(names) == 2
    assert sorted(race.cv_results_[f"rank_test_{refit}"])[:2] == [1, 2]
    assert race.score(*IRIS) > 0.9


def test_it_must_be_said_which_metric_decides() -> None:
    several = RaceSearchCV(TREE, GRID, scoring=["accuracy", "f1_macro"], refit=False)
    with pytest.raises(sl.InvalidProblem, match="`refit` is False; it must be the name"):
        several.fit(*IRIS)
    with pytest.raises(sl.InvalidProblem, match=r"`refit` is True; .*'right' or 'wrong'"):
        RaceSearchCV(TREE, GRID, scoring=both, score_bounds=(0, 1)).fit(*IRIS)
    with pytest.raises(sl.InvalidProblem, match="`refit` is a function"):
        RaceSearchCV(TREE, GRID).set_params(refit=len).fit(*IRIS)


# --- fits that fail ----------------------------------------------------------------------------------


class Failing(DecisionTreeClassifier):  # type: ignore[misc]
    """A tree that cannot be fitted with some parameters, or to some data."""

    def fit(self, X: Any, y: Any, **more: Any) -> "Failing":
        if self.max_depth == 1 or (self.max_depth == 2 and X[0, 0] + X[-1, -1] > 6.9):
            raise RuntimeError("too shallow")
        fitted: Failing = super().fit(X, y, **more)
        return fitted


@pytest.fixture
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.usefixtures("quiet")
def test_a_fit_that_fails_ends_the_search_or_has_a_score() -> None:
    failing = Failing(random_state=0)
    with pytest.raises(RuntimeError, match="too shallow"):
        RaceSearchCV(failing, GRID, cv=MANY).fit(*IRIS)
    race = RaceSearchCV(failing, GRID, cv=MANY, error_score=0.0, random_state=0).fit(*IRIS)
    assert race.best_params_["max_depth"] == 3
    full = GridSearchCV(failing, GRID, cv=MANY, error_score=0.0).fit(*IRIS)
    known = ~np.isnan(table_of(race))
    np.testing.assert_array_equal(table_of(race)[known], table_of(full)[known])
    assert 0 < (table_of(full)[4:8] == 0).mean() < 1  # some of these fits fail, and some do not


class Watched(RaceSearchCV):
    """A search that keeps what is fitted together."""

    blocks: ClassVar[list[tuple[list[int], list[int]]]] = []

    def _fit_block(self, evaluate_candidates: Any, arms: list[int], places: list[int]) -> None:
        self.blocks.append((arms, places))
        super()._fit_block(evaluate_candidates, arms, places)


class Late(DecisionTreeClassifier):  # type: ignore[misc]
    """A tree that cannot be fitted to some data with certain parameters."""

    hard: ClassVar[dict[tuple[int, int], set[bytes]]] = {}

    def fit(self, X: Any, y: Any, **more: Any) -> Any:
        if X.tobytes() in self.hard.get((self.max_depth, self.min_samples_leaf), ()):
            raise RuntimeError("too hard")
        return super().fit(X, y, **more)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("scoring", "refit", "name"),
    [
        ("accuracy", True, "score"),
        (["accuracy", "f1_macro"], "accuracy", "accuracy"),
        (both, "right", "right"),
    ],
)
def test_a_block_in_which_all_fits_fail_does_not_end_the_search(scoring: Any, refit: Any, name: str) -> None:
    """Late rounds are small: perhaps one candidate on a few splits, on which it happens to fail."""
    Watched.blocks.clear()
    Late.hard.clear()
    options: dict[str, Any] = {
        "scoring": scoring,
        "refit": refit,
        "error_score": 0.25,
        "score_bounds": (0, 1),
    }
    search = Watched(Late(random_state=0), GRID, cv=MANY, random_state=0, **options)
    candidates = search.fit(*IRIS).cv_results_["params"]
    ((arm,), places) = next(block for block in Watched.blocks if len(block[0]) == 1)
    splits = [train for train, _ in MANY.split(*IRIS)]
    hard = {IRIS[0][splits[place]].tobytes() for place in places}
    Late.hard[candidates[arm]["max_depth"], candidates[arm]["min_samples_leaf"]] = hard
    with pytest.warns(FitFailedWarning, match=rf"All the {len(places)} fits failed"):
        columns = search.fit(*IRIS).cv_results_
    assert {columns[f"split{place}_test_{name}"][arm] for place in places} == {0.25}
    assert search.result_.arms.means[arm] == pytest.approx(columns[f"mean_test_{name}"][arm])
    assert (columns["mean_fit_time"] > 0).all()
    assert search.best_score_ > 0.9


@pytest.mark.usefixtures("quiet")
def test_if_all_fits_fail_the_search_fails_as_a_grid_search() -> None:
    for search in (RaceSearchCV, GridSearchCV):
        with pytest.raises(ValueError, match="All the 12 fits failed"):
            search(Failing(), {"max_depth": [1], "min_samples_leaf": [1, 2]}, cv=6, error_score=0.0).fit(
                *IRIS
            )


@pytest.mark.parametrize("score", [np.nan, -0.1, 2])
def test_the_score_of_failures_lies_within_the_bounds(score: float) -> None:
    with pytest.raises(sl.InvalidProblem, match=r"`error_score` is .*a number from 0 to 1"):
        RaceSearchCV(TREE, GRID, error_score=score).fit(*IRIS)


# --- wrong questions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": 13}, "`m` is 13, but `param_grid` has 12 candidates"),
        ({"epsilon": -1}, "`epsilon` is -1"),
        ({"delta": 1.2}, "`delta` is 1.2"),
        ({"cv": []}, "`cv` has no splits"),
    ],
)
def test_wrong_questions_are_refused_before_anything_is_fitted(changes: Any, message: str) -> None:
    Counting.fits.clear()
    search = RaceSearchCV(Counting(), {"guess": [*range(12)]}, cv=3).set_params(**changes)
    with pytest.raises(sl.InvalidProblem, match=message):
        search.fit(*IRIS)
    assert Counting.fits == []


# --- stored runs and budgets ---------------------------------------------------------------------------


class Crash(BaseException):
    """The end of the process."""


class Ending(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A tree that counts its fits, and ends the process at one of them."""

    n_fits: ClassVar[int] = 0
    last: ClassVar[float] = np.inf

    def __init__(self, max_depth: int = 1, min_samples_leaf: int = 1) -> None:
        self.max_depth, self.min_samples_leaf = max_depth, min_samples_leaf

    def fit(self, X: Any, y: Any) -> "Ending":
        type(self).n_fits += 1
        if self.n_fits > self.last:
            raise Crash
        self.tree_ = clone(TREE).set_params(**self.get_params()).fit(X, y)
        self.classes_ = self.tree_.classes_
        return self

    def predict(self, X: Any) -> Any:
        return self.tree_.predict(X)


@pytest.fixture
def ending() -> Iterator[type[Ending]]:
    yield Ending
    Ending.n_fits, Ending.last = 0, np.inf


def same_columns(first: Any, second: Any) -> None:
    """Two searches have the same columns, but for times."""
    for key, column in first.cv_results_.items():
        if "time" not in key and key != "params":
            np.testing.assert_array_equal(
                np.asarray(column), np.asarray(second.cv_results_[key]), err_msg=key
            )


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_that_was_interrupted_goes_on(tmp_path: Path, n_jobs: Any, ending: type[Ending]) -> None:
    options: dict[str, Any] = {"cv": MANY, "epsilon": 0.02, "refit": False}
    plain = RaceSearchCV(Ending(), GRID, random_state=0, **options).fit(*IRIS)
    options |= {"store": tmp_path / "runs.db", "n_jobs": n_jobs}
    ending.n_fits, ending.last = 0, 50
    with pytest.raises(Crash), joblib.parallel_backend("threading"):
        RaceSearchCV(Ending(), GRID, **options).fit(*IRIS)
    ending.n_fits, ending.last = 0, np.inf
    n_kept = sl.Session.resume(options["store"]).n_made
    assert n_kept >= 40 if n_jobs is None else n_kept > 0
    with joblib.parallel_backend("threading"):
        search = RaceSearchCV(Ending(), GRID, **options).fit(*IRIS)
    n_again = ending.n_fits - (search.n_fits_ - n_kept)
    assert n_again == 0 if n_jobs is None else abs(n_again) <= 2  # a thread of the first search may go on
    assert search.n_fits_ == plain.n_fits_ == search.result_.n_pulls
    assert (search.best_params_, search.best_score_) == (plain.best_params_, plain.best_score_)
    same_columns(plain, search)


def test_a_search_that_has_ended_is_not_made_again(tmp_path: Path, ending: type[Ending]) -> None:
    options: dict[str, Any] = {"cv": MANY, "epsilon": 0.02, "store": tmp_path / "runs.db", "refit": False}
    options |= {"scoring": ["balanced_accuracy", "accuracy"], "refit": "accuracy"}
    first = RaceSearchCV(Ending(), GRID, **options).fit(*IRIS)
    ending.n_fits = 0
    again = RaceSearchCV(Ending(), GRID, **options).fit(*IRIS)
    assert ending.n_fits == 2  # one to see what a score is, and one on all data
    assert (again.best_params_, again.n_fits_) == (first.best_params_, first.n_fits_)
    for key in ("mean_test_accuracy", "rank_test_accuracy", "diff_test_accuracy", "n_splits"):
        np.testing.assert_array_equal(again.cv_results_[key], first.cv_results_[key])
    assert (
        np.isnan(again.cv_results_["mean_test_balanced_accuracy"]).sum()
        == len(again.cv_results_["params"]) - 1
    )
    ranks = again.cv_results_["rank_test_balanced_accuracy"]
    assert ranks.min() == 1
    assert ranks.dtype == np.int32


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"estimator": DecisionTreeClassifier(random_state=1)}, "estimator was"),
        ({"cv": RepeatedStratifiedKFold(n_splits=5, n_repeats=8, random_state=1)}, "splits was"),
        ({"param_grid": {"max_depth": [1, 2]}}, "another question"),
        ({"random_state": 3}, "seed"),
        ({"scoring": "balanced_accuracy"}, "scoring was|another question"),
        ({"data": (IRIS[0] + 1, IRIS[1])}, "data was"),
    ],
)
def test_a_run_goes_on_only_with_what_it_was_made_with(
    tmp_path: Path, change: dict[str, Any], what: str
) -> None:
    given: dict[str, Any] = {"estimator": TREE, "param_grid": {"max_depth": [1, 2, 3]}, "cv": MANY}
    given |= {"store": str(tmp_path / "runs.db"), "epsilon": 0.05}
    RaceSearchCV(**given).fit(*IRIS)
    data = change.pop("data", IRIS)
    with pytest.raises(sl.errors.ChangedRun, match=what):
        RaceSearchCV(**(given | change)).fit(*data)
    other = RaceSearchCV(**(given | change), name="other").fit(*data)
    assert other.best_params_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_failed_fits_are_recorded_too(tmp_path: Path) -> None:
    grid = {"max_depth": [2, 3], "min_samples_leaf": [1, -1]}  # -1 fails
    given: dict[str, Any] = {"cv": MANY, "error_score": 0, "store": tmp_path / "runs.db", "epsilon": 0.05}
    first = RaceSearchCV(TREE, grid, **given).fit(*IRIS)
    again = RaceSearchCV(TREE, grid, **given).fit(*IRIS)
    assert again.best_params_ == first.best_params_
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], first.cv_results_["mean_test_score"])
    only = {"min_samples_leaf": [-1, -2]}
    for _ in range(2):
        with pytest.raises(ValueError, match=r"All the .* fits failed"):
            RaceSearchCV(TREE, only, **given, name="only").fit(*IRIS)


def test_a_budget_ends_a_search_with_what_is_certain() -> None:
    options: dict[str, Any] = {"cv": MANY, "epsilon": 0.0, "random_state": 0}
    whole = RaceSearchCV(TREE, GRID, **options).fit(*IRIS)
    budget = whole.n_fits_ - 1
    with pytest.warns(UserWarning, match=rf"{re.escape(Stop.BUDGET.value)} With probability at least 95 %"):
        search = RaceSearchCV(TREE, GRID, **options, budget=budget).fit(*IRIS)
    assert search.n_fits_ <= budget
    assert 0 < search.result_.certified_epsilon < 1
    means = GridSearchCV(TREE, GRID, cv=MANY).fit(*IRIS).cv_results_["mean_test_score"]
    assert means[search.best_index_] >= means.max() - search.result_.certified_epsilon
    assert RaceSearchCV(TREE, GRID, **options, budget=whole.n_fits_).fit(*IRIS).n_fits_ == whole.n_fits_
    with pytest.raises(sl.errors.InvalidProblem, match="`budget` is 3, which is too small to certify"):
        RaceSearchCV(TREE, GRID, **options, budget=3).fit(*IRIS)
    with pytest.raises(sl.errors.InvalidProblem, match="all of them are selected"):
        RaceSearchCV(TREE, GRID, **options, budget=3, m=12).fit(*IRIS)
    with pytest.raises(sl.errors.InvalidProblem, match="`budget` is -1"):
        RaceSearchCV(TREE, GRID, **options, budget=-1).fit(*IRIS)


def test_the_summary_speaks_of_candidates_and_splits() -> None:
    search = RaceSearchCV(TREE, GRID, cv=MANY, epsilon=0.02, random_state=0).fit(*IRIS)
    lines = search.summary_.splitlines()
    assert lines[0].startswith("Selected 1 of 12 candidates: max_depth=")
    assert "the selected candidate has a mean score over all 40 splits that is" in lines[1]
    assert lines[2].split() == ["candidate", "mean", "score", "splits"]
    assert not any(word in search.summary_ for word in (" arm ", "items ", "true mean"))


def test_a_metric_that_is_unknown_is_ranked_last() -> None:
    def often_nan(estimator: Any, X: Any, y: Any) -> dict[str, float]:
        right = accuracy_score(y, estimator.predict(X))
        return {"right": right, "other": np.nan if estimator.max_depth == 1 else 1 - right}

    options: dict[str, Any] = {"scoring": often_nan, "refit": "right", "cv": MANY}
    race = RaceSearchCV(TREE, GRID, score_bounds=(0, 1), epsilon=0.0, random_state=0, **options).fit(*IRIS)
    is_unknown = np.array([one["max_depth"] == 1 for one in race.cv_results_["params"]])
    ranks = race.cv_results_["rank_test_other"]
    assert set(ranks[is_unknown]) == {(~is_unknown).sum() + 1}
    assert sorted(ranks[~is_unknown])[0] == 1
