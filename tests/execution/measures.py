"""Measurements for tests with workers: each can be sent to another process."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import shortlist as sl
from shortlist.arrays import FloatArray, IntArray

MEANS = np.array([0.0, 0.3, 0.9, 1.0, 2.0, 2.1, -1.0, 1.5, 0.2, 0.1, 0.4])
N = len(MEANS)


def problem(**changes: Any) -> sl.Problem:
    question: dict[str, Any] = {"m": 2, "epsilon": 0.7, "delta": 0.1, "variances": np.linspace(0.5, 4.0, N)}
    return sl.Problem(**(question | changes))


def noisy(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
    """Return Gaussian rewards of the arm."""
    return rng.normal(MEANS[arm], 1.0, count)


noisy.is_reproducible = True  # type: ignore[attr-defined]


def noisy_block(arms: IntArray, counts: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return one mean for each arm."""
    return MEANS[arms] + rng.normal(size=len(arms)) / np.sqrt(counts)


def summed_up(arms: IntArray, counts: IntArray, rng: np.random.Generator) -> sl.Summary:
    """Return means and sample variances of Gaussian rewards; the arms with the largest numbers are best."""
    means = arms / 1000 + rng.normal(size=len(arms)) / np.sqrt(counts)
    return sl.Summary(counts, means, rng.chisquare(counts - 1) / (counts - 1))


def global_noise(arm: int, count: int, _: np.random.Generator) -> FloatArray:
    """Return rewards drawn from NumPy's global generator."""
    return np.random.normal(MEANS[arm], 1.0, count)  # noqa: NPY002


@dataclass(frozen=True)
class Once:
    """Measures arms as `noisy` does, but does something bad the first few times that one arm is measured.

    What has happened is written down in a folder, so it is known in every process.
    """

    folder: Path
    deed: str
    arm: int = 3
    times: int = 1
    is_reproducible: ClassVar[bool] = True

    def __call__(self, arm: int, count: int, rng: np.random.Generator) -> Any:
        """Do the bad thing, or return rewards."""
        if arm == self.arm and self._is_due():
            return getattr(self, self.deed)(count)
        return noisy(arm, count, rng)

    def _is_due(self) -> bool:
        for number in range(self.times):
            try:
                (self.folder / str(number)).touch(exist_ok=False)
            except FileExistsError:
                continue
            return True
        return False

    @property
    def n_done(self) -> int:
        """How often it has happened."""
        return len(list(self.folder.iterdir()))

    def dies(self, _: int) -> None:
        """End the process, as the kernel does when memory is short."""
        os.kill(os.getpid(), signal.SIGKILL)

    def hangs(self, count: int) -> list[float]:
        """Take very long."""
        time.sleep(20.0)
        return [0.0] * count

    def raises(self, _: int) -> None:
        """Fail."""
        raise OSError("the sensor is offline")

    def leaves(self, _: int) -> None:
        """Fail in a way that ends programs."""
        raise SystemExit(3)

    def is_nan(self, count: int) -> list[float]:
        """Return something that is no number."""
        return [0.0] * (count - 1) + [float("nan")]

    def is_short(self, count: int) -> list[float]:
        """Return too few rewards."""
        return [0.0] * (count - 1)

    def is_text(self, count: int) -> list[str]:
        """Return words."""
        return ["0.5"] * count

    def is_nothing(self, _: int) -> None:
        """Return nothing."""


def exact(result: sl.Result) -> tuple[Any, ...]:
    """Return all that a run led to, to the last bit."""
    return result.to_dict(), result.arms.pulls.tobytes(), result.arms.means.tobytes()
