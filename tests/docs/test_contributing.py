"""The skeleton in CONTRIBUTING.md is a strategy that passes the contract, with an oracle that agrees."""

import ast
import itertools
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from tests.conftest import ALL_SLOW
from tests.contract import test_strategies as contract
from tests.playing import gaussian_rewards, play, play_oracle

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)


def run(source: str) -> dict[str, Any]:
    """Execute a block as a module of its own, as dataclasses need."""
    module = types.ModuleType("contributed")
    sys.modules["contributed"] = module
    exec(compile(source, "CONTRIBUTING.md", "exec"), module.__dict__)
    return module.__dict__


def checks() -> Iterator[Any]:
    """Yield every test of the contract with each of its cases."""
    for name, test in vars(contract).items():
        if name.startswith("test_"):
            marks = [mark.args for mark in getattr(test, "pytestmark", [])]
            for values in itertools.product(*(cases for _, cases in marks)):
                case = dict(zip((argument for argument, _ in marks), values, strict=True))
                yield pytest.param(test, case, id="-".join([name, *map(str, values)]))


@pytest.fixture
def naive(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The strategy of the skeleton, registered as its own step 2 says."""
    (strategy,) = (block for block in BLOCKS if "Strategy(" in block)
    found = run(strategy)["NAIVE"]
    registry = sys.modules["shortlist.strategies"]
    monkeypatch.setitem(vars(registry)["_BY_NAME"], "naive", found)
    return found


@pytest.mark.parametrize(("check", "case"), list(checks()))
def test_the_skeleton_passes_the_contract(
    check: Callable[..., None], case: dict[str, Any], naive: Any
) -> None:
    check(name=naive.name, **case)


def test_the_five_files_are_those_of_the_design_page() -> None:
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"## Five files to read first\n(.*?)^Then", TEXT, flags=re.MULTILINE | re.DOTALL)
    (linked,) = re.findall(r"## Five files to read first\n(.*?)^And", design, flags=re.MULTILINE | re.DOTALL)
    names = [Path(name).name for name in re.findall(r"`([^`]+\.py)`", listed)]
    assert [Path(name).name for name in re.findall(r"\]\(([^)]+)\)", linked)] == names
    assert len(names) == 7


def test_there_is_a_contract() -> None:
    assert len(list(checks())) > 50


def test_the_skeleton_agrees_with_its_oracle(naive: Any) -> None:
    (oracle,) = (block for block in BLOCKS if "yield" in block)
    transcribed = run(oracle.replace("from .wnelim", "from tests.oracles.wnelim"))["naive"]
    problem = sl.Problem(m=3, epsilon=0.5, delta=0.1, variances=np.linspace(0.5, 3.0, 12))
    reward = gaussian_rewards(np.linspace(0.0, 1.0, 12), problem.variances, seed=1)
    ours, theirs = play("naive", problem, reward), play_oracle(transcribed(problem), reward)
    assert ours.pulls == theirs.pulls
    assert ours.selected == theirs.selected
    assert len(ours.selected) == 3
    assert sl.simulate(problem, np.linspace(0.0, 1.0, 12), "naive", replications=50).errors == 0
    assert ours.n_pulls == naive.worst_case_pulls(problem)


def test_the_skeleton_can_be_tried_before_it_is_registered(capsys: pytest.CaptureFixture[str]) -> None:
    (strategy,) = (block for block in BLOCKS if "Strategy(" in block)
    (trial,) = (block for block in BLOCKS if "from naive import" in block)
    run(strategy + "sys = __import__('sys'); sys.modules['naive'] = sys.modules[__name__]")
    run(trial)
    assert "0 errors" in capsys.readouterr().out


def test_a_quick_check_leaves_out_the_files_that_are_marked_and_no_others() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    marked = {
        path
        for path, text in texts.items()
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "pytestmark"
        and "pytest.mark.slow" in ast.unparse(node.value)
    }
    assert len(marked) > 40
    assert {path for path, text in texts.items() if ALL_SLOW.search(text)} == marked
    kept = {"contract/test_strategies", "proof/test_decisions", "proof/test_ledger", "panel/test_panel"}
    assert not {str(path.relative_to(ROOT / "tests").with_suffix("")) for path in marked} & kept


@pytest.mark.slow
def test_tests_pass_also_in_the_background_of_a_script() -> None:
    """There, as with `nohup make test &`, shells let programs ignore these signals."""
    interrupted = "tests/cli/test_report.py::test_run_writes_a_report_when_it_is_interrupted"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:schemathesis", interrupted]
    done = subprocess.run(
        ["sh", "-c", "trap '' HUP INT QUIT; exec \"$@\"", "-", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout
