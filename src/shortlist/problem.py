"""What is asked: the m best of n arms, to within epsilon, with probability 1 - delta."""

import hashlib
import math
import operator
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shortlist.arrays import FloatArray, IntArray, blocks
from shortlist.errors import InvalidProblem

MOST_PULLS = 2**53
"""Beyond this a pull count is no longer exact in double precision."""

_LEAST, _MOST = 1e-100, 1e100  # of epsilon and variances: squares and ratios then stay within a float


@dataclass(frozen=True, eq=False, init=False)
class Problem:
    """The question put to a strategy; validated once, never changed.

    Parameters
    ----------
    m
        How many arms to select, from 1 to n. With m = n the answer needs no pulls.
    epsilon
        How far below the true m-th best mean a selected arm may lie, in the units of the rewards.
    delta
        The probability of failure that is accepted, strictly between 0 and 1.
    variances
        One variance proxy per arm: rewards of arm i are sub-Gaussian with proxy ``variances[i]``.
        For Gaussian rewards that is the variance; for rewards in [a, b], ``(b - a)**2 / 4`` will do.
    names
        One distinct name per arm; by default ``arm-0``, ``arm-1`` and so on.

    Examples
    --------
    >>> p = Problem(m=1, epsilon=0.1, delta=0.05, variances=[1.0, 4.0], names=["old", "new"])
    >>> p.n, p.name(1)
    (2, 'new')

    Source
    ------
    [ZT22] Section 3.
    """

    m: int
    epsilon: float
    delta: float
    variances: FloatArray
    names: tuple[str, ...] | None = None

    def __init__(
        self,
        m: int,
        epsilon: float,
        delta: float,
        variances: ArrayLike,
        names: Sequence[str] | None = None,
    ) -> None:
        checked = _variances(variances)
        values = {
            "m": _m(m, len(checked)),
            "epsilon": _epsilon(epsilon),
            "delta": _delta(delta),
            "variances": checked,
            "names": None if names is None else _names(names, len(checked)),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)
        _refuse_endless(self)

    @property
    def n(self) -> int:
        """The number of arms."""
        return len(self.variances)

    def name(self, arm: int) -> str:
        """Return the name of one arm."""
        return f"arm-{arm}" if self.names is None else self.names[arm]

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the question: equal for equal problems, on every machine."""
        parts = hashlib.sha256(struct.pack("<qqdd", self.n, self.m, self.epsilon, self.delta))
        parts.update(self.variances.astype("<f8").tobytes())
        for name in self.names or ():
            parts.update(struct.pack("<q", len(name.encode())) + name.encode())
        return parts.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[type["Problem"], tuple[Any, ...]]:
        return Problem, (self.m, self.epsilon, self.delta, self.variances, self.names)

    def __repr__(self) -> str:
        return f"Problem(m={self.m}, epsilon={self.epsilon}, delta={self.delta}, n={self.n})"


def whole_pulls(shape: tuple[int, ...], amounts: Callable[[slice], FloatArray], purpose: str) -> IntArray:
    """Return pull counts rounded up to whole pulls, at least one each.

    ``amounts(block)`` gives the counts before rounding for a slice of the last axis. Raises
    InvalidProblem where a count, or their sum over the last axis, could not be counted exactly.
    """
    counts = np.empty(shape, dtype=np.int64)
    totals = np.zeros(shape[:-1])
    for block in blocks(shape):
        rounded = amounts(block)
        np.ceil(rounded, out=rounded)
        if rounded.min() < 1.0:  # an amount may vanish in rounding; no arm goes without a pull
            np.maximum(rounded, 1.0, out=rounded)
        totals += rounded.sum(axis=-1)
        if not (totals <= MOST_PULLS).all():
            raise _too_many(float(totals.max()), purpose)
        counts[..., block] = rounded
    return counts


def whole_number(value: object, name: str, least: int) -> int:
    """Return a value as an int, if it is a whole number and at least so large."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidProblem(f"`{name}` is {value!r}; it must be a whole number, {least} or more.")
    return int(value)


def real_numbers(values: Any, name: str) -> FloatArray:
    """Return values as an array of floats, if they are real numbers and nothing else."""
    advice = "Give one real number per arm."
    if isinstance(values, list | tuple):
        _refuse_other_things(values, name, advice)
    try:
        given = np.asarray(values)
    except ValueError:
        raise InvalidProblem(f"`{name}` is ragged; it must be a flat list of numbers. {advice}") from None
    if given.dtype.kind not in "iuf":
        raise InvalidProblem(f"`{name}` holds {_kind(given)}; each must be a real number. {advice}")
    return given.astype(np.float64)


def _too_many(pulls: float, purpose: str) -> InvalidProblem:
    return InvalidProblem(
        f"{purpose} needs {pulls:.3g} pulls or more, beyond 2**53 = {MOST_PULLS:.3g}: they could be "
        f"neither made nor counted exactly. Ask for a larger `epsilon`, or check the units: `epsilon` "
        f"is in the units of the rewards, `variances` in their square."
    )


def _refuse_endless(problem: Problem) -> None:
    # With x = epsilon^2 t / (2 s^2) of order 1 nothing can be told apart, whatever the strategy.
    with np.errstate(over="ignore", divide="ignore"):
        least = float(problem.variances.sum() / problem.epsilon / problem.epsilon)
    if not least <= MOST_PULLS:
        raise _too_many(least, f"epsilon = {problem.epsilon!r} with these variances")


