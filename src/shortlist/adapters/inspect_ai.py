"""Inspect (inspect_ai): the best of several tasks, models or solvers, on no more samples than needed.

Written for inspect_ai 0.3.285. See docs/inspect.md.
"""

import copy
import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import inspect_ai
from inspect_ai import Task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import Sample
from inspect_ai.hooks import Hooks, SampleEnd, TaskStart, hooks
from inspect_ai.model import Model, get_model

from shortlist.adapters.cells import Cells, Measured
from shortlist.adapters.summary import summary
from shortlist.checks import shortened
from shortlist.errors import FinalFailure, InvalidProblem, MeasurementFailed
from shortlist.execution import select as select_arms
from shortlist.measure.result_files.inspect_ai import ARM, check_epochs, scores_of
from shortlist.measure.result_files.reading import Reading, first_line, names_that_differ
from shortlist.result import Result
from shortlist.store import Where

Candidate: TypeAlias = "Task | tuple[Task, str | Model]"
"""A task, or a task and the model that it is evaluated with."""

Tasks: TypeAlias = "Task | Mapping[str, Candidate] | Sequence[Candidate]"
"""One task, or several candidates, by name or as a list."""

_OWN = ("tasks", "sample_id", "limit", "sample_shuffle", "fail_on_error", "log_samples", "log_header_only")
_ASIDE = frozenset(
    {"log_dir", "log_level", "log_format", "display", "max_connections", "max_tasks", "max_samples"}
)
"""Options on which scores do not depend."""

_LASTING = (
    *(
        "AuthenticationError",
        "PermissionDeniedError",
        "UnauthorizedError",
        "NotFoundError",
        "BadRequestError",
    ),
    *("PrerequisiteError", "TypeError", "NameError", "AttributeError", "NotImplementedError", "SyntaxError"),
    *("ImportError", "ModuleNotFoundError"),
)
"""Classes of errors that another attempt would not fix, such as a wrong key or an unknown model."""

_REFUSALS: tuple[type[Exception], ...] = (ValueError, TypeError, LookupError, PrerequisiteError)
"""Errors of `inspect_ai.eval` itself: wrong arguments, and keys and packages that are missing."""

_ONE_AT_A_TIME = threading.Lock()  # `inspect_ai.eval` refuses a second call in the same process


