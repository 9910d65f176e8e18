"""Differences between a stored run and the current request, field by field, as text."""

from collections.abc import Sequence
from typing import Any

from shortlist.problem import Problem
from shortlist.rewards import Bernoulli
from shortlist.store.events import Began

_PARTS = (
    "m",
    "epsilon",
    "delta",
    "n",
    "noise",
    "pilot",
    "blocks",
    "lockstep",
    "guarantee",
    "goal",
    "bounds",
    "rewards",
    "n_items",
    "target",
    "step",
)
_MOST_SHOWN = 60  # characters of a value


def changes_of_question(
    began: Began, problem: Problem, strategy: str, seed: int, reissue: bool | None = None
) -> list[str]:
    """Return how question, requested strategy and seed differ from those of a stored run.

    `reissue` is compared as well, unless it is None.
    """
    problem = as_begun(problem, began.problem.digest)
    found = [] if began.problem.digest == problem.digest else _changes_of_problem(began.problem, problem)
    if strategy not in {began.asked_for, began.strategy}:
        found.append(_change("strategy", began.asked_for, strategy))
    if seed != began.seed:
        found.append(_change("seed", began.seed, seed))
    if reissue not in (None, began.reissue):
        found.append(_change("reissue", began.reissue, reissue))
    return found


def as_begun(problem: Problem, digest: str) -> Problem:
    """Return a question as the stored run with this digest means it, if that is what it once meant.

    ``rewards = "bernoulli"`` in a problem file meant 0/1 rewards of the largest variance, 1/4, before it
    meant ``Bernoulli()``. A run keeps the meaning that it began with.
    """
    if not isinstance(problem.rewards, Bernoulli) or problem.items is not None:
        return problem
    before = problem.changed(rewards="bernoulli")
    return before if before.digest == digest else problem


def changes_of_settings(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return how the measurement settings differ from the stored ones; tables are compared by entry."""
    found = []
    for key in sorted(before.keys() | now.keys()):
        was, is_now = before.get(key), now.get(key)
        if isinstance(was, dict) and isinstance(is_now, dict):
            found += [f"{key}: {change}" for change in changes_of_settings(was, is_now)]
        elif was != is_now:
            found.append(_change(key, was, is_now))
    return found


def _changes_of_problem(was: Problem, now: Problem) -> list[str]:
    before, after = was.to_dict(), now.to_dict()
    found = [
        _change(part, before.get(part), after.get(part))
        for part in _PARTS
        if before.get(part) != after.get(part)
    ]
    if was.n != now.n:
        return found
    names = [(was.name(arm), now.name(arm)) for arm in range(was.n)]
    found += _change_of_list("name", names)
    if (was.costs is None) != (now.costs is None):
        found.append("costs of pulls were " + ("added" if was.costs is None else "removed"))
    elif was.costs is not None and now.costs is not None:
        costs = zip(was.costs.tolist(), now.costs.tolist(), strict=True)
        found += _change_of_list("cost", list(costs), [now.name(arm) for arm in range(now.n)])
    if was.n_items == now.n_items and was.items is not None and was.items.digest != now.items.digest:  # type: ignore[union-attr]
        found.append("the items, their ids or their order have changed")
    if (was.known and was.known.digest) != (now.known and now.known.digest):
        found.append("the scores in `known` have changed")
    if was.own_bounds != now.own_bounds:
        every: list[list[Any]] = [one.own_bounds or [one.bounds for _ in one.arms] for one in (was, now)]
        pairs = [*zip(*every, strict=True)]
        return found + _change_of_list("bounds", pairs, [now.name(arm) for arm in range(now.n)])
    if was.knows_variances and now.knows_variances:
        variances = zip(was.variances.tolist(), now.variances.tolist(), strict=True)
        found += _change_of_list("variance", list(variances), [now.name(arm) for arm in range(now.n)])
    return found


def _change_of_list(what: str, pairs: list[tuple[Any, Any]], arms: Sequence[str] | None = None) -> list[str]:
    places = [place for place, (was, now) in enumerate(pairs) if was != now]
    if not places:
        return []
    first = places[0]
    of = f"of {arms[first]}" if arms is not None else f"of arm {first}"
    said = _change(f"{what} {of}", *pairs[first])
    return [said if len(places) == 1 else f"{said}, and {len(places) - 1:,} more of {len(pairs):,}"]


def _change(what: str, was: Any, now: Any) -> str:
    return f"{what} was {_short(was)}, is {_short(now)}"


def _short(value: Any) -> str:
    if value is None:
        return "not given"
    said = str(value)
    return said if len(said) <= _MOST_SHOWN else f"{said[: _MOST_SHOWN - 3]}..."
