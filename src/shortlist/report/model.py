"""What a report says, worked out once: of a run that is kept, or of a result alone."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Guarantee
from shortlist.errors import InvalidProblem
from shortlist.report.origin import Origin, origin_of, resuming
from shortlist.report.run_warnings import Finding, findings_of
from shortlist.report.workload import Work, workload
from shortlist.result import Result, Stop, assuming_no_choice
from shortlist.session.state import RunState
from shortlist.store.events import Record
from shortlist.strategies import strategy_for, strategy_named

RIVALS = ("wnelim", "vmedelim")  # the paper's algorithms, whose worst cases stand beside the pulls made


@dataclass(frozen=True, eq=False)
class Rounds:
    """How many arms each round asked for, and how many pulls were made in it; the last may be under way.

    Of that one `n_open` tickets have no answer yet.
    """

    arms: IntArray
    pulls: IntArray
    n_whole: int
    n_open: int = 0


@dataclass(frozen=True, eq=False)
class Report:
    """What there is to say of a run; text, HTML and JSON are views of it.

    Attributes
    ----------
    result
        What came out, or what there is so far.
    state
        In a word: certified, screened, unproved, suspended, stopped (the budget ended), or open.
    promise
        What the strategy guarantees once it has ended; None if nothing is proved for it.
    cap
        The most pulls that the strategy can take; None if that is unknown.
    rivals
        The worst cases of the paper's algorithms, by name; None where they are beyond counting.
    errors
        The standard error of each arm's mean, from stated variances or those of a pilot; None if unknown.
    rounds, origin
        None for a result of which nothing is kept.
    suspended
        Why measuring stopped short; empty if it did not.
    findings
        What deserves attention, the gravest first.
    workers
        Who measured how much, the busiest first.
    resume
        The command that goes on; empty if there is none, or nothing to go on with.
    where
        Words by which a command is told where the run is kept; none if it need not be.
    made_at
        When the report was made, in seconds since 1970.
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
    def order(self) -> IntArray:
        """All arms: those selected first, the others by falling merit, those never pulled at the end."""
        result = self.result
        merits = np.nan_to_num(result.problem.merits(result.arms.means), nan=-np.inf)
        merits[result.indices] = np.inf
        others = np.argsort(-merits, kind="stable")[len(result.indices) :]
        return np.concatenate([result.indices, others])

    @property
    def n_above(self) -> int:
        """How many arms lie above the cut: those selected or, while none are, the m that are ahead."""
        return len(self.result.indices) if self.is_finished else self.result.problem.m


def report_of_result(result: Result) -> Report:
    """Return what a result alone says."""
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
    """Return what the log of a run says.

    Parameters
    ----------
    run
        Its name.
    history, records
        What its log comes to, and the log itself.
    resume
        The command that goes on with it; by default as far as the log has it.
    store
        Where the run is kept, if a command must be told.
    stop
        Why it was left, if the log does not know.
    """
    kept = list(records)
    origin = origin_of(run, history, kept)
    if resume is None:
        resume = resuming(origin, history.began.seed, store)
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
    """Return what a run has come to; see `report_of_run`."""
    result, suspended = history.result, history.suspended
    state = "suspended" if suspended is not None and not history.is_final else _state(result)
    if state == "open" and stop is Stop.BUDGET:
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
        suspended="" if suspended is None else suspended.reason,
        findings=findings_of(result, history),
        workers=workers,
        resume="" if history.is_final else resume,
        where=("--store", store) if store else (),
    )


def _state(result: Result) -> str:
    if result.stop is Stop.CERTIFIED:
        return "certified" if result.is_answer else "screened"
    return {Stop.UNPROVED: "unproved", Stop.BUDGET: "stopped"}.get(result.stop, "open")


def _promise(result: Result) -> Guarantee | None:
    if result.guarantee is not None:
        return result.guarantee
    promise = strategy_for(result.strategy, result.problem).guarantee(result.problem)
    return promise and assuming_no_choice(promise, result.n_reissued)


def _cap(result: Result) -> int | None:
    return strategy_for(result.strategy, result.problem).worst_case_pulls(result.problem)


def _rivals(result: Result) -> dict[str, int | None]:
    """Return the worst cases of the paper's algorithms, if variances are known."""
    found: dict[str, int | None] = {}
    if result.problem.knows_variances and result.problem.m < result.problem.n:
        for name in RIVALS:
            try:
                found[name] = strategy_named(name).worst_case_pulls(result.problem)
            except InvalidProblem:
                found[name] = None
    return found


def _standard_errors(result: Result, spreads: FloatArray | None) -> FloatArray | None:
    variances = result.problem.variances if result.problem.knows_variances else spreads
    if variances is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        errors: FloatArray = np.sqrt(variances / result.arms.pulls)
    return np.where(result.arms.pulls > 0, errors, np.nan)


def _pilot_variances(history: RunState) -> FloatArray | None:
    """Return the sample variances of the pilot, as far as it has been told; None if there is none."""
    pilots = [round for round in history.rounds if round.spreads is not None and round.is_told.any()]
    if not pilots:
        return None
    found = np.full(history.problem.n, np.nan)
    for round in reversed(pilots):
        found[round.tickets.arms] = round.spreads
    return found


def _rounds(history: RunState) -> Rounds:
    rounds = [round for round in history.rounds if len(round.tickets)]
    n_whole = sum(round.n_missing == 0 for round in rounds)
    arms = np.array([len(round.tickets) for round in rounds], dtype=np.int64)
    pulls = np.array([int(round.tickets.counts[round.is_told].sum()) for round in rounds], dtype=np.int64)
    return Rounds(arms, pulls, n_whole, sum(round.n_missing for round in rounds))
