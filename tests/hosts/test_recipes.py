"""The recipes for evaluation tools, carried out as a reader would: they print what the pages show."""

import difflib
import inspect
import os
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.docs.pages import RunCache, blocks, shows, text_of
from tests.hosts.promptfoo_program import environment

PAGES = ["docs/inspect.md", "docs/lm-evaluation-harness.md", "docs/promptfoo.md"]


@pytest.mark.parametrize("page", PAGES)
def test_commands_print_what_is_shown(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path_factory.mktemp("datasets")))
    if page == "docs/promptfoo.md":
        for name, value in environment(tmp_path_factory.mktemp("promptfoo")).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv(
            "PROMPTFOO_FAILED_TEST_EXIT_CODE", "0"
        )  # tests that fail are no failure of the page
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    n_shown = 0
    with RunCache(tmp_path) as cache:
        for step, status, printed in cache.outcomes(page):
            assert (status != 0) == step.fails, printed
            if step.shown:
                n_shown += 1
                assert shows(step.shown, printed), f"put what `{step.command}` prints into {page}:\n{printed}"
    assert n_shown >= 3


@pytest.mark.parametrize("page", PAGES)
def test_no_block_is_left_untested(page: str) -> None:
    fences = re.findall(r"^```(.+)$", text_of(page), flags=re.MULTILINE)
    assert len(fences) == len(blocks(page))
    assert [fence for fence in fences if not re.fullmatch(r"console|\w+ \S+\.\w+", fence)] == []


def test_a_script_for_inspect_needs_three_changed_lines() -> None:
    files = {block.name: block.text.splitlines() for block in blocks("docs/inspect.md") if block.name}
    lines = list(difflib.ndiff(files["everything.py"], files["best.py"]))
    added = [line[2:] for line in lines if line.startswith("+ ")]
    removed = [line[2:] for line in lines if line.startswith("- ")]
    assert len(added) == len(removed) == 3
    shown = files["best.diff"]
    assert [line[1:] for line in shown if line.startswith("+")] == added
    assert [line[1:] for line in shown if line.startswith("-")] == removed
    assert [line[1:] for line in shown if not line.startswith("-")] == files["best.py"]


@pytest.mark.parametrize("name", ["inspect_ai", "lm_eval", "promptfoo", "scikit_learn", "optuna"])
def test_public_names_of_adapters_are_in_the_reference(name: str) -> None:
    module = import_module(f"shortlist.adapters.{name}")
    public = [
        key
        for key, value in vars(module).items()
        if (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
        and not key.startswith("_")
        and key != "main"  # of a program
    ]
    page = text_of("docs/api.md")
    assert [key for key in public if f":: shortlist.adapters.{name}.{key}\n" not in page] == []
