"""Count the fits of `RaceSearchCV`, beside those of other searches of scikit-learn.

`.venv-hosts/bin/python -m benchmarks.grid` writes benchmarks/results/grid.md, in the environment that
`make test-hosts` sets up. For each data set, all candidates are fitted on all splits once. The first race is
carried out with real fits. A race that reads the table must give the same answer; the others are such races.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import shortlist as sl
from shortlist.adapters.scikit_learn import RaceSearchCV
from shortlist.arrays import FloatArray
from shortlist.measure.shared_items import RecordedScores

RESULTS = Path(__file__).parent / "results" / "grid.md"
DATA = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
MODEL = make_pipeline(StandardScaler(), SVC())
GRID = {"svc__C": np.logspace(-2, 3, 8), "svc__gamma": np.logspace(-4, 0, 5)}
FOLDS, REPEATS = 5, 10
EPSILONS = (0.01, 0.02)
RACES, HALVINGS = 20, 3

HEAD = f"""# Grid search

Written by `python -m benchmarks.grid`, with scikit-learn {sklearn.__version__}. `SVC` on standardised data,
with {{n}} candidates and `RepeatedStratifiedKFold(n_splits={FOLDS}, n_repeats={REPEATS})`, that is
{FOLDS * REPEATS} splits, scored by accuracy. `GridSearchCV` fits every candidate on every split: that is
100 %. *Right* says how often the answer has a mean accuracy over all splits within epsilon of the best one.

- `RaceSearchCV`: delta = 0.05, {RACES} random states; the mean share of fits, the smallest and the largest.
- `HalvingGridSearchCV`: {HALVINGS} random states. It fits all candidates to few samples, the best third
  of them to three times as many, and so on. It begins with the number of samples that it chooses for {FOLDS}
  splits, since its default for {FOLDS * REPEATS} exceeds the size of two of the data sets. *Fits* counts all
  fits alike, *samples* in proportion to the samples that they are fitted to. It promises nothing about the
  answer.
- *Repeat*: `GridSearchCV` with {FOLDS} splits only, the usual way to save fits; {REPEATS} times.

| data | epsilon | `RaceSearchCV` | right | `HalvingGridSearchCV`: fits | samples | right | repeat | right |
|---|---|---|---|---|---|---|---|---|
"""

SPLITS = (10, 20, 30, 50, 100)
MORE = f"""
## The number of splits

The share of fits that `RaceSearchCV` makes on the wine data with the first splits of
`RepeatedStratifiedKFold(n_splits={FOLDS}, n_repeats={max(SPLITS) // FOLDS})`; {RACES} random states.

