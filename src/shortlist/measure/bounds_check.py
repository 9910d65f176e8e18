"""Checks of rewards against declared bounds, whether they are measured, told, or summarised.

The guarantee depends on the bounds, so an answer outside them is never counted. Single rewards are checked
exactly. For a mean only this can be checked: that it lies within the bounds, up to rounding; that rewards
within the bounds can have its sample variance; and, if rewards are 0 or 1, that it is the mean of a whole
number of successes. For this it may be off by a millionth, as means in single precision and with six decimals
are. So from 500,000 rewards on, every mean passes.

A mean counts as it is given. Rounding it to successes could change the last digit of a mean in double
precision, and with it runs that were begun. An error of a millionth does no harm: to tell arms apart that
differ so little takes about 10**12 rewards.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.checks import is_whole
from shortlist.errors import FinalFailure, MeasurementFailed
from shortlist.items import is_on_step
from shortlist.measure.function import Summary, summary_of
from shortlist.measure.many import Calls, Summaries, to_numpy
from shortlist.measure.shared_items import items_words
from shortlist.measure.source import Call, Source, Take
from shortlist.problem import Problem

_ROUNDING = 1e-9  # share of the range by which a mean may lie outside the bounds, due to rounding
_MEAN_ROUNDING = 1e-6  # by which a mean of successes may be rounded, such as to single precision


@dataclass(frozen=True, eq=False)
class BoundedSource:
    """A source whose rewards are checked against the bounds that a problem declares."""

    source: Source
    problem: Problem

    @property
    def together(self) -> int:
        """The number of calls that are answered together."""
        return self.source.together

    @property
    def is_reproducible(self) -> bool:
        """Whether the same call always gets the same answer."""
        return getattr(self.source, "is_reproducible", False) is True

    def answers(self, calls: Sequence[Call]) -> Sequence[Summary]:
        """Return the other source's answers as summaries; raise FinalFailure for one out of bounds."""
        answers = self.source.answers(calls)
        if isinstance(answers, Summaries):
            check_summaries(self.problem, Calls.of(calls).arms, answers)
            return answers
        return [self._checked(answer, call) for answer, call in zip(answers, calls, strict=True)]

    @property
    def answer_each(self) -> Callable[[Sequence[Call], Take], None] | None:
        """The other source's method of this name, with checked answers; errors for those out of bounds."""
        each = getattr(self.source, "answer_each", None)
        return None if each is None else partial(self._answer_each, each)

    def _answer_each(self, each: Callable[..., None], calls: Sequence[Call], take: Take) -> None:
        def checked(answers: Mapping[int, Any]) -> bool:
            found: dict[int, Any] = {}
            for number, answer in answers.items():
                try:
                    found[number] = self._checked(answer, calls[number])
                except MeasurementFailed as error:
                    found[number] = error
            return take(found)

        each(calls, checked)

    def _checked(self, answer: object, call: Call) -> Summary:
        name, is_binary = self.problem.name(call.arm), self.problem.is_binary
        summary = summary_of(answer, call.count, name, is_binary=is_binary)
        if self.problem.items is not None and summary.scores is not None:
            self._check_scores(summary.scores, call)
        check_answer(self.problem, call.arm, answer, summary)
        return summary

    def _check_scores(self, scores: FloatArray, call: Call) -> None:
        """Raise FinalFailure for a score on shared items that is not possible; it names the item."""
        is_wrong = ~_are_rewards(self.problem, np.full(len(scores), call.arm), scores)
        if is_wrong.any() and self.problem.items is not None:
            place = int(np.argmax(is_wrong))
            item = items_words(self.problem.items, replace(call, count=1, first_pull=call.first_pull + place))
            arm = self.problem.name(call.arm)
            raise _refused(self.problem, call.arm, f"the score {scores[place]:.10g} of {arm} on {item}")


def check_answer(problem: Problem, arm: int, answer: Any, summary: Summary) -> None:
    """Raise FinalFailure if an answer, given as rewards or as a summary, violates the declared bounds.

    Parameters
    ----------
    problem
        The question, with its bounds; without any, everything passes.
    arm
        The arm.
    answer, summary
        The answer as given, and as `summary_of` converts it.
    """
    if problem.bounds is None:
        return
    is_whole_answer = not is_summary(answer)
    rewards = np.atleast_2d(np.asarray(answer, dtype=np.float64)) if is_whole_answer else None
    variance = np.nan if summary.variance is None else summary.variance
    numbers = np.array([summary.count]), np.array([summary.mean]), np.array([variance])
    check_summaries(problem, np.array([arm]), Summaries(*numbers, rewards))


