"""promptfoo, the real program with a small provider: its results, and its evaluations as measurements."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import shortlist as sl
from shortlist.adapters.promptfoo import Candidates
from shortlist.cli import shortlist
from shortlist.errors import InvalidProblem, MeasurementFailed
from shortlist.measure.result_files import read_scores
from tests.hosts.promptfoo_program import environment

N_TESTS = 40
PROVIDER = """
import { appendFileSync } from 'node:fs';

let left = Number(process.env.LAST);
const skill = { poor: 20, fair: 50, good: 95 };

export default class Adder {
  constructor(options) { this.name = options.config?.name ?? 'adder'; }
  id() { return this.name; }
  async callApi(prompt) {
    const [how, number] = prompt.split(' ');
    appendFileSync(new URL('asked.txt', import.meta.url), `${this.name} ${how} ${number}\\n`);
    if (process.env.LAST && --left === 0) process.kill(process.pid, 'SIGKILL');
    if (number === process.env.BROKEN && how === 'good') throw new Error('no answer');
    const isRight = (number * 7919 + how.length * 31) % 100 < skill[how];
    return { output: String(Number(number) + (isRight ? 1 : 0)) };
  }
}
"""
CONFIG = """
prompts:
  - {label: poor, raw: "poor {{number}}"}
  - {label: fair, raw: "fair {{number}}"}
  - {label: good, raw: "good {{number}}"}
