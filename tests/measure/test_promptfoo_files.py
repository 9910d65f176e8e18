"""Results of promptfoo, as version 0.123.1 writes them, whole and damaged."""

import json
from pathlib import Path
from typing import Any

import pytest

from shortlist.errors import InvalidProblem
from shortlist.measure.result_files import read_scores


def row(test: int = 0, prompt: str = "short", **changes: Any) -> dict[str, Any]:
    """A result, without the parts that are not read."""
    return {
        "cost": 0,
        "gradingResult": {"pass": True, "score": 1, "reason": "All assertions passed"},
        "namedScores": {},
        "prompt": {"raw": f"Write {test}", "label": prompt},
        "promptIdx": 0,
        "provider": {"id": "echo", "label": ""},
        "score": 1,
        "success": True,
        "testCase": {"description": f"test {test}", "vars": {"topic": str(test)}},
        "testIdx": test,
        "vars": {"topic": str(test)},
        "failureReason": 0,
    } | changes


def failing(test: int = 0, prompt: str = "short") -> dict[str, Any]:
    return row(test, prompt, score=0, success=False, failureReason=1, error="Expected output to be 2")


def broken(test: int = 0, prompt: str = "short") -> dict[str, Any]:
    return row(test, prompt, score=0, success=False, failureReason=2, error="API error: 500\nat line 7")


