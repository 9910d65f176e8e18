"""Random numbers of a call: how its seed derives from the run's entropy, the arm and the first pull.

Forked workers start with the same state of `random` and `numpy.random`; a measurement that uses these would
return the same rewards in each of them. So both are reseeded before every call.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from shortlist.measure.source import Call

_OWN_WORDS = 8  # words that `default_rng` takes from a seed sequence; later ones are independent of them


def seeded(call: "Call") -> np.random.Generator:
    """Return the generator of a call, and seed `random` and `numpy.random` from the call."""
    root = call.sequence
    words = root.generate_state(_OWN_WORDS + 4)[_OWN_WORDS:]
    random.seed(int.from_bytes(words.tobytes(), "little"))
    np.random.seed(words)  # noqa: NPY002
    return np.random.default_rng(root)


@contextmanager
def global_randomness_kept() -> Iterator[None]:
    """Restore the state of `random` and `numpy.random` on exit."""
    kept, kept_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(kept)
        np.random.set_state(kept_numpy)  # noqa: NPY002
