"""The lm-evaluation-harness, the real package with small models and tasks: its files, and its evaluations."""

import json
import os
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}

import lm_eval
import pytest
from click.testing import CliRunner
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

import shortlist as sl
from shortlist.adapters.lm_eval import Candidates
from shortlist.cli import shortlist
from shortlist.errors import InvalidProblem, MeasurementFailed
from shortlist.measure.result_files import read_scores

N_DOCS = 60


class Adder(LM):
    """A model that adds one, and errs in a share of the cases; it counts what it is asked."""

    def __init__(self, name: str, chance: float) -> None:
        super().__init__()
        self.name, self.chance = name, chance
        self.asked = Counter[str]()

    def is_right(self, context: str) -> bool:
        return random.Random(self.name + context).random() < self.chance

    def loglikelihood(self, requests: Any) -> list[tuple[float, bool]]:
        found = []
        for context, answer in (request.args for request in requests):
            self.asked[context] += 1
            is_sum = int(answer) == int(context.rpartition("\n")[2].removesuffix("+1=")) + 1
            found.append((-1.0 if is_sum == self.is_right(context) else -2.0, False))
        return found

    def generate_until(self, requests: Any) -> list[str]:
        contexts = [request.args[0] for request in requests]
        self.asked.update(contexts)
        return [
            f"so {int(context.removesuffix('+1=')) + self.is_right(context)} it is" for context in contexts
        ]

    def loglikelihood_rolling(self, requests: Any) -> list[float]:
        raise NotImplementedError


@pytest.fixture
def task(tmp_path: Path) -> dict[str, Any]:
    """A task with a local dataset."""
    rows = [
        {"question": f"{k}+1=", "choices": [str(k + 1), str(k)], "sum": str(k + 1)} for k in range(N_DOCS)
    ]
    file = tmp_path / "documents.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "task": "adding",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(file)}, "cache_dir": str(tmp_path / "cache")},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{question}}",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": 0,
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
    }


def generating(task: Mapping[str, Any]) -> dict[str, Any]:
    """The same task with answers in words, and two filters that find the number in them."""
    own = {key: value for key, value in task.items() if key != "doc_to_choice"}

    def numbers(name: str, pattern: str) -> dict[str, Any]:
        found = [{"function": "regex", "regex_pattern": pattern}, {"function": "take_first"}]
        return {"name": name, "filter": found}

    return own | {
        "output_type": "generate_until",
        "doc_to_target": "{{sum}}",
        "filter_list": [numbers("strict", r"^(\d+)"), numbers("flexible", r"(\d+)")],
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }


def saved(folder: Path, model: LM, tasks: list[Any], name: str, **options: Any) -> dict[str, Any]:
    """Evaluate a model and save its results as the program lm-eval does with --log_samples."""
    tracker = EvaluationTracker(output_path=str(folder))
    found: dict[str, Any] = lm_eval.simple_evaluate(
        model,
        model_args=f"pretrained={name}",
        tasks=tasks,
        task_manager=TaskManager(include_defaults=False),
        evaluation_tracker=tracker,
        bootstrap_iters=0,
        **options,
    )
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples)
    for task_name in found["configs"]:
        tracker.save_results_samples(task_name=task_name, samples=samples[task_name])
    return found


# --- files as tables ----------------------------------------------------------------------------------