@dataclass(frozen=True, eq=False)
class Selected:
    """What `select` found; printed, it is a table of candidates with the guarantee and the place of the logs.

    Attributes
    ----------
    result
        The result of the run, whose arms are the candidates.
    logs
        The paths of the logs that were written, by candidate; not those of an earlier process.
    """

    result: Result
    logs: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the selected candidates, the best observed mean first."""
        return self.result.selected

    def __str__(self) -> str:
        paths = [path for found in self.logs.values() for path in found]
        here = f"{Path.cwd()}/"
        folders = dict.fromkeys(path.rpartition("/")[0].removeprefix(here) for path in paths)
        where = f"Logs: {len(paths):,} in {', '.join(folders)}" if paths else ""
        return "\n".join(filter(None, [summary(self.result, item="sample"), where]))


def select(
    tasks: Tasks,
    *,
    epsilon: float,
    m: int = 1,
    delta: float = 0.05,
    rewards: Any = None,
    store: Where | None = None,
    name: str = "main",
    budget: int | None = None,
    deadline: float | None = None,
    **options: Any,
) -> Selected:
    """Return the m best of several tasks, models or solvers; it takes the place of `inspect_ai.eval`.

    Parameters
    ----------
    tasks
        The candidates, as for `Candidates`; or one task, if `model` is a list.
    epsilon
        How far below the m-th best mean score a selected candidate may lie.
    m, delta
        How many candidates to select, and the accepted failure probability.
    rewards
        What scores can be. The default is `Bounded(0, 1)`.
    store, name
        Where the run is stored, and its name there, so that it can be resumed.
    budget, deadline
        The maximum number of samples, and of seconds.
    options
        `metric` and `on_failure`, as for `Candidates`, and all arguments of `inspect_ai.eval`. If `model` is
        a list, every task is a candidate with every model.

    Guarantee
    ---------
    That of `shortlist.select`: with probability at least 1 - delta, no selected candidate has a mean score
    over all samples that is more than epsilon below that of the m-th best.
    """
    models = options.get("model")
    if isinstance(models, list | tuple):
        del options["model"]
        tasks = _with_models(tasks, models)
    candidates = Candidates([tasks] if isinstance(tasks, Task) else tasks, **options)
    problem = candidates.problem(m, epsilon, delta, rewards=rewards)
    result = select_arms(candidates, problem, store=store, name=name, budget=budget, deadline=deadline)
    return Selected(result, candidates.logs)


class Candidates(Cells):
    """Tasks, models or solvers as arms, and the samples of their dataset as items.

    It is the `measure` of `shortlist.select`: each round of the run is one call of `inspect_ai.eval`, with
    all candidates and samples that the round needs. Its logs are kept in `log_dir`, and name their arm.

    Parameters
    ----------
    candidates
        The candidates by name: tasks, or pairs of a task and a model. All must have the same samples, by
        their ids. Those of a list are named by what differs: the model, the task, its arguments.
    metric
        The scorer that counts, if there are several; `scorer/key` if its value is a dictionary.
    on_failure
        The score of samples that end with an error. Without it they are tried again, and suspend the run in
        the end.
    options
        Arguments of `inspect_ai.eval`, such as `model`, `log_dir`, `max_connections`, `epochs` or `display`.

    Attributes
    ----------
    logs
        The paths of the logs that were written, by candidate.
    """

    def __init__(
        self,
        candidates: Mapping[str, Candidate] | Sequence[Candidate],
        *,
        metric: str | None = None,
        on_failure: float | None = None,
        **options: Any,
    ) -> None:
        named = _named(candidates)
        for option in _OWN:
            if option in options:
                raise InvalidProblem(f"`{option}` is decided by the run; omit it.")
        self._tasks = [_task(name, one) for name, one in named.items()]
        self._reading = Reading(metric, on_failure)
        self._options = options
        self.logs: dict[str, list[str]] = {name: [] for name in named}
        samples = {name: _samples(name, task) for name, task in zip(named, self._tasks, strict=True)}
        _check_same(samples)
        first = next(iter(samples.values()))
        shared = [metric, on_failure, {key: options[key] for key in sorted(options) if key not in _ASIDE}]
        tasks = [[_described_task(task), shared] for task in self._tasks]
        super().__init__(list(named), {key: _content(sample) for key, sample in first.items()}, tasks)

    def evaluate(self, wanted: Mapping[int, Sequence[str]], found: Measured) -> None:
        """Add the scores of candidates on samples, from one call of `inspect_ai.eval`."""
        tasks = [self._subset(arm, set(ids)) for arm, ids in wanted.items()]
        options = {"max_tasks": len(tasks)} | self._options
        with _ONE_AT_A_TIME, _listening(self, found):
            try:
                logs = inspect_ai.eval(tasks, fail_on_error=False, **options)
            except _REFUSALS as error:
                raise FinalFailure(f"Inspect refuses the evaluation: {_plain_text(error)}") from error
        _show_warnings()
        troubles: list[MeasurementFailed] = []
        for log in logs:
            self.logs[log.eval.metadata[ARM]].append(log.location)
            try:
                self._add(log, self.names.index(log.eval.metadata[ARM]), found)
            except MeasurementFailed as error:  # the other logs count
                troubles.append(error)
        for trouble in troubles:
            raise trouble

    def _subset(self, arm: int, ids: set[str]) -> Task:
        """Return a task with some of its samples."""
        task = copy.copy(self._tasks[arm])
        task.dataset = task.dataset.filter(lambda sample: str(sample.id) in ids)
        task.metadata = (task.metadata or {}) | {ARM: self.names[arm]}
        return task

    def add_sample(self, spec: Any, samples: Sequence[Any], found: Measured) -> None:
        """Add the score of a sample, given all its epochs, before its log is complete.

        Samples without a score are left to the log, which says more.
        """
        log, arm = SimpleNamespace(eval=spec), self.names.index(spec.metadata[ARM])
        with suppress(InvalidProblem):
            check_epochs(Path(), log)
            scores = scores_of(Path(), log, samples, Reading(self._reading.metric))
            found.add({(arm, item): score for item, score in scores.items()})

    def _add(self, log: Any, arm: int, found: Measured) -> None:
        path = Path(log.location)
        if log.status != "success":
            why = first_line(log.error.message) if log.error else log.status
            raise MeasurementFailed(f"the evaluation of {self.names[arm]} ended early ({why}); see {path}.")
        try:
            check_epochs(path, log)
        except InvalidProblem as error:
            raise FinalFailure(str(error)) from None
        by_id: dict[str, list[Any]] = {}
        for sample in log.samples or []:
            by_id.setdefault(str(sample.id), []).append(sample)
        for item, samples in by_id.items():
            errors = [sample.error.message for sample in samples if sample.error]
            if errors and self._reading.on_failure is None:
                found.failures[arm, item] = f"{first_line(errors[0])}; see {path}."
                if re.match(rf"({'|'.join(_LASTING)})\b", errors[0]):
                    raise FinalFailure(
                        f"{self.names[arm]} fails on sample {item}: {first_line(errors[0])}. A retry "
                        f"would not help; see {path}. Fix it and resume; recorded results are kept."
                    )
            else:
                try:
                    found.add({(arm, item): scores_of(path, log, samples, self._reading)[item]})
                except InvalidProblem as error:  # another attempt would not help
                    raise FinalFailure(str(error)) from None


_LISTENERS: list["_Listener"] = []
"""One, from the first evaluation on; not before, since Inspect announces all hooks to users of `eval`."""


class _Listener(Hooks):  # type: ignore[misc]
    """Passes samples to the candidates that are being evaluated, as soon as their epochs have ended."""

    def __init__(self) -> None:
        self.candidates: Candidates | None = None
        self.found = Measured()
        self.specs: dict[str, Any] = {}
        self.samples: dict[tuple[str, str], list[Any]] = {}
        _LISTENERS.append(self)

    def enabled(self) -> bool:
        """Return whether candidates are being evaluated."""
        return self.candidates is not None

    async def on_task_start(self, data: TaskStart) -> None:
        """Note the description of an evaluation."""
        if ARM in (data.spec.metadata or {}):
            self.specs[data.eval_id] = data.spec

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Take a sample that has ended without an error."""
        spec, sample = self.specs.get(data.eval_id), data.sample
        if self.candidates is None or spec is None or sample.error:
            return
        epochs = self.samples.setdefault((data.eval_id, str(sample.id)), [])
        epochs.append(sample)
        if len(epochs) == (spec.config.epochs or 1):
            self.candidates.add_sample(spec, epochs, self.found)


