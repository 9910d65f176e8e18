"""The recorded panel: what every strategy does on fixed instances, down to the last pull.

`python -m tools.panel` compares; `python -m tools.panel --write` records anew. A difference means
that users' runs would differ: explain it in CHANGELOG.md under "Statistical changes".
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import shortlist as sl
from shortlist.strategies import strategy_named

RECORDED = Path(__file__).parent.parent / "tests" / "panel" / "recorded.json"


def questions() -> dict[str, tuple[sl.Problem, np.ndarray[Any, np.dtype[np.float64]], str]]:
    """Return the instances of the panel: problem, means and rewards by name."""
    one = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[1.0, 4.0, 0.5, 2.0, 1.0, 3.0, 0.25, 1.0])
    mixed = sl.instances.random(80, 4, epsilon=0.8, spread=8.0, seed=7)
    level = sl.Problem(m=3, epsilon=0.9, delta=0.1, variances=[1.0] * 30)
    coins = sl.Problem(m=2, epsilon=0.4, delta=0.1, variances=[0.25] * 12)
    tiny = sl.instances.illustrative(2, epsilon=0.5)
    return {
        "random, gaussian": (mixed.problem, mixed.means, "gaussian"),
        "slippage, two-point": (level, sl.instances.slippage(level, 1.5).means, "two-point"),
        "linear, bernoulli": (coins, sl.instances.linear(coins).means, "bernoulli"),
        "illustrative, gaussian": (tiny.problem, tiny.means, "gaussian"),
        "one arm, gaussian": (one, sl.instances.slippage(one, 0.6).means, "gaussian"),
    }


def panel() -> dict[str, Any]:
    """Return pulls and selections of a few replications of every strategy on every instance it can take."""
    found: dict[str, Any] = {}
    for title, (problem, means, rewards) in questions().items():
        for name in sl.strategies.names():
            if strategy_named(name).unfit(problem):
                continue
            outcome = sl.simulate(problem, means, name, replications=3, seed=2022, rewards=rewards)
            found[f"{title}: {name}"] = {
                "pulls": outcome.pulls.tolist(),
                "selected": outcome.selected.tolist(),
                "worst case": sl.Session(problem, name).worst_case_pulls,
            }
    return found | unknown_panel()


def unknown_panel() -> dict[str, Any]:
    """Return the same for strategies that know no variances."""
    found: dict[str, Any] = {}
    variances = np.array([1.0, 4.0, 0.5, 2.0, 1.0, 3.0, 0.25, 1.0])
    for m, names in ((1, ("rinott", "kim-nelson")), (2, ("t-race", "dudewicz-dalal", "race", "wnelim"))):
        question = sl.Problem(m=m, epsilon=0.5, delta=0.1, n=8, rewards=sl.Gaussian())
        means = np.where(question.arms < m, 0.6, 0.0)
        for name in names:
            outcome = sl.simulate(question, means, name, variances=variances, replications=3, seed=2022)
            found[f"unknown variances: {name}"] = {
                "pulls": outcome.pulls.tolist(),
                "selected": outcome.selected.tolist(),
            }
    return found


def main() -> None:
    """Compare with the record, or write it."""
    now = panel()
    if "--write" in sys.argv[1:]:
        RECORDED.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
        return
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    changed = [title for title in now.keys() | recorded.keys() if now.get(title) != recorded.get(title)]
    print("\n".join(sorted(changed)) or "nothing changed")
    sys.exit(bool(changed))


if __name__ == "__main__":
    main()
