"""Inspect, the real package with its mock model: its logs as tables, and its evaluations as measurements."""

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from inspect_ai import Epochs, Task, eval, eval_retry, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, includes, match, mean, scorer
from inspect_ai.solver import TaskState, generate, system_message

import shortlist as sl
from shortlist.adapters.inspect_ai import Candidates, select
from shortlist.cli import shortlist
from shortlist.errors import ChangedRun, InvalidProblem, MeasurementFailed
from shortlist.measure.result_files import read_scores

Answer = Callable[[str], str]


def model(answer: Answer, name: str = "model") -> Model:
    def output(messages: Any, *_: Any) -> ModelOutput:
        found = ModelOutput.from_content("mock", answer(messages[-1].text))
        found.usage = ModelUsage()
        return found

    return get_model(f"mockllm/{name}", custom_outputs=output, memoize=False)


def right(_: str) -> str:
    return "yes"


def even(question: str) -> str:
    return "yes" if int(question) % 2 == 0 else "no"


def questions(n: int = 4) -> MemoryDataset:
    return MemoryDataset([Sample(id=f"q{k}", input=str(k), target="yes") for k in range(n)])


@task
def plain(n: int = 4) -> Task:
    return Task(dataset=questions(n), scorer=includes())


def evaluated(folder: Path, given: Task, answer: Answer, name: str = "model", **options: Any) -> Path:
    """Evaluate a task with a mock model; return its log."""
    options = {"log_dir": str(folder), "display": "none"} | options
    (log,) = eval(given, model=model(answer, name), **options)
    return Path(log.location)


# --- logs as tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["eval", "json"])
def test_the_logs_of_a_folder_are_a_table(form: Any, tmp_path: Path) -> None:
    evaluated(tmp_path, plain(), even, "A", log_format=form)
    evaluated(tmp_path, plain(), right, "B", log_format=form)
    (tmp_path / "logs.json").write_text('{"eval": "a list that Inspect writes"}')
    (tmp_path / "notes.txt").write_text("even questions are easy")
    table = read_scores(tmp_path)
    assert table.items == ("q0", "q1", "q2", "q3")
    assert dict(zip(table.arms or (), table.scores.tolist(), strict=True)) == {
        "mockllm/A": [1, 0, 1, 0],
        "mockllm/B": [1, 1, 1, 1],
    }


def test_arms_are_named_by_what_tells_logs_apart(tmp_path: Path) -> None:
    @task
    def asked(prompt: str) -> Task:
        return Task(questions(), solver=[system_message(prompt), generate()], scorer=includes())

    def names(folder: str) -> set[str]:
        return set(read_scores(tmp_path / folder).arms or ())

    evaluated(tmp_path / "args", asked("Be brief."), right)
    evaluated(tmp_path / "args", asked("Think."), right)
    assert names("args") == {"prompt=Be brief.", "prompt=Think."}
    for name in ("one", "two"):
        evaluated(tmp_path / "tasks", Task(questions(), scorer=includes(), name=name), right)
    assert names("tasks") == {"one", "two"}
    for name in ("one", "two"):
        for who in "AB":
            evaluated(tmp_path / "both", Task(questions(), scorer=includes(), name=name), right, who)
    assert names("both") == {f"mockllm/{who}, {name}" for who in "AB" for name in ("one", "two")}
    for warmth in (0.0, 0.7):
        evaluated(tmp_path / "settings", plain(), right, temperature=warmth)
    assert names("settings") == {"temperature=0.0", "temperature=0.7"}
    assert read_scores(next((tmp_path / "args").iterdir())).arms == ("mockllm/model",)


@scorer(metrics={"tone": [mean()], "facts": [mean()]})
def two_sided() -> Scorer:
    async def score(state: TaskState, _: Target) -> Score:
        return Score(value={"tone": 0.25, "facts": int(state.input_text)})

    return score


@scorer(metrics=[mean()])
def mixed() -> Scorer:
    values: list[Any] = ["C", "I", "P", "N", True, 0.75, "3", "no"]

    async def score(state: TaskState, _: Target) -> Score:
        return Score(value=values[int(state.input_text)])

    return score


@scorer(metrics=[accuracy()])
def unsure(value: Any) -> Scorer:
    async def score(state: TaskState, _: Target) -> Score:
        return Score(value=value if state.input_text == "2" else "C")

    return score


def test_scores_are_what_inspect_takes_them_for(tmp_path: Path) -> None:
    path = evaluated(tmp_path, Task(questions(8), scorer=mixed()), right)
    assert read_scores(path).scores.tolist() == [[1, 0, 0.5, 0, 1, 0.75, 3, 0]]


def test_one_of_several_scorers_must_be_chosen(tmp_path: Path) -> None:
    path = evaluated(tmp_path, Task(questions(), scorer=[includes(), match(), two_sided()]), even)
    with pytest.raises(
        InvalidProblem, match=r"several .*includes, match, two_sided/tone, two_sided/facts.*Choose"
    ):
        read_scores(path)
    assert read_scores(path, metric="match").scores.tolist() == [[1, 0, 1, 0]]
    assert read_scores(path, metric="two_sided/facts").scores.tolist() == [[0, 1, 2, 3]]
    with pytest.raises(InvalidProblem, match="no scorer 'f1'; it has includes"):
        read_scores(path, metric="f1")


def test_the_score_of_several_epochs_is_their_mean(tmp_path: Path) -> None:
    turns = Counter[str]()

    def every_other(question: str) -> str:
        turns[question] += 1
        return "yes" if turns[question] % 2 else "no"

    path = evaluated(tmp_path / "mean", plain(), every_other, epochs=2)
    assert read_scores(path).scores.tolist() == [[0.5] * 4]
    other = evaluated(tmp_path / "max", plain(), every_other, epochs=Epochs(2, "max"))
    with pytest.raises(InvalidProblem, match="2 epochs, reduced by max; only the mean"):
        read_scores(other)


def fails_on(question: str) -> Answer:
    def answer(asked: str) -> str:
        if asked == question:
            raise ConnectionError("no answer")
        return "yes"

    return answer


def test_a_failed_sample_is_named_or_scored_never_dropped(tmp_path: Path) -> None:
    path = evaluated(tmp_path, plain(), fails_on("2"), fail_on_error=False)
    with pytest.raises(
        InvalidProblem, match=r"sample q2 failed \(ConnectionError\('no answer'\)\).*on_failure"
    ):
        read_scores(path)
    assert read_scores(path, on_failure=0).scores.tolist() == [[1, 1, 0, 1]]


@pytest.mark.parametrize("value", [float("nan"), "perhaps", [1, 0]])
def test_a_value_that_is_no_score_is_refused(value: Any, tmp_path: Path) -> None:
    path = evaluated(tmp_path, Task(questions(), scorer=unsure(value)), right)
    with pytest.raises(InvalidProblem, match="sample q2"):
        read_scores(path)
    if isinstance(value, float):  # which is how Inspect writes that the scorer gave up
        assert read_scores(path, on_failure=0).scores.tolist() == [[1, 1, 0, 1]]


def test_an_evaluation_that_ended_early_is_refused_until_it_is_completed(tmp_path: Path) -> None:
    path = evaluated(tmp_path, plain(), fails_on("2"))
    for given in (path, tmp_path):
        with pytest.raises(
            InvalidProblem, match=r"ended with an error \(ConnectionError.*inspect eval-retry"
        ):
            read_scores(given, on_failure=0)
    (retried,) = eval_retry(str(path), log_dir=str(tmp_path), display="none")
    assert retried.status == "error"  # the model of a retry is a new one, which answers nothing at all here
    log = read_eval_log(str(path))
    assert log.eval.task_id == retried.eval.task_id
    log.status = "success"
    log.samples = [sample for sample in log.samples or [] if not sample.error]
    write_eval_log(log, str(tmp_path / "completed.eval"))
    assert read_scores(tmp_path).arms == ("mockllm/model",)


