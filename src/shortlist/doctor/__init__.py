"""Tests of a measurement before a long run: the assumptions of the guarantee, and the expected time."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from shortlist.checks import whole_number
from shortlist.doctor import assumptions, blocks, findings
from shortlist.doctor.estimate import Estimate, estimated
from shortlist.doctor.findings import Finding
from shortlist.doctor.spread import spread
from shortlist.doctor.trials import ArmTrials, arms_to_try, tried
from shortlist.measure import Source
from shortlist.planning import resolve
from shortlist.problem import Problem
from shortlist.strategies import Strategy, strategy_for
from shortlist.strategies.pilot import size as pilot_size

__all__ = ["Diagnosis", "Estimate", "Finding", "examine"]


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The diagnosis of a measurement.

    Attributes
    ----------
    problem
        The question.
    arms
        The arms that were tested.
    n_pulls, seconds
        The number of test pulls, and their duration.
    strategy, worst_case_pulls
        The strategy of a run, and its maximum number of pulls, if limited.
    findings
        The findings of all checks.
    pilot_pulls
        The number of pulls of the pilot; None if variances are known.
    source, tried
        The source of rewards, and the test calls.
    workers
        The number of workers to estimate the time for; None for a suitable one.
    """

    problem: Problem
    arms: tuple[str, ...]
    n_pulls: int
    seconds: float
    strategy: str
    worst_case_pulls: int | None
    findings: tuple[Finding, ...]
    source: Source
    tried: tuple[ArmTrials, ...]
    pilot_pulls: int | None = None
    workers: int | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def seconds_per_pull(self) -> float | None:
        """The average duration of a pull."""
        return self.seconds / self.n_pulls if self.n_pulls else None

    @cached_property
    def estimate(self) -> Estimate:
        """What a run will usually cost; simulated when first used, which takes about a second."""
        is_stuck = any(finding.subject == "workers" and finding.severity != "ok" for finding in self.findings)
        return estimated(
            self.problem,
            self.source,
            self.tried,
            self.strategy,
            workers=self.workers,
            can_travel=not is_stuck,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain data for JSON."""
        pace = self.seconds_per_pull
        most = self.worst_case_pulls
        return {
            "is_healthy": self.is_healthy,
            "findings": [asdict(finding) for finding in self.findings],
            "arms": list(self.arms),
            "n_pulls": self.n_pulls,
            "seconds": self.seconds,
            "seconds_per_pull": pace,
            "strategy": self.strategy,
            "worst_case_pulls": most,
            "pilot_pulls": self.pilot_pulls,
            "worst_case_seconds": None if pace is None or most is None else pace * most,
            **self.estimate.to_dict(),
            "problem": self.problem.to_dict(),
        }


def examine(
    source: Source,
    problem: Problem,
    *,
    arms: int = 5,
    pulls: int = 30,
    seed: int = 0,
    reproducible: bool = False,
    workers: int | None = None,
) -> Diagnosis:
    """Return a diagnosis from test measurements of a few arms.

    Every tested arm is pulled `pulls` times in a few calls, and arms take turns. The first of these calls is
    repeated, with the same seed and with another one. Test pulls do not count towards a later run.

    Parameters
    ----------
    source
        The source of rewards.
    problem
        The question.
    arms
        The number of arms to test, spread over the list.
    pulls
        The number of pulls per arm.
    seed
        The seed of the test calls.
    reproducible
        Whether the measurement is declared to give the same rewards for the same call.
    workers
        The number of workers to estimate the time for. By default one for each processor, or 16 if calls
        mostly wait, where that pays.

    Examples
    --------
    >>> from shortlist.measure import FunctionSource
    >>> problem = Problem(m=1, epsilon=0.5, delta=0.05, variances=[1.0] * 10)
    >>> diagnosis = examine(FunctionSource(lambda arm, count, rng: [float(arm)] * count), problem)
    >>> diagnosis.is_healthy, diagnosis.findings[1].seen[:38]
    (False, 'All rewards of arm-0, arm-2, arm-4, ar')
    """
    arms, pulls = whole_number(arms, "arms", 1), whole_number(pulls, "pulls", 2, 10**7)
    seed = whole_number(seed, "seed", 0)
    workers = None if workers is None else whole_number(workers, "workers", 1)
    made = tried(source, problem, arms_to_try(problem, arms), pulls, seed)
    rules = strategy_for(resolve("auto", problem), problem)
    most = rules.worst_case_pulls(problem)
    return Diagnosis(
        problem=problem,
        arms=tuple(problem.name(one.arm) for one in made),
        n_pulls=sum(trial.call.count for one in made for trial in one.trials),
        seconds=sum(trial.seconds for one in made for trial in one.trials),
        strategy=rules.name,
        worst_case_pulls=most,
        findings=(
            *findings.failures(made),
            *findings.reproducibility(problem, made, is_declared=reproducible),
            *_rewards(source, problem, made, rules, seed),
            *findings.durations(made),
            *findings.supply(source, most),
            *findings.travel(source),
        ),
        source=source,
        tried=tuple(made),
        pilot_pulls=pilot_size(problem) * problem.n if _has_pilot(problem, rules) else None,
        workers=workers,
    )


def _has_pilot(problem: Problem, rules: Strategy[Any]) -> bool:
    is_unknown = not problem.knows_variances and problem.items is None
    return is_unknown and problem.m < problem.n and not rules.needs_variances


def _rewards(
    source: Source, problem: Problem, made: list[ArmTrials], rules: Strategy[Any], seed: int
) -> list[Finding]:
    """Return findings on rewards: the declarations, and the assumptions of the guarantee.

    Repeated rewards have no distribution to test, and a drift that all arms share correlates them.
    """
    fresh = findings.freshness(problem, made)
    found = [*fresh, *findings.ranges(problem, made), *_noise(source, problem, made, rules)]
    if _has(fresh, "error"):
        return found
    if problem.has_blocks and not problem.is_bounded:
        return found + blocks.differences(problem, source, made)
    drifting = assumptions.drift(problem, source, made)
    found += drifting + assumptions.skewness(problem, source, made, rules.name, rules.guarantee(problem))
    return found if _has(drifting, "error") else found + assumptions.dependence(problem, source, made, seed)


def _has(found: list[Finding], severity: str) -> bool:
    return any(finding.severity == severity for finding in found)


def _noise(source: Source, problem: Problem, made: list[ArmTrials], rules: Strategy[Any]) -> list[Finding]:
    """Return findings on the variances as declared or, if they are unknown, on the first batch."""
    if problem.knows_variances:
        return spread(problem, made)
    if problem.has_blocks or problem.m == problem.n:
        return []
    if _has_pilot(problem, rules):
        return findings.first_batch(problem, source, made, pilot_size(problem), "pilot")
    counts = rules.ask(rules.init(problem, ())).counts
    return findings.first_batch(problem, source, made, int(counts[0]), "first batch")
