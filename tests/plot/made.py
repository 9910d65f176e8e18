"""Results and sessions made up for figures: any number of arms, ended or not."""

import numpy as np

import shortlist as sl
from shortlist.arrays import BoolArray, FloatArray
from shortlist.result import best_first
from tests.questions import unknown

NAMES = (
    "$a_b$ <script>alert(1)</script>",
    "$5",
    "x" * 400 + "1",
    "x" * 200 + "yy" + "x" * 200 + "1",
    "שלום עולם",
    "مرحبا",
    "😀 日本語",
    "\u202eevil",
    "evil",
    "line\nbreak\ttab\x00\x1b[31m",
    r"\frac{1}{2} a\$b ^{}_%&#~",
    "e\u0301\u0327 👩‍👩‍👧",
    "\ue000\U000e0041",
)


def question(
    n: int, m: int, *, goal: str = "maximise", known: bool = True, names: tuple[str, ...] | None = None
) -> sl.Problem:
    """Return a question about arms of variances 1, 2, 3, 1, 2, 3 and so on."""
    if not known:
        return unknown(m=m, epsilon=0.5, delta=0.05, n=n, names=names, goal=goal)
    return sl.Problem(m, 0.5, 0.05, 1.0 + np.arange(n) % 3, names=names, goal=goal)


def observed(n: int) -> FloatArray:
    """Return observed means in no order, all different."""
    return np.random.default_rng(n).permutation(np.linspace(-1.0, 1.0, n))


def result(problem: sl.Problem, *, is_final: bool = True, is_pulled: BoolArray | None = None) -> sl.Result:
    """Return a made-up result: arm i has i % 7 + 1 pulls, unless it has none."""
    pulls = np.arange(problem.n) % 7 + 1
    if problem.m == problem.n and is_final:
        pulls[:] = 0
    if is_pulled is not None:
        pulls[~is_pulled] = 0
    means = np.where(pulls > 0, observed(problem.n), np.nan)
    chosen = best_first(problem.arms, problem.merits(means))[: problem.m] if is_final else problem.arms[:0]
    return sl.Result(
        problem=problem,
        strategy="race" if isinstance(problem, sl.Problem) else "t-race",
        seed=0,
        indices=chosen,
        stop=sl.Stop.CERTIFIED if is_final else sl.Stop.OPEN,
        guarantee=None,
        n_pulls=int(pulls.sum()),
        n_rounds=3,
        arms=sl.result.Arms(pulls, means),
    )


def session(n: int, m: int, *, strategy: str = "wnelim", tell: int | None = None) -> sl.Session:
    """Return a session that has ended, or of whose first round so many tickets have been told."""
    made = sl.Session(question(n, m), strategy)
    while tickets := made.ask(tell):
        made.tell(tickets, means=observed(n)[tickets.arms])
        if tell is not None:
            break
    return made