def _m(m: object, n: int) -> int:
    try:
        if isinstance(m, bool | np.bool_):
            raise TypeError
        whole = operator.index(m)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidProblem(
            f"`m` is {m!r}; it must be a whole number of arms to select, such as 3."
        ) from None
    if whole < 1:
        raise InvalidProblem(f"`m` is {whole}; it must be at least 1. To select the single best arm use 1.")
    if whole > n:
        raise InvalidProblem(
            f"`m` is {whole} but there are only {n} arms. Select at most {n}, or add arms to `variances`."
        )
    return whole


def _real(value: object, name: str, advice: str) -> float:
    kinds = (bool, np.bool_, str, bytes, complex, np.complexfloating)
    try:
        if isinstance(value, kinds) or np.ndim(value) != 0:  # type: ignore[arg-type]
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InvalidProblem(f"`{name}` is {value!r}; it must be a real number. {advice}") from None
    return number


def _epsilon(epsilon: object) -> float:
    advice = "Use the largest loss in mean reward that would not matter to you, such as 0.1."
    value = _real(epsilon, "epsilon", advice)
    if not (0.0 < value < math.inf):
        raise InvalidProblem(f"`epsilon` is {value!r}; it must be positive and finite. {advice}")
    if not (_LEAST <= value <= _MOST):
        raise InvalidProblem(
            f"`epsilon` is {value!r}; it must lie between 1e-100 and 1e100. Measure rewards in another unit."
        )
    return value


def _delta(delta: object) -> float:
    advice = "For 95 % confidence use 0.05."
    value = _real(delta, "delta", advice)
    if not (0.0 < value < 1.0):
        raise InvalidProblem(f"`delta` is {value!r}; it must lie strictly between 0 and 1. {advice}")
    return value


def _variances(variances: ArrayLike) -> FloatArray:
    advice = "Give one positive number per arm, such as [1.0, 1.0, 4.0]."
    if isinstance(variances, np.ma.MaskedArray) and np.ma.is_masked(variances):
        raise InvalidProblem(f"`variances` has masked entries. {advice}")
    if isinstance(variances, list | tuple):
        _refuse_other_things(variances, "variances", advice)
    try:
        given = np.asarray(variances)
    except ValueError:
        raise InvalidProblem(f"`variances` is ragged; it must be a flat list of numbers. {advice}") from None
    if given.ndim != 1:
        raise InvalidProblem(
            f"`variances` has {given.ndim} dimensions (shape {given.shape}); it must have one. {advice}"
        )
    if given.size == 0:
        raise InvalidProblem(f"`variances` is empty: there is no arm to select. {advice}")
    if given.dtype.kind not in "iuf":
        raise InvalidProblem(
            f"`variances` holds {_kind(given)}, such as {given[0]!r}; each must be a number. {advice}"
        )
    values = np.array(given, dtype=np.float64)
    is_wrong = ~((values >= _LEAST) & (values <= _MOST))
    if is_wrong.any():
        raise _wrong_variance(values, int(np.argmax(is_wrong)), int(is_wrong.sum()))
    values.flags.writeable = False
    return values


def _refuse_other_things(values: Sequence[object], name: str, advice: str) -> None:
    """Refuse what NumPy would quietly turn into numbers, or all numbers into."""
    kinds = {str: "strings", bytes: "bytes", complex: "complex numbers", type(None): "objects"}
    for place, value in enumerate(values):
        if isinstance(value, bool | np.bool_):
            raise InvalidProblem(f"`{name}[{place}]` is {value!r}; it must be a real number. {advice}")
        if type(value) in kinds:
            raise InvalidProblem(
                f"`{name}` holds {kinds[type(value)]}, such as {value!r}; all must be real numbers. {advice}"
            )


def _kind(values: np.ndarray[Any, Any]) -> str:
    names = {"b": "booleans", "c": "complex numbers", "U": "strings", "S": "bytes", "M": "dates"}
    return names.get(values.dtype.kind, f"objects of type {values.dtype}")


def _wrong_variance(values: FloatArray, place: int, n_wrong: int) -> InvalidProblem:
    value = float(values[place])
    others = f" (and {n_wrong - 1} more like it)" if n_wrong > 1 else ""
    if 0.0 < value < math.inf:
        return InvalidProblem(
            f"`variances[{place}]` is {value!r}{others}; variances must lie between 1e-100 and 1e100. "
            f"Measure rewards in another unit."
        )
    advice = "Give an upper bound on how far rewards of this arm spread, as a variance."
    if value == 0.0:
        advice = (
            "An arm without noise needs any small positive value; an unknown variance needs an upper bound."
        )
    return InvalidProblem(
        f"`variances[{place}]` is {value!r}{others}; every variance must be positive and finite. {advice}"
    )


def _names(names: Sequence[str], n: int) -> tuple[str, ...]:
    if isinstance(names, str | bytes):
        raise InvalidProblem(
            f"`names` is the single string {names!r}; it must be a list with one name per arm."
        )
    try:
        listed = tuple(names)
    except TypeError:
        raise InvalidProblem(f"`names` is {names!r}; it must be a list with one name per arm.") from None
    if len(listed) != n:
        raise InvalidProblem(f"there are {len(listed)} `names` but {n} `variances`; give one name per arm.")
    first_seen: dict[str, int] = {}
    for place, name in enumerate(listed):
        if not isinstance(name, str) or not name.strip() or not _is_text(name):
            raise InvalidProblem(
                f"`names[{place}]` is {name!r}; every name must be a non-empty string of text."
            )
        if name in first_seen:
            raise InvalidProblem(
                f"`names[{place}]` and `names[{first_seen[name]}]` are both {name!r}; names must differ, "
                f"because results are reported by name."
            )
        first_seen[name] = place
    return tuple(str(name) for name in listed)


def _is_text(name: str) -> bool:
    """Whether the name can be written down; half a surrogate pair cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
