"""When to reorder, and how much? This example finds the ten cheapest of 1,600 policies.

    python examples/inventory.py                 some seconds
    python examples/inventory.py --epsilon 2     less precise and cheaper

Demand is Poisson with mean 25 in each of 30 periods. Whenever stock is below s, it is filled up to S, at a
cost of 32 plus 3 per unit. A unit in stock costs 1 per period, and a unit owed to a customer costs 5
(Koenig and Law 1985). An arm is a pair (s, S), and a pull gives the average cost of 30 simulated periods.
The noise is unknown. One call of the function `costs` simulates thousands of pulls.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

import shortlist as sl

Whole = NDArray[np.int64]
PERIODS = 30
REORDER, WIDTH = (side.ravel() for side in np.mgrid[1:41, 1:41])
LEVEL = REORDER + WIDTH
NAMES = [f"({s},{S})" for s, S in zip(REORDER, LEVEL, strict=True)]


def costs(arms: Whole, counts: Whole, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Return a list for each arm: the average costs of `counts` simulations of this arm."""
    each = np.repeat(arms, counts)  # one entry for each pull
    reorder, level = REORDER[each], LEVEL[each]
    stock, spent = level, np.zeros(len(each))
    for _ in range(PERIODS):
        is_low = stock < reorder
        spent += np.where(is_low, 32 + 3 * (level - stock), 0)
        stock = np.where(is_low, level, stock) - rng.poisson(25, len(each))
        spent += np.where(stock > 0, stock, -5 * stock)
    return np.split(spent / PERIODS, np.cumsum(counts)[:-1])


def main() -> None:
    """Select, and print the answer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--epsilon", type=float, default=0.5, help="a difference in cost that does not matter"
    )
    parser.add_argument("--seed", type=int, default=0, help="makes the run reproducible")
    given = parser.parse_args()
    question = sl.Problem(
        m=10, epsilon=given.epsilon, delta=0.05, names=NAMES, rewards=sl.Gaussian(), goal="minimise"
    )
    result = sl.select(sl.vectorised(costs), question, seed=given.seed)
    print(result)
    for arm in result.indices:
        print(f"{NAMES[arm]:>8} {result.arms.means[arm]:8.2f} from {result.arms.pulls[arm]:,} pulls")


if __name__ == "__main__":
    main()
