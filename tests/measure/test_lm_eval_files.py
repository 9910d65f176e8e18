"""Files of samples of the lm-evaluation-harness, as version 0.4.13 writes them, whole and damaged."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shortlist.errors import InvalidProblem
from shortlist.measure.result_files import read_scores

DATE = "2026-11-16T22-05-09.123456"


def sample(number: int, **values: Any) -> dict[str, Any]:
    """A line of a file of samples, with the values of its metrics."""
    values = values or {"acc": 1.0}
    return {
        "doc_id": number,
        "doc": {"question": f"{number}+1="},
        "target": "0",
        "arguments": {"gen_args_0": {"arg_0": f"{number}+1=", "arg_1": " 2"}},
        "resps": [[["-1.0", "False"]]],
        "filtered_resps": [["-1.0", "False"]],
        "filter": "none",
        "metrics": list(values),
        "doc_hash": f"hash of document {number}",
        "prompt_hash": "a",
        "target_hash": "b",
        **values,
    }


def written(folder: Path, samples: list[dict[str, Any]], task: str = "adding", date: str = DATE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_{task}_{date}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in samples))
    return path


def summary(folder: Path, entries: dict[str, Any], date: str = DATE) -> None:
    found = {"results": {"adding": {"acc,none": 0.5}}, "config": {"model": "hf", "model_args": {}}} | entries
    (folder / f"results_{date}.json").write_text(json.dumps(found))


def test_a_model_is_named_by_its_results_or_its_folder(tmp_path: Path) -> None:
    written(tmp_path / "org__one", [sample(0), sample(1, acc=0.0)])
    written(tmp_path / "org__two", [sample(1), sample(0, acc=0.0)])
    summary(tmp_path / "org__two", {"model_name": "org/two"})
    table = read_scores(tmp_path)
    assert (table.arms, table.items) == (("org__one", "org/two"), ("adding/0", "adding/1"))
    assert table.scores.tolist() == [[1, 0], [0, 1]]


def test_models_of_one_name_are_told_apart_by_their_arguments(tmp_path: Path) -> None:
    for place, precision in enumerate(("float16", "int8")):
        date = f"2026-11-16T22-05-0{place}.5"
        written(tmp_path, [sample(0)], date=date)
        summary(tmp_path, {"model_name": "org/one", "config": {"model_args": {"dtype": precision}}}, date)
    assert read_scores(tmp_path).arms == ("dtype=float16", "dtype=int8")


def test_tasks_with_underscores_and_several_runs(tmp_path: Path) -> None:
    written(tmp_path / "A", [sample(0)], "arc_easy")
    written(tmp_path / "A", [sample(0)], "arc_hard", "2026-11-17T01-00-00.5")
    table = read_scores(tmp_path)
    assert (table.arms, table.items) == (("A",), ("arc_easy/0", "arc_hard/0"))


def test_two_runs_of_one_model_on_one_document_are_refused(tmp_path: Path) -> None:
    for date in (DATE, "2026-11-17T01-00-00.5"):
        written(tmp_path / "A", [sample(0)], date=date)
    with pytest.raises(InvalidProblem, match=r"11-16.* and .*11-17.* two scores of A on item adding/0"):
        read_scores(tmp_path)


def test_a_metric_must_be_chosen_where_there_are_several(tmp_path: Path) -> None:
    path = written(tmp_path / "A", [sample(0, acc=1.0, acc_norm=0.0)])
    with pytest.raises(InvalidProblem, match=r"several scores for each sample: acc, acc_norm\. Choose one"):
        read_scores(path)
    assert read_scores(path, metric="acc_norm").scores.tolist() == [[0]]
    assert read_scores(path, metric="acc,none").scores.tolist() == [[1]]
    with pytest.raises(InvalidProblem, match="no metric 'f1'; it has acc, acc_norm"):
        read_scores(path, metric="f1")


def test_a_document_must_be_the_same_for_all_models(tmp_path: Path) -> None:
    written(tmp_path / "A", [sample(0), sample(1)])
    written(tmp_path / "B", [sample(0), sample(1) | {"doc_hash": "another"}])
    with pytest.raises(InvalidProblem, match=r"document adding/1 of .*B.* is another one than in .*A"):
        read_scores(tmp_path)


def test_two_lines_for_one_document_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblem, match="has two scores of document adding/0"):
        read_scores(written(tmp_path, [sample(0), sample(0)]))


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "A", [sample(0), sample(1)])
    text = path.read_text()
    path.write_text(text[: len(text) * 3 // 4])
    with pytest.raises(InvalidProblem, match=r"line 2 is not complete JSON .* still being written"):
        read_scores(tmp_path)
    path.write_text(text.splitlines()[0] + "\n")
    summary(tmp_path / "A", {"n-samples": {"adding": {"original": 9, "effective": 2}}})
    with pytest.raises(InvalidProblem, match="has 1 documents, but 2 were evaluated"):
        read_scores(tmp_path)
    path.write_text(text)
    assert read_scores(tmp_path).is_whole
    path.write_text("")
    with pytest.raises(InvalidProblem, match="is empty; the evaluation did not finish"):
        read_scores(tmp_path)
    path.write_text("7\n")
    with pytest.raises(InvalidProblem, match="line 1 is not complete JSON"):
        read_scores(tmp_path)


def test_a_damaged_summary_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, [sample(0)])
    (tmp_path / f"results_{DATE}.json").write_text('{"results": {')
    with pytest.raises(InvalidProblem, match=r"results_.* is not complete JSON"):
        read_scores(path)


@pytest.mark.parametrize("missing", ["doc_hash", "metrics", "filter"])
def test_another_version_is_refused(missing: str, tmp_path: Path) -> None:
    old = {key: value for key, value in sample(0).items() if key != missing}
    with pytest.raises(InvalidProblem, match=rf"line 1 has no `{missing}`.*another version"):
        read_scores(written(tmp_path, [old]))


def test_a_value_that_is_no_score_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, [sample(0, bleu=["2", "3"])])
    with pytest.raises(InvalidProblem, match=r"bleu of document adding/0 is .* not the score of a single"):
        read_scores(path)
    path = written(tmp_path, [sample(0), sample(1, acc=np.nan)])
    with pytest.raises(InvalidProblem, match=r"sample adding/1 failed.*cannot be left out"):
        read_scores(path)
    assert read_scores(path, on_failure=0).scores.tolist() == [[1, 0]]


def test_a_summary_alone_has_no_scores(tmp_path: Path) -> None:
    summary(tmp_path, {})
    with pytest.raises(InvalidProblem, match="there are no scores in the folder"):
        read_scores(tmp_path)
    with pytest.raises(InvalidProblem, match=r"has only the means of tasks.*--log_samples"):
        read_scores(tmp_path / f"results_{DATE}.json")


@pytest.mark.parametrize("change", [{"doc_id": None}, {"doc_id": "x"}, {"metrics": 3}, {"acc": 10**400}])
def test_entries_of_another_kind_are_no_bug(tmp_path: Path, change: dict[str, Any]) -> None:
    written(tmp_path / "m", [sample(0) | change])
    with pytest.raises(InvalidProblem):
        read_scores(tmp_path)


def test_small_values_that_are_good_are_announced(tmp_path: Path) -> None:
    path = written(tmp_path, [sample(number, perplexity=2.5) for number in range(3)])
    summary(tmp_path, {"higher_is_better": {"adding": {"perplexity": False}}})
    with pytest.warns(UserWarning, match=r"small values of perplexity are good\. Ask for the smallest"):
        read_scores(path)
    summary(tmp_path, {"higher_is_better": {"adding": {"perplexity": True}}})
    assert read_scores(path).scores.tolist() == [[2.5] * 3]


def test_absurd_names_of_metrics_are_cut(tmp_path: Path) -> None:
    path = written(tmp_path, [sample(0, **{"x" * 5000: 1.0, "y": 0.0})])
    with pytest.raises(InvalidProblem, match=r"has no metric 'acc'; it has x{80}\.\.\., y") as caught:
        read_scores(path, metric="acc")
    assert len(str(caught.value)) < 1000
