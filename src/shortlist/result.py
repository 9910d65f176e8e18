"""What came out: the arms selected, what is promised of them, and what it took."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Guarantee
from shortlist.errors import NoGuarantee
from shortlist.problem import Problem


class Stop(Enum):
    """Why a run ended; the value is the sentence that the user sees."""

    CERTIFIED = "The strategy ended by its own rule, and its guarantee holds."
    UNPROVED = "The strategy ended by its own rule, but nothing is proved about it. Use another strategy."
    BUDGET = "The budget of pulls ended before the strategy did. Nothing is certified; allow more pulls."
    OPEN = "The run has not ended: some pulls it asked for have not been told."


@dataclass(frozen=True, eq=False)
class Arms:
    """What was measured of every arm.

    Attributes
    ----------
    pulls
        How often each arm was pulled.
    means
        The mean of all its rewards; NaN where it was never pulled.
    """

    pulls: IntArray
    means: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """The answer to a problem.

    Attributes
    ----------
    problem, strategy, seed
        What was asked, who answered, and the seed that reproduces it.
    indices
        The arms selected, the largest observed mean first. That order is not part of the guarantee.
    stop
        Why the run ended.
    guarantee
        What is promised of the selection; None unless the conditions of its theorem were met.
    n_pulls, n_rounds
        How many measurements were made, and in how many batches.
    arms
        What was measured of every arm.
    """

    problem: Problem
    strategy: str
    seed: int
    indices: IntArray
    stop: Stop
    guarantee: Guarantee | None
    n_pulls: int
    n_rounds: int
    arms: Arms

    @property
    def selected(self) -> tuple[str, ...]:
        """The names of the arms selected, in the order of `indices`."""
        return tuple(self.problem.name(int(arm)) for arm in self.indices)

    @property
    def cost(self) -> str:
        """What the run took, in words."""
        rounds = "one round" if self.n_rounds == 1 else f"{self.n_rounds:,} rounds"
        return f"{self.n_pulls:,} pulls in {rounds} by {self.strategy}, seed {self.seed}."

    def require_guarantee(self) -> Guarantee:
        """Return the guarantee; raise NoGuarantee if there is none."""
        if self.guarantee is None:
            raise NoGuarantee(f"this result carries no guarantee. {self.stop.value}")
        return self.guarantee

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, fit for JSON."""
        promise = self.guarantee
        return {
            "selected": list(self.selected),
            "indices": self.indices.tolist(),
            "stop": self.stop.name.lower(),
            "guarantee": None if promise is None else _promise_dict(promise),
            "strategy": self.strategy,
            "seed": self.seed,
            "n_pulls": self.n_pulls,
            "n_rounds": self.n_rounds,
            "problem": {
                "n": self.problem.n,
                "m": self.problem.m,
                "epsilon": self.problem.epsilon,
                "delta": self.problem.delta,
                "digest": self.problem.digest,
            },
            "arms": [
                {"name": self.problem.name(int(arm)), "pulls": int(pulls), "mean": _number(mean)}
                for arm, (pulls, mean) in enumerate(zip(self.arms.pulls, self.arms.means, strict=True))
            ],
        }

    def __str__(self) -> str:
        names = ", ".join(self.selected[:10]) + (", ..." if len(self.indices) > 10 else "")
        lines = [
            f"Selected {len(self.indices)} of {self.problem.n} arms: {names or 'none yet'}",
            self.stop.value if self.guarantee is None else str(self.guarantee),
            self.cost,
        ]
        return "\n".join(lines)


def best_first(indices: IntArray, means: FloatArray) -> IntArray:
    """Return the arms by falling observed mean; arms never pulled, and ties, keep their order."""
    observed = np.where(np.isnan(means[indices]), -np.inf, means[indices])
    return indices[np.argsort(-observed, kind="stable")]


def _promise_dict(guarantee: Guarantee) -> dict[str, Any]:
    return {
        "scope": guarantee.scope.name.lower(),
        "sentence": guarantee.sentence,
        "source": guarantee.source,
        "assumption": guarantee.assumption,
        "ledger": [{"event": share.event, "delta": share.delta} for share in guarantee.ledger.shares],
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