providers: [PROVIDERS]
tests: file://tests.csv
"""
ONE = "file://provider.mjs"
TWO = ", ".join(
    f"{{id: 'file://provider.mjs', label: {name}, config: {{name: {name}}}}}" for name in ("east", "west")
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in environment(tmp_path / ".promptfoo").items():
        monkeypatch.setenv(name, value)
    (tmp_path / "provider.mjs").write_text(PROVIDER)
    rows = [f'add to {k} (exactly),{k},"equals:{k + 1}"' for k in range(N_TESTS)]
    (tmp_path / "tests.csv").write_text("\n".join(["__description,number,__expected", *rows]) + "\n")
    (tmp_path / "promptfooconfig.yaml").write_text(CONFIG.replace("PROVIDERS", ONE))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def descriptions(n: int = N_TESTS) -> list[str]:
    return [f"add to {k} (exactly)" for k in range(n)]


def asked(folder: Path) -> Counter[str]:
    return Counter((folder / "asked.txt").read_text().splitlines())


def evaluated(*options: str) -> None:
    """Evaluate as a user would."""
    command = ["promptfoo", "eval", "--no-cache", "--no-write", "--no-table", *options]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode in (0, 100), run.stdout + run.stderr


def test_results_are_a_table(folder: Path) -> None:
    evaluated("-o", "all.json", "-o", "all.jsonl", "--filter-first-n", "8")
    wanted = {
        how: [float((k * 7919 + 4 * 31) % 100 < skill) for k in range(8)]
        for how, skill in (("poor", 20), ("fair", 50), ("good", 95))
    }
    for name in ("all.json", "all.jsonl"):
        table = read_scores(folder / name)
        assert table.items == tuple(descriptions(8))
        assert dict(zip(table.arms or (), table.scores.tolist(), strict=True)) == wanted
    with pytest.raises(InvalidProblem, match=r"all\.json and .*all\.jsonl have two scores of poor"):
        read_scores(folder)
    (folder / "all.jsonl").unlink()
    (folder / "tests.csv").unlink()  # which is no table of scores
    found = CliRunner().invoke(shortlist, ["certify", str(folder), "--scores", "--epsilon", "0.1"])
    assert found.exit_code == 0, found.output
    assert "Best certified so far: good" in found.output


def test_prompts_and_providers_are_arms(folder: Path) -> None:
    (folder / "promptfooconfig.yaml").write_text(CONFIG.replace("PROVIDERS", TWO))
    evaluated("-o", "both.json", "--filter-first-n", "2")
    arms = read_scores(folder / "both.json").arms or ()
    assert sorted(arms) == [
        f"{how}, {where}" for how in ("fair", "good", "poor") for where in ("east", "west")
    ]


def test_errors_are_named_or_scored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", "1")
    evaluated("-o", "all.json", "--filter-first-n", "2", "--filter-prompts", "good")
    with pytest.raises(InvalidProblem, match=r"sample add to 1 \(exactly\) failed \(.*no answer.*on_failure"):
        read_scores(folder / "all.json")
    assert read_scores(folder / "all.json", on_failure=0).scores.tolist() == [[1, 0]]


def test_repeated_tests_are_refused(folder: Path) -> None:
    evaluated("-o", "all.json", "--filter-first-n", "2", "--repeat", "2")
    with pytest.raises(InvalidProblem, match="several results of each test"):
        read_scores(folder / "all.json")


# --- evaluations as measurements ----------------------------------------------------------------------


def test_the_best_prompt_is_found_and_no_test_is_carried_out_twice(folder: Path) -> None:
    def candidates() -> Candidates:
        return Candidates(
            "promptfooconfig.yaml", ["poor", "fair", "good"], descriptions(), options=["--no-cache"]
        )

    found = candidates()
    problem = found.problem(m=1, epsilon=0.2, delta=0.1)
    result = sl.select(found, problem, store=folder / "runs.db")
    assert result.selected == ("good",)
    assert set(asked(folder).values()) == {1}
    assert asked(folder).total() == result.n_pulls < 3 * N_TESTS
    sl.select(candidates(), problem, store=folder / "runs.db")
    assert asked(folder).total() == result.n_pulls


def test_tests_that_were_carried_out_before_a_crash_are_not_carried_out_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def candidates(*tests: str) -> Candidates:
        options = ["--no-cache", "--max-concurrency", "1"]
        return Candidates("promptfooconfig.yaml", ["poor", "fair", "good"], descriptions(), options=options)

    problem = candidates().problem(m=1, epsilon=0.2, delta=0.1)
    monkeypatch.setenv("LAST", "11")
    with pytest.raises(MeasurementFailed, match="ended with status -9"):
        sl.select(candidates(), problem, store=folder / "runs.db", retries=0)
    assert sl.Session.resume(folder / "runs.db").n_made == 10
    monkeypatch.delenv("LAST")
    result = sl.select(candidates(), problem, store=folder / "runs.db")
    assert asked(folder).total() == result.n_pulls + 1
    assert result.selected == ("good",)


def test_assertions_that_compare_prompts_are_refused(folder: Path) -> None:
    more = "defaultTest: {assert: [{type: max-score}]}\n"
    (folder / "promptfooconfig.yaml").write_text(CONFIG.replace("PROVIDERS", ONE) + more)
    found = Candidates("promptfooconfig.yaml", ["poor", "good"], descriptions(), options=["--no-cache"])
    with pytest.raises(MeasurementFailed, match=r"compares prompts with each other \(`max-score`\)"):
        found.evaluated({0: descriptions(2), 1: descriptions(2)})


def test_several_scores_are_not_chosen_from(folder: Path) -> None:
    """Also if the results that happen to come first have only one."""
    rows = [f'test {k},{k},"contains:1",,,' for k in range(5)] + [
        'test 5,5,"contains:1","contains:6",0.3,named'
    ]
    header = "__description,number,__expected1,__expected2,__threshold,__metric"
    (folder / "tests.csv").write_text("\n".join([header, *rows]) + "\n")
    tests = [f"test {k}" for k in range(6)]

    def candidates(**options: Any) -> Candidates:
        return Candidates("promptfooconfig.yaml", ["good"], tests, options=["--no-cache"], **options)

    assert candidates().evaluated({0: tests[:2]}).scores == {(0, tests[0]): 1.0, (0, tests[1]): 0.0}
    with pytest.raises(MeasurementFailed, match=r"several scores for each sample: success, score"):
        candidates().evaluated({0: tests[4:]})
    with pytest.raises(MeasurementFailed, match=r"promptfooconfig\.yaml has no metric 'other'; it has"):
        candidates(metric="other", on_failure=0).evaluated({0: tests[:2]})
    assert candidates(metric="score").evaluated({0: tests[4:]}).scores == {
        (0, tests[4]): 0,
        (0, tests[5]): 0.5,
    }


@pytest.mark.parametrize("changed", ["good.txt", "tests.csv", "provider.mjs", "promptfooconfig.yaml"])
def test_a_run_goes_on_only_with_the_files_that_it_began_with(folder: Path, changed: str) -> None:
    (folder / "good.txt").write_text("good {{number}}")
    config = CONFIG.replace("PROVIDERS", ONE).replace('raw: "good {{number}}"', "raw: file://good.txt")
    (folder / "promptfooconfig.yaml").write_text(config)

    def candidates() -> Candidates:
        return Candidates("promptfooconfig.yaml", ["poor", "good"], descriptions())

    before = candidates().about
    assert candidates().about == before
    with (folder / changed).open("a") as file:
        file.write("\n")
    assert all(candidates().about[name] != before[name] for name in before)


def test_pairs_of_a_prompt_and_a_provider(folder: Path) -> None:
    (folder / "promptfooconfig.yaml").write_text(CONFIG.replace("PROVIDERS", TWO))
    pairs = {"g/e": ("good", "east"), "p/w": ("poor", "west")}
    found = Candidates("promptfooconfig.yaml", pairs, descriptions(), options=["--no-cache"])
    test = descriptions()[3]
    assert set(found.evaluated({0: [test], 1: [test]}).scores) == {(0, test), (1, test)}
    assert asked(folder) == {"east good 3": 1, "west poor 3": 1}
    lone = Candidates("promptfooconfig.yaml", ["good"], descriptions())
    with pytest.raises(MeasurementFailed, match=r"two results of good on test .* give pairs"):
        lone.evaluated({0: [test]})


def test_failures_are_reported_and_may_have_a_score(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", "1")
    tests = descriptions()[:2]
    found = Candidates("promptfooconfig.yaml", ["good"], tests, options=["--no-cache"])
    measured = found.evaluated({0: tests})
    assert set(measured.scores) == {(0, tests[0])}
    assert "no answer" in measured.failures[0, tests[1]]
    scored = Candidates("promptfooconfig.yaml", ["good"], tests, on_failure=0, options=["--no-cache"])
    assert scored.evaluated({0: tests}).scores == {(0, tests[0]): 1, (0, tests[1]): 0}


def test_what_does_not_exist_is_named(folder: Path) -> None:
    tests = descriptions()[:1]
    with pytest.raises(MeasurementFailed, match="status 1: No prompts matched the filter"):
        Candidates("promptfooconfig.yaml", ["best"], tests).evaluated({0: tests})
    with pytest.raises(
        MeasurementFailed, match="Do the labels of prompts and the descriptions of tests exist"
    ):
        Candidates("promptfooconfig.yaml", ["good"], ["other"]).evaluated({0: ["other"]})
    with pytest.raises(MeasurementFailed, match=r"status 1: Error: No configuration file .* other\.yaml"):
        Candidates("other.yaml", ["good"], tests).evaluated({0: tests})
    with pytest.raises(MeasurementFailed, match="promptfooo cannot be started"):
        Candidates("promptfooconfig.yaml", ["good"], tests, command=["promptfooo"]).evaluated({0: tests})
    with pytest.raises(InvalidProblem, match="two tests have the same description"):
        Candidates("promptfooconfig.yaml", ["good"], tests * 2)
    with pytest.raises(InvalidProblem, match="`candidates` is 'good'; it must be a list"):
        Candidates("promptfooconfig.yaml", "good", tests)


def program(lines: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "shortlist.adapters.promptfoo",
        "--prompt",
        "good",
        *options,
        "--no-cache",
    ]
    return subprocess.run(command, input=lines, capture_output=True, text=True, check=False, timeout=120)


def test_as_a_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [{"__description": test, "number": "?"} for test in descriptions()[:3]]
    found = program("".join(json.dumps(item) + "\n" for item in reversed(items)))
    assert found.returncode == 0, found.stderr
    expected = [(k * 7919 + 4 * 31) % 100 < 95 for k in (2, 1, 0)]
    assert [float(line) for line in found.stdout.splitlines()] == expected
    monkeypatch.setenv("BROKEN", "0")
    broken = program(json.dumps(items[0]))
    assert broken.returncode == 1
    assert "no answer" in broken.stderr
    monkeypatch.delenv("BROKEN")
    unknown = program('{"number": 3}\n')
    assert unknown.returncode == 1
    assert "has no description" in unknown.stderr
    missing = program('"add to 1 (exactly)"\n"add to 99 (exactly)"\n')
    assert missing.returncode == 1
    assert "no result of test 'add to 99 (exactly)'" in missing.stderr