@contextmanager
def _listening(candidates: Candidates, found: Measured) -> Iterator[None]:
    """Record scores while `inspect_ai.eval` runs."""
    if not _LISTENERS:
        hooks("shortlist", "records each score as soon as it is known")(_Listener)
    (listener,) = _LISTENERS
    listener.candidates, listener.found = candidates, found
    try:
        yield
    finally:
        listener.candidates, listener.found = None, Measured()
        listener.specs.clear()
        listener.samples.clear()


def _named(given: Any) -> dict[str, Any]:
    """Return candidates by name."""
    if isinstance(given, Mapping):
        return {str(name): one for name, one in given.items()}
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InvalidProblem(
            f"`candidates` is {shortened(given)}; it must be a dictionary from names to tasks, or to pairs "
            f"of a task and a model."
        )
    names = names_that_differ([_described_candidate(one) for one in given], ("model", "task"))
    if len(set(names)) < len(names):
        raise InvalidProblem(
            f"two of the candidates are {max(names, key=names.count)!r}, with the same arguments; give a "
            f"dictionary from names to tasks."
        )
    return dict(zip(names, given, strict=True))


def _described_candidate(given: Any) -> dict[str, str]:
    """Return what may tell a candidate from others: its model, its task, and the arguments of the task."""
    task, model = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    arguments = getattr(task, "__registry_params__", None) or {}
    found = {"model": model or getattr(task, "model", None), "task": getattr(task, "name", task)} | arguments
    return {key: " ".join(str(value).split()) for key, value in found.items() if value is not None}