def written(path: Path, rows: list[dict[str, Any]], **changes: Any) -> Path:
    """A file as `promptfoo eval -o` writes it, .json or .jsonl."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(one) + "\n" for one in rows))
        return path
    counts = {"successes": len(rows), "failures": 0, "errors": 0}
    results = {"version": 3, "prompts": [], "results": rows, "stats": counts} | changes.pop("results", {})
    text = {"evalId": "eval-N3H-2026-11-16T22:16:32", "results": results, "config": {}} | changes
    path.write_text(json.dumps(text, indent=2))
    return path


@pytest.mark.parametrize("name", ["out.json", "out.jsonl"])
def test_results_are_a_table(name: str, tmp_path: Path) -> None:
    rows = [row(1), row(0, "long"), failing(0), row(1, "long")]  # in the order in which they came back
    table = read_scores(written(tmp_path / name, rows))
    assert table.items == ("test 0", "test 1")
    assert dict(zip(table.arms or (), table.scores.tolist(), strict=True)) == {
        "short": [0, 1],
        "long": [1, 1],
    }


def test_files_of_several_providers_are_one_table(tmp_path: Path) -> None:
    written(tmp_path / "a.json", [row(0, provider={"id": "one"}), row(1, provider={"id": "one"})])
    written(tmp_path / "b.jsonl", [failing(1) | {"provider": {"id": "x", "label": "two"}}])
    table = read_scores(tmp_path)
    assert table.arms == ("one", "two")
    assert table.scores[0].tolist() == [1, 1]
    assert table.scores[1, 1] == 0


def test_labels_are_as_in_the_configuration(tmp_path: Path) -> None:
    rows = [row(0, "short: p1.txt: Write {{topic}}"), row(0, "long: p2.txt: Tell")]
    config = {"prompts": [{"id": "file://p1.txt", "label": "short"}, "file://p2.txt"]}
    table = read_scores(written(tmp_path / "out.json", rows, config=config))
    assert table.arms == ("short", "long: p2.txt: Tell")


def test_tests_without_descriptions_have_their_variables_or_numbers(tmp_path: Path) -> None:
    bare = [one | {"testCase": {}} for one in (row(0), row(1))]
    assert read_scores(written(tmp_path / "a.json", bare)).items == ("topic=0", "topic=1")
    same = [one | {"vars": {"topic": "x"}} for one in bare]
    assert read_scores(written(tmp_path / "a.json", same)).items == ("0", "1")


def test_a_test_must_be_the_same_in_all_files(tmp_path: Path) -> None:
    written(tmp_path / "a.json", [row(0)])
    written(tmp_path / "b.json", [row(0, "long", vars={"topic": "other"})])
    with pytest.raises(
        InvalidProblem, match=r"test test 0 of .*b\.json has other variables than in .*a\.json"
    ):
        read_scores(tmp_path)


def test_a_score_must_be_chosen_if_there_are_several(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", [row(0), row(1, score=0.5, namedScores={"tone": 0.25})])
    with pytest.raises(
        InvalidProblem, match=r"several scores for each sample: success, score, tone\. Choose"
    ):
        read_scores(path)
    assert read_scores(path, metric="score").scores.tolist() == [[1, 0.5]]
    assert read_scores(path, metric="success").scores.tolist() == [[1, 1]]
    with pytest.raises(InvalidProblem, match=r"test 0 failed .*no score 'tone'"):
        read_scores(path, metric="tone")
    with pytest.raises(InvalidProblem, match="no metric 'f1'; it has success, score, tone"):
        read_scores(path, metric="f1")


@pytest.mark.parametrize("name", ["out.json", "out.jsonl"])
def test_an_error_is_named_or_scored(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, [row(0), broken(1)])
    with pytest.raises(InvalidProblem, match=r"sample test 1 failed \(API error: 500\).*cannot be left out"):
        read_scores(path)
    assert read_scores(path, on_failure=0).scores.tolist() == [[1, 0]]


def test_two_results_of_one_test_are_refused(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        written(tmp_path / name, [row(0)])
    with pytest.raises(
        InvalidProblem, match=r"a\.json and .*b\.json have two scores of short on item test 0"
    ):
        read_scores(tmp_path)


def test_repeated_tests_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", [row(0)], runtimeOptions={"repeat": 3})
    with pytest.raises(InvalidProblem, match="several results of each test"):
        read_scores(path)


def test_incomplete_and_damaged_files_are_refused(tmp_path: Path) -> None:
    counts = {"stats": {"successes": 2, "failures": 1, "errors": 0}}
    short = written(tmp_path / "short.json", [row(0)], results=counts)
    with pytest.raises(InvalidProblem, match="has 1 results, but 3 tests were carried out"):
        read_scores(short)
    none = written(tmp_path / "none.json", [])
    with pytest.raises(InvalidProblem, match="has 0 results"):
        read_scores(none)
    whole = written(tmp_path / "whole.json", [row(0), row(1)])
    whole.write_text(whole.read_text()[:-100])
    with pytest.raises(InvalidProblem, match=r"whole\.json is not complete JSON"):
        read_scores(whole)
    lines = written(tmp_path / "lines.jsonl", [row(0), row(1)])
    lines.write_text(lines.read_text()[:-100])
    with pytest.raises(InvalidProblem, match=r"lines\.jsonl, line 2 is not complete JSON"):
        read_scores(lines)


@pytest.mark.parametrize("missing", ["failureReason", "testIdx", "success"])
def test_another_version_is_refused(missing: str, tmp_path: Path) -> None:
    old = {key: value for key, value in row().items() if key != missing}
    for name in ("a.json", "a.jsonl"):
        with pytest.raises(InvalidProblem, match=rf"has no `{missing}`.*another version"):
            read_scores(written(tmp_path / name, [old]))
    with pytest.raises(InvalidProblem, match=r"of another version\. Shortlist reads results of version 3"):
        read_scores(written(tmp_path / "b.json", [row()], results={"version": 2}))


def test_a_value_that_is_no_score_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblem, match="score is None; it must be a number"):
        read_scores(written(tmp_path / "a.json", [row(score=None)]))


@pytest.mark.parametrize(
    "change",
    [{"prompt": "short"}, {"provider": "x"}, {"testCase": None}, {"testIdx": None}, {"namedScores": [1]}],
)
def test_entries_of_another_kind_are_no_bug(tmp_path: Path, change: dict[str, Any]) -> None:
    file = written(tmp_path / "results.json", [row(0) | change])
    with pytest.raises(InvalidProblem, match="has unexpected entries"):
        read_scores(file)


def test_the_longest_label_counts_where_one_begins_with_another(tmp_path: Path) -> None:
    """Files have the labels as `label: text of the prompt`."""
    labels = {"config": {"prompts": [{"label": "short"}, {"label": "short: polite"}]}}
    prompts = [{"raw": "x", "label": "short: polite: x"}, {"raw": "y", "label": "short: y"}]
    file = written(
        tmp_path / "results.json",
        [row(0, prompt=one["label"]) | {"prompt": one} for one in prompts],
        **labels,
    )
    assert read_scores(file).arms == ("short: polite", "short")
