"""The content of a report, computed once, from a stored run or from a result alone."""

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Guarantee
from shortlist.errors import InvalidProblem
from shortlist.report.origin import Origin, origin_of, resuming
from shortlist.report.run_warnings import Finding, findings_of
from shortlist.report.worker_text import why_stopped
from shortlist.report.workload import Work, workload
from shortlist.result import Result, Stop
from shortlist.session.state import RunState
from shortlist.store.events import Record
from shortlist.strategies import strategy_for, strategy_named

_SHORT = (Stop.BUDGET, Stop.DEADLINE, Stop.PERSON, Stop.ITEMS)
RIVALS = ("wnelim", "vmedelim")  # the paper's algorithms, whose worst cases are compared with the pulls made


@dataclass(frozen=True, eq=False)
class Rounds:
    """The number of arms and of pulls in each round; the last round may be in progress.

    `n_open` is the number of its tickets without an answer, and `n_partial` the number of pulls that are
    recorded for these. `numbers` are those in tickets: a round that nobody began to measure may have been
    replaced by another one, as results were fed or a budget called for a smaller one.
    """

    numbers: IntArray
    arms: IntArray
    pulls: IntArray
    n_whole: int
    n_open: int = 0
    n_partial: int = 0


@dataclass(frozen=True, eq=False)
class Report:
    """The content of a report on a run; text, HTML and JSON are views of it.

    Attributes
    ----------
    result
        The result, or the interim result.
    state
        One of: certified, screened, unproved, suspended, stopped (by a budget, a deadline or a person), open.
    promise
        What the strategy guarantees once it has ended; None if nothing is proved for it, or rewards void it.
    cap
        The maximum number of pulls of the strategy; None if unknown.
    rivals
        The worst cases of the paper's algorithms, by name; None if too large to compute.
    errors
        The standard error of each arm's mean, from stated variances or those of a pilot, or for
        rewards within bounds from their means; None if unknown.
    rounds, origin
        None for a result without a stored run.
    suspended
        Why the run stopped early; empty if it did not.
    findings
        Warnings, the most serious first.
    workers
        Who measured how many pulls, the largest share first.
    resume
        The command that resumes the run; empty if there is none.
    where
        The command-line arguments that name the store; empty if not needed.
    made_at
        When the report was made, in seconds since 1970 (Unix time).
    """

    result: Result
    state: str
    promise: Guarantee | None
    cap: int | None
    rivals: Mapping[str, int | None]
    errors: FloatArray | None
    rounds: Rounds | None = None
    origin: Origin | None = None
    suspended: str = ""
    findings: tuple[Finding, ...] = ()
    workers: tuple[Work, ...] = ()
    resume: str = ""
    where: tuple[str, ...] = ()
    made_at: float = field(default_factory=time.time)

    @property
    def is_finished(self) -> bool:
        """Whether the strategy ended by its own rule."""
        return self.state in {"certified", "screened", "unproved"}

    @property
    def is_partly_certified(self) -> bool:
        """Whether the run has not ended, but something is certified."""
        return not self.is_finished and math.isfinite(self.result.certified_epsilon)

    @cached_property
    def order(self) -> IntArray:
        """All arms: selected arms first, then the others by decreasing merit, arms without pulls last."""
        result = self.result
        merits = np.nan_to_num(result.problem.merits(result.arms.means), nan=-np.inf)
        merits[result.indices] = np.inf
        others = np.argsort(-merits, kind="stable")[len(result.indices) :]
        return np.concatenate([result.indices, others])

    @property
    def n_above(self) -> int:
        """The number of arms above the cut: the selected arms or, before selection, the m leading arms."""
        return len(self.result.indices) if self.is_finished else self.result.problem.m


def report_of_result(result: Result) -> Report:
    """Return a report on a result without a stored run."""
    return Report(
        result=result,
        state=_state(result),
        promise=_promise(result),
        cap=_cap(result),
        rivals=_rivals(result),
        errors=_standard_errors(result, None),
        findings=findings_of(result),
    )


