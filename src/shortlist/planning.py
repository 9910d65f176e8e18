"""Plans: the certified worst case of every strategy, and the lower bound for every algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cached_property
from importlib import import_module
from typing import Any

from shortlist.bounds import LowerBound, lower_bound
from shortlist.certificates import Guarantee, Ledger, Scope
from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem, NoGuarantee
from shortlist.problem import Problem, checked
from shortlist.rewards import Gaussian
from shortlist.strategies import named, names, strategy_for, strategy_named
from shortlist.strategies.pilot import size as pilot_size
from shortlist.strategies.protocol import Strategy
from shortlist.strategies.t_cut_race import pays as limits_pay

ASSUMED_SCALE = 2.0  # the standard deviation in units of epsilon, of the usual cost for unknown variances


@dataclass(frozen=True, eq=False)
class Row:
    """The guarantee of one strategy for a problem, and its cost.

    Attributes
    ----------
    strategy
        Its name.
    worst_case_pulls
        The maximum number of pulls, whatever the rewards; None if there is no finite bound, or one that is
        too large to compute.
    rounds
        The maximum number of successive batches; None if there is no finite bound.
    guarantee
        Its guarantee, with its theorem and its delta ledger; None if nothing is proved.
    note
        Why it cannot be recommended; empty if it can.
    error
        The error, if the number of pulls is too large to compute.
    worst_case_cost
        The maximum cost, if pulls have costs; otherwise the same as `worst_case_pulls`.
    """

    strategy: str
    worst_case_pulls: int | None
    rounds: int | None
    guarantee: Guarantee | None
    note: str = ""
    error: InvalidProblem | None = None
    worst_case_cost: float | None = None

    @property
    def certificate(self) -> str | None:
        """The theorem behind the guarantee."""
        return None if self.guarantee is None else self.guarantee.source

    @property
    def ledger(self) -> Ledger | None:
        """How delta is divided among the failure events of the proof."""
        return None if self.guarantee is None else self.guarantee.ledger

    @property
    def is_certified(self) -> bool:
        """Whether it guarantees the m best arms within a number of pulls known in advance."""
        return not self.note


@dataclass(frozen=True)
class UsualPulls:
    """The pulls of a strategy in simulated runs: their 10 %, 50 % and 90 % quantiles. No guarantee.

    `rounds` is the largest number of rounds of these runs; None if unknown.
    """

    low: int
    median: int
    high: int
    rounds: int | None = None


@dataclass(frozen=True, eq=False)
class UsualCost:
    """The pulls that strategies usually take: an estimate from a few runs of a simulated question.

    Attributes
    ----------
    instance
        The simulated question, in words.
    replications
        The number of runs of each strategy.
    pulls
        By strategy. If its pulls are the same on every instance, all three numbers are its worst case.
    left_out
        The strategies that take too long to simulate.
    skipped
        Why nothing was simulated; empty if something was.
    rate
        For rewards of 0 or 1, or within bounds: about the mean of its arms; otherwise None.
    scale
        For unknown variances: the standard deviation of its arms; otherwise None.
    correlation
        With blocks: the correlation of its arms within a block; otherwise None.
    assumed
        Which of these three were assumed, because they were not given.
    """

    instance: str
    replications: int
    pulls: Mapping[str, UsualPulls]
    left_out: tuple[str, ...] = ()
    skipped: str = ""
    rate: float | None = None
    scale: float | None = None
    correlation: float | None = None
    assumed: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        """For which means or noise the usual pulls hold, such as "for means near 0.5"; empty if for any."""
        conditions = []
        if self.scale is not None:
            units = f" ({ASSUMED_SCALE:g} epsilon)" if "scale" in self.assumed else ""
            conditions.append(f"the standard deviation is {self.scale:g}{units}")
        if self.correlation is not None:
            share = f"have a correlation of {self.correlation:g}" if self.correlation else "are independent"
            conditions.append(f"arms {share}")
        near = "" if self.rate is None else f"for means near {self.rate:g}"
        return " ".join(filter(None, (near, f"if {' and '.join(conditions)}" if conditions else "")))

    @property
    def choices(self) -> dict[str, UsualPulls]:
        """The strategies worth choosing from: each takes more pulls than those before it, in fewer rounds."""
        known = [(name, found) for name, found in self.pulls.items() if found.rounds is not None]
        front: dict[str, UsualPulls] = {}
        for name, found in sorted(known, key=lambda one: (one[1].median, one[1].rounds)):
            if not front or (found.rounds or 0) < min(one.rounds or 0 for one in front.values()):
                front[name] = found
        return front

    def in_rounds(self, most: int) -> str | None:
        """Return the strategy that usually takes fewest pulls within so many rounds; None if none does."""
        fit = (name for name, found in self.choices.items() if (found.rounds or 0) <= most)
        return next(fit, None)

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates as plain data for JSON."""
        return {
            "is_estimate": True,
            "instance": self.instance,
            "replications": self.replications,
            "left_out": list(self.left_out),
            "skipped": self.skipped or None,
            "pulls": {name: asdict(found) for name, found in self.pulls.items()},
        }


