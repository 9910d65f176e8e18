"""Validation of the parts of a problem, with error messages that say what to do.

Each function is named for what it checks and returns the validated value.
"""

import math
import operator
import re
import shlex
import warnings
from collections.abc import Sequence
from importlib.metadata import requires
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shortlist.arrays import FloatArray
from shortlist.errors import InvalidProblem

MOST_ARMS = 10**8
"""Several arrays with one number per arm must fit into memory."""
_MOST_WHOLE = 2**1023  # still representable as a float
_MOST_SHOWN = 200  # the maximum number of characters of a value in a message
_LEAST_DELTA = 1e-50  # so that fractions of it are representable, too
_LEAST, _MOST = 1e-100, 1e100  # limits of epsilon and variances, so that squares and ratios are representable


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, Python's or NumPy's; booleans are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def shortened(value: object) -> str:
    """Return a printable value for messages, shortened if necessary."""
    try:
        text = repr(value)
    except Exception:  # raised by a foreign __repr__, or for an integer with thousands of digits
        return f"an object of type {type(value).__name__} that cannot be printed"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def whole_number(value: Any, name: str, least: int, most: int | None = None) -> int:
    """Return a value as an int, if it is an integer within the limits."""
    if not is_whole(value) or not least <= value <= (_MOST_WHOLE if most is None else most):
        limit = "" if most is None else f" and at most {most:,}"
        if is_whole(value) and value > _MOST_WHOLE:
            limit = ", of 300 digits at most"
        raise InvalidProblem(
            f"`{name}` is {shortened(value)}; it must be a whole number, {least} or more{limit}."
        )
    return int(value)


def n_arms(value: Any, name: str = "n") -> int:
    """Return a valid number of arms."""
    return whole_number(value, name, 1, MOST_ARMS)


