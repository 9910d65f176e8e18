"""The recipes for scikit-learn and Optuna: programs print what the pages show."""

from pathlib import Path

import pytest

from tests.docs.pages import (
    ELSEWHERE,
    ROOT,
    RunCache,
    blocks,
    outcome_of,
    programs,
    shows,
    steps,
    text_of,
)

PAGES = [page for page, test in ELSEWHERE.items() if test == "tests/hosts/test_search_pages.py"]


@pytest.mark.parametrize("page", PAGES)
def test_programs_print_what_is_shown(page: str, tmp_path: Path) -> None:
    for program, printed in programs(page):
        status, out, err = outcome_of(program, tmp_path)
        assert status == 0, err
        assert out == printed


@pytest.mark.parametrize("page", PAGES)
def test_commands_print_what_is_shown(page: str, tmp_path: Path) -> None:
    with RunCache(tmp_path) as cache:
        for step, status, printed in cache.outcomes(page):
            assert (status != 0) == step.fails, printed
            assert shows(step.shown, printed), f"put what `{step.command}` prints into {page}:\n{printed}"


@pytest.mark.parametrize("page", PAGES)
def test_every_program_is_carried_out(page: str) -> None:
    commands = [step.command for block in blocks(page) for step in steps(block)]
    files = {block.name: block.text for block in blocks(page) if block.language == "python" and block.name}
    imported = {name for name in files if any(f"from {name[:-3]} import" in text for text in files.values())}
    assert files
    assert [name for name in files.keys() - imported if f"python {name}" not in commands] == []


def test_the_figures_are_those_of_the_benchmark() -> None:
    results = (ROOT / "benchmarks" / "results" / "grid.md").read_text(encoding="utf-8")
    measured = {tuple(row[:2]): row[2:7] for row in _rows(results) if row[0] != "data"}
    shown = [row for row in _rows(text_of("docs/scikit-learn.md")) if tuple(row[:2]) in measured]
    assert len(shown) == 3
    for data, epsilon, *figures in shown:
        share, right, fits, samples, _ = measured[data, epsilon]
        assert figures == [share.partition(" (")[0], right, fits, samples]
    by_splits = {row[0]: row[1] for row in _rows(results.split("## The number of splits")[1])[1:]}
    splits, shares = (row for row in _rows(text_of("docs/scikit-learn.md")) if row[0] in ("splits", "fits"))
    assert dict(zip(splits[1:], shares[1:], strict=True)) == by_splits


def _rows(page: str) -> list[list[str]]:
    """Return the cells of all rows of tables."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip().replace(" %", "%") for cell in row] for row in rows]
