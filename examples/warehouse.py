"""Which policy runs a warehouse most cheaply? All policies are simulated with the same demand.

    python examples/warehouse.py                 compares with separate random numbers
    shortlist run examples/policies.toml         the same question as a problem file

Demand is Poisson with mean 25 in each of 30 periods. Whenever stock is below s, it is filled up to S, at a
cost of 32 plus 3 per unit. A unit in stock costs 1 per period, and a unit owed to a customer costs 5
(Koenig and Law 1985). An arm is a pair (s, S), and a pull gives the average cost of 30 simulated periods.

The function `measure` receives the seeds of blocks, which are the same for all arms. A block with a large
demand is expensive under every policy. The difference between two policies therefore varies much less than
their costs.
"""

from itertools import product

import numpy as np

import shortlist as sl

PERIODS = 30
POLICIES = [(s, s + width) for s, width in product((10, 14, 18, 22, 26, 30), (15, 25, 35, 45))]
NAMES = [f"({s},{S})" for s, S in POLICIES]


def cost(reorder: int, level: int, rng: np.random.Generator) -> float:
    """Return the average cost of one simulation of a policy."""
    stock, spent = level, 0
    for demand in rng.poisson(25, PERIODS).tolist():
        if stock < reorder:
            spent += 32 + 3 * (level - stock)
            stock = level
        stock -= demand
        spent += stock if stock > 0 else -5 * stock
    return spent / PERIODS


def measure(arm: int, blocks: list[int]) -> list[float]:
    """Return the cost in each block; all arms have the same demand in a block."""
    return [cost(*POLICIES[arm], np.random.default_rng(seed)) for seed in blocks]


def measure_apart(arm: int, blocks: list[int]) -> list[float]:
    """Return the cost in each block without common random numbers: every arm has its own demand."""
    return [cost(*POLICIES[arm], np.random.default_rng([seed, arm + 1])) for seed in blocks]


def main() -> None:
    """Select with the same demand for all arms, and with separate demand."""
    question = sl.Problem(
        m=1,
        epsilon=0.5,
        delta=0.05,
        names=NAMES,
        rewards=sl.Gaussian(),
        items=sl.Blocks(),
        goal="minimise",
    )
    common, apart = (sl.select(one, question, seed=1) for one in (measure, measure_apart))
    print(common)
    for arm in common.indices:
        print(f"{NAMES[arm]:>8} {common.arms.means[arm]:8.2f} in {common.arms.pulls[arm]:,} blocks")
    print(f"Common random numbers: {common.n_pulls:,} replications.")
    print(f"Separate random numbers: {apart.n_pulls:,}, {apart.n_pulls / common.n_pulls:.1f} times as many.")


if __name__ == "__main__":
    main()