def one_of(value: object, name: str, allowed: tuple[str, ...]) -> str:
    """Return a string, if it is one of those allowed."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidProblem(f"`{name}` is {shortened(value)}; it must be one of: {', '.join(allowed)}.")
    return value


def real_numbers(given: Any, name: str, advice: str = "Give one real number per arm.") -> FloatArray:
    """Return values as an array of floats, if they are real numbers."""
    if np.ma.is_masked(given):
        raise InvalidProblem(f"`{name}` has masked entries. {advice}")
    if isinstance(given, list | tuple):
        _refuse_other_things(given, name, advice)
    try:
        values = np.asarray(given)
    except ValueError:
        raise InvalidProblem(f"`{name}` is ragged; it must be a flat list of numbers. {advice}") from None
    if values.ndim == 0:
        raise InvalidProblem(f"`{name}` is {shortened(given)}, of 0 dimensions; it must be a list. {advice}")
    if values.size and values.dtype.kind not in "iuf":
        (first,) = values.reshape(-1)[:1].tolist()
        raise InvalidProblem(
            f"`{name}` holds {_kind(values)}, such as {shortened(first)}; all must be real numbers. {advice}"
        )
    return values.astype(np.float64, copy=False)


def m(given: object, n: int) -> int:
    """Return how many arms to select, from 1 to n."""
    try:
        if isinstance(given, bool | np.bool_):
            raise TypeError
        whole = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidProblem(
            f"`m` is {shortened(given)}; it must be a whole number of arms to select, such as 3."
        ) from None
    if whole < 1:
        raise InvalidProblem(
            f"`m` is {shortened(whole)}; it must be at least 1. To select the single best arm use 1."
        )
    if whole > n:
        raise InvalidProblem(
            f"`m` is {shortened(whole)} but there are only {n} arms. Select at most {n}, or add arms."
        )
    return whole


def real_number(value: object, name: str, advice: str = "Give one number.") -> float:
    """Return a single real number as a float."""
    kinds = (bool, np.bool_, str, bytes, complex, np.complexfloating)
    try:
        if isinstance(value, kinds) or np.ndim(value) != 0:  # type: ignore[arg-type]
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InvalidProblem(f"`{name}` is {shortened(value)}; it must be a real number. {advice}") from None
    return number


def epsilon(given: object, *, may_be_zero: bool = False) -> float:
    """Return epsilon, which must be positive and have a representable square, or may be 0."""
    advice = "Use the largest loss in mean reward that would not matter to you, such as 0.1."
    value = real_number(given, "epsilon", advice)
    if may_be_zero and value == 0:
        return 0.0
    if not (0.0 < value < math.inf):
        allowed = "0 or larger, and finite" if may_be_zero else "positive and finite"
        raise InvalidProblem(f"`epsilon` is {value!r}; it must be {allowed}. {advice}")
    if not (_LEAST <= value <= _MOST):
        raise InvalidProblem(
            f"`epsilon` is {value!r}; it must lie between 1e-100 and 1e100. Measure rewards in another unit."
        )
    return value


def delta(given: object) -> float:
    """Return delta, strictly between 0 and 1."""
    advice = "For 95 % confidence use 0.05."
    value = real_number(given, "delta", advice)
    if not (0.0 < value < 1.0):
        raise InvalidProblem(f"`delta` is {value!r}; it must lie strictly between 0 and 1. {advice}")
    if value < _LEAST_DELTA:
        raise InvalidProblem(f"`delta` is {value!r}; it must be 1e-50 or more. {advice}")
    return value


def bounds(given: object, name: str = "bounds") -> tuple[float, float]:
    """Return the two numbers between which all rewards lie."""
    advice = "Give the least and the largest reward, such as (0.0, 1.0)."
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise InvalidProblem(f"`{name}` is {given!r}; it must be two numbers. {advice}")
    low, high = real_numbers(given, name, advice).tolist()
    if not (-_MOST <= low < high <= _MOST):
        raise InvalidProblem(
            f"`{name}` is {given!r}; both must be finite (1e100 at most), the smaller one first. {advice}"
        )
    return low, high


def bounds_by_arm(low: ArrayLike, high: ArrayLike) -> tuple[tuple[float, float], ...]:
    """Return the bounds of each arm; one of the two may be the same for all."""
    advice = "Give one number per arm, or one for all."
    lows, highs = (
        real_numbers(given if np.ndim(given) else [given], name, advice)
        for given, name in ((low, "low"), (high, "high"))
    )
    if lows.ndim > 1 or highs.ndim > 1 or (1 not in {lows.size, highs.size} and lows.size != highs.size):
        raise InvalidProblem(f"`low` has {lows.size} numbers, and `high` has {highs.size}. {advice}")
    pairs = np.column_stack(np.broadcast_arrays(lows, highs)).tolist()
    return tuple(bounds(tuple(pair)) for pair in pairs)


def step(given: object, width: float) -> float:
    """Return the step of rewards within bounds of this width."""
    found = real_number(given, "step")
    if not 0 < found <= width:
        raise InvalidProblem(
            f"`step` is {found:g}; it must be above 0 and at most {width:g}, as the bounds are."
        )
    return found


def variances(given: ArrayLike) -> FloatArray:
    """Return variances as a read-only copy."""
    advice = "Give one positive number per arm, such as [1.0, 1.0, 4.0]."
    values = np.array(real_numbers(given, "variances", advice))
    if values.ndim != 1:
        raise InvalidProblem(
            f"`variances` has {values.ndim} dimensions (shape {values.shape}); it must have one. {advice}"
        )
    if values.size == 0:
        raise InvalidProblem(f"`variances` is empty: there is no arm to select. {advice}")
    is_wrong = ~((values >= _LEAST) & (values <= _MOST))
    if is_wrong.any():
        raise _wrong_variance(values, int(np.argmax(is_wrong)), int(is_wrong.sum()))
    values.flags.writeable = False
    return values


def costs(given: ArrayLike, n: int) -> FloatArray:
    """Return the cost of a pull of each arm."""
    values = real_numbers(given, "costs").copy()
    if values.shape != (n,):
        raise InvalidProblem(f"`costs` has {values.size} entries but there are {n} arms; give one per arm.")
    is_wrong = ~((values >= 1e-9) & (values <= 1e9))
    if is_wrong.any():
        wrong = float(values[np.argmax(is_wrong)])
        raise InvalidProblem(f"`costs` contains {wrong:g}; a pull must cost between 1e-9 and 1e9.")
    values.flags.writeable = False
    return values


def _refuse_other_things(values: Sequence[object], name: str, advice: str) -> None:
    """Raise for values that NumPy would silently convert to numbers, or to which it would convert numbers."""
    kinds = {str: "strings", bytes: "bytes", complex: "complex numbers", type(None): "objects"}
    for place, value in enumerate(values):
        if isinstance(value, bool | np.bool_):
            raise InvalidProblem(
                f"`{name}[{place}]` is {shortened(value)}; it must be a real number. {advice}"
            )
        if type(value) in kinds:
            raise InvalidProblem(
                f"`{name}` holds {kinds[type(value)]}, such as {shortened(value)}; all must be real numbers. "
                f"{advice}"
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
    advice = "Give an upper bound on the variance of this arm's rewards."
    if value == 0.0:
        advice = (
            "An arm without noise needs any small positive value; an unknown variance needs an upper bound."
        )
    return InvalidProblem(
        f"`variances[{place}]` is {value!r}{others}; every variance must be positive and finite. {advice}"
    )


def listed(given: Any) -> tuple[Any, ...]:
    """Return names as a tuple, if they are a sequence and not a single string."""
    if isinstance(given, str | bytes):
        raise InvalidProblem(
            f"`names` is the single string {shortened(given)}; it must be a list with one name per arm."
        )
    try:
        return tuple(given)
    except TypeError:
        raise InvalidProblem(
            f"`names` is {shortened(given)}; it must be a list with one name per arm."
        ) from None


def names(given: Sequence[str], n: int) -> tuple[str, ...]:
    """Return n distinct printable names."""
    found = listed(given)
    if len(found) != n:
        raise InvalidProblem(f"there are {len(found)} `names` but {n} `variances`; give one name per arm.")
    first_seen: dict[str, int] = {}
    for place, name in enumerate(found):
        if not isinstance(name, str) or not name.strip() or not is_text(name):
            raise InvalidProblem(
                f"`names[{place}]` is {shortened(name)}; every name must be a non-empty string of text."
            )
        if name in first_seen:
            raise InvalidProblem(
                f"`names[{place}]` and `names[{first_seen[name]}]` are both {shortened(name)}; names "
                f"must differ, because results are reported by name."
            )
        first_seen[name] = place
    return tuple(str(name) for name in found)


def encodable(given: str, where: str) -> str:
    """Return a text, if it can be encoded as UTF-8; `where` says what it is, for the message."""
    if not is_text(given):
        raise InvalidProblem(
            f"{where} is {shortened(given)}, with a lone surrogate, which is half of a character. Write the "
            f"whole character."
        )
    return given


def is_text(given: str) -> bool:
    """Whether a string can be encoded as UTF-8; a lone surrogate cannot."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def deprecated(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn that something is deprecated, and name the replacement."""
    warnings.warn(
        f"{old} is deprecated and will be removed; use {new}.", DeprecationWarning, stacklevel=stacklevel
    )


def install_command(extra: str) -> str:
    """Return the command that installs what an optional part of the package needs."""
    declared = (line.partition(";") for line in requires("shortlist") or [])
    needed = [what.strip() for what, _, when in declared if re.search(rf"extra == .{extra}.", when)]
    return shlex.join(["pip", "install", *needed])
