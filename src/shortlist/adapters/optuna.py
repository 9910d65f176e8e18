"""Confirm the best trials of an Optuna study with fresh measurements.

The best value of a study is too good: it was chosen because it is the best of many noisy values (the winner's
curse). `confirm` measures the parameters of the best trials again, with new seeds, until it is
certain which of them are best. The values in the study decide which trials are compared, and nothing else.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import optuna

from shortlist.checks import is_whole, shortened, whole_number
from shortlist.errors import FinalFailure, InvalidProblem, MeasurementFailed, NotRewards
from shortlist.execution import select
from shortlist.problem import Problem
from shortlist.result import Result
from shortlist.rewards import Gaussian, Rewards

ATTRIBUTE = "shortlist:confirmed"
"""The name of the user attribute of a study that has the last verdict."""

_SEEDS = 2**31  # so that every library takes them


@dataclass(frozen=True, eq=False)
class Confirmed:
    """What fresh measurements say about the best trials of a study.

    Attributes
    ----------
    trials
        The trials that were compared, the best value in the study first.
    result
        The result of the run; its arms are these trials, in this order.
    """

    trials: tuple[optuna.trial.FrozenTrial, ...]
    result: Result

    @property
    def selected(self) -> list[optuna.trial.FrozenTrial]:
        """The selected trials, the best mean of fresh measurements first."""
        return [self.trials[arm] for arm in self.result.indices.tolist()]

    @property
    def best_trial(self) -> optuna.trial.FrozenTrial:
        """The first of the selected trials."""
        if not len(self.result.indices):
            raise InvalidProblem(
                f"no trial is selected. {self.result.stop.value} Call `confirm` with a "
                f"larger `budget` or `deadline`, or with a larger `epsilon`."
            )
        return self.selected[0]

    @property
    def best_params(self) -> dict[str, Any]:
        """The parameters of the first of the selected trials."""
        params: dict[str, Any] = self.best_trial.params
        return params

    @property
    def means(self) -> dict[int, float]:
        """The mean of the fresh measurements of each trial, by its number."""
        means = self.result.arms.means.tolist()
        return {trial.number: mean for trial, mean in zip(self.trials, means, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data for JSON."""
        result, problem = self.result, self.result.problem
        return {
            "selected": [trial.number for trial in self.selected],
            "is_certified": result.is_answer,
            "m": problem.m,
            "epsilon": problem.epsilon,
            "delta": problem.delta,
            "guarantee": "" if result.guarantee is None else str(result.guarantee),
            "stop": result.stop.name.lower(),
            "strategy": result.strategy,
            "seed": result.seed,
            "n_measurements": result.n_pulls,
            "trials": [
                {"number": trial.number, "value": trial.value, "mean": _number(mean), "measurements": count}
                for trial, mean, count in zip(
                    self.trials, result.arms.means.tolist(), result.arms.pulls.tolist(), strict=True
                )
            ],
        }

    def __str__(self) -> str:
        return str(self.result)


def confirm(
    study: optuna.study.Study,
    objective: Callable[..., Any],
    *,
    epsilon: float,
    top: int = 10,
    m: int = 1,
    delta: float = 0.05,
    rewards: Rewards | None = None,
    attribute: str | None = ATTRIBUTE,
    **options: Any,
) -> Confirmed:
    """Return the m best of the best trials of a study, by fresh measurements of their parameters.

    Parameters
    ----------
    study
        A study with one objective. Its direction says whether large values are good.
    objective
        ``objective(trial, seed)``, or the objective of the study, ``objective(trial)``. It gets an
        `optuna.trial.FixedTrial` with the parameters, the number and the user attributes of a trial. Every
        measurement must be random anew: an objective without an argument `seed` must not fix its seeds.
        Runs can then be reproduced only if it takes its random numbers from `random` or `numpy.random`.
    epsilon
        How much worse than the m-th best a selected trial may be, in the units of the objective.
    top
        How many trials are compared: those that are completed, feasible and best. Trials with the same
        parameters count once.
    m, delta
        How many trials to select, and the accepted failure probability.
    rewards
        What is known of the values: ``Gaussian()``, the default, if they are nearly Gaussian with unknown
        variances, as most losses and averages are; ``Bounded(low, high)`` if they lie between two numbers;
        ``Bernoulli()`` if they are 0 or 1.
    attribute
        The user attribute of the study that the verdict is written to, as plain data; None for none. Trials
        that have ended cannot be changed.
    options
        As in `select`: `store` and `name`, so that the run can be resumed, `seed`, `budget`, `deadline`,
        `executor`, `concurrency`, `retries`, `progress` and so on.

    Guarantee
    ---------
    That of `select`: with probability at least 1 - delta, no selected trial has a true mean more than epsilon
    worse than that of the m-th best of the trials compared. About other trials it says nothing.

    Examples
    --------
    >>> import random
    >>> def objective(trial, seed):
    ...     x = trial.suggest_float("x", 0, 10)
    ...     return (x - 3) ** 2 + random.Random(seed).gauss(0, 1)
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    >>> study.optimize(lambda trial: objective(trial, trial.number), n_trials=50)
    >>> confirmed = confirm(study, objective, top=5, epsilon=0.5)
    >>> 2 < confirmed.best_params["x"] < 4
    True
    """
    trials = _best_trials(study, whole_number(top, "top", 1))
    if is_whole(m) and m > len(trials):
        raise InvalidProblem(
            f"`m` is {m}, but {len(trials)} trials are compared. Select at most {len(trials)}, or compare "
            f"more: give a larger `top`, or continue the study."
        )
    problem = Problem(
        m,
        epsilon,
        delta,
        names=[f"trial {trial.number}" for trial in trials],
        rewards=Gaussian() if rewards is None else rewards,
        goal="maximise" if study.direction == optuna.study.StudyDirection.MAXIMIZE else "minimise",
    )
    measure = _Measure.of(objective, trials)
    try:
        result = select(measure, problem, **options)
    except MeasurementFailed as error:
        if not measure.takes_seed:
            error.add_note(
                "If the objective fixes its seeds, as with random_state=0, let it take an argument `seed`, "
                "and use that."
            )
        raise
    confirmed = Confirmed(tuple(trials), result)
    if attribute is not None:
        study.set_user_attr(attribute, confirmed.to_dict())
    return confirmed


