"""The study of planted faults is honest: on a project of one function, with one test that is broken."""

import sys
from pathlib import Path

import pytest
from tools import mutants
from tools.faults import Fault

pytestmark = pytest.mark.slow

SOURCE = """
def total(values):
    return sum(values)


def untested():
    return 1
"""
TESTS = """
from shortlist.sums import total


def test_that_is_broken():
    assert total([1]) == 2


def test_the_total():
    assert total([1, 2]) == 3
"""
WRONG = Fault("a wrong total", "sums.py", "sum(values)", "sum(values) + 2")
UNSEEN = Fault("nobody looks", "sums.py", "return 1", "return 2")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    for path, text in (
        ("src/shortlist/__init__.py", ""),
        ("src/shortlist/sums.py", SOURCE),
        ("tests/test_sums.py", TESTS),
        ("tools/__init__.py", ""),
        ("tools/mutants_log.py", Path(mutants.__file__).with_name("mutants_log.py").read_text("utf-8")),
        ("pytest.ini", "[pytest]"),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(mutants, "ROOT", root)
    monkeypatch.setattr(mutants, "RESULTS", root / "table.md")
    monkeypatch.setattr(mutants, "FAULTS", (WRONG, UNSEEN))
    monkeypatch.setattr(sys, "argv", ["mutants", "--at-once", "1", "--keep"])
    return root


def test_only_tests_that_pass_without_the_fault_catch_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="True"):
        mutants.main()
    rows = mutants.read()
    assert (rows[WRONG.what].test, rows[UNSEEN.what].test) == ("tests/test_sums.py::test_the_total", None)
    said = capsys.readouterr().out
    assert "1 of 2 planted faults caught, 1 unseen." in said
    assert said.endswith(
        "These tests fail without any fault; fix them:\n  tests/test_sums.py::test_that_is_broken\n"
    )
    assert (project / "src/shortlist/sums.py").read_text("utf-8") == SOURCE

    (project / "tests/test_sums.py").write_text(TESTS.replace("== 2", "== 1"), encoding="utf-8")
    monkeypatch.setattr(mutants, "FAULTS", (WRONG,))
    for n_planted in (1, 0):  # the row is established again, and then kept
        with pytest.raises(SystemExit, match="False"):
            mutants.main()
        said = capsys.readouterr().out
        assert said.count("caught") == 1 + n_planted
        assert "1 of 1 planted faults caught, 0 unseen." in said
