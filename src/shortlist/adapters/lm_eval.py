"""The lm-evaluation-harness (lm_eval): the best of several models, on no more documents than needed.

Written for lm_eval 0.4.13. See docs/lm-evaluation-harness.md.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import lm_eval
from lm_eval.api.model import LM
from lm_eval.api.samplers import ContextSampler
from lm_eval.tasks import TaskManager
from lm_eval.utils import handle_non_serializable, hash_string

from shortlist.adapters.cells import Cells, Measured
from shortlist.checks import shortened
from shortlist.errors import FinalFailure, InvalidProblem
from shortlist.measure.result_files.lm_eval import line_of, scores_of
from shortlist.measure.result_files.reading import Reading

Candidate: TypeAlias = "LM | tuple[str, Any] | Callable[[], LM]"
"""A model; or its kind and arguments, `("local-completions", {...})`; or a function that loads it."""

_OWN = ("model", "model_args", "limit", "samples", "log_samples", "predict_only")
_QUIET: dict[str, Any] = {"bootstrap_iters": 0}  # standard errors of parts of the table are of no use


class Candidates(Cells):
    """Models as arms, and the documents of tasks as items.

    It is the `measure` of `shortlist.select`: in each round of the run, `lm_eval.simple_evaluate` is called
    once for each model that the round needs, with the documents that it needs.

    Parameters
    ----------
    candidates
        The models by name: objects of the harness; pairs of a kind of model and its arguments, as for
        `simple_evaluate`; or functions that load a model, which are called whenever it is needed.
    tasks
        The tasks, as for `simple_evaluate`: names, or configurations as dictionaries.
    metric
        The metric that counts, such as `acc`, if there are several; `metric,filter` if there are several
        filters. If the tasks say that small values of it are good, so does the question.
    task_manager
        A `lm_eval.tasks.TaskManager`, if tasks are not those of the harness.
    options
        Other arguments of `lm_eval.simple_evaluate`, such as `num_fewshot`, `batch_size` or `gen_kwargs`.
    """

    def __init__(
        self,
        candidates: Mapping[str, Candidate],
        tasks: Sequence[Any],
        *,
        metric: str | None = None,
        task_manager: Any = None,
        **options: Any,
    ) -> None:
        if not isinstance(candidates, Mapping):
            raise InvalidProblem(
                f"`candidates` is {shortened(candidates)}; it must be a dictionary from names to models."
            )
        for option in _OWN:
            if option in options:
                raise InvalidProblem(f"`{option}` is decided by the run; omit it.")
        self._models = [_checked(name, model) for name, model in candidates.items()]
        self._manager = TaskManager() if task_manager is None else task_manager
        self._tasks: dict[str, Any] = self._manager.load(list(tasks))["tasks"]
        for name, task in self._tasks.items():
            _check_examples(name, task, options.get("num_fewshot"))
        self._reading = Reading(metric)
        self.goal = _goal(self._tasks, metric)
        self._options = _QUIET | options
        self._documents = {
            f"{name}/{number}": (name, number)
            for name, task in self._tasks.items()
            for number in range(len(task.eval_docs))
        }
        hashes = {
            f"{name}/{number}": _hash(document)
            for name, task in self._tasks.items()
            for number, document in enumerate(task.eval_docs)
        }
        # the prompts, too, may be other ones under the same name
        shared = [metric, {name: task.dump_config() for name, task in self._tasks.items()}, options]
        models = [[model, shared] for model in self._models]
        super().__init__([str(name) for name in candidates], hashes, models)

    def evaluate(self, wanted: Mapping[int, Sequence[str]], found: Measured) -> None:
        """Add the scores of models on documents."""
        for arm, items in wanted.items():
            if not found.is_over:
                found.add({(arm, item): score for item, score in self._scores(arm, items).items()})

    def _scores(self, arm: int, items: Sequence[str]) -> dict[str, float]:
        numbers: dict[str, list[int]] = {}
        for item in items:
            task, number = self._documents[item]
            numbers.setdefault(task, []).append(number)
        # ascending: in another order, the harness returns the answers to one document as those to another
        asked = {task: sorted(found) for task, found in numbers.items()}
        found = lm_eval.simple_evaluate(
            **_model(self._models[arm]),
            tasks=[self._tasks[task] for task in asked],
            samples=asked,
            log_samples=True,
            task_manager=self._manager,
            **self._options,
        )
        scores: dict[str, float] = {}
        try:
            for task, samples in found["samples"].items():
                lines = [line_of(task, sample, f"a sample of {task}") for sample in samples]
                for line in lines:
                    if line.doc_hash != self.items.value(self.items.places[line.item]):
                        raise InvalidProblem(f"the harness returned another document as {line.item}.")
                scores |= scores_of(Path(task), lines, self._reading)
        except InvalidProblem as error:  # another attempt would not help
            raise FinalFailure(str(error)) from None
        return scores


def _goal(tasks: Mapping[str, Any], metric: str | None) -> str:
    """Return whether large or small values of a metric are good, as the tasks say."""
    directions: dict[str, bool] = {}
    for name, task in tasks.items():
        known = task.higher_is_better()
        own = (metric or "").partition(",")[0] or (next(iter(known)) if len(known) == 1 else "")
        if isinstance(known.get(own), bool):
            directions[name] = known[own]
    if len(set(directions.values())) > 1:
        large, small = (next(name for name in directions if directions[name] is up) for up in (True, False))
        raise InvalidProblem(
            f"large values are good in task {large!r} and small ones in task {small!r}, so their scores "
            f"cannot be averaged. Give tasks of one kind, or another `metric`."
        )
    return "minimise" if False in directions.values() else "maximise"


def _checked(name: str, model: Any) -> Candidate:
    if isinstance(model, LM) or callable(model) or (isinstance(model, tuple) and len(model) == 2):
        found: Candidate = model
        return found
    raise InvalidProblem(
        f"candidate {name!r} is {shortened(model)}; it must be a model of the harness, a pair of a kind of "
        f"model and its arguments, or a function that loads a model."
    )


def _model(candidate: Candidate) -> dict[str, Any]:
    """Return the arguments of `simple_evaluate` for a model."""
    if isinstance(candidate, tuple):
        return {"model": candidate[0], "model_args": candidate[1]}
    return {"model": candidate if isinstance(candidate, LM) else candidate()}


def _check_examples(name: str, task: Any, n_wanted: int | None) -> None:
    """Refuse few-shot examples that depend on which documents are evaluated together."""
    own = task.get_config("num_fewshot")
    n_examples = own if own == 0 or n_wanted is None else n_wanted
    sampler: Any = getattr(task, "sampler", None)
    if n_examples and getattr(type(sampler), "sample", None) is ContextSampler.sample:
        own_task = {"task": name, "fewshot_config": {"sampler": "first_n"}}
        fixed = {"group": f"{name}-fixed", "task": [own_task]}
        raise InvalidProblem(
            f"task {name!r} draws {n_examples} examples for each document at random, in the order in which "
            f"documents are evaluated. So a score would depend on what else is evaluated. Let all documents "
            f"have the same examples, as in {fixed}, or none, `num_fewshot=0`."
        )


def _hash(document: Any) -> str:
    """Return the hash of a document, as the harness has it in its samples."""
    text = json.dumps(document, indent=2, default=handle_non_serializable, ensure_ascii=False)
    return str(hash_string(text))
