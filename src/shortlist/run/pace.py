"""How much work goes into one task: enough to outweigh sending it, little enough to share the work out."""

import math
from dataclasses import dataclass

_SECONDS = 0.3  # that a task should take
_MOST_CALLS = 1 << 16
_WEIGHT = 0.5  # of the latest task in the running estimates


@dataclass
class Pace:
    """How long calls have been taking, by call and by pull, and the largest task so far."""

    per_call: float = 0.0
    per_pull: float = 0.0
    most_blocks: int = 1

    def note(self, calls: int, pulls: int, seconds: float) -> None:
        """Take in how long a task took."""
        weight = _WEIGHT if self.per_call else 1.0
        self.per_call += weight * (seconds / calls - self.per_call)
        self.per_pull += weight * (seconds / pulls - self.per_pull)

    def blocks(self, calls: int, pulls: int, remaining: int, n_workers: int) -> int:
        """Return how many blocks to put into the next task.

        Parameters
        ----------
        calls, pulls
            Of the next block.
        remaining
            How many blocks are to be done in all.
        n_workers
            Among how many they are shared out.
        """
        if not self.per_call:
            return 1
        expected = max(calls * self.per_call, pulls * self.per_pull, 1e-9)
        fair = remaining if n_workers == 1 else math.ceil(remaining / (2 * n_workers))
        wanted = min(int(_SECONDS / expected), 4 * self.most_blocks, fair, _MOST_CALLS // calls)
        self.most_blocks = max(self.most_blocks, wanted)
        return max(1, wanted)