@pytest.mark.parametrize(
    ("status", "words"), [("started", "is not finished"), ("cancelled", "was cancelled")]
)
def test_an_unfinished_log_is_refused(status: Any, words: str, tmp_path: Path) -> None:
    log = read_eval_log(str(evaluated(tmp_path, plain(), right)))
    log.status = status
    write_eval_log(log, str(tmp_path / "half.eval"))
    with pytest.raises(InvalidProblem, match=words):
        read_scores(tmp_path / "half.eval")


@pytest.mark.parametrize("form", ["eval", "json"])
def test_damaged_files_are_named(form: Any, tmp_path: Path) -> None:
    data = evaluated(tmp_path / "whole", plain(), right, log_format=form).read_bytes()
    for size in (len(data) // 2, len(data) - 20):
        broken = tmp_path / f"broken.{form}"
        broken.write_bytes(data[:size])
        with pytest.raises(InvalidProblem, match=rf"broken\.{form} cannot be read as a log of Inspect"):
            read_scores(broken)
    with pytest.raises(InvalidProblem, match=r"there is no file .*gone\.eval"):
        read_scores(tmp_path / "gone.eval")
    broken.write_bytes(b"")
    with pytest.raises(InvalidProblem, match=rf"broken\.{form} is (empty|not a file of results)"):
        read_scores(broken)


def test_another_version_is_refused(tmp_path: Path) -> None:
    path = evaluated(tmp_path, plain(), right, log_format="json")
    log = json.loads(path.read_text())
    path.write_text(json.dumps(log | {"version": 3}))
    with pytest.raises(InvalidProblem, match=r"version 3|cannot be read"):
        read_scores(path)


def test_two_scores_of_one_cell_are_refused(tmp_path: Path) -> None:
    for _ in range(2):
        evaluated(tmp_path, plain(), right)
    with pytest.raises(InvalidProblem, match=r"and .*\.eval have two scores of mockllm/model on item q0"):
        read_scores(tmp_path)


def test_samples_of_one_id_must_be_the_same(tmp_path: Path) -> None:
    evaluated(tmp_path, plain(), right, "A")
    other = MemoryDataset([Sample(id=f"q{k}", input=f"other {k}", target="no") for k in range(4)])
    evaluated(tmp_path, Task(other, scorer=includes()), right, "B")
    with pytest.raises(InvalidProblem, match=r"sample q0 of .* is another one than sample q0 of"):
        read_scores(tmp_path)


def test_a_log_without_scores_is_refused(tmp_path: Path) -> None:
    path = evaluated(tmp_path, plain(), right, score=False)
    with pytest.raises(InvalidProblem, match="has no scores; add them with `inspect score"):
        read_scores(path)


def test_commands_take_logs(tmp_path: Path) -> None:
    for name, answer in (("A", even), ("B", right)):
        evaluated(tmp_path, Task(questions(), scorer=[includes(), match()]), answer, name)
    asked = ["-m", "1", "--epsilon", "0.1", "--metric", "includes"]
    simulated = CliRunner().invoke(shortlist, ["simulate", "--scores", str(tmp_path), *asked])
    assert simulated.exit_code == 0, simulated.output
    assert "shared-items" in simulated.output
    certified = CliRunner().invoke(shortlist, ["certify", str(tmp_path), "--scores", *asked])
    assert certified.exit_code == 0, certified.output
    assert "mockllm/B" in certified.output
    file = tmp_path / "question.toml"
    file.write_text(
        '[problem]\nm = 1\nepsilon = 0.1\ndelta = 0.05\nrewards = "bernoulli"\n'
        'names = ["mockllm/A", "mockllm/B"]\n[items]\nn = 4\n'
        '[measure]\nkind = "table"\nfile = "."\nmetric = "match"\n'
    )
    ran = CliRunner().invoke(shortlist, ["run", str(file), "--store", str(tmp_path / ".runs.db")])
    assert ran.exit_code == 0, ran.output
    assert re.search(r"^mockllm/B +1\.000", ran.output, flags=re.MULTILINE), ran.output


# --- evaluations as measurements ----------------------------------------------------------------------


class Service:
    """A mock model per arm, with answers of different quality, that counts what it is asked."""

    def __init__(self, chances: Iterable[float]) -> None:
        self.chances = dict(enumerate(chances))
        self.asked = Counter[tuple[int, str]]()
        self.broken: set[tuple[int, str]] = set()
        self.at_answer: Callable[[], object] = lambda: None

    def model(self, arm: int) -> Model:
        def answer(question: str) -> str:
            self.asked[arm, question] += 1
            self.at_answer()
            if (arm, question) in self.broken:
                raise ConnectionError("no answer")
            is_right = random.Random(f"{arm}/{question}").random() < self.chances[arm]
            return "yes" if is_right else "no"

        return model(answer, f"arm-{arm}")

    def candidates(self, n: int, folder: Path, **options: Any) -> Candidates:
        tasks = {f"arm-{arm}": (plain(n), self.model(arm)) for arm in self.chances}
        return Candidates(tasks, log_dir=str(folder / "logs"), display="none", **options)


def test_the_best_is_found_and_no_cell_is_evaluated_twice(tmp_path: Path) -> None:
    service = Service([0.2, 0.4, 0.9, 0.3])
    candidates = service.candidates(80, tmp_path)
    problem = candidates.problem(m=1, epsilon=0.1, delta=0.05)
    store = tmp_path / "runs.db"
    result = sl.select(candidates, problem, store=store)
    assert result.selected == ("arm-2",)
    assert set(service.asked.values()) == {1}
    assert service.asked.total() == result.n_pulls < 4 * 80 / 2
    again = sl.select(service.candidates(80, tmp_path), problem, store=store)
    assert again.selected == result.selected
    assert service.asked.total() == result.n_pulls
    recorded = read_scores(tmp_path / "logs")
    assert set(recorded.arms or ()) == set(candidates.names)  # logs name their arms
    assert np.isfinite(recorded.scores).sum() == result.n_pulls


def test_a_run_goes_on_only_with_the_candidates_that_it_began_with(tmp_path: Path) -> None:
    """Also if it has ended: the old answer would be given for new prompts of the same names."""

    def measured(first: str, second: str, by: Any = includes, name: str = "model") -> sl.Result:
        tasks = {
            key: (
                Task(dataset=questions(30), solver=[system_message(text), generate()], scorer=by()),
                model(right, name),
            )
            for key, text in (("a", first), ("b", second))
        }
        found = Candidates(tasks, log_dir=str(tmp_path / "logs"), display="none")
        return sl.select(found, found.problem(1, 0.2, 0.2), store=tmp_path / "runs.db", name="r")

    began = measured("Be brief.", "Think.")
    assert measured("Be brief.", "Think.").n_pulls == began.n_pulls
    n_logs = len(list((tmp_path / "logs").iterdir()))
    for change in ((("Be brief.", "Think!"), {}), (("Be brief.", "Think."), {"by": match})):
        with pytest.raises(ChangedRun, match="candidate b was"):
            measured(*change[0], **change[1])
    with pytest.raises(ChangedRun, match=r"candidate a was .*; candidate b was"):
        measured("Be brief.", "Think.", name="other")
    assert len(list((tmp_path / "logs").iterdir())) == n_logs  # nothing was evaluated


def test_only_failed_samples_are_tried_again(tmp_path: Path) -> None:
    service = Service([0.2, 0.9])
    candidates = service.candidates(40, tmp_path)
    problem = candidates.problem(m=1, epsilon=0.1, delta=0.05)
    first = [str(place) for place in problem.order()]
    service.broken = {(1, first[0])}
    with pytest.raises(MeasurementFailed, match=rf"no score of arm-1 on item q{first[0]}: .*no answer"):
        sl.select(candidates, problem, retries=2)
    assert service.asked.pop((1, first[0])) == 3
    assert set(service.asked.values()) == {1}


def killed_after(n_answers: int, folder: Path) -> None:
    """Begin a run in a process that ends at an answer, as if it had been killed."""
    service = Service([0.2, 0.4, 0.9, 0.3])
    service.at_answer = lambda: os._exit(9) if service.asked.total() == n_answers else None
    candidates = service.candidates(40, folder, max_tasks=1, max_samples=1)
    sl.select(candidates, candidates.problem(1, 0.1, 0.05), store=folder / "runs.db")


def test_samples_that_were_evaluated_before_a_crash_are_not_evaluated_again(tmp_path: Path) -> None:
    script = f"from {__name__} import *; killed_after(20, Path({str(tmp_path)!r}))"
    killed = subprocess.run([sys.executable, "-c", script], check=False, timeout=120, capture_output=True)
    assert killed.returncode == 9, killed.stderr
    assert sl.Session.resume(tmp_path / "runs.db").n_made == 19  # the last answer was not scored
    service, plain = (Service([0.2, 0.4, 0.9, 0.3]) for _ in range(2))
    candidates = service.candidates(40, tmp_path)
    result = sl.select(candidates, candidates.problem(1, 0.1, 0.05), store=tmp_path / "runs.db")
    assert service.asked.total() == result.n_pulls - 19
    whole = plain.candidates(40, tmp_path / "plain")
    expected = sl.select(whole, whole.problem(1, 0.1, 0.05))
    assert (result.selected, result.n_pulls) == (expected.selected, expected.n_pulls)
    assert result.arms.means.tolist() == expected.arms.means.tolist()


def test_scores_of_several_epochs_are_recorded_at_once_and_are_those_of_the_log(tmp_path: Path) -> None:
    turns = Counter[str]()

    def two_of_three(question: str) -> str:
        turns[question] += 1
        return "no" if turns[question] == int(question) % 4 else "yes"

    candidates = Candidates(
        {"a": (plain(8), model(two_of_three)), "b": (plain(8), model(right))},
        epochs=3,
        log_dir=str(tmp_path),
        display="none",
    )
    seen: list[int] = []
    sl.select(
        candidates, candidates.problem(1, 0.3, 0.3), progress=lambda session: seen.append(session.n_made)
    )
    assert len(set(seen)) > 8  # one by one
    logs = read_scores(tmp_path)
    scores = dict(zip(logs.items or (), logs.scores[(logs.arms or ()).index("a")].tolist(), strict=True))
    known = {item: score for item, score in scores.items() if not np.isnan(score)}
    assert known == {item: pytest.approx(1.0 if int(item[1:]) % 4 == 0 else 2 / 3) for item in known}


def test_a_failure_may_have_a_score(tmp_path: Path) -> None:
    service = Service([0.2, 0.9])
    service.broken = {(1, str(k)) for k in range(40)}
    candidates = service.candidates(40, tmp_path, on_failure=0)
    result = sl.select(candidates, candidates.problem(m=1, epsilon=0.05, delta=0.05))
    assert result.selected == ("arm-0",)


def test_it_works_in_a_thread_and_one_evaluation_runs_at_a_time(tmp_path: Path) -> None:
    service = Service([0.2, 0.9])
    both = [service.candidates(30, tmp_path) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(lambda one: sl.select(one, one.problem(1, 0.1, 0.05)), both))
    assert [result.selected for result in results] == [("arm-1",)] * 2


def test_samples_without_ids_and_with_odd_ids(tmp_path: Path) -> None:
    service = Service([0.2, 0.9])
    odd = [None, "01", "a*", "[b]", "plain:c", "x y"]

    def given(arm: int) -> tuple[Task, Model]:
        samples = [Sample(id=name, input=str(k), target="yes") for k, name in enumerate(odd)]
        return Task(MemoryDataset(samples), scorer=includes()), service.model(arm)

    candidates = Candidates({str(arm): given(arm) for arm in (0, 1)}, log_dir=str(tmp_path), display="none")
    problem = candidates.problem(m=1, epsilon=0.0, delta=0.05)
    assert problem.items is not None
    assert problem.items.ids == ("1", "01", "a*", "[b]", "plain:c", "x y")
    sl.select(candidates, problem)
    assert set(service.asked.values()) == {1}


def test_tasks_by_their_names_with_one_model(tmp_path: Path) -> None:
    tasks = [
        Task(questions(40), solver=[system_message(name), generate()], scorer=includes(), name=name)
        for name in ("brief", "long")
    ]

    def answer(messages: Any, *_: Any) -> ModelOutput:
        found = ModelOutput.from_content("mock", "yes" if messages[0].text == "long" else "no")
        found.usage = ModelUsage()
        return found

    one = get_model("mockllm/model", custom_outputs=answer)
    candidates = Candidates(tasks, model=one, log_dir=str(tmp_path), display="none")
    assert candidates.names == ["brief", "long"]
    assert sl.select(candidates, candidates.problem(1, 0.1, 0.05)).selected == ("long",)


def test_a_list_of_models_and_a_table_of_what_was_found(tmp_path: Path) -> None:
    models = [model(right, "good"), model(even, "fair"), model(lambda _: "no", "poor")]
    found = select(plain(40), epsilon=0.1, model=models, log_dir=str(tmp_path / "logs"), display="none")
    assert found.names == ("mockllm/good",)
    assert set(found.logs) == {"mockllm/good", "mockllm/fair", "mockllm/poor"}
    assert all(Path(path).is_file() for paths in found.logs.values() for path in paths)
    text = str(found).splitlines()
    assert text[0] == "Selected 1 of 3 candidates: mockllm/good"
    epsilon = found.result.certified_epsilon
    assert text[1] == (
        "With probability at least 95 %, the selected candidate has a mean score over all 40 samples that "
        f"is at most {epsilon:.4g} below the largest."
    )
    assert [line.split()[0] for line in text[2:6]] == [
        "candidate",
        *(f"mockllm/{k}" for k in ("good", "fair", "poor")),
    ]
    assert text[-1] == f"Logs: {len(list((tmp_path / 'logs').iterdir()))} in {tmp_path / 'logs'}"


def test_tasks_are_named_by_their_arguments_and_a_run_may_end_early(tmp_path: Path) -> None:
    @task
    def asked(prompt: str) -> Task:
        return Task(questions(40), solver=[system_message(prompt), generate()], scorer=includes())

    given: dict[str, Any] = {"model": model(right), "log_dir": str(tmp_path), "display": "none"}
    tasks = [asked(prompt) for prompt in ("Be brief.", "Think.")]
    found = select(tasks, epsilon=0.01, budget=8, store=tmp_path / "runs.db", **given)
    assert found.result.n_pulls <= 8
    assert "the remaining budget is too small" in str(found)
    again = select(tasks, epsilon=0.01, store=tmp_path / "runs.db", **given)
    assert set(again.result.problem.names or ()) == {"prompt=Be brief.", "prompt=Think."}
    assert again.result.n_pulls == 80  # both are always right
    with pytest.raises(InvalidProblem, match="two of the candidates are 'asked'"):
        Candidates([asked("Be brief."), asked("Be brief.")])


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblem, match="'A' has a sample 'q4' and 'B' does not"):
        Candidates({"A": plain(5), "B": plain(4)})
    with pytest.raises(InvalidProblem, match="`limit` is decided by the run"):
        Candidates({"A": plain()}, limit=3)
    with pytest.raises(InvalidProblem, match="two of the candidates are 'plain', with the same arguments"):
        Candidates([plain(), plain()])
    with pytest.raises(InvalidProblem, match="candidate 'A' is 'mockllm/model'; it must be a Task"):
        Candidates({"A": "mockllm/model"})  # type: ignore[dict-item]
    with pytest.raises(InvalidProblem, match="it must be a dictionary from names to tasks"):
        Candidates(plain())  # type: ignore[arg-type]