def test_the_files_of_several_models_are_a_table(task: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    means = {}
    for name, chance in (("org/weak", 0.3), ("org/strong", 0.9)):
        results = saved(out, Adder(name, chance), [task], name)
        means[name] = results["results"]["adding"]["acc,none"]
    assert (
        sorted(path.name.partition("_")[0] for path in out.rglob("*.json*"))
        == ["results"] * 2 + ["samples"] * 2
    )
    table = read_scores(out)
    assert table.items == tuple(f"adding/{k}" for k in range(N_DOCS))
    assert dict(zip(table.arms or (), table.scores.mean(axis=1), strict=True)) == pytest.approx(means)
    found = CliRunner().invoke(shortlist, ["simulate", "--scores", str(out), "-m", "1", "--epsilon", "0.1"])
    assert found.exit_code == 0, found.output
    results_file = next(out.rglob("results_*.json"))
    with pytest.raises(InvalidProblem, match=r"has only the means of tasks\. Give the samples_"):
        read_scores(results_file)


def test_filters_are_part_of_the_metric(task: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    results = saved(out, Adder("A", 0.5), [generating(task)], "A")["results"]["adding"]
    with pytest.raises(InvalidProblem, match=r"exact_match,strict, exact_match,flexible\. Choose one"):
        read_scores(out)
    for name in ("strict", "flexible"):
        table = read_scores(out, metric=f"exact_match,{name}")
        assert table.scores.mean() == pytest.approx(results[f"exact_match,{name}"])
    assert results["exact_match,strict"] == 0 < results["exact_match,flexible"]


def test_several_tasks_are_one_table(task: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    saved(out, Adder("A", 0.5), [task, task | {"task": "more"}], "A", limit=7)
    assert read_scores(out).items == tuple(f"{name}/{k}" for name in ("adding", "more") for k in range(7))


def test_documents_that_the_harness_mixed_up_are_refused(task: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    saved(out, Adder("A", 0.5), [task], "A", samples={"adding": [2, 5]})
    saved(out, Adder("B", 0.5), [task], "B", samples={"adding": [5, 2]})
    with pytest.raises(InvalidProblem, match=r"is another one than in .* in ascending order"):
        read_scores(out)


# --- evaluations as measurements ----------------------------------------------------------------------


def models() -> dict[str, Adder]:
    return {f"model-{k}": Adder(f"model-{k}", chance) for k, chance in enumerate((0.3, 0.5, 0.95, 0.4))}


def candidates(given: Mapping[str, Any], tasks: list[Any], **options: Any) -> Candidates:
    return Candidates(given, tasks, task_manager=TaskManager(include_defaults=False), **options)


@pytest.mark.parametrize("is_generating", [False, True])
def test_the_best_model_is_found_and_no_document_is_asked_twice(
    task: dict[str, Any], tmp_path: Path, is_generating: bool
) -> None:
    given = generating(task) if is_generating else task
    arms = models()
    found = candidates(arms, [given], metric="exact_match,flexible" if is_generating else None)
    problem = found.problem(m=1, epsilon=0.1, delta=0.05)
    result = sl.select(found, problem, store=tmp_path / "runs.db")
    assert result.selected == ("model-2",)
    per_document = 1 if is_generating else 2
    assert {n for model in arms.values() for n in model.asked.values()} == {per_document}
    assert sum(model.asked.total() for model in arms.values()) == per_document * result.n_pulls
    assert result.n_pulls < 4 * N_DOCS
    asked = {name: model.asked.total() for name, model in arms.items()}
    again = sl.select(
        candidates(arms, [given], metric=found._reading.metric), problem, store=tmp_path / "runs.db"
    )
    assert again.selected == result.selected
    assert asked == {name: model.asked.total() for name, model in arms.items()}


def test_scores_are_those_of_a_whole_evaluation(task: dict[str, Any], tmp_path: Path) -> None:
    saved(tmp_path / "out", models()["model-1"], [task], "A")
    whole = read_scores(tmp_path / "out").scores[0]
    found = candidates(models(), [task])
    asked = [f"adding/{k}" for k in (41, 3, 17)]
    measured = found.evaluated({1: asked})
    assert measured.scores == {(1, item): whole[found.items.places[item]] for item in asked}
    assert measured.failures == {}


def test_models_may_be_loaded_when_they_are_needed(task: dict[str, Any]) -> None:
    loaded = Counter[str]()

    def loading(model: Adder) -> Any:
        def load() -> Adder:
            loaded[model.name] += 1
            return model

        return load

    found = candidates({name: loading(model) for name, model in models().items()}, [task])
    assert not loaded
    assert sl.select(found, found.problem(m=1, epsilon=0.1, delta=0.05)).selected == ("model-2",)
    assert set(loaded) == set(models())


def test_models_by_kind_and_arguments(task: dict[str, Any]) -> None:
    found = candidates({"one": ("dummy", {}), "two": ("dummy", "")}, [task])
    assert len(found.evaluated({0: ["adding/1"], 1: ["adding/1", "adding/2"]}).scores) == 3


def test_a_failing_model_suspends_the_run(task: dict[str, Any]) -> None:
    class Failing(Adder):
        def loglikelihood(self, requests: Any) -> list[tuple[float, bool]]:
            raise ConnectionError(f"no answer to {len(requests)} requests")

    found = candidates(models() | {"broken": Failing("broken", 0.5)}, [task])
    with pytest.raises(MeasurementFailed, match="no answer"):
        sl.select(found, found.problem(m=1, epsilon=0.1, delta=0.05), retries=0)


def test_models_that_were_evaluated_before_a_crash_are_not_evaluated_again(
    task: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crash(BaseException):
        pass

    arms = models()
    last = list(arms)[-1]
    store = tmp_path / "runs.db"
    first = candidates(arms, [task])
    problem = first.problem(m=1, epsilon=0.1, delta=0.05)

    def crash(*_: Any) -> Any:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(arms[last], "loglikelihood", crash)
        with pytest.raises(Crash):
            sl.select(first, problem, store=store)
    assert all(arms[name].asked for name in arms if name != last)
    result = sl.select(candidates(arms, [task]), problem, store=store)
    assert {n for model in arms.values() for n in model.asked.values()} == {2}  # once for each choice
    assert sum(model.asked.total() for model in arms.values()) == 2 * result.n_pulls


def test_another_prompt_is_another_candidate(task: dict[str, Any]) -> None:
    before = candidates(models(), [task]).about
    assert candidates(models(), [task]).about == before
    other = candidates(models(), [task | {"doc_to_text": "Sum: {{question}}"}]).about
    assert all(other[name] != before[name] for name in before)


def test_small_values_may_be_good(task: dict[str, Any], tmp_path: Path) -> None:
    metrics = [{"metric": "acc", "aggregation": "mean", "higher_is_better": False}]
    falling = task | {"metric_list": metrics}
    found = candidates(models(), [falling])
    problem = found.problem(m=1, epsilon=0.0, delta=0.05)
    assert problem.goal == "minimise"
    result = sl.select(found, problem)
    assert result.arms.means[result.indices[0]] == result.arms.means.min() < 0.4
    assert candidates(models(), [task]).problem(1, 0.1, 0.05).goal == "maximise"
    with pytest.raises(
        InvalidProblem, match="large values are good in task 'adding' and small ones in task 'b'"
    ):
        candidates(models(), [task, falling | {"task": "b"}])
    saved(tmp_path / "out", models()["model-1"], [falling], "A")
    with pytest.warns(UserWarning, match="small values of acc are good. Ask for the smallest"):
        read_scores(tmp_path / "out")


def test_a_wrong_metric_ends_the_run_at_once(task: dict[str, Any]) -> None:
    arms = models()
    found = candidates(arms, [task], metric="f1")
    with pytest.raises(MeasurementFailed, match="no metric 'f1'; it has acc"):
        sl.select(found, found.problem(m=1, epsilon=0.1, delta=0.05))
    assert max(model.asked.most_common(1)[0][1] for model in arms.values() if model.asked) == 2


def test_examples_that_are_drawn_anew_are_refused(task: dict[str, Any]) -> None:
    drawn = task | {"fewshot_split": "test", "num_fewshot": 2}
    with pytest.raises(InvalidProblem, match="draws 2 examples for each document at random"):
        candidates(models(), [drawn])
    with pytest.raises(InvalidProblem, match="draws 3 examples"):
        candidates(models(), [drawn], num_fewshot=3)
    fixed = candidates(models(), [drawn | {"fewshot_config": {"sampler": "first_n"}}])
    assert len(fixed.evaluated({0: ["adding/9"]}).scores) == 1
    assert candidates(models(), [drawn | {"num_fewshot": 0}])


def test_what_cannot_be_evaluated_is_refused(task: dict[str, Any]) -> None:
    with pytest.raises(InvalidProblem, match="`limit` is decided by the run"):
        candidates(models(), [task], limit=3)
    with pytest.raises(InvalidProblem, match="candidate 'A' is 3; it must be a model of the harness"):
        candidates({"A": 3}, [task])
    with pytest.raises(InvalidProblem, match="must be a dictionary from names to models"):
        candidates([Adder("A", 0.5)], [task])  # type: ignore[arg-type]
