"""Redraw the figures of docs/figures.md; they come out the same every time.

``python -m tools.figures`` draws all of them in a few minutes, ``python -m tools.figures spent`` some.
"""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import shortlist as sl
from shortlist.files.problem_file import read_problem_file
from shortlist.plot.style import Drawn

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "figures"
EPSILONS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.49, 0.7, 1.0)


@cache
def drilling() -> sl.Session:
    """Return a run of the drilling example."""
    asked = read_problem_file(ROOT / "examples" / "drilling.toml")
    session = sl.Session(asked.problem, seed=0)
    assert isinstance(asked.problem, sl.Problem)
    assert asked.means is not None
    sl.drive(session, sl.simulated_measure(asked.problem, asked.means))
    return session


def epsilon() -> Drawn:
    """Return failures and pulls where 2 of 10 arms lead by 0.5."""
    variances = np.linspace(0.5, 2.0, 10)
    problem = sl.Problem(m=2, epsilon=0.5, delta=0.1, rewards=sl.Gaussian(variances))
    means = sl.instances.slippage(problem, gap=0.5).means
    names = ("race", "single-stage", "bechhofer", "wnelim")
    return sl.plot.failure_against_epsilon(problem, means, names, epsilons=EPSILONS, replications=400)


FIGURES: dict[str, Callable[[], Drawn]] = {
    "arms": lambda: sl.plot.arms(drilling().result),
    "pulls": lambda: sl.plot.pulls(drilling().result),
    "rounds": lambda: sl.plot.rounds(drilling()),
    "spent": lambda: sl.plot.spent(drilling().result),
    "heterogeneity": sl.plot.heterogeneity_story,
    "scaling-n": lambda: sl.plot.scaling("n", as_multiple=True),
    "scaling-m": lambda: sl.plot.scaling("m"),
    "scaling-delta": lambda: sl.plot.scaling("delta"),
    "epsilon": epsilon,
}


def main(names: list[str]) -> None:
    """Draw the figures named, by default all."""
    for name in names or FIGURES:
        sl.plot.save(FIGURES[name](), FOLDER / f"{name}.svg")
        print(f"docs/figures/{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
