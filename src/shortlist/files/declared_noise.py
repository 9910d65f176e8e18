"""The noise of the arms in [problem] and its CSV file: variances, scales, bounds, Bernoulli, or unknown."""

from collections.abc import Callable
from typing import Any

import numpy as np

from shortlist import checks
from shortlist.arrays import FloatArray
from shortlist.checks import n_arms as checked_n
from shortlist.checks import real_numbers
from shortlist.errors import InvalidProblem
from shortlist.measure.csv_columns import Columns
from shortlist.noise import bernoulli, bounded


def declared_variances(asked: dict[str, Any], columns: Columns) -> Any:
    """Return one variance proxy per arm, if the noise is stated exactly once.

    Bounds imply the variances, unless variances are given as well.
    """
    given = [key for key in _READERS if key in asked]
    given += [key for key in ("variance", "scale") if key in columns.entries]
    bounds = [key for key in given if key in _BOUNDS]
    given = [key for key in given if key not in _BOUNDS] or bounds
    if len(given) != 1 or len(bounds) > 1:
        raise InvalidProblem(
            "give the noise of the arms exactly once: a column `variance` or `scale` in the CSV file "
            "named by `arms`, or in [problem] a list `variances` or `scales`, or `bounds = [low, high]`, "
            'or `rewards = "bernoulli"`. Variances or scales may also be given together with `bounds` or '
            "`rewards`. If the noise is unknown, and rewards are Gaussian, use `noise = "
            '"gaussian-unknown"`.'
        )
    (key,) = given
    for limit in {"at_least", "at_most"} & asked.keys():
        if key != "rewards":
            raise InvalidProblem(
                f'`{limit}` is allowed only if `rewards = "bernoulli"` states the noise; omit it.'
            )
    if "n" in asked and key not in _BOUNDS:
        raise InvalidProblem(
            "`n` is not needed here: the number of variances is the number of arms. Omit `n`."
        )
    if key in _READERS:
        return _READERS[key](asked, columns)
    values = columns.numbers(key)
    return values if key == "variance" else squares(values)


def refuse_noise(asked: dict[str, Any], columns: Columns, *, is_simulated: bool) -> None:
    """Refuse entries that state the noise if it is declared to be unknown.

    For simulated arms the CSV file may contain the true variances, which the strategy does not see.
    """
    given = [key for key in (*_READERS, "at_least", "at_most") if key in asked]
    if given:
        raise InvalidProblem(
            f'`noise` is "gaussian-unknown", so `{given[0]}` is not allowed. Omit it; or, if the '
            f"variances are known, omit `noise`: then no pilot is needed."
        )
    columns_given = [key for key in ("variance", "scale") if key in columns.entries]
    if columns_given and not is_simulated:
        raise InvalidProblem(
            f'`noise` is "gaussian-unknown", but {columns.path} has a column `{columns_given[0]}`. Rename '
            f"it; or, if the variances are known, omit `noise`: then no pilot is needed."
        )


def _within(asked: dict[str, Any], columns: Columns) -> FloatArray:
    return bounded(*checks.bounds(asked["bounds"]), n_arms(asked, columns))


def _coins(asked: dict[str, Any], columns: Columns) -> FloatArray:
    refuse_other_rewards(asked)
    limits = {key: asked[key] for key in ("at_least", "at_most") if key in asked}
    return bernoulli(n_arms(asked, columns), **limits)


def refuse_other_rewards(asked: dict[str, Any]) -> None:
    """Refuse `rewards` other than "bernoulli"; other kinds have become `noise` already."""
    if asked["rewards"] != "bernoulli":
        raise InvalidProblem(
            f'`rewards` is {checks.shortened(asked["rewards"])}; it must be "bernoulli"; "bounded", with '
            f'`bounds`; "gaussian", with `variances` if they are known; or "sub-gaussian", with `variances`. '
            f"Omit `noise` then."
        )


def n_arms(asked: dict[str, Any], columns: Columns) -> int:
    """Return the number of arms, if no list of variances implies it."""
    names = asked.get("names")
    given = [len(columns.lines)] if columns.lines else []
    given += [len(names)] if isinstance(names, list) else []
    given += [checked_n(asked["n"])] if "n" in asked else []
    if not given:
        raise InvalidProblem(
            "the number of arms is not stated; give `arms` (a CSV file), `names` (a list), or `n`."
        )
    if len(set(given)) > 1:
        raise InvalidProblem(f"the number of arms is stated twice, as {given[0]} and as {given[1]}.")
    return given[0]


def squares(scales: Any) -> FloatArray:
    """Return variances, given their square roots."""
    values = real_numbers(scales, "scales")
    is_wrong = ~((values > 0) & (values <= 1e50))
    if is_wrong.any():
        wrong = float(values[is_wrong].flat[0])
        raise InvalidProblem(
            f"scale {wrong!r} is wrong; every scale must be positive and finite (at most 1e50)."
        )
    return np.asarray(values**2)


_BOUNDS = ("bounds", "rewards")
_READERS: dict[str, Callable[[dict[str, Any], Columns], Any]] = {
    "variances": lambda asked, _: asked["variances"],
    "scales": lambda asked, _: squares(asked["scales"]),
    "bounds": _within,
    "rewards": _coins,
}