@dataclass(frozen=True, eq=False)
class _Measure:
    """An objective as a function that measures arms: the parameters, number and attributes of trials."""

    objective: Callable[..., Any]
    takes_seed: bool
    arms: Sequence[tuple[dict[str, Any], int, dict[str, Any]]]
    pulls_per_call: ClassVar[int] = 1  # each value is recorded at once: a training run may take hours

    @property
    def about(self) -> dict[str, str]:
        """The parameters of each trial: trials of other studies may have the same numbers."""
        return {f"trial {number}": repr(sorted(params.items())) for params, number, _ in self.arms}

    @classmethod
    def of(cls, objective: Callable[..., Any], trials: Sequence[optuna.trial.FrozenTrial]) -> "_Measure":
        arms = [(dict(trial.params), trial.number, dict(trial.user_attrs)) for trial in trials]
        return cls(objective, _takes_seed(objective), arms)

    def __call__(self, arm: int, count: int, rng: np.random.Generator) -> list[float]:
        return [self._value(arm, int(rng.integers(_SEEDS))) for _ in range(count)]

    def _value(self, arm: int, seed: int) -> float:
        params, number, attributes = self.arms[arm]
        trial = optuna.trial.FixedTrial(dict(params), number)
        for name, value in attributes.items():
            trial.set_user_attr(name, value)
        try:
            value = self.objective(trial, seed=seed) if self.takes_seed else self.objective(trial)
        except optuna.TrialPruned:
            raise FinalFailure(
                f"the objective pruned trial {number}. To compare trials, every measurement needs a value: "
                f"give an objective that does not prune."
            ) from None
        try:
            return float(value)
        except (TypeError, ValueError):
            raise NotRewards(
                f"the objective returned {shortened(value)} for trial {number}; it must return one number."
            ) from None


def _takes_seed(objective: Callable[..., Any]) -> bool:
    """Return whether an objective has an argument `seed`."""
    if not callable(objective):
        raise InvalidProblem(
            f"`objective` is {shortened(objective)}; it must be a function objective(trial, seed), or the "
            f"objective of the study."
        )
    try:
        signature = inspect.signature(objective)
    except ValueError:  # it is not written in Python
        return False
    takes_seed = "seed" in signature.parameters
    try:
        signature.bind(None, **({"seed": 0} if takes_seed else {}))
    except TypeError as error:
        raise InvalidProblem(
            f"`objective` cannot be called as objective(trial{', seed=0' * takes_seed}): {error}. It gets "
            f"a trial and, if it has an argument of that name, a `seed`; bind all others before."
        ) from None
    return takes_seed


def _best_trials(study: optuna.study.Study, top: int) -> list[optuna.trial.FrozenTrial]:
    """Return the best trials of a study, the best one first; of those with the same parameters, the first."""
    if len(study.directions) > 1:
        raise InvalidProblem(
            f"the study has {len(study.directions)} objectives, and trials can be compared by one only. "
            f"Confirm trials of a study with one objective, such as a weighted sum."
        )
    completed = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    feasible = [
        trial
        for trial in completed
        if not math.isnan(trial.value) and all(value <= 0 for value in _constraints(trial))
    ]
    if not feasible:
        raise InvalidProblem("the study has no completed trials that are feasible; optimise it first.")
    sign = -1 if study.direction == optuna.study.StudyDirection.MAXIMIZE else 1
    found: dict[str, optuna.trial.FrozenTrial] = {}
    for trial in sorted(feasible, key=lambda trial: (sign * trial.value, trial.number)):
        found.setdefault(repr(sorted(trial.params.items())), trial)
    return [*found.values()][:top]


def _constraints(trial: optuna.trial.FrozenTrial) -> Sequence[float]:
    """Return the values of constraints; none is above 0 if a trial is feasible."""
    if not hasattr(trial, "constraints"):  # before Optuna 5
        return trial.system_attrs.get("constraints") or ()
    return [*trial.constraints.values()]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
