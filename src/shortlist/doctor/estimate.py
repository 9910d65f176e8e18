"""What a run will cost: its usual pulls, its time with one worker and with several, and whether it pays.

The usual number of pulls is that of a few simulated runs, with the rates or the noise of the test pulls.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from shortlist.doctor.blocks import pairs_of, spread_of
from shortlist.doctor.spread import pooled_variance
from shortlist.doctor.trials import ArmTrials
from shortlist.errors import InvalidProblem, NoGuarantee
from shortlist.execution.drive import cannot_drift
from shortlist.measure import RecordedScores, Source, TableSource
from shortlist.planning import UsualPulls, plan, resolve, row_of
from shortlist.problem import Problem
from shortlist.strategies import strategy_for
from shortlist.usual_cost import usual_cost

_EFFORT = 0.25  # share of the simulations of a plan: about a second
_PULLS_PER_RUN, _PULLS_PER_ARM = 200_000, 16  # of a simulated run; of an arm if its scale is epsilon
_NEAR_ZERO = 0.02  # rates of shared items nearer to 0 or 1 are simulated as this far away
_WORTH_WORKERS = 10.0  # seconds: shorter runs need no workers
_START = 1.0  # seconds until worker processes have started
_QUICKER = 0.75  # workers, or another strategy, must leave at most this share of the time
_WAITING, _WAITERS = 0.2, 16  # a call that computes for less than this share of its time allows more workers
_CALL = 0.05  # seconds of the calls that workers share; the scheduler puts several into one task
_FEW_ROUNDS = ("short-race", "single-stage")
_NEARLY_ALL = 0.7  # a run that usually needs this share of a table saves little
_SHORT, _LONG, _WORKING_DAY = 60.0, 86400.0, 8 * 3600.0  # seconds
_MOST_ARMS = 1000  # with more, what a budget can certify takes too long to find


@dataclass(frozen=True)
class WithWorkers:
    """A proposal to measure with several workers: how many, and the usual pulls and seconds of a run.

    `pulls_per_call` is set if smaller calls let workers share rounds in which one arm is measured often, and
    `strategy` if another strategy, with fewer rounds, is quicker. `waits` says that a call mostly waits, so
    that there may be more workers than processors.
    """

    n: int
    pulls: float
    seconds: float
    pulls_per_call: int | None = None
    strategy: str | None = None
    waits: bool = False

    @property
    def options(self) -> str:
        """The options of `shortlist run`."""
        given = {"pulls-per-call": self.pulls_per_call, "strategy": self.strategy}
        more = [f" --{name} {value}" for name, value in given.items() if value is not None]
        return f"--workers {self.n}{''.join(more)}"


@dataclass(frozen=True)
class WholeTable:
    """All scores on shared items that are not known yet: their number, time and cost."""

    pulls: int
    seconds: float | None
    cost: float | None


@dataclass(frozen=True)
class Estimate:
    """The cost of a run, as far as it can be known before.

    Attributes
    ----------
    usual_pulls, usual_cost
        The usual number of pulls, and their cost if pulls have costs; None if unknown.
    instance
        The simulated question, in words; empty if nothing was simulated.
    seconds_per_pull
        The average duration of a pull; None if none succeeded.
    workers
        A proposal to measure with several workers; None if they would not help.
    no_workers
        Why workers cannot help; empty if they can.
    whole_table
        With shared items: the cost of measuring everything.
    advice
        What follows from the costs, in sentences.
    """

    usual_pulls: float | None
    usual_cost: float | None
    instance: str
    seconds_per_pull: float | None
    workers: WithWorkers | None
    no_workers: str
    whole_table: WholeTable | None
    advice: tuple[str, ...]

    @property
    def usual_seconds(self) -> float | None:
        """The usual duration with one worker."""
        if self.usual_pulls is None or self.seconds_per_pull is None:
            return None
        return self.usual_pulls * self.seconds_per_pull

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain data for JSON."""
        workers, whole = self.workers, self.whole_table
        return {
            "usual_pulls": self.usual_pulls,
            "usual_seconds": self.usual_seconds,
            "usual_cost": self.usual_cost,
            "usual_instance": self.instance or None,
            "workers": None if workers is None else asdict(workers) | {"options": workers.options},
            "whole_table": None if whole is None else asdict(whole),
            "advice": list(self.advice),
        }


