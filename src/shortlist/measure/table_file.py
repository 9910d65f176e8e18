"""Files of recorded rewards: CSV, one row per reward or one column per arm, and NumPy's .npy and .npz."""

import io
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.checks import is_whole, one_of
from shortlist.errors import InvalidProblem
from shortlist.measure.csv_columns import Columns, bytes_of, listed
from shortlist.problem import Problem

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_MOST_UNPACKED, _MOST_RATIO = 4 << 30, 20  # limits of an unpacked archive: bytes, or a multiple of its size


def read_long(path: Path, problem: Problem, arm: str = "arm", reward: str = "reward") -> list[FloatArray]:
    """Return the rewards of each arm from a CSV file with one line per reward."""
    columns = Columns.read(path, "reward")
    rewards = columns.rewards(reward)
    number = {problem.name(place): place for place in range(problem.n)}
    arms = np.empty(len(rewards), dtype=np.int64)
    for row, name in enumerate(columns.words(arm)):
        if name not in number:
            raise InvalidProblem(
                f"{path}, line {columns.lines[row]}: there is no arm {name!r} in the problem. "
                f"Add it there, or remove its rows."
            )
        arms[row] = number[name]
    order = np.argsort(arms, kind="stable")
    ends = np.cumsum(np.bincount(arms, minlength=problem.n))
    return np.split(rewards[order], ends[:-1])


def read_wide(path: Path, problem: Problem, *, may_be_blank: bool = True) -> list[FloatArray]:
    """Return the rewards of each arm from a CSV file with one column per arm; others are ignored."""
    columns = Columns.read(path, "row of rewards")
    names = (problem.name(arm) for arm in range(problem.n))
    return [columns.rewards(name, may_be_blank=may_be_blank) for name in names]


def npy_numbers(data: bytes, where: str) -> FloatArray:
    """Return the numbers in the content of a .npy file."""
    if data.startswith(b"PK"):
        raise InvalidProblem(f"{where} cannot be read: it is an archive. Name it .npz.")
    return _numbers(_array(data, where), where)


def read_npy(path: Path, problem: Problem, axis: int = 0) -> list[FloatArray]:
    """Return the rewards of each arm from a two-dimensional array, with the arms along `axis`."""
    if not is_whole(axis) or axis not in (0, 1):
        raise InvalidProblem(f"`axis` is {axis!r}; it must be 0 (a row per arm) or 1 (a column per arm).")
    table = npy_numbers(bytes_of(path), str(path))
    if table.ndim != 2 or table.shape[axis] != problem.n:
        raise InvalidProblem(
            f"{path} has shape {table.shape}; it must have two dimensions, with the {problem.n} arms along "
            f"axis {axis} (`axis` says which)."
        )
    return list(np.ascontiguousarray(np.moveaxis(table, axis, 0)))


def read_npz(path: Path, problem: Problem) -> list[FloatArray]:
    """Return the rewards of each arm from an archive with one flat array per arm, named like the arm."""
    names = [problem.name(arm) for arm in range(problem.n)]
    data = bytes_of(path)
    known = _members(data, path)
    if lacking := [name for name in names if name not in known]:
        raise InvalidProblem(f"{path} has no array {lacking[0]!r}; its arrays: {listed(known)}.")
    size = sum(known[name].file_size for name in names)
    if size > max(_MOST_UNPACKED, _MOST_RATIO * len(data)):
        raise InvalidProblem(
            f"{path} cannot be read: its {len(data):,} bytes would unpack to {size:,}. Write it with "
            f"numpy.savez, which does not compress."
        )
    found = []
    for name in names:
        where = f"{path}, array {name!r}"
        found.append(_numbers(_array(_unpacked(data, known[name], where), where), where))
        if found[-1].ndim != 1:
            raise InvalidProblem(f"{where} has shape {found[-1].shape}; it must be flat.")
    return found


def read_csv(path: Path, problem: Problem, layout: str, **names: str) -> list[FloatArray]:
    """Return the rewards of each arm from a CSV file of either layout."""
    if one_of(layout, "layout", ("long", "wide")) == "long":
        return read_long(path, problem, **names)
    return read_wide(path, problem)


def _members(data: bytes, path: Path) -> dict[str, zipfile.ZipInfo]:
    """Return the arrays of an archive, by name."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    except Exception:  # a damaged directory leads to various errors
        raise _damaged(str(path), "it is not an archive of arrays, or is damaged") from None


def _unpacked(data: bytes, info: zipfile.ZipInfo, where: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(info)
    except MemoryError:
        raise InvalidProblem(f"{where} does not fit into memory. Record fewer rewards.") from None
    except Exception as error:  # each compression method has its own errors
        raise _damaged(where, f"it cannot be unpacked ({error})") from None


def _array(data: bytes, where: str) -> Any:
    """Return the array in a .npy file. Nothing is unpickled, and memory use is limited by the file's size."""
    file = io.BytesIO(data)
    try:
        read_header = _HEADERS[np.lib.format.read_magic(file)]
        shape, is_fortran, dtype = read_header(file)
    except Exception:  # NumPy evaluates headers, so damaged ones fail in many ways
        raise _damaged(where, "it is not a NumPy array, or its header is damaged") from None
    _refuse_other_types(dtype, where)
    if not all(type(length) is int and length >= 0 for length in shape):
        raise _damaged(where, f"its header has the shape {shape}")
    count, size = math.prod(shape), len(data) - file.tell()
    if count * dtype.itemsize > size:
        raise _damaged(where, f"it is truncated: {size:,} bytes are too few for an array of shape {shape}")
    values = np.frombuffer(data, dtype, count, file.tell()) if count else np.empty(0, dtype)
    return values.reshape(shape, order="F" if is_fortran else "C")


def _damaged(where: str, what: str) -> InvalidProblem:
    return InvalidProblem(f"{where} cannot be read: {what}. Write it again with numpy.save or savez.")


def _refuse_other_types(dtype: Any, where: str) -> None:
    if dtype.kind not in "iuf":
        raise InvalidProblem(
            f"{where} contains values of type {dtype}; rewards must be real numbers. "
            f"Save it with .astype(float)."
        )


def _numbers(values: Any, where: str) -> FloatArray:
    with np.errstate(over="ignore"):  # infinity is refused below
        numbers = np.asarray(values, dtype=np.float64)
    is_wrong = ~np.isfinite(numbers)
    if is_wrong.any():
        place = tuple(int(part) for part in np.argwhere(is_wrong)[0])
        raise InvalidProblem(
            f"{where} has {numbers[place]} at index {place}; NaN and infinity are not rewards. Replace "
            "it by the reward that such an outcome should count as."
        )
    return numbers