def test_epochs_that_are_not_averaged_and_other_questions_are_refused(tmp_path: Path) -> None:
    given: dict[str, Any] = {"log_dir": str(tmp_path), "display": "none"}
    tasks = {name: (plain(8), model(right)) for name in ("a", "b")}
    found = Candidates(tasks, epochs=Epochs(2, "max"), **given)
    with pytest.raises(MeasurementFailed, match="2 epochs, reduced by max; only the mean is supported"):
        sl.select(found, found.problem(1, 0.3, 0.3))
    other = MemoryDataset([Sample(id=f"q{k}", input=f"other {k}", target="no") for k in range(8)])
    with pytest.raises(InvalidProblem, match="is another one than that of 'b': input and target differ"):
        Candidates({"a": plain(8), "b": Task(dataset=other, scorer=includes())}, **given)


class AuthenticationError(Exception):
    """What a client raises if a key is wrong."""


def test_an_error_that_lasts_ends_the_run_at_once(tmp_path: Path) -> None:
    asked = Counter[str]()

    def refused(question: str) -> str:
        asked[question] += 1
        raise AuthenticationError("Error code: 401 - Incorrect API key provided")

    candidates = {"a": (plain(10), model(refused)), "b": (plain(10), model(right))}
    found = Candidates(candidates, log_dir=str(tmp_path), display="none")
    with pytest.raises(
        MeasurementFailed, match=r"a fails on sample q\d: AuthenticationError.*Incorrect API key"
    ):
        sl.select(found, found.problem(1, 0.1, 0.05))
    assert set(asked.values()) == {1}