def _with_models(tasks: Any, models: Sequence[Any]) -> Any:
    """Return every task with every model, as candidates."""
    if isinstance(tasks, Mapping):
        return {f"{name}, {model}": (task, model) for name, task in tasks.items() for model in models}
    each = [tasks] if isinstance(tasks, Task) else tasks
    return [(task, model) for task in each for model in models]


def _task(name: str, given: Any) -> Task:
    """Return a copy of a candidate's task, with its model."""
    task, model = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if not isinstance(task, Task):
        raise InvalidProblem(
            f"candidate {name!r} is {shortened(given)}; it must be a Task, or a pair of a Task and a model."
        )
    found = copy.copy(task)
    if model is not None:
        try:
            found.model = get_model(model)
        except _REFUSALS as error:
            raise InvalidProblem(
                f"the model of candidate {name!r} cannot be used: {_plain_text(error)}"
            ) from None
    return found


def _plain_text(error: Exception) -> str:
    """Return a message of Inspect without markup, as one line."""
    return " ".join(re.sub(r"\[/?[a-z ]+\]", "", str(error)).split())


def _show_warnings() -> None:
    """Let warnings about retries reach the user, if only Inspect handles them, which may show nothing."""
    logger, handlers = logging.getLogger("shortlist"), logging.getLogger().handlers
    if not logger.handlers and all(type(one).__module__.startswith("inspect_ai") for one in handlers):
        logger.addHandler(logging.StreamHandler())


def _described_task(task: Task) -> list[Any]:
    """Return what scores depend on, as far as it is known: solvers, scorers and model, with arguments."""
    solvers = getattr(task.solver, "_solvers", None) or [task.solver]
    model = None if task.model is None else [str(task.model), getattr(task.model, "model_args", None)]
    config = task.config.model_dump(exclude_none=True)
    return [
        [_registered(one) for one in solvers],
        [_registered(one) for one in task.scorer or []],
        model,
        config,
    ]


def _registered(made: Any) -> list[Any]:
    """Return the name of a solver or a scorer, and the arguments that it was made with."""
    info = getattr(made, "__registry_info__", None)
    name = getattr(made, "__qualname__", type(made).__qualname__) if info is None else info.name
    return [name, getattr(made, "__registry_params__", None)]


def _samples(name: str, task: Task) -> dict[str, Sample]:
    """Return the samples of a task by id; those without one are numbered, as `inspect_ai.eval` does."""
    for number, sample in enumerate(task.dataset, 1):
        if sample.id is None:
            sample.id = number
    found = {str(sample.id): sample for sample in task.dataset}
    if not found or len(found) < len(task.dataset):
        what = "two samples have the same id" if found else "it has no samples"
        raise InvalidProblem(f"the dataset of candidate {name!r} cannot be used: {what}.")
    return found


def _check_same(samples: Mapping[str, Mapping[str, Sample]]) -> None:
    """Refuse candidates with different samples."""
    (first, expected), *others = samples.items()
    for name, found in others:
        for key in expected.keys() & found.keys():
            if expected[key].input != found[key].input and expected[key].target != found[key].target:
                raise InvalidProblem(
                    f"sample {key!r} of candidate {first!r} is another one than that of {name!r}: input and "
                    f"target differ. Samples are matched by their ids; all must have the same samples."
                )
        if different := expected.keys() ^ found.keys():
            one = sorted(different)[0]
            has, lacks = (first, name) if one in expected else (name, first)
            raise InvalidProblem(
                f"candidate {has!r} has a sample {one!r} and {lacks!r} does not; all must have the same "
                f"samples."
            )


def _content(sample: Sample) -> dict[str, Any]:
    """Return what identifies a sample in the record of a run."""
    text = sample.input if isinstance(sample.input, str) else [[m.role, m.text] for m in sample.input]
    found: dict[str, Any] = {"input": text, "target": sample.target}
    return found | ({"choices": sample.choices} if sample.choices else {})
