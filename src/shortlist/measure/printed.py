"""Parses the output of a program as rewards. Invalid output raises a ValueError."""

import json
import math
from typing import Any

from shortlist.measure.function import Summary

_WORDS = {"true": 1.0, "True": 1.0, "false": 0.0, "False": 0.0}


def rewards_in_lines(text: str, count: int, *, is_binary: bool = False) -> list[float]:
    """Return the rewards of an output with one number per line or, if they are 0 or 1, true or false."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) != count:
        raise ValueError(f"it printed {_lines(len(lines))}, but {_rewards(count)} requested, one per line")
    words = _WORDS if is_binary else {}
    return [words[line] if line in words else _checked(_number(line), line) for line in lines]


def rewards_in_json(text: str, count: int, *, is_binary: bool = False) -> list[float] | Summary:
    """Return the rewards of an output in JSON: a list, a summary, or a number if one reward was requested.

    Where rewards are 0 or 1 (`is_binary`), false and true stand for them.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its output is not JSON ({error}): {short(text)}") from None
    if isinstance(found, dict):
        return _summary(found, count)
    if (is_number(found) or isinstance(found, bool)) and count == 1:
        found = [found]
    if is_binary and isinstance(found, list):
        found = [as_number(value) for value in found]
    if not isinstance(found, list) or not all(map(is_number, found)):
        raise ValueError(f"it printed {short(text)}, which is neither a list of numbers nor a summary")
    if len(found) != count:
        raise ValueError(f"its list has {len(found)} numbers, but {_rewards(count)} requested")
    return [checked_number(value) for value in found]


def _summary(found: dict[str, Any], count: int) -> Summary:
    needed, known = {"count", "mean"}, {"count", "mean", "variance"}
    is_whole = set(found) - {"variance"} == needed and all(map(is_number, found.values()))
    if not is_whole or found["count"] != count:
        wanted = f"numbers named {', '.join(sorted(known))} (the last is optional), with count {count}"
        raise ValueError(f"its summary is {short(json.dumps(found))}; it must have {wanted}")
    variance = found.get("variance")
    if variance is not None and _checked(_float(variance), variance) < 0:
        raise ValueError(f"its summary has the variance {variance}; a variance cannot be negative")
    return Summary(count, _checked(_float(found["mean"]), found["mean"]), variance)


def is_number(value: object) -> bool:
    """Return whether a value that was parsed from JSON is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_number(value: object) -> object:
    """Return 1 for true and 0 for false, and anything else as it is."""
    return int(value) if isinstance(value, bool) else value


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # JSON allows integers of any size
        return math.inf


def checked_number(value: float) -> float:
    """Return a number that was parsed from JSON; refuse NaN and infinity."""
    return _checked(_float(value), value)


def _number(line: str) -> float:
    try:
        if "_" in line:  # Python would parse 1_5 as 15
            raise ValueError
        return float(line)
    except ValueError:
        raise ValueError(f"it printed {short(line)}, which is not a number") from None


def _checked(value: float, shown: object) -> float:
    if not math.isfinite(value):
        raise ValueError(f"it printed {str(shown)[:60]}; NaN and infinity are not rewards")
    return value


def _lines(count: int) -> str:
    return "one line" if count == 1 else f"{count:,} lines"


def _rewards(count: int) -> str:
    return "one reward was" if count == 1 else f"{count:,} rewards were"


def short(text: str) -> str:
    """Return a text in quotes, shortened if it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
