"""A result in the words of a tool: candidates, samples or splits, and scores."""

import math

from shortlist.certificates.guarantee import at_least, ordinal
from shortlist.result import Result

_MOST_ROWS = 20


def summary(result: Result, *, item: str) -> str:
    """Return what a run on shared items found: the selection, the guarantee, and a table of candidates.

    Parameters
    ----------
    result
        The result of a run on shared items.
    item
        What an item is called, such as "sample" or "split".
    """
    n, names = result.problem.n, ", ".join(result.selected)
    return "\n".join(
        filter(
            None,
            [
                f"Selected {len(result.indices)} of {n} candidates: {names or 'none yet'}",
                promise(result, item=item),
                *_table(result, item),
                result.effort,
                result.reissued,
            ],
        )
    )


def promise(result: Result, *, item: str) -> str:
    """Return what is certified, as a sentence; if it is less than was asked for, also why."""
    problem = result.problem
    why = "" if result.is_answer else result.stop.value
    if not len(result.indices) or math.isinf(result.certified_epsilon):
        return f"{why} Nothing is certified.".strip()
    subject = "the selected candidate has" if problem.m == 1 else f"each of the {problem.m} selected has"
    over = f"over all {problem.n_items:,} {item}s" if problem.target == "pool" else f"over all such {item}s"
    best, below = ("largest", "below") if problem.goal == "maximise" else ("smallest", "above")
    if result.certified_epsilon:
        place = f"at most {at_least(result.certified_epsilon, 4)} {below} the {ordinal(problem.m)}{best}"
    else:
        place = f"the {best}" if problem.m == 1 else f"one of the {problem.m} {best}"
    confidence = f"{100 * (1 - problem.delta):.10g} %"
    said = f"With probability at least {confidence}, {subject} a mean score {over} that is {place}."
    return f"{why} {said}".strip()


def _table(result: Result, item: str) -> list[str]:
    """Return the lines of a table: selected candidates first, then the others by their means."""
    arms, sign = result.arms, 1 if result.problem.goal == "minimise" else -1
    means = arms.means.tolist()
    selected = result.indices.tolist()
    others = [arm for arm in range(result.problem.n) if arm not in selected]
    others.sort(key=lambda arm: math.inf if math.isnan(means[arm]) else sign * means[arm])
    shown = [*selected, *others][:_MOST_ROWS]
    names = [result.problem.name(arm) for arm in shown]
    width = max(len("candidate"), *map(len, names))
    lines = [f"{'candidate':{width}}  mean score  {item}s"]
    for arm, name in zip(shown, names, strict=True):
        mean = "" if math.isnan(means[arm]) else f"{means[arm]:.4f}"
        lines.append(f"{name:{width}}  {mean:>10}  {arms.pulls[arm]:>{len(item) + 1},}")
    left = result.problem.n - len(shown)
    return lines + ([f"... and {left:,} more"] if left else [])
