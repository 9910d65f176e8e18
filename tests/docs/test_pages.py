"""What pages show is what happens: programs print what stands below them, and so do commands."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import (
    ELSEWHERE,
    ROOT,
    RunCache,
    all_pages,
    blocks,
    outcome_of,
    programs,
    shows,
    steps,
    text_of,
)

pytestmark = pytest.mark.slow

PAGES = [page for page in all_pages() if page not in ELSEWHERE]
PROGRAMS = [
    pytest.param(program, printed, id=f"{page}-{place}")
    for page in PAGES
    for place, (program, printed) in enumerate(programs(page))
]
WITH_COMMANDS = [page for page in PAGES if any(map(steps, blocks(page)))]


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real times contradict the assumptions now and then, which pages do not show."""
    monkeypatch.setattr("shortlist.doctor.timing_notes._FEWEST", 10**9)


@pytest.mark.parametrize(("program", "printed"), PROGRAMS)
def test_programs_print_what_is_shown(program: str, printed: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    status, out, err = outcome_of(program, tmp_path)
    assert status == 0, err
    assert out == printed


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_print_what_is_shown(page: str, tmp_path: Path) -> None:
    with RunCache(tmp_path) as desk:
        for step, status, printed in desk.outcomes(page):
            assert (status != 0) == step.fails, printed
            prose = [
                line for line in printed.splitlines() if ": shortlist " not in line
            ]  # commands are whole
            assert max(map(len, prose), default=0) <= 80, f"`{step.command}` prints wide lines"
            if step.shown:
                assert shows(step.shown, printed), f"put what `{step.command}` prints into {page}:\n{printed}"


def test_there_are_programs_and_commands() -> None:
    assert {"README.md", "docs/start.md", "docs/measurements.md", "docs/clusters.md"} <= set(WITH_COMMANDS)
    assert len(PROGRAMS) >= 20
    assert sum(len(steps(block)) for page in PAGES for block in blocks(page)) >= 50


def test_pages_tested_elsewhere_exist_and_have_blocks() -> None:
    for page, test in ELSEWHERE.items():
        assert blocks(page)
        assert (ROOT / test).is_file()


def test_no_block_is_left_untested() -> None:
    """A block is a program, what a program prints, commands, or a file; or it is plain text."""
    known = re.compile(r"python|text|console|bibtex|\{.*|\w+ \S+\.\w+")
    fences = [
        (page, fence)
        for page in PAGES
        for fence in re.findall(r"^```(.+)$", text_of(page), flags=re.MULTILINE)
    ]
    assert len(fences) > 50
    assert [(page, fence) for page, fence in fences if not known.fullmatch(fence)] == []


def test_what_is_left_out_may_be_anything() -> None:
    assert shows("a\n...\nd\n", "a\nb\nc\nd\n")
    assert shows("a\n...\n", "a\nb\n")
    assert shows("on 3 May 2026, 12:00  x\n", "on 14 June 2027, 13:01 x\n")
    assert not shows("a\nd\n", "a\nb\nd\n")
    assert not shows("a\n...\nd\n", "a\nb\n")
    assert not shows("a\n", "a\nb\n")
