"""What guarantees assume: the id of each assumption, under which docs/theory lists it, and its words."""

from collections.abc import Iterable

from shortlist.problem import Problem

WORDS = {
    "independent": "rewards are independent",
    "constant-means": "the mean of each arm is constant",
    "sub-gaussian-stated": "rewards are sub-Gaussian with at most the stated variances",
    "gaussian-at-most": "rewards are Gaussian with at most the stated variances",
    "gaussian-stated": "rewards are Gaussian with the stated variances",
    "gaussian-equal": "rewards are Gaussian with the stated variances, which are equal",
    "gaussian-unknown": "rewards are Gaussian with one variance for each arm",
    "within-bounds": "{rewards} {values}",
    "gaussian-differences": "differences of rewards within a block are Gaussian with one variance for each "
    "pair of arms",
    "constant-differences": "the mean difference of each pair of arms is the same in every block",
    "independent-differences": "differences in one block are independent of those in other blocks",
    "items-drawn": "items were drawn independently from the population of interest",
    "fixed-scores": "no score depends on when or in which order it was measured{over}",
    "question-first": "arms and question were fixed without looking at {looked}",
    "fresh-items": "arms and question were fixed without looking at scores on these items",
    "epsilon-unseen": "epsilon was not lowered because of scores on items that other arms had yet to take",
    "fresh-results": "arms and question were fixed without looking at these results",
    "all-included": "all results are included",
    "none-pending": "no counted outcome is still pending",
    "chosen-by-past": "the choice of what to measure next used earlier results only",
    "sizes-by-past": "the number of rewards of each arm in a block was decided before its results were seen",
    "first-blocks": "the table lists the blocks of each arm in the order of measuring and leaves none out",
    "first-answers": "neither the duration nor the failure of a measurement depends on its reward",
    "not-withdrawn": "no answer was withdrawn because of its value",
    "not-corrected": "no fed result was replaced or taken back because of its value",
}
"""The words of each assumption, which follow "provided that"."""

SUB_GAUSSIAN = ("independent", "constant-means", "sub-gaussian-stated")
GAUSSIAN = ("independent", "constant-means", "gaussian-stated")
EQUAL_GAUSSIAN = ("independent", "constant-means", "gaussian-equal")
UNKNOWN_VARIANCES = ("independent", "constant-means", "gaussian-unknown")
BOUNDED = ("independent", "constant-means", "within-bounds")
PAIRED = ("gaussian-differences", "constant-differences", "independent-differences", "question-first")
FED = ("fresh-results", "all-included", "none-pending", "chosen-by-past")
FED_IN_BLOCKS = ("fresh-results", "all-included", "none-pending", "sizes-by-past")
"""What is assumed of results that Shortlist did not ask for; the latter if arms are compared in blocks."""


def in_words(problem: Problem, assumptions: Iterable[str]) -> tuple[str, ...]:
    """Return the words of assumptions for a problem."""
    rewards = "scores" if problem.has_pool else "rewards"
    over = f" (a true mean is the average over these {problem.n_items:,} items)"
    terms = {
        "rewards": rewards,
        "values": _values(problem),
        "looked": "rewards in these blocks" if problem.has_blocks else f"{rewards} taken in this order",
        "over": over if problem.has_pool and problem.target == "pool" else "",
    }
    return tuple(WORDS[one].format(**terms) for one in assumptions)


def _values(problem: Problem) -> str:
    """Return what is known of the values of rewards within bounds: "are 0 or 1", "lie between 1 and 5"."""
    if problem.own_bounds is not None:
        return "lie within the bounds of their arms"
    low, high = problem.bounds or (0.0, 1.0)
    return "are 0 or 1" if problem.is_binary else f"lie between {low:g} and {high:g}"


def listed(words: tuple[str, ...]) -> str:
    """Return clauses as one sentence, without its full stop."""
    return ", and ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])}, and {words[-1]}"
