"""Train a small model with one of twelve settings, with a new seed each time. training.toml uses this file.

Stochastic gradient descent fits a linear model with 20 weights to 1,024 samples, and uses each sample once.
The loss is the mean squared error on fresh validation samples. A setting is a learning rate and a batch
size. A recursion gives the true expected loss of every setting. To print these losses:

    python examples/training.py
"""

import itertools

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
WEIGHTS, SAMPLES, VALIDATION = 20, 1024, 1000
RATES, BATCHES = (0.003, 0.01, 0.03, 0.1), (4, 16, 64)
SETTINGS = list(itertools.product(RATES, BATCHES))


def measure(arm: int, count: int, rng: np.random.Generator) -> list[float]:
    """Return the validation losses of `count` training runs with one setting."""
    return [train(*SETTINGS[arm], rng) for _ in range(count)]


def train(rate: float, batch: int, rng: np.random.Generator) -> float:
    """Return the validation loss after one training run.

    The loss is rounded to six decimals, because the last bits of sums of products differ between processors.
    """
    truth = rng.normal(size=WEIGHTS)
    weights = np.zeros(WEIGHTS)
    for _ in range(SAMPLES // batch):
        inputs, targets = samples(truth, batch, rng)
        weights -= rate * inputs.T @ (inputs @ weights - targets) / batch
    inputs, targets = samples(truth, VALIDATION, rng)
    return round(float(np.mean((inputs @ weights - targets) ** 2)), 6)


def samples(truth: Numbers, count: int, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
    """Return inputs and targets; a target is a linear function of the inputs, plus noise of variance 1."""
    inputs = rng.normal(size=(count, WEIGHTS))
    return inputs, inputs @ truth + rng.normal(size=count)


def expected_loss(rate: float, batch: int) -> float:
    """Return the true mean of `train`: with Gaussian inputs, the error follows a known recursion."""
    squared_error = float(WEIGHTS)
    for _ in range(SAMPLES // batch):
        factor = 1 - 2 * rate + rate**2 * (1 + (WEIGHTS + 1) / batch)
        squared_error = factor * squared_error + rate**2 * WEIGHTS / batch
    return squared_error + 1.0


if __name__ == "__main__":
    for rate, batch in sorted(SETTINGS, key=lambda setting: expected_loss(*setting)):
        print(f"rate {rate:g}, batch {batch:>2}: {expected_loss(rate, batch):.3f}")
