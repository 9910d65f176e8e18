"""A grid search for scikit-learn that fits each candidate on as few splits as its answer needs.

The arms are the candidates of the grid, the items are the splits, and scores are test scores. All candidates
take the splits in one random order. What a round of the run asks for is fitted at once, by joblib. So the
answer does not depend on `n_jobs`. With a store, a round is fitted in parts, and each part is recorded.

Fitting, scoring, refitting, metadata and callbacks are those of `GridSearchCV`. Only what is fitted next is
decided here (`_run_search`), and the table of results has gaps (`_format_results`).
"""

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from shortlist import checks
from shortlist.adapters.summary import promise, summary
from shortlist.arrays import BoolArray, FloatArray
from shortlist.errors import FinalFailure, InvalidProblem
from shortlist.problem import Problem
from shortlist.result import Result, Stop
from shortlist.rewards import Bernoulli, Bounded
from shortlist.session import Session

_UNIT = (
    *("accuracy", "balanced_accuracy", "top_k_accuracy", "average_precision", "rand_score"),
    *("roc_auc", "roc_auc_ovo", "roc_auc_ovo_weighted", "roc_auc_ovr", "roc_auc_ovr_weighted"),
    *("homogeneity_score", "completeness_score", "v_measure_score"),
    *("normalized_mutual_info_score", "fowlkes_mallows_score"),
    *(
        f"{name}{average}"
        for name in ("f1", "precision", "recall", "jaccard")
        for average in ("", "_macro", "_micro", "_samples", "_weighted")
    ),
)
BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(_UNIT, (0.0, 1.0)),
    "matthews_corrcoef": (-1.0, 1.0),
    "adjusted_rand_score": (-0.5, 1.0),
    "neg_brier_score": (-2.0, 0.0),  # (-1, 0) for two classes
}
"""The lowest and the highest value of scorers, by name. All others are unbounded on one side at least."""

_ROUNDING = 1e-9  # share of the range by which rounding may take a score out of its bounds
_LONGEST_NAME = 80  # characters
_FITS_PER_JOB = 4  # that are recorded together, at least
_ALL_FAILED = "All the "  # begins scikit-learn's error if every fit of a call failed


