"""Problem files: the question and where its rewards come from, in TOML.

::

    [problem]
    m = 5
    epsilon = 0.5
    delta = 0.05
    arms = "sites.csv"            # columns: name, and variance or scale

    [measure]
    kind = "simulated"            # or "function", "command", "table"
    rewards = "gaussian"
    means = "mean"                # a column of the CSV file, or a list

`docs/problem-files.md` says all that they may hold.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from shortlist.arrays import FloatArray
from shortlist.errors import InvalidProblem
from shortlist.measure import BoundedSource, Source
from shortlist.measure.columns import Columns, text_of
from shortlist.problem import Problem
from shortlist.run.arms_file import Declared, declared_noise
from shortlist.run.entries import check_keys, section
from shortlist.run.measure_section import Measured, measured

T = TypeVar("T")

_REQUIRED = {"m", "epsilon", "delta"}
PROBLEM_KEYS = {
    *_REQUIRED,
    *("arms", "names", "n"),
    *("variances", "scales", "bounds", "rewards", "at_least", "at_most"),
    *("noise", "guarantee", "goal"),
}


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """What a problem file says.

    Attributes
    ----------
    problem
        The question.
    source
        Where its rewards come from.
    means, rewards
        The true means and the kind of rewards of simulated arms; None for others.
    """

    problem: Problem
    source: Source
    means: FloatArray | None = None
    rewards: str | None = None


def read_problem_file(path: Path) -> ProblemFile:
    """Return what a problem file says; raise InvalidProblem, naming the file, for anything unclear."""
    return _read(path, _with_rewards)


def read_problem(path: Path) -> Problem:
    """Return the question alone; where rewards come from need not be said."""
    return _read(path, lambda text, folder: _asked(text, folder)[0])


def _read(path: Path, parse: Callable[[dict[str, Any], Path], T]) -> T:
    try:
        return parse(tomllib.loads(text_of(path)), path.parent)
    except tomllib.TOMLDecodeError as error:
        raise InvalidProblem(f"{path} is not valid TOML: {error}.") from None
    except InvalidProblem as error:
        message = str(error)
        raise InvalidProblem(message if str(path) in message else f"{path}: {message}") from error.__cause__


def _asked(text: dict[str, Any], folder: Path) -> tuple[Problem, Columns, Declared]:
    check_keys(text, {"problem", "measure"}, "the file")
    asked = section(text, "problem", PROBLEM_KEYS)
    missing = _REQUIRED - asked.keys()
    if missing:
        lacking = ", ".join(sorted(missing))
        raise InvalidProblem(f"[problem] lacks {lacking}; add a line for each, such as m = 3.")
    columns = Columns.read(folder / str(asked["arms"])) if "arms" in asked else Columns()
    noise = declared_noise(asked, columns)
    problem = Problem(
        m=asked["m"],
        epsilon=asked["epsilon"],
        delta=asked["delta"],
        variances=noise.variances,
        names=_names(asked, columns),
        noise=asked.get("noise", "sub-gaussian"),
        guarantee=asked.get("guarantee", "pac"),
        goal=asked.get("goal", "maximise"),
    )
    if problem.noise == "gaussian" and noise.bounds is not None:
        raise InvalidProblem(
            '`noise` is "gaussian", but rewards within bounds are not; leave out one of them.'
        )
    return problem, columns, noise


def _names(asked: dict[str, Any], columns: Columns) -> Any:
    if "name" not in columns.entries:
        return asked.get("names")
    if "names" in asked:
        raise InvalidProblem("give the names once: in the column `name` or as the list `names`, not both.")
    return columns.entries["name"]


def _with_rewards(text: dict[str, Any], folder: Path) -> ProblemFile:
    problem, columns, noise = _asked(text, folder)
    found: Measured = measured(section(text, "measure", None), problem, columns, noise, folder.absolute())
    source = found.source
    if noise.bounds is not None:
        source = BoundedSource(source, problem, *noise.bounds)
    return ProblemFile(problem, source, found.means, found.rewards)
