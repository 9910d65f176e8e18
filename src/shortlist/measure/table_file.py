"""Files of recorded rewards: CSV, one row per reward or one column per arm, and NumPy's .npy and .npz."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.checks import one_of
from shortlist.errors import InvalidProblem
from shortlist.measure.columns import Columns
from shortlist.unknown import Question


def read_long(path: Path, problem: Question, arm: str = "arm", reward: str = "reward") -> list[FloatArray]:
    """Return the rewards of each arm from a CSV file with one line per reward."""
    columns = Columns.read(path, "reward")
    rewards = columns.rewards(reward)
    number = {problem.name(place): place for place in range(problem.n)}
    arms = np.empty(len(rewards), dtype=np.int64)
    for row, name in enumerate(columns.words(arm)):
        if name not in number:
            raise InvalidProblem(
                f"{path}, line {columns.lines[row]}: there is no arm {name!r} in the problem. "
                f"Add it there, or leave its rows out."
            )
        arms[row] = number[name]
    order = np.argsort(arms, kind="stable")
    ends = np.cumsum(np.bincount(arms, minlength=problem.n))
    return np.split(rewards[order], ends[:-1])


def read_wide(path: Path, problem: Question) -> list[FloatArray]:
    """Return the rewards of each arm from a CSV file with one column per arm; others are ignored."""
    columns = Columns.read(path, "row of rewards")
    names = (problem.name(arm) for arm in range(problem.n))
    return [columns.rewards(name, may_be_blank=True) for name in names]


def read_npy(path: Path, problem: Question, axis: int = 0) -> list[FloatArray]:
    """Return the rewards of each arm from an array of two dimensions, arms along `axis`."""
    if axis not in (0, 1) or isinstance(axis, bool):
        raise InvalidProblem(f"`axis` is {axis!r}; it must be 0 (a row per arm) or 1 (a column per arm).")
    with _reading(path):
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            loaded.close()
            raise ValueError("it is an archive, of which the name should end with .npz")
    table = _numbers(loaded, str(path))
    if table.ndim != 2 or table.shape[axis] != problem.n:
        raise InvalidProblem(
            f"{path} has shape {table.shape}; it must have two dimensions, with the {problem.n} arms along "
            f"axis {axis} (`axis` says which)."
        )
    return list(np.ascontiguousarray(np.moveaxis(table, axis, 0)))


def read_npz(path: Path, problem: Question) -> list[FloatArray]:
    """Return the rewards of each arm from an archive with one flat array per arm, by its name."""
    names = [problem.name(arm) for arm in range(problem.n)]
    with _reading(path):
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("it is no archive of arrays")
        with np.load(path, allow_pickle=False) as arrays:
            known, found = arrays.files, {name: arrays[name] for name in names if name in arrays}
    for name in names:
        if name not in found:
            raise InvalidProblem(
                f"{path} has no array {name!r}; there are: {', '.join(known[:5]) or 'none'}."
            )
        if found[name].ndim != 1:
            raise InvalidProblem(f"{path}, array {name!r} has shape {found[name].shape}; it must be flat.")
    return [_numbers(found[name], f"{path}, array {name!r}") for name in names]


def read_csv(path: Path, problem: Question, layout: str, **names: str) -> list[FloatArray]:
    """Return the rewards of each arm from a CSV file of either layout."""
    if one_of(layout, "layout", ("long", "wide")) == "long":
        return read_long(path, problem, **names)
    return read_wide(path, problem)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what may go wrong in reading one of NumPy's files into one clear sentence."""
    try:
        yield
    except FileNotFoundError:
        raise InvalidProblem(f"there is no file {path}; check the path.") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidProblem(f"{path} cannot be read: {error}. Write it with numpy.save or savez.") from None


def _numbers(values: Any, where: str) -> FloatArray:
    if values.dtype.kind not in "iuf":
        raise InvalidProblem(
            f"{where} holds values of type {values.dtype}; rewards must be real numbers. "
            f"Save it with .astype(float)."
        )
    numbers = np.asarray(values, dtype=np.float64)
    is_wrong = ~np.isfinite(numbers)
    if is_wrong.any():
        place = tuple(int(part) for part in np.argwhere(is_wrong)[0])
        raise InvalidProblem(
            f"{where} has {numbers[place]} at index {place}; NaN and infinity are not rewards. "
            f"Put in the reward that such an outcome is worth."
        )
    return numbers
