"""What is asked where variances are not known: rewards are Gaussian, and a pilot estimates their spread."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from shortlist import checks
from shortlist.errors import InvalidProblem
from shortlist.problem import Named, Problem


@dataclass(frozen=True)
class Unknown(Named):
    """The question put to a strategy where rewards are Gaussian and nobody knows how noisy arms are.

    Every arm is pulled `pilot` times first; the sample variances of these rewards stand in for the true
    ones, and the guarantee allows for their errors. It holds for Gaussian rewards only. Averages of many
    outcomes are nearly so; single successes and failures are not: for rewards in [a, b] put
    ``(b - a)**2 / 4`` as the variance of a `Problem`.

    Parameters
    ----------
    m, epsilon, delta, guarantee, goal
        As in `Problem`.
    n
        How many arms there are; may be left out if names are given.
    names
        One distinct name per arm; by default ``arm-0``, ``arm-1`` and so on.
    pilot
        How often each arm is pulled first, 2 or more. By default each strategy takes a number that suits it,
        mostly between 15 and 80. More is better where noise is large compared with epsilon.

    Examples
    --------
    >>> question = Unknown(m=1, epsilon=0.5, delta=0.05, names=["old", "new"])
    >>> question.n, question.name(1)
    (2, 'new')
    """

    m: int
    epsilon: float
    delta: float
    n: int = 0
    names: Sequence[str] | None = None
    pilot: int | None = None
    guarantee: str = "pac"
    goal: str = "maximise"

    def __post_init__(self) -> None:
        """Check every part, and bring it into its final form."""
        n = _number_of_arms(self.n, self.names)
        values = {
            "n": n,
            "m": checks.m(self.m, n),
            "epsilon": checks.epsilon(self.epsilon),
            "delta": checks.delta(self.delta),
            "names": None if self.names is None else checks.names(self.names, n),
            "pilot": None if self.pilot is None else checks.whole_number(self.pilot, "pilot", 2, 10**9),
            "guarantee": checks.one_of(self.guarantee, "guarantee", ("pac", "indifference")),
            "goal": checks.one_of(self.goal, "goal", ("maximise", "minimise")),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def known(self, variances: ArrayLike, **changes: Any) -> Problem:
        """Return the question that is left once variances are known, or bounds on them."""
        parts = ("m", "epsilon", "delta", "names", "guarantee", "goal")
        problem = Problem(**({part: getattr(self, part) for part in parts} | changes), variances=variances)
        if problem.n != self.n:
            raise InvalidProblem(
                f"`variances` has {problem.n} entries but there are {self.n} arms; give one per arm."
            )
        return problem

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the question, equal for equal ones, on every machine."""
        numbers = (self.n, self.m, self.epsilon, self.delta, self.names, self.pilot)
        parts = (*numbers, self.guarantee, self.goal)
        return hashlib.sha256(f"unknown {parts!r}".encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return what identifies the question as plain data, fit for JSON; not the arms one by one."""
        return {
            "n": self.n,
            "m": self.m,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": "gaussian-unknown",
            "pilot": self.pilot,
            "guarantee": self.guarantee,
            "goal": self.goal,
            "digest": self.digest,
        }

    def changed(self, **changes: Any) -> "Unknown":
        """Return the same question with some of its parts replaced."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        goal = "" if self.goal == "maximise" else f", goal={self.goal!r}"
        return f"Unknown(m={self.m}, epsilon={self.epsilon}, delta={self.delta}, n={self.n}{goal})"


Question: TypeAlias = Problem | Unknown


def checked_question(problem: object) -> Question:
    """Return the question; raise InvalidProblem for anything else."""
    if not isinstance(problem, Problem | Unknown):
        raise InvalidProblem(f"`problem` is {problem!r}; it must be a shortlist.Problem.")
    return problem


def _number_of_arms(n: object, names: Sequence[str] | None) -> int:
    if names is None or isinstance(names, str | bytes):
        if not checks.is_whole(n) or not 1 <= n <= checks.MOST_ARMS:  # type: ignore[operator]
            raise InvalidProblem(
                f"`n` is {checks.shortened(n)}; give the number of arms, from 1 to {checks.MOST_ARMS:,}, or "
                f"their `names`."
            )
        return int(n)  # type: ignore[call-overload,no-any-return]
    listed = checks.listed(names)
    if not checks.is_whole(n) or n not in (0, len(listed)):
        raise InvalidProblem(
            f"`n` is {checks.shortened(n)} but there are {len(listed)} `names`; leave `n` out."
        )
    if not listed:
        raise InvalidProblem("`names` is empty: there is no arm to select. Name at least one.")
    return len(listed)
