"""Names of version 0.1.0 that still work, for one version, with a warning that says what to write instead."""

import sys
import types
import warnings

from shortlist import strategies


def warn(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Say that a name is going, and what to write instead."""
    warnings.warn(
        f"{old} is deprecated and will be removed; use {new}.", DeprecationWarning, stacklevel=stacklevel
    )


class _StrategiesModule(types.ModuleType):
    """The module `shortlist.strategies`, which was a function."""

    def __call__(self, variances: str = "known") -> tuple[str, ...]:
        """Return the names of strategies; use `shortlist.strategies.names`."""
        warn("calling shortlist.strategies", "shortlist.strategies.names()")
        return strategies.names(variances)


sys.modules[strategies.__name__].__class__ = _StrategiesModule