def report_of_run(
    run: str,
    history: RunState,
    records: Iterable[Record],
    *,
    resume: str | None = None,
    store: str = "",
    stop: Stop | None = None,
) -> Report:
    """Return a report on a run from its log.

    Parameters
    ----------
    run
        Its name.
    history, records
        The state that its log implies, and the log itself.
    resume
        The command that resumes it; by default taken from the log.
    store
        The store of the run, if commands need it as an argument.
    stop
        Why the run stopped, if the log does not contain it.
    """
    kept = list(records)
    origin = origin_of(run, history, kept)
    if resume is None:
        resume = resuming(origin, history.began.seed, store, is_fed=history.n_fed > 0)
    return report_of_history(history, origin, workload(history, kept), resume=resume, store=store, stop=stop)


def report_of_history(
    history: RunState,
    origin: Origin,
    workers: tuple[Work, ...],
    *,
    resume: str,
    store: str = "",
    stop: Stop | None = None,
) -> Report:
    """Return a report on the state of a run; see `report_of_run`."""
    result, state = history.result, _state(history.result)
    if history.suspended is not None and not history.is_final:
        state = "stopped" if history.is_stopped else "suspended"
    if state == "open" and stop in _SHORT:
        state = "stopped"
    return Report(
        result=result,
        state=state,
        promise=_promise(result),
        cap=history.worst_case_pulls,
        rivals=_rivals(result),
        errors=_standard_errors(result, _pilot_variances(history)),
        rounds=_rounds(history),
        origin=origin,
        suspended=why_stopped(history),
        findings=findings_of(result, history),
        workers=workers,
        resume="" if history.is_final else resume,
        where=("--store", store) if store else (),
    )


def _state(result: Result) -> str:
    if result.stop is Stop.CERTIFIED:
        return "certified" if result.is_answer else "screened"
    if result.stop is Stop.UNPROVED:
        return "unproved"
    return "stopped" if result.stop in _SHORT else "open"


def _promise(result: Result) -> Guarantee | None:
    if result.guarantee is not None:
        return result.guarantee
    if result.certificate is not None and result.certificate.is_void:
        return None
    promise = strategy_for(result.strategy, result.problem).guarantee(result.problem)
    return promise and promise.provided(result.problem, *["first-answers"] * bool(result.n_reissued))


def _cap(result: Result) -> int | None:
    return strategy_for(result.strategy, result.problem).worst_case_pulls(result.problem)


def _rivals(result: Result) -> dict[str, int | None]:
    """Return the worst cases of the paper's algorithms, if variances are known."""
    found: dict[str, int | None] = {}
    if (
        result.problem.items is None
        and result.problem.knows_variances
        and result.problem.m < result.problem.n
    ):
        for name in RIVALS:
            try:
                found[name] = strategy_named(name).worst_case_pulls(result.problem)
            except InvalidProblem:
                found[name] = None
    return found


def _standard_errors(result: Result, spreads: FloatArray | None) -> FloatArray | None:
    means, pulls = result.arms.means, result.arms.in_mean
    variances = result.problem.variances_at(means, pulls) if result.problem.knows_variances else spreads
    if variances is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        errors: FloatArray = np.sqrt(variances / pulls)
    errors = np.where(pulls > 0, errors, np.nan)
    if result.problem.has_pool and result.problem.target == "pool":  # the items without a score are few
        errors *= np.sqrt(np.maximum(1 - pulls / result.problem.n_items, 0))
        if result.problem.known is not None:
            errors[result.problem.known.arms] = 0.0
    return errors


def _pilot_variances(history: RunState) -> FloatArray | None:
    """Return the sample variances of the pilot so far; None if there is no pilot."""
    pilots = [round for round in history.rounds if round.tickets.needs_variances and round.is_told.any()]
    if not pilots:
        return None
    found = np.full(history.problem.n, np.nan)
    for round in reversed(pilots):
        found[round.tickets.arms] = round.spreads
    return found


def _rounds(history: RunState) -> Rounds:
    rounds = [round for round in history.rounds if len(round.tickets) and not round.is_replaced]
    n_whole = sum(round.n_missing == 0 for round in rounds)
    arms = np.array([len(round.tickets) for round in rounds], dtype=np.int64)
    pulls = np.array([int(round.tickets.counts[round.is_told].sum()) for round in rounds], dtype=np.int64)
    numbers = np.array([round.number for round in rounds], dtype=np.int64)
    n_open = sum(round.n_missing for round in rounds)
    return Rounds(numbers, arms, pulls, n_whole, n_open, history.n_partial)