class RaceSearchCV(GridSearchCV):  # type: ignore[misc]  # scikit-learn parses its docstring, as numpydoc
    """The m best candidates of a grid by cross-validation, from no more fits than `GridSearchCV` needs.

    It takes the place of `GridSearchCV`: `fit`, `best_params_`, `best_estimator_`, `predict` work as there.
    Candidates that cannot be among the best are not fitted on the remaining splits. It pays with some dozens
    of splits, such as those of `RepeatedStratifiedKFold(n_splits=5, n_repeats=10)`. With 8 or fewer, all
    candidates are fitted on all of them.

    Parameters
    ----------
    estimator, param_grid, scoring, n_jobs, refit, cv, verbose, pre_dispatch, return_train_score
        As in `GridSearchCV`. With several metrics, `refit` is the name of the one that decides. It cannot be
        a function. The splits of `cv` are drawn once, and are the same for all candidates.
    m
        How many candidates to select.
    epsilon
        How far below the m-th best mean test score a selected candidate may lie. 0 asks for exactly what
        `GridSearchCV` would select.
    delta
        The accepted failure probability.
    score_bounds
        ``(low, high)``: the smallest and the largest possible score. They are known for the scorers in
        `shortlist.adapters.scikit_learn.BOUNDS`, and for the score of classifiers.
    random_state
        Determines the order in which candidates take the splits. With `store`, None means 0.
    error_score
        "raise", or the score of a fit that fails: a number within the bounds.
    store, name
        Where the run is stored, and its name there: the path of an SQLite file, or the address of a
        PostgreSQL database. A search that was interrupted goes on where it was, and one that has ended is
        not made again. Candidates, estimator, data and splits must be the same.
    budget
        The maximum number of fits, including those of a run that is resumed. If they do not suffice, what is
        certified so far is selected, with a warning.

    Attributes
    ----------
    selected_
        The parameters of the m selected candidates, the best observed mean first.
    result_, certificate_
        The `Result` of the run, and what is certified.
    summary_
        The result as text: what is certain, and a table of candidates.
    n_fits_
        The number of fits, without the last one on all data, with those of a run that was resumed.
    cv_results_
        As in `GridSearchCV`, with NaN where a candidate was not fitted on a split. Means and standard
        deviations are over the splits that a candidate was fitted on; `n_splits` has their number, and
        `is_selected` says which candidates are selected. Candidates with different splits are best compared
        by `diff_test_score`: the mean difference to the best candidate on the splits that both were fitted
        on. `rank_test_score` has the selected candidates first, then the others by this difference. Of fits
        from a store only the score that decides is known: times and other metrics are NaN.
    best_score_
        The mean test score of the best candidate over the splits that it was fitted on.

    Notes
    -----
    With probability at least 1 - delta, no selected candidate has a mean test score over all splits that is
    more than epsilon below that of the m-th best candidate of the grid. The probability is about the order of
    the splits alone. So splits may depend on each other, as those of repeated K-fold do.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import RepeatedStratifiedKFold
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> cv = RepeatedStratifiedKFold(n_splits=5, n_repeats=10, random_state=0)
    >>> search = RaceSearchCV(SVC(), {"C": [0.01, 1, 100]}, cv=cv, epsilon=0.02, random_state=0)
    >>> search.fit(X, y).best_params_
    {'C': 1}
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        m: int = 1,
        epsilon: float = 0.01,
        delta: float = 0.05,
        scoring: Any = None,
        score_bounds: tuple[float, float] | None = None,
        n_jobs: int | None = None,
        refit: bool | str = True,
        cv: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | str = "raise",
        return_train_score: bool = False,
        store: Any = None,
        name: str = "main",
        budget: int | None = None,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.m = m
        self.epsilon = epsilon
        self.delta = delta
        self.score_bounds = score_bounds
        self.random_state = random_state
        self.store = store
        self.name = name
        self.budget = budget

    def fit(self, X: Any, y: Any = None, **params: Any) -> "RaceSearchCV":  # noqa: N803
        """Select the best candidates and, if `refit` is set, fit the best one on all data; return self.

        Parameters
        ----------
        X, y
            The data.
        params
            As in `GridSearchCV`: `groups`, `sample_weight`, and others for estimator, scorer or splitter.
        """
        self._has_fit_params = bool(params.keys() - {"groups"})
        self._data = (X, y, params)
        try:
            super().fit(X, y, **params)
        finally:
            for name in ("_has_fit_params", "_fits", "_data"):  # of use during a fit only
                self.__dict__.pop(name, None)
        return self

    def _check_input_parameters(self, X: Any, y: Any, split_params: dict[str, Any]) -> None:  # noqa: N803
        """State the question before the first fit; scikit-learn calls this once the data are checked."""
        candidates = list(ParameterGrid(self.param_grid))
        splits = list(self._checked_cv_orig.split(X, y, **split_params))
        if not splits:
            raise InvalidProblem("`cv` has no splits; there is nothing to fit candidates on.")
        if checks.is_whole(self.m) and self.m > len(candidates):
            raise InvalidProblem(
                f"`m` is {self.m}, but `param_grid` has {len(candidates)} candidates. Select at most "
                f"{len(candidates)}, or add candidates."
            )
        problem = Problem(
            self.m,
            self.epsilon,
            self.delta,
            names=_names(candidates),
            rewards=self._rewards(candidates, splits, y),
            items=len(splits),
        )
        if self.budget is not None:
            checks.whole_number(self.budget, "budget", 0)
        self._fits = _Fits(problem, candidates, splits, self.refit, self.error_score)

    def _rewards(self, candidates: list[dict[str, Any]], splits: Sequence[Any], y: Any) -> Bounded:
        """Return what is known of the scores: their bounds and, for accuracies, their step."""
        scorer = self._deciding_scorer()
        low, high = self._bounds(scorer, y)
        if self.error_score != "raise" and not low <= self.error_score <= high:
            raise InvalidProblem(
                f"`error_score` is {self.error_score!r}; it must be 'raise', or a number from {low:g} to "
                f"{high:g}, the bounds of scores. It is the score of fits that fail, and is fixed in advance."
            )
        sizes = {int(np.sum(test)) if np.asarray(test).dtype == np.bool_ else len(test) for _, test in splits}
        if (
            len(sizes) == 1
            and (low, high) == (0.0, 1.0)
            and (scorer == "accuracy" or (scorer is None and _scores_accuracy(self.estimator, candidates)))
            and not self._has_fit_params  # such as weights of samples
            and self.error_score in ("raise", 0, 1)
        ):
            (size,) = sizes
            return Bernoulli() if size == 1 else Bounded(low, high, step=1 / size)
        return Bounded(low, high)

    def _deciding_scorer(self) -> Any:
        """Return the scorer that decides, as given: a name, a function, or None for that of the estimator."""
        if callable(self.refit):
            raise InvalidProblem(
                "`refit` is a function, which may choose any candidate, so nothing could be guaranteed. Use "
                "refit=True or, with several metrics, the name of the one that decides."
            )
        if self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring):
            return self.scoring
        if not isinstance(self.refit, str):
            raise InvalidProblem(
                f"`scoring` has several metrics, but `refit` is {self.refit!r}; it must be the name of the "
                f"one that decides which candidates are best."
            )
        return self.scoring[self.refit] if isinstance(self.scoring, dict) else self.refit

    def _bounds(self, scorer: Any, y: Any) -> tuple[float, float]:
        if self.score_bounds is not None:
            return checks.bounds(self.score_bounds, "score_bounds")
        if scorer is None and is_classifier(self.estimator):
            return 0.0, 1.0  # accuracy
        if isinstance(scorer, str) and scorer == "neg_brier_score" and type_of_target(y) == "binary":
            return -1.0, 0.0
        if isinstance(scorer, str) and scorer in BOUNDS:
            return BOUNDS[scorer]
        what = "the estimator's own score" if scorer is None else f"scoring={checks.shortened(scorer)}"
        raise InvalidProblem(
            f"the bounds of {what} are not known, and without bounds nothing can be guaranteed. If every "
            f"score lies between two numbers, give them, such as score_bounds=(0, 1). Scores like r2 and "
            f"neg_mean_squared_error have no lower bound: use another score, or clip them in a scorer of "
            f"your own."
        )

    def _run_search(self, evaluate_candidates: Callable[..., Any]) -> None:
        """Let scikit-learn fit what each round asks for, until the answer is certified."""
        fits, n_splits = self._fits, len(self._fits.splits)
        is_kept = self.store is not None
        state = check_random_state(0 if is_kept and self.random_state is None else self.random_state)
        seed = int(state.randint(np.iinfo(np.int32).max))
        with Session(fits.problem, seed=seed, store=self.store, name=self.name) as session:
            if is_kept:
                session.arrange(self._about())
                fits.recall(session)
            result = self._race(session, evaluate_candidates)
        selected, every = result.indices.tolist(), [*range(n_splits)]
        if not result.n_pulls:  # every candidate is selected, but users expect scores
            if self.budget is not None and self.budget < len(selected) * n_splits:
                raise InvalidProblem(
                    f"`budget` is {self.budget}, but `m` is the number of candidates: all of them are "
                    f"selected, and scoring them takes {len(selected) * n_splits:,} fits."
                )
            self._fit_block(evaluate_candidates, selected, every)
            selected.sort(key=lambda arm: -math.fsum(fits.scores_of(arm, every)))
        if fits.recalled and not any(fits.outcomes.values()):  # a fit shows what scores look like
            arm, place = max(fits.recalled, key=lambda cell: fits.recalled[cell])
            self._fit_block(evaluate_candidates, [arm], [place])
        if fits.error is not None and not any(fits.outcomes.values()):
            raise fits.error
        self.selected_ = [fits.candidates[arm] for arm in selected]
        self.result_, self.certificate_, self.n_fits_ = (
            result,
            result.certificate,
            int(fits.is_fitted().sum()),
        )
        self.summary_ = summary(result, item="split")
        complete = super()._format_results(fits.candidates, n_splits, fits.complete())
        fits.columns |= _with_gaps(complete, fits, selected)

    def _race(self, session: Session, evaluate_candidates: Callable[..., Any]) -> Result:
        """Fit until the answer is certified, or the next round would exceed the budget."""
        fits = self._fits
        while tickets := session.ask():
            n_wanted = int(tickets.counts.sum())
            if self.budget is not None and session.n_made + n_wanted > self.budget:
                result = replace(session.result, stop=Stop.BUDGET)
                if not len(result.indices):
                    raise InvalidProblem(
                        f"`budget` is {self.budget}, which is too small to certify anything: the next "
                        f"round takes {n_wanted:,} fits, after {session.n_made:,}. Use a larger budget."
                    )
                warnings.warn(promise(result, item="split"), UserWarning, stacklevel=2)
                return result
            rows = {ticket.arm: session.items_of(ticket) for ticket in tickets}
            answered = {ticket.arm: ticket for ticket in tickets}
            for arms, places in _blocks(rows, self._n_together(rows)):
                self._fit_block(evaluate_candidates, arms, places)
                scores = [fits.scores_of(arm, places) for arm in arms]
                session.tell([answered[arm] for arm in arms], scores)
        return session.result

    def _n_together(self, rows: dict[int, list[int]]) -> int:
        """Return how many candidates are fitted before they are recorded: all, if nothing is stored."""
        if self.store is None:
            return len(rows)
        n_fits = _FITS_PER_JOB * joblib.effective_n_jobs(self.n_jobs)
        return int(max(1, n_fits // min(map(len, rows.values()))))

    def _about(self) -> dict[str, Any]:
        """Return what a run was made with, as settings of it: with anything else it is not resumed."""
        fits = self._fits
        made: dict[str, Any] = {
            "estimator": self.estimator,
            "scoring": self.scoring,
            "data": self._data,
            "splits": fits.splits,
            "error_score": self.error_score,
        }
        made |= {
            f"candidate {name}": one
            for name, one in zip(_names(fits.candidates), fits.candidates, strict=True)
        }
        plain = {"pulls_per_call": None, "together": 1, "on_failure": "suspend"}
        return plain | {key: _digest(value) for key, value in made.items()}

    def _fit_block(self, evaluate_candidates: Callable[..., Any], arms: list[int], places: list[int]) -> None:
        """Fit some candidates, each on the same splits."""
        fits = self._fits
        fits.block = [(arm, place) for arm in arms for place in places]
        self.n_splits_ = len(places)  # scikit-learn compares it with what it is given
        try:
            evaluate_candidates(
                [fits.candidates[arm] for arm in arms], cv=_Splits([fits.splits[place] for place in places])
            )
        except ValueError as error:
            if self.error_score == "raise" or not str(error).lstrip().startswith(_ALL_FAILED):
                raise
            fits.add_failures(error)  # others may succeed
        finally:
            self.n_splits_ = len(fits.splits)

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: list[dict[str, Any]], more_results: Any = None
    ) -> dict[str, Any]:
        """Take the outcomes of the last block; return the columns, which are filled in at the end."""
        del candidate_params, n_splits, more_results
        fits = self._fits
        fits.outcomes |= zip(fits.block, out[-len(fits.block) :], strict=True)
        return fits.columns


@dataclass(eq=False)
class _Splits:
    """Fixed splits, as a splitter."""

    splits: Sequence[Any]

    def split(self, *_: Any, **__: Any) -> Iterator[Any]:
        return iter(self.splits)


@dataclass(eq=False)
class _Fits:
    """What was fitted so far.

    Attributes
    ----------
    problem, candidates, splits
        The question, the parameters of each arm, and the items.
    metric
        The name of the metric that decides, if there are several.
    error_score
        The score of a fit that fails.
    outcomes
        What scikit-learn says of the fit of an arm on a split; None if no fit of its block succeeded.
    block
        The arms and splits that are being fitted.
    columns
        The columns of `cv_results_`.
    error
        The error of the last block in which no fit succeeded.
    recalled
        The scores of fits that an earlier process made.
    """

    problem: Problem
    candidates: list[dict[str, Any]]
    splits: Sequence[Any]
    metric: Any
    error_score: Any
    outcomes: dict[tuple[int, int], dict[str, Any] | None] = field(default_factory=dict)
    block: list[tuple[int, int]] = field(default_factory=list)
    columns: dict[str, Any] = field(default_factory=dict)
    error: ValueError | None = None
    recalled: dict[tuple[int, int], float] = field(default_factory=dict)

    def recall(self, session: Session) -> None:
        """Take the scores that are in a store."""
        for round in session.history.rounds:
            for number, scores in round.scores.items():
                ticket = round.tickets[number]
                places = session.items_of(ticket)
                self.recalled |= {
                    (ticket.arm, place): float(score) for place, score in zip(places, scores, strict=True)
                }

    def add_failures(self, error: ValueError) -> None:
        """Note that no fit of the block succeeded."""
        warnings.warn(str(error), FitFailedWarning, stacklevel=2)
        self.error = error
        self.outcomes |= dict.fromkeys(self.block)

    def scores_of(self, arm: int, places: Sequence[int]) -> list[float]:
        """Return the scores of an arm on some splits; raise FinalFailure if one is out of bounds."""
        return [self._score(arm, place) for place in places]

    def _score(self, arm: int, place: int) -> float:
        outcome, (low, high) = self.outcomes[arm, place], self.problem.bounds or (-np.inf, np.inf)
        score = self.error_score if outcome is None else outcome["test_scores"]
        if isinstance(score, dict):
            if self.metric not in score:
                raise InvalidProblem(
                    f"`scoring` returns several metrics, but `refit` is {self.metric!r}; it must be the name "
                    f"of the one that decides: {' or '.join(map(repr, score))}."
                )
            score = score[self.metric]
        slack = _ROUNDING * (high - low)
        if not low - slack <= score <= high + slack:  # NaN, too
            raise FinalFailure(
                f"the score of candidate {arm} ({self.problem.name(arm)}) on split {place} is {score}; "
                f"scores were taken to lie between {low:g} and {high:g}, and the guarantee depends on that. "
                f"Give the right `score_bounds`, or use a scorer that returns a number for every split."
            )
        return float(min(max(score, low), high))

    def complete(self) -> list[dict[str, Any]]:
        """Return an outcome for each arm and split; 0 stands for scores that are not known."""
        sample = next(outcome for outcome in self.outcomes.values() if outcome)
        unknown, failed = _like(sample, 0.0), _like(sample, self.error_score)
        every = itertools.product(range(self.problem.n), range(len(self.splits)))
        found: dict[tuple[int, int], dict[str, Any] | None] = {
            cell: _with_score(sample, self.metric, score) for cell, score in self.recalled.items()
        }
        found |= self.outcomes
        return [found.get(cell, unknown) or failed for cell in every]

    def is_fitted(self) -> BoolArray:
        """Return which arms were fitted on which splits."""
        found = np.zeros((self.problem.n, len(self.splits)), dtype=np.bool_)
        found[tuple(np.array([*(self.recalled | self.outcomes)]).T)] = True
        return found


def _like(outcome: dict[str, Any], score: float) -> dict[str, Any]:
    """Return an outcome like another, with a certain score and without times."""
    scores = {
        key: dict.fromkeys(value, score) if isinstance(value, dict) else score
        for key, value in outcome.items()
        if key in ("test_scores", "train_scores")
    }
    return {**outcome, "fit_time": np.nan, "score_time": np.nan, **scores}


def _with_score(outcome: dict[str, Any], metric: Any, score: float) -> dict[str, Any]:
    """Return an outcome like another, of which only the score that decides is known."""
    found = _like(outcome, np.nan)
    scores = found["test_scores"]
    return {**found, "test_scores": {**scores, metric: score} if isinstance(scores, dict) else score}


def _digest(value: Any) -> str:
    """Return a digest of anything that can be pickled."""
    try:
        return str(joblib.hash(value))
    except Exception:  # what cannot be pickled is known by its type
        return type(value).__qualname__


def _blocks(rows: dict[int, list[int]], most: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield arms that are to be fitted on the same splits, at most so many, with these splits."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for arm, places in rows.items():
        groups.setdefault(tuple(places), []).append(arm)
    for same, arms in groups.items():
        for first in range(0, len(arms), most):
            yield arms[first : first + most], [*same]


def _with_gaps(complete: dict[str, Any], fits: _Fits, selected: list[int]) -> dict[str, Any]:
    """Return the columns of `cv_results_` such that they tell only of what was fitted."""
    is_fitted, columns = fits.is_fitted(), dict(complete)
    names = [key.removeprefix("mean_") for key in complete if key.startswith("mean_")]
    outcomes = fits.complete()
    for name in names:
        if name in ("fit_time", "score_time"):
            values = np.array([outcome[name] for outcome in outcomes]).reshape(is_fitted.shape)
        else:
            splits = [f"split{place}_{name}" for place in range(len(fits.splits))]
            values = np.where(is_fitted, np.column_stack([complete[key] for key in splits]), np.nan)
            columns |= zip(splits, values.T, strict=True)
        rows = [row[~np.isnan(row)] for row in values]
        columns[f"mean_{name}"] = np.array([row.mean() if len(row) else np.nan for row in rows])
        columns[f"std_{name}"] = np.array([row.std() if len(row) else np.nan for row in rows])
        if name.startswith("test_"):
            differences = _differences(values, selected[0])
            is_deciding = name in ("test_score", f"test_{fits.metric}")
            columns[f"rank_{name}"] = _ranks(differences, selected if is_deciding else [])
            columns[f"diff_{name}"] = differences
    columns["n_splits"] = is_fitted.sum(axis=1)
    columns["is_selected"] = np.isin(np.arange(len(is_fitted)), selected)
    return columns


def _differences(values: FloatArray, best: int) -> FloatArray:
    """Return the mean difference of each row to the best one, over the columns that both have."""
    rows = [row[~np.isnan(row)] for row in values - values[best]]
    return np.array([row.mean() if len(row) else np.nan for row in rows])


def _ranks(differences: FloatArray, first: list[int]) -> NDArray[np.int32]:
    """Return ranks from 1 on: some rows come first, then the others by their differences, with ties.

    Unknown differences come last, as in `GridSearchCV`.
    """
    differences = np.where(np.isnan(differences), -np.inf, differences)
    ranks = np.zeros(len(differences), dtype=np.int32)
    ranks[first] = np.arange(1, len(first) + 1)
    others = np.flatnonzero(ranks == 0)
    ranks[others] = len(first) + rankdata(-differences[others], method="min")
    return ranks


def _scores_accuracy(estimator: Any, candidates: list[dict[str, Any]]) -> bool:
    """Return whether the score of an estimator is plain accuracy, also with other parts from the grid."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    parts = [value for candidate in candidates for value in candidate.values() if hasattr(value, "fit")]
    return all(getattr(type(part), "score", None) is ClassifierMixin.score for part in (estimator, *parts))


def _names(candidates: list[dict[str, Any]]) -> list[str]:
    """Return a name for each candidate: its parameters, after its number if they are long or not unique."""
    names = [" ".join(", ".join(f"{key}={one[key]}" for key in sorted(one)).split()) for one in candidates]
    if len(set(names)) == len(names) and all(names) and max(map(len, names)) <= _LONGEST_NAME:
        return names
    return [f"{place}: {name[:_LONGEST_NAME]}" for place, name in enumerate(names)]