@dataclass(frozen=True, eq=False)
class Plan:
    """The guarantees of all strategies for a problem, the best strategy, and its distance from the optimum.

    Attributes
    ----------
    problem
        The question.
    rows
        One per strategy: the best one, then others that can be recommended, by increasing worst case.
    lower_bound
        The number of pulls below which no algorithm can stay on every instance; None if no bound is proved
        for this kind of rewards.
    """

    problem: Problem
    rows: tuple[Row, ...]
    lower_bound: LowerBound | None

    def __getitem__(self, strategy: str) -> Row:
        for row in self.rows:
            if row.strategy == strategy:
                return row
        raise KeyError(strategy)

    @property
    def best(self) -> Row:
        """The recommended strategy, which is expected to need least of those with a certified worst case.

        This is estimated from the share of the worst case that each strategy usually takes. But its worst
        case never exceeds that of `wnelim` or `vmedelim`, if any strategy can guarantee as little.
        """
        return self.rows[0]

    @property
    def gap(self) -> float | None:
        """The worst case of the best strategy as a multiple of the lower bound; None if there is no bound."""
        return self.gap_of(self.best)

    def gap_of(self, row: Row) -> float | None:
        """Return the worst case of a strategy as a multiple of the lower bound.

        None if there is no lower bound, or if the strategy has no worst case or does not guarantee the m best
        arms, which the bound is about.
        """
        if self.lower_bound is None or not row.is_certified:
            return None
        return self.lower_bound.gap(row.worst_case_cost or 0)

    @cached_property
    def usual(self) -> UsualCost:
        """The pulls that the recommendable strategies usually take; simulated when first used."""
        return self.usual_at()

    def usual_at(
        self, rate: float | None = None, scale: float | None = None, correlation: float | None = None
    ) -> UsualCost:
        """Return the pulls that strategies usually take: an estimate, unlike the worst case.

        A few runs are simulated. In the simulated question, the m best arms lie just over epsilon ahead of
        all others, which are equal. If several arms nearly tie, a run takes more pulls. The simulation takes
        about a second; with more than 1,000 arms (500 if rewards are within bounds) nothing is simulated.

        Parameters
        ----------
        rate
            For rewards of 0 or 1, or within bounds: the mean between the best and the others; by default half
            way between the bounds, where rewards vary most. They are simulated as one of the two bounds.
        scale
            For unknown variances: the standard deviation of all arms; by default twice epsilon.
        correlation
            With blocks: the correlation of any two arms within a block, from 0 to 1; by default 0, as if arms
            were independent. Common random numbers pay the more, the larger it is.
        """
        estimate = import_module("shortlist.usual_cost").usual_cost  # simulation is a layer above plans
        found: UsualCost = estimate(self.problem, self.rows, rate=rate, scale=scale, correlation=correlation)
        return found

    @property
    def why(self) -> str:
        """Why the best strategy is recommended, as a sentence."""
        best, others = self.best, [row for row in self.rows[1:] if row.is_certified]
        pulls = best.worst_case_pulls or 0
        finds_variances = self.problem.is_bounded and best.strategy == "race"
        if self.problem.has_blocks:
            return _before_the_first(best, self.problem)
        if not self.problem.knows_variances and self.problem.m < self.problem.n:
            is_pilot = not strategy_for(best.strategy, self.problem).needs_variances
            return (_before_the_pilot if is_pilot else _before_the_first)(best, self.problem)
        if pulls == 0:
            return f"{best.strategy}: all arms are selected, so no measurement is needed."
        if self.problem.items is not None:
            return (
                f"{best.strategy} adapts to the scores. It needs at most the {pulls:,} scores of the "
                "whole table, and usually far fewer."
            )
        if strategy_named(best.strategy).usual_share < 1:
            said = (
                f"{best.strategy} adapts to the rewards. It needs at most {pulls:,} pulls, and usually "
                "far fewer"
            )
            near = "0 or 1" if self.problem.is_binary else "a bound"
            said += f", above all for means near {near}" if finds_variances else ""
        else:
            said = f"{best.strategy} has the smallest certified worst case: never more than {pulls:,} pulls"
        if others and (second := others[0].worst_case_pulls):
            is_exact = others[0].rounds == 1
            said += f". {others[0].strategy} would take {'' if is_exact else 'at most '}{second:,} pulls"
            if second < pulls and not is_exact:  # by the estimates that `best` is chosen by
                more = f"usually takes more than {best.strategy}"
                said += f", but {'assumes the largest variance' if finds_variances else more}"
        if not self.lower_bound:
            return f"{said}."
        factor = gap_words(self.lower_bound.gap(best.worst_case_cost or 0))
        return (
            f"{said}. {self.lower_bound.meaning.capitalize()}. So at most a factor of {factor} could be "
            "saved in the worst case."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data for JSON."""
        return {
            "problem": self.problem.to_dict(),
            "best": self.best.strategy,
            "gap": _finite(self.gap),
            "why": self.why,
            "lower_bound": None if self.lower_bound is None else _bound_dict(self.lower_bound),
            "strategies": [
                {
                    "strategy": row.strategy,
                    "worst_case_pulls": row.worst_case_pulls,
                    "worst_case_cost": row.worst_case_cost,
                    "rounds": row.rounds,
                    "gap": _finite(self.gap_of(row)),
                    "is_certified": row.is_certified,
                    "note": row.note,
                    "guarantee": None if row.guarantee is None else row.guarantee.to_dict(),
                }
                for row in self.rows
            ],
        }

    def _repr_html_(self) -> str:
        """Return the plan as HTML for notebooks; imported late, since reports are a layer above plans."""
        html: str = import_module("shortlist.report.fragment").plan_html(self)
        return html

    def __repr__(self) -> str:
        best, bound = self.best, self.lower_bound
        found = f"best={best.strategy!r}, worst_case_pulls={best.worst_case_pulls}, rounds={best.rounds}"
        return f"Plan({found}, lower_bound={None if bound is None else round(bound.pulls)})"

    def __str__(self) -> str:
        """Return the question, the answer with its usual cost, where that comes from, and why.

        The usual cost is that of `usual`. For other means, see `usual_at`.
        """
        text, usual = import_module("shortlist.report.result_text"), self.usual
        lines = (self.problem.words, text.plan_answer(self, usual), text.usual_words(usual), self.why)
        return "\n".join(filter(None, lines))


def plan(problem: Problem, budget: int | None = None, *, vary: str = "epsilon") -> Plan:
    """Return the guarantees and worst cases of all strategies for a problem, and the lower bound.

    `print` shows the recommended strategy and the pulls that it usually takes. For rewards of 0 or 1 this is
    for means near 0.5, where rewards vary most. Means near 0.04 take far fewer:
    ``plan(problem).usual_at(rate=0.04)`` estimates how many.

    With a budget, the plan answers the reverse question: it is the plan of the sharpest problem that this
    many pulls certify whatever the rewards are. Its `problem` contains the number found, and its best
    strategy stays within the budget.

    Parameters
    ----------
    problem
        The problem. If variances are unknown, neither the largest number of pulls nor a lower bound is known
        before the pilot, and a budget cannot be planned.
    budget
        The maximum number of pulls, or their maximum cost if pulls have costs; None to plan the problem as it
        is.
    vary
        What to find for a budget: the smallest "epsilon" or "delta", to six digits, or the largest "m" below
        n (n - 1 if the cost of some strategy does not depend on m; with more than 512 arms, it is searched
        for between powers of two).

    Raises
    ------
    NoGuarantee
        If no value satisfies the budget.

    Examples
    --------
    >>> problem = Problem(m=3, epsilon=0.1, delta=0.05, variances=[0.25] * 10)
    >>> pl = plan(problem)
    >>> pl.best.strategy, pl.best.worst_case_pulls, pl.best.rounds
    ('race', 10500, 534)
    >>> round(pl.lower_bound), round(pl.gap, 1)
    (1029, 10.2)
    >>> pl = plan(problem, budget=1000)
    >>> pl.problem.epsilon, pl.best.worst_case_pulls
    (0.269817, 1000)
    """
    if checked(problem).items is not None:
        return _for_items(problem, budget)
    if budget is not None:
        return _for_budget(problem, budget, vary)
    if not problem.knows_variances:
        return Plan(problem, _rows_for_unknown(problem), lower_bound(problem))
    return Plan(problem, _rows(problem), lower_bound(problem))


def _for_items(problem: Problem, budget: int | None) -> Plan:
    """Return the plan for shared items: at most the whole table is measured."""
    if problem.has_blocks:
        return _for_blocks(problem, budget)
    rows = (row_of(resolve("auto", problem), problem),)
    if budget is not None and whole_number(budget, "budget", 0) < (rows[0].worst_case_cost or 0):
        whole = f"{problem.n_cells:,} scores" if problem.costs is None else f"{rows[0].worst_case_cost:,.10g}"
        raise NoGuarantee(
            f"with shared items, the result of a budget below {whole} (the whole table) cannot be predicted: "
            f"it depends on the scores. {_with_budget(budget)}"
        )
    return Plan(problem, rows, lower_bound(problem))


def _for_blocks(problem: Problem, budget: int | None) -> Plan:
    """Return the plan for blocks, whose number is known only when their differences are."""
    if budget is not None:
        raise NoGuarantee(
            "in blocks, the result of a budget cannot be predicted: it depends on how much the differences "
            f"between arms vary. {_with_budget(budget)}"
        )
    return Plan(problem, (row_of(resolve("auto", problem), problem),), lower_bound(problem))


def _with_budget(budget: int) -> str:
    """Return what to do where the result of a budget cannot be planned."""
    return (
        f"Measure with this budget: call `select` with budget={budget}, or `shortlist run` with --budget "
        f"{budget}. The result says what it certifies."
    )


def plan_within(problem: Problem, budget: int) -> Plan:
    """Return the plan whose best strategy stays within a budget, which some strategy can satisfy."""
    return Plan(problem, _rows(problem, budget), lower_bound(problem))


def best_strategy(problem: Problem) -> str:
    """Return the name of the recommended strategy: the best one of the plan.

    Only strategies are considered that guarantee the m best arms, and never need more than a number of pulls
    known in advance.
    """
    return _rows(problem)[0].strategy


def is_within(problem: Problem, budget: int) -> bool:
    """Return whether some strategy is certified never to need more pulls than a budget."""
    return any(_is_certified_within(name, problem, budget) for name in names())


def _is_certified_within(name: str, problem: Problem, budget: int) -> bool:
    row = row_of(name, problem)
    return row.is_certified and (row.worst_case_cost or 0) <= budget


def resolve(strategy: str | Strategy[Any], problem: Problem, budget: int | None = None) -> str:
    """Return the name of a strategy; for "auto" the best one, within a budget if one can satisfy it."""
    name = named(strategy)
    if checked(problem).items is not None:
        return _resolve_items(name, problem)
    if not problem.knows_variances:
        return _resolve_unknown(name, problem)
    if name == "auto":
        return _rows(problem, budget)[0].strategy
    if reason := strategy_for(name, problem).unfit(problem):
        raise InvalidProblem(f"strategy {name} cannot take this problem: {reason}.")
    return name


def _resolve_items(name: str, problem: Problem) -> str:
    if name == "auto":
        return "shared-items" if problem.is_bounded else "paired-race"
    if reason := strategy_for(name, problem).unfit(problem):
        raise InvalidProblem(f"strategy {name} cannot take this problem: {reason}.")
    return name


def _resolve_unknown(name: str, problem: Problem) -> str:
    if name == "auto":
        is_enough = problem.guarantee == "indifference" and not strategy_for("kim-nelson", problem).unfit(
            problem
        )
        if is_enough:
            return "kim-nelson"
        if problem.pilot is not None:
            return "t-race"
        return "t-cut-race" if problem.m < problem.n and limits_pay(problem) else "paired-race"
    if reason := strategy_for(name, problem).unfit(problem):
        raise InvalidProblem(f"strategy {name} cannot take this problem: {reason}.")
    return name


def _rows_for_unknown(problem: Problem) -> tuple[Row, ...]:
    rows = [_row_for_unknown(name, problem) for name in names("unknown")]
    best = resolve("auto", problem)
    return tuple(sorted(rows, key=lambda row: (row.strategy != best, bool(row.note))))


def _row_for_unknown(name: str, problem: Problem) -> Row:
    strategy = strategy_for(name, problem)
    if reason := strategy.unfit(problem):
        return Row(name, None, None, None, reason)
    pulls, rounds = strategy.worst_case_pulls(problem), strategy.n_rounds(problem)
    promise = strategy.guarantee(problem)
    is_answer = promise is not None and promise.answers(problem)
    return Row(name, pulls, rounds, promise, "" if is_answer else "only with an indifference zone")


def _before_the_first(best: Row, problem: Problem) -> str:
    """Return what is known before the first batch of a strategy without a pilot."""
    if problem.m == problem.n:
        return f"{best.strategy}: all arms are selected, so no measurement is needed."
    rules = strategy_for(best.strategy, problem)
    counts = rules.ask(rules.init(problem, ())).counts
    unit = "blocks of all" if problem.has_blocks else "pulls of each of"
    depends = "the differences of arms vary between blocks" if problem.has_blocks else "rewards vary"
    return (
        f"{best.strategy}: starts with {counts[0]} {unit} {problem.n:,} arms, {counts.sum():,} pulls in "
        f"total. How many more pulls are needed depends on how much {depends}. You can see at any moment "
        "what is certified."
    )


def _before_the_pilot(best: Row, problem: Problem) -> str:
    count = pilot_size(problem)
    return (
        f"{best.strategy}: starts with a pilot of {count} pulls of each of {problem.n:,} arms, "
        f"{count * problem.n:,} in total. The maximum number of further pulls is known after the pilot, "
        f"since it depends on the variances."
    )


def _rows(problem: Problem, budget: int | None = None) -> tuple[Row, ...]:
    rows = [row_of(name, problem) for name in names()]
    rows.sort(key=lambda row: (not row.is_certified, row.worst_case_cost is None, row.worst_case_cost))
    most = math.inf if budget is None else budget
    best = _best(rows, most)
    if problem.is_bounded:  # the race adapts to the rewards, the others assume the largest variance
        adaptive = next(row for row in rows if row.strategy == "race")
        is_within, is_other_within = ((row.worst_case_cost or 0) <= most for row in (adaptive, best))
        best = adaptive if adaptive.is_certified and (is_within or not is_other_within) else best
    return (best, *(row for row in rows if row is not best))


def row_of(name: str, problem: Problem) -> Row:
    """Return the guarantee and cost of one strategy for a problem."""
    if problem.has_blocks or not problem.knows_variances:
        return _row_for_unknown(name, problem)
    strategy = strategy_for(name, problem)
    if reason := strategy.unfit(problem):
        return Row(name, None, None, None, reason)
    guarantee = strategy.guarantee(problem)
    pulls, rounds, note, error = None, None, "", None
    try:
        pulls, rounds = strategy.worst_case_pulls(problem), strategy.n_rounds(problem)
        if pulls is None:
            note = "no maximum number of pulls"
    except InvalidProblem as caught:  # its number of pulls is too large to compute; that of others may not be
        note, error = "number of pulls too large to compute", caught
    if guarantee is None:
        gaussian = problem.changed(rewards=Gaussian, bounds=None)
        is_gaussian = strategy.guarantee(gaussian) is not None
        note = "only for Gaussian rewards" if is_gaussian else "has no guarantee"
    elif guarantee.scope is Scope.SCREENING:
        note = f"only screens: keeps {strategy.n_selected(problem)} arms"
    elif not guarantee.answers(problem):
        note = "only with an indifference zone"
    cost = None if pulls is None else _largest_cost(strategy, problem, pulls, rounds)
    return Row(name, pulls, rounds, guarantee, note, error, cost)


def _largest_cost(strategy: Strategy[Any], problem: Problem, pulls: int, rounds: int | None) -> float:
    """Return the largest cost of a strategy that never takes more than this many pulls."""
    if problem.costs is None:
        return pulls
    most = pulls * problem.highest_cost
    if strategy.worst_case_cost is not None and (known := strategy.worst_case_cost(problem)) is not None:
        return min(most, known)
    if rounds == 1:  # its only batch is known
        batch = strategy.ask(strategy.init(problem, ()))
        return float(problem.costs[batch.arms] @ batch.counts)
    return most


_WORTHWHILE = 0.75  # a single batch for Gaussian rewards must take less than this part of what a race takes


def _best(rows: list[Row], budget: float) -> Row:
    certified = [row for row in rows if row.is_certified]
    if not certified:  # a problem that no strategy can answer is refused here
        errors = [row.error for row in rows if row.error is not None and row.guarantee is not None]
        missing = InvalidProblem("no strategy has a certified worst case for this problem.")
        raise errors[0] if errors else missing
    paper = [row.worst_case_cost or 0 for row in certified if row.strategy in {"wnelim", "vmedelim"}]
    within = [row for row in certified if (row.worst_case_cost or 0) <= min([budget, *paper])]
    return min(within or certified, key=_usual_pulls)


def _usual_pulls(row: Row) -> float:
    usual = strategy_named(row.strategy).usual_share * (row.worst_case_cost or 0)
    # Shares are those of hard instances. On easy ones a race takes far less, and one batch does not.
    return usual / _WORTHWHILE if row.strategy == "gaussian-single-stage" else usual


def gap_words(gap: float) -> str:
    """Return a multiple as text."""
    return f"{gap:.3g}" if gap < 1000 else f"{gap:,.0f}"


def _bound_dict(bound: LowerBound) -> dict[str, Any]:
    return {
        "pulls": bound.pulls,
        "name": bound.name,
        "candidates": dict(bound.candidates),
        "terms": vars(bound.terms),
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value


# --- the question in reverse: what a number of pulls can certify ---------------------------------------


_DIGITS = 6
_EPSILONS = (1e-100, 1e100)
_LEAST_DELTA = 1e-50
_FEW = 512  # up to this many arms every m is tried


def _for_budget(problem: Problem, budget: int, vary: str) -> Plan:
    """Return the plan for the sharpest problem that a budget of pulls can certify."""
    if not checked(problem).knows_variances:
        raise InvalidProblem(
            "what a budget can certify depends on the variances, and they are unknown. State upper bounds on "
            "them, if you have any; or pass `budget` to `select`; the result says whether it was enough."
        )
    budget = whole_number(budget, "budget", 0)
    searches: dict[str, Callable[[Problem, int], Problem]] = {
        "epsilon": _least_epsilon,
        "delta": _least_delta,
        "m": _largest_m,
    }
    if vary not in searches:
        raise InvalidProblem(f"`vary` is {vary!r}; it must be one of: {', '.join(searches)}.")
    if problem.m == problem.n and vary != "m":
        raise InvalidProblem(
            "all arms are to be selected: that takes no pulls, whatever epsilon and delta are."
        )
    return plan_within(searches[vary](problem, budget), budget)


def _least_epsilon(problem: Problem, budget: int) -> Problem:
    def asked(epsilon: float) -> Problem:
        return problem.changed(epsilon=epsilon)

    is_enough = _Enough(asked, budget)
    if not is_enough(_EPSILONS[1]):
        raise NoGuarantee(
            f"a budget of {budget:,} pulls certifies nothing, however large epsilon is: every strategy pulls "
            f"each of the {problem.n:,} arms at least once. Allow more pulls, or leave arms out."
        )
    return asked(_least(is_enough, *_EPSILONS))


def _least_delta(problem: Problem, budget: int) -> Problem:
    def asked(delta: float) -> Problem:
        return problem.changed(delta=delta)

    most = max(0.5, problem.delta)
    is_enough = _Enough(asked, budget)
    if not is_enough(most):
        raise NoGuarantee(
            f"a budget of {budget:,} pulls cannot certify epsilon = {problem.epsilon:g} for any delta up to "
            f"{most:g}. Allow more pulls or a larger epsilon."
        )
    return asked(_least(is_enough, _LEAST_DELTA, most))


def _largest_m(problem: Problem, budget: int) -> Problem:
    def asked(m: float) -> Problem:
        return problem.changed(m=int(m))

    last = problem.n - 1  # selecting all arms takes no pulls
    for m in _falling(last):
        if _is_enough(asked, m, budget):
            # Find the largest certified m between this one and the next larger one tried.
            above = min((tried for tried in _falling(last) if tried > m), default=m)
            while above - m > 1:
                middle = (m + above) // 2
                m, above = (middle, above) if _is_enough(asked, middle, budget) else (m, middle)
            return asked(m)
    raise NoGuarantee(
        f"a budget of {budget:,} pulls cannot certify epsilon = {problem.epsilon:g} and delta = "
        f"{problem.delta:g} for any m. Allow more pulls or a larger epsilon."
    )


def _falling(last: int) -> list[int]:
    """Return the values of m to try, the largest first: all if they are few, else increasingly sparse."""
    if last < _FEW:
        return list(range(last, 0, -1))
    return sorted({last, *(2**power for power in range(last.bit_length()))}, reverse=True)


class _Enough:
    """Whether a budget is enough for a value of epsilon or delta, for searching the smallest one.

    A strategy that needs more than the budget for some value needs more for all smaller ones. So once a value
    is enough, only the strategies for which it is are tried again.
    """

    def __init__(self, asked: Callable[[float], Problem], budget: int) -> None:
        self._asked, self._budget, self._candidates = asked, budget, list(names())

    def __call__(self, value: float) -> bool:
        enough = [name for name in self._candidates if self._is_enough(name, value)]
        self._candidates = enough or self._candidates
        return bool(enough)

    def _is_enough(self, name: str, value: float) -> bool:
        try:
            return _is_certified_within(name, self._asked(value), self._budget)
        except InvalidProblem:  # too many pulls to count
            return False


def _is_enough(asked: Callable[[float], Problem], value: float, budget: int) -> bool:
    try:
        return is_within(asked(value), budget)
    except InvalidProblem:  # too many pulls to count
        return False


def _least(is_enough: Callable[[float], bool], low: float, high: float) -> float:
    """Return the smallest six-digit number that is enough, assuming that all larger ones are too."""
    if is_enough(low):
        return low
    while high / low > 10:
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    decade = math.ceil(math.log10(low))
    if low < (border := float(f"1e{decade}")) < high:  # so that all numbers in between have as many digits
        low, high = (low, border) if is_enough(border) else (border, high)
    unit = Decimal(10) ** (math.floor(math.log10(low)) - _DIGITS + 1)
    short, enough = int(Decimal(low) / unit), math.ceil(Decimal(high) / unit)
    while enough - short > 1:
        middle_units = (short + enough) // 2
        is_middle = is_enough(float(middle_units * unit))
        short, enough = (short, middle_units) if is_middle else (middle_units, enough)
    return float(enough * unit)
