"""The skeleton in CONTRIBUTING.md is a strategy that works, with an oracle that agrees."""

import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from tests.playing import gaussian_rewards, play, play_oracle

TEXT = (Path(__file__).parent.parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)


def run(source: str) -> dict[str, Any]:
    """Execute a block as a module of its own, as dataclasses need."""
    module = types.ModuleType("contributed")
    sys.modules["contributed"] = module
    exec(compile(source, "CONTRIBUTING.md", "exec"), module.__dict__)
    return module.__dict__


def test_the_skeleton_agrees_with_its_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    (strategy,) = (block for block in BLOCKS if "Strategy(" in block)
    (oracle,) = (block for block in BLOCKS if "yield" in block)
    naive = run(strategy)["NAIVE"]
    transcribed = run(oracle.replace("from .wnelim", "from tests.oracles.wnelim"))["naive"]
    registry = sys.modules["shortlist.strategies"]
    monkeypatch.setitem(vars(registry)["_BY_NAME"], "naive", naive)
    problem = sl.Problem(m=3, epsilon=0.5, delta=0.1, variances=np.linspace(0.5, 3.0, 12))
    reward = gaussian_rewards(np.linspace(0.0, 1.0, 12), problem.variances, seed=1)
    ours, theirs = play("naive", problem, reward), play_oracle(transcribed(problem), reward)
    assert ours.pulls == theirs.pulls
    assert ours.selected == theirs.selected
    assert len(ours.selected) == 3
    assert sl.simulate(problem, np.linspace(0.0, 1.0, 12), "naive", replications=50).errors == 0
    assert ours.n_pulls == naive.worst_case_pulls(problem)
