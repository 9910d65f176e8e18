"""Problem files: the question and where its rewards come from, in TOML.

::

    [problem]
    m = 5
    epsilon = 0.5
    delta = 0.05
    arms = "sites.csv"            # columns: name, and variance or scale

    [measure]
    kind = "simulated"            # rewards drawn by Shortlist; needs the true means
    rewards = "gaussian"
    means = "mean"                # a column of the CSV file, or a list

Instead of `arms`, the section [problem] may hold `variances` or `scales`, and `names`, as lists.
"""

import csv
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.errors import InvalidProblem
from shortlist.measure.simulated import checked_means
from shortlist.problem import Problem

_PROBLEM_KEYS = {"m", "epsilon", "delta", "arms", "variances", "scales", "names"}
_MEASURE_KEYS = {"kind", "rewards", "means"}


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """What a problem file says: the question, and the simulated arms that answer it."""

    problem: Problem
    means: FloatArray
    rewards: str


def read_problem_file(path: Path) -> ProblemFile:
    """Return what a problem file says; raise InvalidProblem, naming the file, for anything unclear."""
    try:
        with path.open("rb") as file:
            text = tomllib.load(file)
        return _parsed(text, path.parent)
    except FileNotFoundError as error:
        raise InvalidProblem(f"there is no file {error.filename}; check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidProblem(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidProblem(f"{path} is not valid TOML: {error}.") from None
    except InvalidProblem as error:
        raise InvalidProblem(f"{path}: {error}") from None


def _parsed(text: dict[str, Any], folder: Path) -> ProblemFile:
    _check_keys(text, {"problem", "measure"}, "the file")
    asked, measured = _section(text, "problem", _PROBLEM_KEYS), _section(text, "measure", _MEASURE_KEYS)
    missing = {"m", "epsilon", "delta"} - asked.keys()
    if missing:
        raise InvalidProblem(
            f"[problem] lacks {', '.join(sorted(missing))}; add a line for each, such as m = 3."
        )
    columns = _columns(folder / str(asked["arms"])) if "arms" in asked else {}
    problem = Problem(
        m=asked["m"],
        epsilon=asked["epsilon"],
        delta=asked["delta"],
        variances=_variances(asked, columns),
        names=columns.get("name", asked.get("names")),
    )
    if measured.get("kind") != "simulated":
        raise InvalidProblem(f'[measure] kind is {measured.get("kind")!r}; it must be "simulated".')
    rewards = str(measured.get("rewards", "gaussian"))
    means = measured.get("means", "mean")
    given = _numbers(columns, means) if isinstance(means, str) else means
    return ProblemFile(problem, checked_means(problem, given, rewards), rewards)


def _section(text: dict[str, Any], name: str, allowed: set[str]) -> dict[str, Any]:
    section = text.get(name)
    if not isinstance(section, dict):
        raise InvalidProblem(f"there is no section [{name}]; add one (see examples/drilling.toml).")
    _check_keys(section, allowed, f"[{name}]")
    return section


def _check_keys(given: dict[str, Any], allowed: set[str], where: str) -> None:
    for key in given:
        if key not in allowed:
            raise InvalidProblem(
                f"{where} has the unknown entry {key!r}; known are: {', '.join(sorted(allowed))}."
            )


def _columns(path: Path) -> dict[str, list[str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file))
    if len(rows) < 2:
        raise InvalidProblem(f"{path} must have a header line and one line per arm.")
    header = [name.strip() for name in rows[0]]
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise InvalidProblem(
                f"{path}, line {number}: {len(row)} fields where the header has {len(header)}."
            )
    return {name: [row[place].strip() for row in rows[1:]] for place, name in enumerate(header)}


def _variances(asked: dict[str, Any], columns: dict[str, list[str]]) -> Any:
    given: dict[str, Any] = {name: asked[f"{name}s"] for name in ("variance", "scale") if f"{name}s" in asked}
    given |= {name: _numbers(columns, name) for name in ("variance", "scale") if name in columns}
    if len(given) != 1:
        raise InvalidProblem(
            "give the noise of the arms exactly once: a column `variance` or `scale` in the CSV file named "
            "by `arms`, or a list `variances` or `scales` in [problem]."
        )
    ((kind, values),) = given.items()
    return values if kind == "variance" else _squares(values)


def _squares(scales: Any) -> FloatArray:
    try:
        values = np.asarray(scales, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidProblem("`scales` must be a flat list of positive numbers.") from None
    if not (values > 0).all():
        raise InvalidProblem(
            f"scale {float(values[~(values > 0)].flat[0])!r} is not positive; every scale must be."
        )
    return values**2


def _numbers(columns: dict[str, list[str]], name: str) -> FloatArray:
    if name not in columns:
        raise InvalidProblem(
            f"there is no column {name!r} among the arms; columns: {', '.join(columns) or 'none'}."
        )
    try:
        return np.array([float(entry) for entry in columns[name]])
    except ValueError as error:
        raise InvalidProblem(f"column {name!r} of the arms: {error}.") from None