def estimated(
    problem: Problem,
    source: Source,
    tried: Sequence[ArmTrials],
    strategy: str,
    *,
    workers: int | None = None,
    can_travel: bool = True,
) -> Estimate:
    """Return what a run by a strategy will usually cost.

    Parameters
    ----------
    problem, source, tried
        The question, the source of rewards, and the test calls.
    strategy
        The strategy of the run.
    workers
        The number of workers to estimate the time for; None for a suitable one.
    can_travel
        Whether the measurement can be sent to other processes.
    """
    usual, instance = _usual(problem, source, tried, strategy)
    pulls = None if usual is None else float(usual.median)
    trials = [trial for one in tried for trial in one.trials]
    n_pulls, seconds = sum(one.call.count for one in trials), sum(one.seconds for one in trials)
    pace = seconds / n_pulls if n_pulls else None
    reason, proposed = _no_workers(problem, source, can_travel=can_travel), None
    if usual is not None and pace is not None and not reason:
        load = sum(one.processor_seconds for one in trials) / seconds if seconds else 1.0
        load = 1.0 if getattr(source, "persistent", False) else load  # its time is not known while it is open
        asked = _Asked(problem, _rate(problem, tried) or {}, pace)
        proposed = _with_workers(asked, usual, load=load, wanted=workers)
    cost = None if pulls is None or problem.costs is None else pulls * float(problem.costs.mean())
    found = Estimate(
        usual_pulls=pulls,
        usual_cost=cost,
        instance=instance,
        seconds_per_pull=pace,
        workers=proposed,
        no_workers=reason,
        whole_table=_whole_table(problem, pace),
        advice=(),
    )
    return replace(found, advice=tuple(_advice(problem, source, strategy, found)))


# --- the usual number of pulls -------------------------------------------------------------------------


def _usual(
    problem: Problem, source: Source, tried: Sequence[ArmTrials], strategy: str
) -> tuple[UsualPulls | None, str]:
    """Return the usual pulls, and the instance in words; a rough share of the maximum if nothing else."""
    given = _seen(problem, source, tried)
    if given is not None:
        factor = _ease(problem, given)
        easier = problem.changed(epsilon=factor * problem.epsilon) if factor > 1 else problem
        found = usual_cost(easier, [row_of(strategy, easier)], effort=_EFFORT, **given)
        if strategy in found.pulls:
            of = " (medians over pairs of tested arms)" if "correlation" in given else ""
            return _times(found.pulls[strategy], factor**2), f"{found.instance}{of}"
    share, most = strategy_for(strategy, problem).usual_share, row_of(strategy, problem).worst_case_pulls
    if problem.is_bounded or most is None:
        return None, ""
    about = round(share * most)
    return UsualPulls(about, about, about, None), ""


def _ease(problem: Problem, given: dict[str, float]) -> float:
    """Return by which factor epsilon must be larger so that simulated runs are short.

    They draw every reward. Their pulls are then fewer by the square of this factor, apart from logarithms.
    """
    if problem.knows_variances and not problem.has_blocks:
        return 1.0  # batches are drawn at once there, however large they are
    low, high = problem.bounds or (0.0, 0.0)
    scale = given.get("scale", (high - low) / 2) * math.sqrt(1 - given.get("correlation", 0.0))
    ratio = scale / problem.epsilon
    return max(1.0, ratio / max(1.0, math.sqrt(_PULLS_PER_RUN / (_PULLS_PER_ARM * problem.n))))


def _times(usual: UsualPulls, factor: float) -> UsualPulls:
    low, median, high = (round(factor * number) for number in (usual.low, usual.median, usual.high))
    return UsualPulls(low, median, high, usual.rounds)


def _seen(problem: Problem, source: Source, tried: Sequence[ArmTrials]) -> dict[str, float] | None:
    """Return the rate or the scale of the test pulls, as far as the cost depends on it; None if unknown."""
    if problem.is_bounded:
        return _rate(problem, tried)
    if problem.knows_variances:
        return {}
    if problem.has_blocks:
        if not (pairs := pairs_of(problem, source, tried)):
            return None
        scale, rho = spread_of(pairs)
        return {"scale": _rough(scale), "correlation": round(1 - _rough(1 - rho), 12)}
    variance = pooled_variance(tried)
    return {"scale": _rough(math.sqrt(variance))} if variance > 0 else None