def check_summaries(problem: Problem, arms: IntArray, given: Summaries) -> None:
    """Raise FinalFailure if one of many summaries, or their rewards, violates the declared bounds."""
    if problem.bounds is None:
        return
    if given.rewards is not None:
        rewards = to_numpy(given.rewards)
        is_wrong = ~_are_rewards(problem, arms[:, None], rewards)
        if is_wrong.any():
            place = int(np.argmax(is_wrong.any(axis=-1)))
            value = float(rewards[place][is_wrong[place]][0])
            arm = int(arms[place])
            raise _refused(problem, arm, f"the reward {value:.10g} of {problem.name(arm)}")
        return
    is_wrong = ~_are_means(problem, arms, given.means, given.counts)
    if is_wrong.any():
        place = int(np.argmax(is_wrong))
        of = "" if given.counts[place] == 1 else f"{given.counts[place]:,} rewards of "
        what = "reward" if given.counts[place] == 1 else "mean"
        arm = int(arms[place])
        raise _refused(problem, arm, f"the {what} {given.means[place]:.10g} of {of}{problem.name(arm)}")
    limits = _largest_variances(problem.limits(arms), given.counts)
    is_wrong = given.variances > limits  # false for an unknown variance, NaN
    if is_wrong.any():
        place = int(np.argmax(is_wrong))
        raise FinalFailure(
            f"the sample variance {given.variances[place]:.10g} of {problem.name(int(arms[place]))} is too "
            f"large: {given.counts[place]:,} rewards {_between(problem, int(arms[place]))} have at most "
            f"{limits[place]:.10g}. "
            f"Give the variance of the rewards themselves, or start a run with wider bounds."
        )
    if problem.is_binary:
        _check_successes(problem, arms, given)


def _check_successes(problem: Problem, arms: IntArray, given: Summaries) -> None:
    """Raise FinalFailure for a mean that no rewards of 0 or 1 can have."""
    successes = given.means * given.counts
    is_wrong = np.abs(successes - np.rint(successes)) > _MEAN_ROUNDING * given.counts
    if is_wrong.any():
        place = int(np.argmax(is_wrong))
        raise FinalFailure(
            f"{given.counts[place]:,} rewards of 0 or 1 of {problem.name(int(arms[place]))} cannot have the "
            f"mean {given.means[place]:.10g}: that would be {successes[place]:.10g} successes. Give the "
            f"number of successes, the rewards themselves, or six decimals of the mean."
        )


def is_summary(answer: Any) -> bool:
    """Return whether an answer is a summary, and not a list of rewards."""
    is_pair = isinstance(answer, tuple) and len(answer) == 2 and is_whole(answer[0])
    return is_pair or isinstance(answer, Summary)


def is_reward(problem: Problem, value: float) -> bool:
    """Return whether a number satisfies the declared bounds of the rewards of every arm."""
    return problem.bounds is None or bool(_are_rewards(problem, problem.arms, np.array([value])).all())


def _are_rewards(problem: Problem, arms: IntArray, values: FloatArray) -> BoolArray:
    low, high = problem.limits(arms)
    if problem.is_binary:
        return np.asarray((values == low) | (values == high))
    is_within: BoolArray = (low <= values) & (values <= high) & is_on_step(values, low, problem.step)
    return is_within


def _are_means(problem: Problem, arms: IntArray, means: FloatArray, counts: IntArray) -> BoolArray:
    low, high = problem.limits(arms)
    slack = _ROUNDING * (high - low)
    is_within: BoolArray = (means >= low - slack) & (means <= high + slack)
    return np.where(counts == 1, _are_rewards(problem, arms, means), is_within)


def _largest_variances(bounds: tuple[FloatArray, FloatArray], counts: IntArray) -> FloatArray:
    """Return the largest sample variances that rewards within the bounds can have, with a small tolerance.

    The maximum is reached if half of the rewards lie at either bound.
    """
    low, high = bounds
    half = ((high - low) / 2) ** 2
    limits: FloatArray = np.where(counts > 1, half * counts / np.maximum(counts - 1, 1), 0.0)
    return limits + _ROUNDING * half


def _refused(problem: Problem, arm: int, what: str) -> FinalFailure:
    if problem.is_binary:
        advice = "Give 1 for a success and 0 for a failure, or start a run with bounds instead."
    else:
        advice = "Fix the measurement, or start a run with wider bounds."
    return FinalFailure(
        f"{what} is refused: rewards were declared to {declared(problem, arm)}, and the guarantee depends on "
        f"that. {advice}"
    )


def declared(problem: Problem, arm: int | None = None) -> str:
    """Return the declaration about rewards, of one arm or of all, as text that follows "to"."""
    steps = "" if problem.step is None else f", in steps of {problem.step:g}"
    return "be 0 or 1" if problem.is_binary else f"lie {_between(problem, arm)}{steps}"


def _between(problem: Problem, arm: int | None = None) -> str:
    if arm is None and problem.own_bounds is not None:
        return "within the bounds of each arm"
    low, high = problem.limits(np.array(arm or 0))
    return f"between {low:g} and {high:g}"
