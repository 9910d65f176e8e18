"""The inequality behind the paper's lower bound: an event likely in one world is possible in another."""

import math

from shortlist.variance_groups import entropy


def constant(delta: float) -> float:
    """Return B(delta), which decreases from 1 at delta = 0; it is 0.69 at 0.1."""
    return math.exp(-entropy([delta, 1 - delta]) / (1 - delta))  # [ZT22] Lemma 6.2, B(delta)


def least_probability(divergence: float, delta: float) -> float:
    """Return the least probability of an event in world Q if it has probability 1 - delta or more in world P.

    `divergence` is that of P from Q. The bound holds if Q gives the event less than 1 - delta.

    Source
    ------
    [ZT22] Lemma 6.2.
    """
    return constant(delta) * math.exp(-divergence / (1 - delta))  # [ZT22] Lemma 6.2


def margin(delta: float) -> float:
    """Return ln(B(delta) / delta), the cost of confidence alone in the paper's dual program.

    It is positive for delta below 0.36, and about ln(1/delta) for small delta.
    """
    return math.log(constant(delta)) - math.log(delta)  # [ZT22] Lemma 6.3, ln(B(delta)/delta)