def _rate(problem: Problem, tried: Sequence[ArmTrials]) -> dict[str, float] | None:
    """Return the rate of the test pulls, if rewards have bounds and there are any."""
    means = [trial.summary.mean for one in tried for trial in one.trials]
    if not means or not problem.is_bounded:
        return None
    low, high = problem.bounds or (0.0, 1.0)
    rate = float(np.mean(means))
    if problem.has_pool:  # there a rate is a share of the way from the lower bound to the upper one
        return {"rate": min(max(_rough((rate - low) / (high - low)), _NEAR_ZERO), 1 - _NEAR_ZERO)}
    return {"rate": min(max(_rough(rate), low), high)}


def _rough(number: float) -> float:
    """Return a number with two digits that count: more are not known from a few pulls."""
    return float(f"{number:.2g}")


# --- workers -------------------------------------------------------------------------------------------


def _no_workers(problem: Problem, source: Source, *, can_travel: bool) -> str:
    """Return why a run cannot gain from worker processes; empty if it can."""
    if cannot_drift(source):
        return "rewards are recorded or simulated"
    if getattr(source, "needs_this_thread", False) or problem.is_lockstep:
        return "blocks are measured one after the other"
    if source.together > 1 or getattr(source, "answer_each", None) is not None:
        return "one call measures several arms"
    return "" if can_travel else "the measurement cannot be sent to other processes"


class _Asked(NamedTuple):
    """A question, the rate of its rewards as `usual_cost` takes it, and the seconds of a pull."""

    problem: Problem
    rate: dict[str, float]
    pace: float


def _with_workers(asked: _Asked, usual: UsualPulls, *, load: float, wanted: int | None) -> WithWorkers | None:
    """Return a proposal for workers, with fewer rounds if these would make them wait; None if none pays.

    `load` is the number of processors that a call keeps busy, and `wanted` the number of workers, if given.
    """
    alone, waits = asked.pace * usual.median, load < _WAITING
    n = wanted or (_WAITERS if waits else max(1, round(processors() / max(1.0, load))))
    if usual.rounds and wanted is None:  # more than a round has work for would idle
        n = min(n, max(1, math.ceil(usual.median / usual.rounds)))
    if n == 1 or (wanted is None and alone < _WORTH_WORKERS):
        return None
    found = replace(_shared(asked, usual, n), waits=waits)
    if found.seconds > alone / n / _QUICKER:
        found = _in_fewer_rounds(asked, found)
    return found if wanted is not None or found.seconds <= _QUICKER * alone else None


def _shared(asked: _Asked, usual: UsualPulls, n: int) -> WithWorkers:
    """Return the pulls and the time with n workers: in every round, some wait for the last call.

    Small calls let workers share a round that measures one arm often. On shared items and in blocks, workers
    measure ahead instead, and a single round has calls of all arms.
    """
    seconds = _START + asked.pace * (usual.median / n + (usual.rounds or 0))
    is_small = asked.problem.items is None and usual.rounds != 1
    size = max(1, round(_CALL / asked.pace)) if is_small else None
    return WithWorkers(n, float(usual.median), seconds, size)


def _in_fewer_rounds(asked: _Asked, found: WithWorkers) -> WithWorkers:
    """Return a proposal with another strategy if that is much quicker, because workers wait less often."""
    problem = asked.problem
    if problem.items is not None or not problem.knows_variances:
        return found
    rows = [row for row in (row_of(name, problem) for name in _FEW_ROUNDS) if row.is_certified]
    usual = usual_cost(problem, rows, effort=_EFFORT, **asked.rate)
    others = [
        replace(_shared(asked, one, found.n), strategy=name, waits=found.waits)
        for name, one in usual.pulls.items()
    ]
    best = min(others, key=lambda one: one.seconds, default=found)
    return best if best.seconds < _QUICKER * found.seconds else found


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# --- what follows from the costs -----------------------------------------------------------------------


def _whole_table(problem: Problem, pace: float | None) -> WholeTable | None:
    if not problem.has_pool:
        return None
    cost = None if problem.costs is None else float(problem.cells @ problem.costs)
    return WholeTable(problem.n_cells, None if pace is None else pace * problem.n_cells, cost)


def _advice(problem: Problem, source: Source, strategy: str, found: Estimate) -> list[str]:
    """Return what follows from the costs, in sentences."""
    if problem.m == problem.n:
        return []
    if isinstance(source, TableSource | RecordedScores):
        return _on_records(problem, source)
    if whole := _on_the_whole_table(problem, found):
        return [whole]
    return [long] if (long := _on_long_runs(problem, strategy, found)) else []