| splits | {" | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS)} |
|---|{"---|" * len(EPSILONS)}
"""


class Answers(NamedTuple):
    """What several searches answered, and which share of all fits, or samples, each took."""

    chosen: list[int]
    fits: list[float]
    samples: list[float]

    def right(self, means: FloatArray, epsilon: float) -> str:
        """Return how many answers are within epsilon of the best mean."""
        return f"{sum(means[self.chosen] >= means.max() - epsilon)} of {len(self.chosen)}"


def races(X: Any, y: Any, cv: Any, epsilon: float, table: FloatArray) -> Answers:  # noqa: N803
    """Return the answers of races: one with real fits, and all of them from the table."""
    real = RaceSearchCV(MODEL, GRID, cv=cv, epsilon=epsilon, random_state=0).fit(X, y)
    problem = real.result_.problem
    found = [*recorded(problem, table)]
    if decisions(found[0]) != decisions(real.result_):
        raise RuntimeError("the race that reads the table is not the one with real fits")
    fits = [result.n_pulls / table.size for result in found]
    return Answers([int(result.indices[0]) for result in found], fits, fits)


def decisions(result: sl.Result) -> tuple[Any, ...]:
    """Return what a race decided; means may differ in their last digits."""
    return result.seed, result.n_rounds, result.indices.tolist(), result.arms.pulls.tolist()


def recorded(problem: sl.Problem, table: FloatArray) -> Iterator[sl.Result]:
    """Yield the results of races that read a table, in the orders of splits that RaceSearchCV would draw."""
    for state in range(RACES):
        seed = int(np.random.RandomState(state).randint(np.iinfo(np.int32).max))
        yield sl.select(RecordedScores.of(problem, table), problem, seed=seed)


def halvings(X: Any, y: Any, cv: Any, table: FloatArray) -> Answers:  # noqa: N803
    """Return the answers of successive halving."""
    chosen, fits, samples = [], [], []
    for state in range(HALVINGS):
        search = HalvingGridSearchCV(
            MODEL, GRID, cv=cv, min_resources=2 * FOLDS * len(set(y)), random_state=state
        ).fit(X, y)
        at, of = np.array(search.n_candidates_), np.array(search.n_resources_) / len(X)
        chosen.append([*search.cv_results_["params"][: table.shape[0]]].index(search.best_params_))
        fits.append(at.sum() / table.shape[0])
        samples.append(at @ of / table.shape[0])
    return Answers(chosen, fits, samples)


def repeats(table: FloatArray) -> Answers:
    """Return the answers of a grid search on the splits of one repeat."""
    chosen = [int(part.mean(axis=1).argmax()) for part in np.split(table, REPEATS, axis=1)]
    share = [1 / REPEATS] * REPEATS
    return Answers(chosen, share, share)


def scores(X: Any, y: Any, cv: Any) -> FloatArray:  # noqa: N803
    """Return the table of all candidates and splits."""
    full = GridSearchCV(MODEL, GRID, cv=cv, scoring="accuracy").fit(X, y)
    splits = range(cv.get_n_splits())
    return np.column_stack([full.cv_results_[f"split{split}_test_score"] for split in splits])


def more_rows() -> Iterator[str]:
    """Yield the rows on the number of splits."""
    repeats = max(SPLITS) // FOLDS
    cv = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=repeats, random_state=0)
    X, y = load_wine(return_X_y=True)  # noqa: N806
    table = scores(X, y, cv)
    for n in SPLITS:
        part, cells = table[:, :n], []
        for epsilon in EPSILONS:
            rewards = sl.Bounded(0, 1)
            problem = sl.Problem(m=1, epsilon=epsilon, delta=0.05, n=len(part), rewards=rewards, items=n)
            cells.append(_percent([result.n_pulls / part.size for result in recorded(problem, part)]))
        yield f"| {n} | {' | '.join(cells)} |"


def rows(name: str) -> Iterator[str]:
    """Yield the rows of a data set."""
    X, y = DATA[name](return_X_y=True)  # noqa: N806
    cv = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=0)
    table = scores(X, y, cv)
    means = table.mean(axis=1)
    halved, once = halvings(X, y, cv, table), repeats(table)
    for epsilon in EPSILONS:
        raced = races(X, y, cv, epsilon, table)
        yield (
            f"| {name} | {epsilon:g} "
            f"| {_percent(raced.fits)} ({min(raced.fits):.0%} to {max(raced.fits):.0%}) "
            f"| {raced.right(means, epsilon)} | {_percent(halved.fits)} | {_percent(halved.samples)} "
            f"| {halved.right(means, epsilon)} | {_percent(once.fits)} | {once.right(means, epsilon)} |"
        )


def _percent(shares: list[float]) -> str:
    return f"{statistics.mean(shares):.0%}"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    output = parser.parse_args().output
    started = time.monotonic()
    n = np.prod([len(values) for values in GRID.values()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small parts of the samples lack classes
        found = [row for name in DATA for row in rows(name)]
        more = [*more_rows()]
    text = HEAD.format(n=n) + "\n".join(found) + "\n" + MORE + "\n".join(more) + "\n"
    output.write_text(text, encoding="utf-8")
    print(output.read_text(encoding="utf-8"))
    print(f"{time.monotonic() - started:.0f} seconds")


if __name__ == "__main__":
    main()
