"""The delta ledger: the failure events of a strategy's proof, and the share of delta of each."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """One failure event and the probability reserved for it."""

    event: str
    delta: float


@dataclass(frozen=True)
class Ledger:
    """All failure events of a proof; their probabilities sum to at most delta."""

    shares: tuple[Share, ...]

    @property
    def total(self) -> float:
        """The sum of all shares."""
        return math.fsum(share.delta for share in self.shares)