def _on_records(problem: Problem, source: TableSource | RecordedScores) -> list[str]:
    """Return what to do if everything was measured before."""
    saves = "A run would only show how few of these are enough."
    if isinstance(source, RecordedScores):
        if problem.target == "population":
            return []
        return [
            f"All {problem.n * problem.n_items:,} scores exist already: the averages of the whole table are "
            f"the exact answer. {saves}"
        ]
    rows = f"All {len(source.values):,} rows exist already"
    if source.order == "draw":
        return [f"{rows}. The guarantee is about their averages, which are the exact answer. {saves}"]
    if problem.knows_variances or problem.has_blocks:
        return [f"{rows}: `sl.certify` says at once what they prove. {saves}"]
    return []


def _on_the_whole_table(problem: Problem, found: Estimate) -> str:
    """Return whether measuring everything is as cheap, or cheap enough; empty if it is not."""
    usual, whole = found.usual_pulls, found.whole_table
    if whole is None or usual is None or whole.seconds is None or not whole.pulls:
        return ""
    if problem.target == "population":  # all items answer only a question about these items
        return ""
    price = f"{whole.pulls:,} scores: {span(whole.seconds)} with one worker"
    price += "" if whole.cost is None else f", at a cost of {whole.cost:,.6g}"
    if usual >= _NEARLY_ALL * whole.pulls:
        return (
            f"Measuring the whole table is about as cheap ({price}): a run usually needs "
            f"{min(usual / whole.pulls, 1):.0%} of it. The averages of the whole table are exact. With a "
            f"larger epsilon, a run would save more."
        )
    if whole.seconds < _SHORT and whole.cost is None:
        return (
            f"Measuring the whole table is cheap enough ({price}), and its averages are exact. A run is "
            f"worthwhile only if scores cost something besides time; if they do, state `costs`."
        )
    return ""


def _on_long_runs(problem: Problem, strategy: str, found: Estimate) -> str:
    """Return how long a run takes and what would make it shorter; empty if it is not too long."""
    pulls, pace, workers = found.usual_pulls, found.seconds_per_pull, found.workers
    how = "usually takes"
    if pulls is None:
        how, pulls = "may take", row_of(strategy, problem).worst_case_pulls
    if pulls is None or pace is None:
        return ""
    seconds = pace * pulls if workers is None else workers.seconds
    if seconds <= _LONG:
        return ""
    with_them = "" if workers is None else f" with {workers.options}"
    shorter = _shorter(problem, pace, 1 if workers is None else workers.n)
    return f"At this pace a run {how} {span(seconds)}{with_them}. {shorter}"


def _shorter(problem: Problem, pace: float, n_workers: int) -> str:
    """Return what would make a run shorter."""
    found = _plan_within(problem, int(n_workers * _WORKING_DAY / pace))
    if found is None:
        said = "With twice the epsilon, it takes about a quarter of the pulls."
    else:
        asked, strategy = found
        which = "" if strategy == resolve("auto", asked) else f" and --strategy {strategy}"
        said = f"With an epsilon of {asked.epsilon:g}{which} it never takes more than {span(_WORKING_DAY)}."
    if problem.knows_variances or problem.items is not None:
        said += (
            " You can also stop it early, for example with --deadline 8h. It then says what is certified "
            "so far."
        )
    return said


def _plan_within(problem: Problem, pulls: int) -> tuple[Problem, str] | None:
    """Return the smallest epsilon, rounded up to two digits, that so many pulls always certify, and how."""
    if problem.items is not None or not problem.knows_variances or problem.n > _MOST_ARMS:
        return None
    free = problem.changed(costs=None)
    try:
        exact = plan(free, pulls).problem.epsilon
    except (NoGuarantee, InvalidProblem):
        return None
    unit = 10.0 ** (math.floor(math.log10(exact)) - 1)
    epsilon = float(f"{math.ceil(exact / unit - 1e-9) * unit:.2g}")
    low, high = problem.bounds or (-math.inf, math.inf)
    if not problem.epsilon < epsilon < high - low:
        return None
    asked = free.changed(epsilon=epsilon)
    return asked, resolve("auto", asked, pulls)


def span(seconds: float) -> str:
    """Return a duration in a suitable unit."""
    units = [(1e-3, 1e-6, "µs"), (1.0, 1e-3, "ms"), (120.0, 1.0, "s"), (7200.0, 60.0, "min")]
    for below, unit, name in units:
        if seconds < below:
            return f"{seconds / unit:.2g} {name}" if seconds < 100 * unit else f"{seconds / unit:.0f} {name}"
    hours = seconds / 3600
    return f"{hours:.2g} h" if hours < 48 else f"{hours / 24:,.0f} days"
