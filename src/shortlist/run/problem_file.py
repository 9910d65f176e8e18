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

[problem] may also say ``noise = "gaussian"`` and ``guarantee = "indifference"``; see `Problem`.
Instead of `arms`, the section may hold `variances` or `scales`, and `names`, as lists.
"""

import csv
import io
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.checks import real_numbers
from shortlist.errors import InvalidProblem
from shortlist.measure.simulated import checked_means
from shortlist.problem import Problem

T = TypeVar("T")

_PROBLEM_KEYS = {"m", "epsilon", "delta", "arms", "variances", "scales", "names", "noise", "guarantee"}
_MEASURE_KEYS = {"kind", "rewards", "means"}


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """What a problem file says: the question, and the simulated arms that answer it."""

    problem: Problem
    means: FloatArray
    rewards: str


def read_problem_file(path: Path) -> ProblemFile:
    """Return what a problem file says; raise InvalidProblem, naming the file, for anything unclear."""
    return _read(path, _with_rewards)


def read_problem(path: Path) -> Problem:
    """Return the question alone; where rewards come from need not be said."""
    return _read(path, lambda text, folder: _asked(text, folder)[0])


def _read(path: Path, parse: Callable[[dict[str, Any], Path], T]) -> T:
    try:
        return parse(tomllib.loads(_text(path)), path.parent)
    except tomllib.TOMLDecodeError as error:
        raise InvalidProblem(f"{path} is not valid TOML: {error}.") from None
    except InvalidProblem as error:
        message = str(error)
        raise InvalidProblem(message if str(path) in message else f"{path}: {message}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidProblem(f"there is no file {path}; check the path.") from None
    except UnicodeDecodeError as error:
        raise InvalidProblem(
            f"{path} cannot be read: it is not UTF-8 text ({error.reason}). Save it so."
        ) from None
    except OSError as error:
        raise InvalidProblem(f"{path} cannot be read: {error.strerror}.") from None


def _asked(text: dict[str, Any], folder: Path) -> "tuple[Problem, _Columns]":
    _check_keys(text, {"problem", "measure"}, "the file")
    asked = _section(text, "problem", _PROBLEM_KEYS)
    missing = {"m", "epsilon", "delta"} - asked.keys()
    if missing:
        lacking = ", ".join(sorted(missing))
        raise InvalidProblem(f"[problem] lacks {lacking}; add a line for each, such as m = 3.")
    columns = _Columns.read(folder / str(asked["arms"])) if "arms" in asked else _Columns()
    problem = Problem(
        m=asked["m"],
        epsilon=asked["epsilon"],
        delta=asked["delta"],
        variances=_variances(asked, columns),
        names=_names(asked, columns),
        noise=asked.get("noise", "sub-gaussian"),
        guarantee=asked.get("guarantee", "pac"),
    )
    return problem, columns


def _with_rewards(text: dict[str, Any], folder: Path) -> ProblemFile:
    problem, columns = _asked(text, folder)
    measured = _section(text, "measure", _MEASURE_KEYS)
    if measured.get("kind") != "simulated":
        raise InvalidProblem(f'[measure] kind is {measured.get("kind")!r}; it must be "simulated".')
    rewards = str(measured.get("rewards", "gaussian"))
    means = measured.get("means", "mean")
    given = columns.numbers(means) if isinstance(means, str) else means
    if problem.noise == "gaussian" and rewards not in {"gaussian", "noiseless"}:
        raise InvalidProblem(f'`noise` is "gaussian", but `rewards` are "{rewards}"; change one of them.')
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
            known = ", ".join(sorted(allowed))
            raise InvalidProblem(f"{where} has the unknown entry {key!r}; known are: {known}.")


def _names(asked: dict[str, Any], columns: "_Columns") -> Any:
    if "name" not in columns.entries:
        return asked.get("names")
    if "names" in asked:
        raise InvalidProblem("give the names once: in the column `name` or as the list `names`, not both.")
    return columns.entries["name"]


def _variances(asked: dict[str, Any], columns: "_Columns") -> Any:
    kinds = ("variance", "scale")
    listed = [(kind, asked[f"{kind}s"]) for kind in kinds if f"{kind}s" in asked]
    given = listed + [(kind, columns.numbers(kind)) for kind in kinds if kind in columns.entries]
    if len(given) != 1:
        raise InvalidProblem(
            "give the noise of the arms exactly once: a column `variance` or `scale` in the CSV file named "
            "by `arms`, or a list `variances` or `scales` in [problem]."
        )
    ((kind, values),) = given
    return values if kind == "variance" else _squares(values)


def _squares(scales: Any) -> FloatArray:
    values = real_numbers(scales, "scales")
    is_wrong = ~((values > 0) & (values <= 1e50))
    if is_wrong.any():
        wrong = float(values[is_wrong].flat[0])
        raise InvalidProblem(
            f"scale {wrong!r} is wrong; every scale must be positive and finite (at most 1e50)."
        )
    return values**2


@dataclass(frozen=True)
class _Columns:
    """The columns of a CSV file, by name, and the line on which each row ends."""

    path: Path = Path()
    entries: dict[str, list[str]] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "_Columns":
        reader = csv.reader(io.StringIO(_text(path), newline=""))
        try:
            rows = [(row, reader.line_num) for row in reader if row]
        except csv.Error as error:
            raise InvalidProblem(f"{path}, line {reader.line_num}: {error}.") from None
        if len(rows) < 2:
            raise InvalidProblem(f"{path} must have a header line and one line per arm.")
        header = [name.strip() for name in rows[0][0]]
        for name in header:
            if header.count(name) > 1:
                raise InvalidProblem(f"{path} has two columns {name!r}; give each its own name.")
        for row, line in rows[1:]:
            if len(row) != len(header):
                raise InvalidProblem(
                    f"{path}, line {line}: {len(row)} fields where the header has {len(header)}."
                )
        entries = {name: [row[place].strip() for row, _ in rows[1:]] for place, name in enumerate(header)}
        return cls(path, entries, [line for _, line in rows[1:]])

    def numbers(self, name: str) -> FloatArray:
        """Return a column as numbers."""
        if name not in self.entries:
            known = ", ".join(self.entries) or "none"
            raise InvalidProblem(f"there is no column {name!r} among the arms; columns: {known}.")
        found = []
        for entry, line in zip(self.entries[name], self.lines, strict=True):
            try:
                found.append(float(entry))
            except ValueError:
                raise InvalidProblem(
                    f"{self.path}, line {line}: column {name!r} has {entry!r}, no number. Write it like 1.5."
                ) from None
        return np.array(found)