def test_models_that_do_not_exist_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidProblem, match="model of candidate 'nosuch/model' cannot be used: Model API nosuch"
    ):
        select(plain(), epsilon=0.1, model=["nosuch/model", "mockllm/model"])
    with pytest.raises(MeasurementFailed, match="Inspect refuses the evaluation: Model API nosuch"):
        select(
            {"a": plain(), "b": plain()},
            epsilon=0.1,
            model="nosuch/model",
            log_dir=str(tmp_path),
            display="none",
        )


def test_retries_are_announced(tmp_path: Path) -> None:
    """Also if Inspect handles all messages, as in a program of its own."""
    script = f"""
from {__name__} import *

tasks = {{"a": (plain(9), model(fails_on("3"))), "b": (plain(9), model(right))}}
c = Candidates(tasks, log_dir={str(tmp_path)!r}, display="none")
sl.select(c, c.problem(1, 0.0, 0.05), retries=1)
"""
    found = subprocess.run(
        [sys.executable, "-c", script], check=False, timeout=120, capture_output=True, text=True
    )
    assert (
        "no score of a on item q3: ConnectionError('no answer')" in found.stderr.split("Trying again in")[0]
    )


def test_an_unknown_scorer_ends_the_run_at_once(tmp_path: Path) -> None:
    service = Service([0.2, 0.9])
    candidates = service.candidates(10, tmp_path, metric="f1")
    with pytest.raises(MeasurementFailed, match="no scorer 'f1'; it has includes"):
        sl.select(candidates, candidates.problem(1, 0.1, 0.05))
    assert set(service.asked.values()) == {1}
