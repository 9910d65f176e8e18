"""The delta ledger: which failures a strategy allows for, and what share of delta each may use."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """One kind of failure and the probability set aside for it."""

    event: str
    delta: float


@dataclass(frozen=True)
class Ledger:
    """All failures that a strategy allows for; together they may use at most delta."""

    shares: tuple[Share, ...]

    @property
    def total(self) -> float:
        """The probability spent in all."""
        return math.fsum(share.delta for share in self.shares)
