"""The recipe for shared items, carried out as a new user would: with interruptions, failures and changes."""

import csv
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, text_of

pytestmark = pytest.mark.slow

PAGE = "docs/shared-items.md"
NEEDED = int(re.findall(r"([\d,]+) of 8,000 scores", text_of(PAGE))[0].replace(",", ""))
BREAKS = """
asked = open("asked.txt", "a+")
asked.seek(0)
n_asked = len(asked.readlines())
plain = score


def score(prompt, question):
    global n_asked
    n_asked += 1
    asked.write(f"{prompt}/{question}\\n")
    asked.flush()
    if n_asked == LIMIT:
        os._exit(1)
    return plain(prompt, question)
"""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, and the CSV files that its first program writes; to be copied."""
    folder = tmp_path_factory.mktemp("begun")
    for block in blocks(PAGE):
        if block.name:
            (folder / block.name).write_text(block.text, encoding="utf-8")
    assert done(folder, "service.py").returncode == 0
    return folder


@pytest.fixture(scope="module")
def ended(begun: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same after the run of the page, which ended in spite of all that befell it; to be copied.

    It failed at an item, was killed at its 400th and at its 1500th call, and was called again when it had
    ended. What it printed is in files.
    """
    folder = tmp_path_factory.mktemp("ended")
    shutil.copytree(begun, folder, dirs_exist_ok=True)
    broken_at(folder, 10**9)
    (folder / "failed.txt").write_text(failed(folder), encoding="utf-8")
    for limit in (400, 1500):
        broken_at(folder, limit)
        assert done(folder, "best.py").returncode == 1
    broken_at(folder, 10**9)
    for name in ("printed", "again"):
        run = done(folder, "best.py")
        assert run.returncode == 0
        (folder / f"{name}.txt").write_text(run.stdout, encoding="utf-8")
        shutil.copy(folder / "asked.txt", folder / f"asked when {name}.txt")
    return folder


def failed(folder: Path) -> str:
    """Run the program of the page with a service that does not answer for one item; return what it says."""
    best = folder / "best.py"
    plain = best.read_text(encoding="utf-8")
    failing = plain.replace(
        "    return [score(prompts[arm], question) for question in items]",
        "    if arm == 3 and 'question 114' in items:\n        raise TimeoutError('no answer')\n"
        "    return [score(prompts[arm], question) for question in items]",
    ).replace('name="prompts"', 'name="prompts", retries=0')
    assert failing != plain
    best.write_text(failing, encoding="utf-8")
    run = done(folder, "best.py")
    assert run.returncode != 0
    best.write_text(plain, encoding="utf-8")
    return run.stderr


def done(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, program], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


def truth(folder: Path) -> dict[str, float]:
    with (folder / "scores.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 400
    return {name: sum(int(row[name]) for row in rows) / 400 for name in rows[0] if name != "id"}


def broken_at(folder: Path, limit: int) -> None:
    """Let the service write down what it is asked, and the process end with a certain call."""
    text = next(block.text for block in blocks(PAGE) if block.name == "service.py")
    head, main = text.split('\n\nif __name__ == "__main__":')
    broken = head + BREAKS.replace("LIMIT", str(limit)) + '\n\nif __name__ == "__main__":' + main
    (folder / "service.py").write_text(broken.replace("import math\n", "import math, os\n"), "utf-8")


def test_the_answer_is_right(ended: Path) -> None:
    (name,) = re.findall(r"^(prompt \d\d) is within", (ended / "printed.txt").read_text(encoding="utf-8"))
    means = truth(ended)
    assert len(means) == 20
    assert means[name] >= max(means.values()) - 0.03


def test_after_interruptions_the_same_command_pays_for_nothing_twice(ended: Path) -> None:
    read = {path.stem: path.read_text(encoding="utf-8") for path in ended.glob("*.txt")}
    assert read["printed"] in text_of(PAGE)
    asked = Counter(read["asked when printed"].splitlines())
    assert len(asked) == NEEDED
    twice = [cell for cell, times in asked.items() if times > 1]
    assert len(twice) <= 2 * 8, twice  # only those of the calls that were running
    assert read["again"] == read["printed"]
    assert len(read["asked when again"].splitlines()) == asked.total()


def test_a_changed_item_is_refused_and_a_smaller_epsilon_is_not(ended: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ended, tmp_path, dirs_exist_ok=True))
    best = folder / "best.py"
    plain = best.read_text(encoding="utf-8")
    best.write_text(plain.replace("epsilon=0.03", "epsilon=0.0"), encoding="utf-8")
    exact = done(folder, "best.py")
    assert exact.stdout.startswith("prompt 07 is within 0.0 of the best")
    assert int(re.findall(r"([\d,]+) of 8,000", exact.stdout)[0].replace(",", "")) > NEEDED
    best.write_text(plain, encoding="utf-8")
    questions = folder / "questions.csv"
    text = questions.read_text(encoding="utf-8")
    questions.write_text(text.replace("question 017", "Question 017"), encoding="utf-8")
    refused = done(folder, "best.py")
    assert refused.returncode != 0
    assert "items" in refused.stderr.splitlines()[-1]


def test_a_failing_item_is_not_dropped(ended: Path) -> None:
    assert "no answer" in (ended / "failed.txt").read_text(encoding="utf-8")
    assert (ended / "printed.txt").read_text(encoding="utf-8") in text_of(PAGE)


def test_the_figures_are_those_of_the_benchmark() -> None:
    """Shares and errors on the page agree with benchmarks/results/items.md, rounded."""
    results = (ROOT / "benchmarks" / "results" / "items.md").read_text(encoding="utf-8")
    section = results.split("## Real tables")[1].split("\n## ")[0]
    measured = re.findall(r"\| ([\d.]+)% ± .* items: ([\d.]+)% \|", section)
    shown = re.findall(r"\| ([\d.]+) % \| ([\d.]+) % \|", text_of(PAGE))
    assert len(measured) == len(shown) == 12
    for found, said in zip(measured, shown, strict=True):
        assert [float(one) for one in said] == [
            round(float(exact), len(one.partition(".")[2])) for exact, one in zip(found, said, strict=True)
        ]
