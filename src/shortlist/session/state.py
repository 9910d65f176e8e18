"""The state of a run, computed from the events of its log: rounds, answers, leases, and the strategy's state.

Events are applied one by one, wherever they come from; so a live run and a replayed run are the same.
"""

import itertools
import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from itertools import compress
from operator import not_
from typing import Any

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, has_repeats, is_increasing
from shortlist.certificates import Certificate
from shortlist.certificates.assumptions import FED, FED_IN_BLOCKS
from shortlist.drift import Drift, drift_note
from shortlist.errors import CorruptLog, NotAsked
from shortlist.problem import Problem
from shortlist.result import Arms, Result, Stop, best_first
from shortlist.session.answers import Answers
from shortlist.session.call_plan import CallPlan, PartialAnswers
from shortlist.session.lease_table import LeaseTable
from shortlist.store.events import (
    Answered,
    Arranged,
    Asked,
    Began,
    Bounded,
    Conflict,
    Ended,
    Event,
    Fed,
    Leased,
    Limited,
    Narrowed,
    Released,
    Scored,
    Stopped,
    Suspended,
    Told,
    Withdrawn,
)
from shortlist.strategies import strategy_for
from shortlist.strategies.protocol import Added, Batch, Moments
from shortlist.tickets import Tickets
from shortlist.totals import Totals

REPRODUCIBLE = "reproducible"
"""The settings key that declares that measuring a ticket again gives the same rewards."""
STOPPED = "stopped: "
"""How the reason of a `Suspended` event begins if the driver reached a limit, and nothing failed."""
ORDERED = f"{STOPPED}somebody asked it to stop"
"""The reason if all drivers were asked to stop."""


class Round:
    """The tickets of a round, and the answers so far.

    Attributes
    ----------
    tickets
        All its tickets.
    means, spreads
        By ticket: the mean and, where it is recorded, the sample variance; NaN without an answer, and for
        variances that are not known.
    scores
        With shared items: the score of each item, by the position of the ticket.
    n_missing
        The number of tickets without an answer.
    leases
        The leases of the tickets.
    parts
        The answers to single calls of tickets; None if there are none.
    is_logged
        Whether the log already contains the tickets of this round.
    is_replaced
        Whether another round took its place, since results were fed before anybody had one of its tickets.
    reissue
        Whether a ticket may go to another worker when its lease expires.
    """

    def __init__(self, tickets: Tickets, *, reissue: bool = True) -> None:
        self.tickets, self.reissue = tickets, reissue
        self.means = np.full(len(tickets), np.nan)
        self.spreads = np.full(len(tickets), np.nan) if tickets.takes_variances else None
        self.scores: dict[int, FloatArray] = {}
        self.n_missing = len(tickets)
        self.leases = LeaseTable(len(tickets))
        self.parts: PartialAnswers | None = None
        self.is_logged = self.is_replaced = False
        self._order = None if is_increasing(tickets.arms) else np.argsort(tickets.arms)

    def copy(self) -> "Round":
        """Return an independent copy."""
        other = copy(self)
        other.means, other.leases = self.means.copy(), self.leases.copy()
        other.spreads = None if self.spreads is None else self.spreads.copy()
        other.parts = None if self.parts is None else self.parts.copy()
        other.scores = self.scores.copy()
        return other

    @property
    def number(self) -> int:
        """The number of the round, from 0."""
        return self.tickets.round

    @property
    def is_told(self) -> BoolArray:
        """Which tickets have an answer."""
        told: BoolArray = ~np.isnan(self.means)
        return told

    @property
    def is_given_out(self) -> bool:
        """Whether somebody may have measured a part of it: not if all tickets were returned unmeasured."""
        is_known = self.is_told.any() or (self.parts is not None and self.parts.n_pulls.any())
        return self.is_logged and bool(is_known or not self.leases.are_all_returned)

    def asked(self) -> Asked:
        """Return the tickets of the round as an event."""
        tickets = self.tickets
        return Asked(self.number, tickets.arms, tickets.counts, tickets.needs_variances)

    def opening(self) -> list[Event]:
        """Return the event with the tickets of the round, unless the log contains it."""
        return [] if self.is_logged else [self.asked()]

    def places(self, arms: IntArray, *, is_repeating: bool = False) -> IntArray:
        """Return the positions of these arms among the tickets; by default each arm may occur once."""
        asked = self.tickets.arms
        if arms is asked or (len(arms) == len(asked) and np.array_equal(arms, asked)):
            return np.arange(len(asked))
        nearest = np.searchsorted(asked, arms, sorter=self._order)
        is_asked = nearest < len(asked)
        places = nearest[is_asked] if self._order is None else self._order[nearest[is_asked]]
        if not is_asked.all() or (asked[places] != arms).any():
            raise NotAsked(
                f"round {self.number} did not ask for all these arms; tell only tickets that `ask` returned."
            )
        if not is_repeating and has_repeats(places):
            raise NotAsked("an arm appears twice in one call; tell each ticket once.")
        return places

    def answers(self, told: Told) -> Answers:
        """Return recorded answers of this round as answers to its tickets."""
        if not self.takes(told):
            what = "needs" if told.variances is None else "has no"
            raise NotAsked(f"round {self.number} {what} sample variances.")
        tickets = self.tickets.take(self.places(told.arms))
        variances = np.full(len(tickets), np.nan) if told.variances is None else told.variances
        scores = None if told.scores is None else split(told.scores, tickets.counts)
        answers = Answers(tickets.problem, tickets, told.means, variances, None, told.worker, (), told.again)
        return replace(answers, scores=scores)

    def takes(self, told: Told) -> bool:
        """Return whether answers have sample variances if they must, and none if they may not."""
        return not self.tickets.needs_variances if told.variances is None else self.spreads is not None

    def has_scores(self, place: int, scores: FloatArray) -> bool:
        """Return whether these are the scores of a ticket that was answered."""
        return np.array_equal(self.scores.get(int(place), ()), scores)

    def add_to(self, sums: FloatArray, places: IntArray) -> None:
        """Add the rewards of answered tickets to the sums of all arms.

        Single scores are added one after the other. So sums do not depend on how scores are divided into
        rounds, which a budget may change.
        """
        arms = self.tickets.arms[places]
        if not self.scores:
            sums[arms] += self.tickets.counts[places] * self.means[places]
            return
        for place, arm in zip(places.tolist(), arms.tolist(), strict=True):
            sums[arm] = np.add.accumulate(np.append(sums[arm], self.scores[place]))[-1]

    def withdraw(self, places: IntArray) -> None:
        """Forget answers to tickets."""
        self.means[places] = np.nan
        if self.spreads is not None:
            self.spreads[places] = np.nan
        if self.parts is not None:
            self.parts.forget(places)
        for place in places.tolist():
            self.scores.pop(place, None)
        self.n_missing += len(places)

    def count(self, places: IntArray, told: Told) -> None:
        """Record answers to tickets that had none."""
        self.means[places] = told.means
        if self.spreads is not None and told.variances is not None:
            self.spreads[places] = told.variances
        if told.scores is not None:
            self.scores |= zip(places.tolist(), split(told.scores, self.tickets.counts[places]), strict=True)
        self.n_missing -= len(places)


@dataclass(frozen=True)
class FedRow:
    """Results of one arm that were not asked for."""

    count: int
    mean: float
    block: str
    variance: float | None = None

    def squares(self, problem: Problem) -> float:
        """Return the sum of the squared shares of the rewards, as far as it is known."""
        if not self.count or not problem.is_graded:
            return 0.0
        merits, spreads = problem.merits(np.array([self.mean])), np.array([self.variance], dtype=np.float64)
        return self.count * float(problem.mean_squares(np.array([self.count]), merits, spreads)[0])


@dataclass(frozen=True)
class Correction:
    """A row of fed results that was replaced by another one with the same label."""

    arm: int
    label: str
    before: FedRow
    after: FedRow
    why: str = ""


@dataclass(frozen=True)
class Repeat:
    """A second answer to a ticket that is in the log although the first one counts.

    Version 0.1.0 could write answers twice after a failed write. If the two differ, they are also a conflict.
    """

    round: int
    arm: int
    worker: str
    is_same: bool


class RunState:
    """The state of a run, computed from its log.

    Attributes
    ----------
    began
        The question, the strategy and the seed.
    entropy
        What all random numbers of the run derive from.
    rules
        The strategy.
    rounds
        All rounds; the last one is current.
    settings
        The measurement settings; None if no driver has started.
    conflicts, scored
        Refused second answers, and scored failures, of answered tickets. If the first answer was withdrawn,
        the second is no longer one.
    repeats
        Second answers that are in the log although the first ones count; they are ignored.
    n_partial
        The number of pulls that were answered in parts of open tickets.
    suspended, waiting
        Why a driver stopped last, and why one waits before a retry, if no answer arrived since; otherwise
        None. If a driver reached a limit, a ticket that is leased later ends that, too.
    stopped
        Who last asked all drivers to stop, and why; None if there was nobody, or if the run went on.
    fed, corrections
        Fed results with a label, by label and arm; and those that were replaced.
    n_fed
        The number of fed rewards, including those that count with the current round.
    withdrawn
        Answers that were taken back before their round was decided.
    ahead
        Scores on shared items that nobody has asked for yet, by arm and position of the first.
    is_narrowed_late
        Whether epsilon was lowered after scores may have been seen on items that other arms had yet to take.
    n_stops
        How often all drivers were asked to stop.
    n_again
        The number of answered tickets that were issued to a second worker, or measured or tried more than
        once.
    """

    def __init__(self, began: Began) -> None:
        self.began = began
        self.problem = began.problem
        if began.entropy is None and self.problem.items is not None:
            raise CorruptLog(
                f"version {began.version} of Shortlist began this run, and measured in an order that did not "
                f"depend on the question; start a new run, under another name."
            )
        self.entropy = began.seed if began.entropy is None else began.entropy
        self.rules = strategy_for(began.strategy, self.problem, began.version)
        self.state: Any = self.rules.init(self.problem.in_order(self.entropy), ())
        self.worst_case_pulls = self.rules.worst_case_pulls(self.problem)
        self.settings: dict[str, Any] | None = None
        self.conflicts: list[Conflict] = []
        self.scored: list[Scored] = []
        self._scored: list[Scored] = []  # of open tickets
        self.repeats: list[Repeat] = []
        self.suspended: Suspended | None = None
        self.waiting: Suspended | None = None
        self.stopped: Stopped | None = None
        self._stopped_in = 0  # round
        self.is_ended = False
        self._n_told = self.n_partial = 0
        self.n_again = self.n_stops = self.n_fed = 0
        self.fed: dict[tuple[str, int], FedRow] = {}
        self.corrections: list[Correction] = []
        self.withdrawn: list[Withdrawn] = []
        self.ahead: dict[tuple[int, int], FloatArray] = {}
        self.is_narrowed_late = False
        self._again_ahead: frozenset[tuple[int, int]] = frozenset()  # those that were tried more than once
        self._late: list[Added] = []  # fed, and counted with this round
        self._fed_pulls = np.zeros(self.problem.n, dtype=np.int64)
        self._fed_sums = np.zeros(self.problem.n)
        self._pulls = np.zeros(self.problem.n, dtype=np.int64)
        self._sums = np.zeros(self.problem.n)
        self.rounds: list[Round] = []
        self._certified: tuple[Any, Certificate] | None = None  # for this state of the strategy
        self._open_round()

    def copy(self) -> "RunState":
        """Return a copy that can process events without changing this one.

        The two share complete rounds, which do not change any more.
        """
        other = copy(self)
        other.rounds = [*self.rounds[:-1], self.round.copy()]
        other.conflicts, other.scored, other.repeats = [*self.conflicts], [*self.scored], [*self.repeats]
        other._scored, other._late, other.withdrawn = [*self._scored], [*self._late], [*self.withdrawn]
        other.fed, other.corrections = self.fed.copy(), [*self.corrections]
        other.ahead = self.ahead.copy()
        other._fed_pulls, other._fed_sums = self._fed_pulls.copy(), self._fed_sums.copy()
        other._pulls, other._sums = self._pulls.copy(), self._sums.copy()
        return other

    @property
    def is_by_block(self) -> bool:
        """Whether arms are compared within blocks only."""
        return self.rules.anytime is not None and self.rules.anytime.by_block

    @property
    def is_late(self) -> bool:
        """Whether fed results wait for the current round to be complete."""
        return bool(self._late)

    @property
    def n_rounds(self) -> int:
        """The number of complete rounds."""
        return sum(not round.is_replaced for round in self.rounds[:-1])

    @property
    def n_made(self) -> int:
        """The number of pulls answered, including those of incomplete tickets."""
        return self._n_told + self.n_partial + self.n_ahead

    @property
    def n_pulls(self) -> int:
        """The number of pulls of answered tickets; on shared items, of all scores, since each is kept."""
        return self._n_told if self.problem.items is None else self.n_made

    @property
    def n_blocks(self) -> int:
        """The number of blocks in which some arm was measured."""
        return int(self._pulls_made.max())

    @property
    def n_blocks_left(self) -> int | None:
        """About how many more blocks are needed, by the differences seen so far; None if that is unknown."""
        is_known = self.problem.has_blocks and not self.is_final and self.n_rounds > 0
        if not is_known or self.rules.likely_ends is None:
            return None
        left = float(self.rules.likely_ends(self.state).max() - self.n_blocks)
        return math.ceil(max(1.0, left))

    @property
    def likely_pulls(self) -> float | None:
        """How many pulls there will probably be in the end, by the rewards so far; None if unknown."""
        is_known = self.rules.likely_ends is not None and not self.is_final and self.n_rounds > 0
        if not is_known or self.rules.likely_ends is None:
            return None
        ends = np.maximum(self.rules.likely_ends(self.state), self._pulls)
        if self.problem.has_pool:
            ends = np.minimum(ends, self.problem.cells)
        return float(ends.sum())

    @property
    def n_ahead(self) -> int:
        """The number of scores that were measured before they were asked for, and are not used so far."""
        return sum(map(len, self.ahead.values()))

    @property
    def cost_made(self) -> float:
        """The cost of the pulls answered, including those of incomplete tickets, without fed results."""
        if self.problem.costs is None:
            return float(self.n_made)
        return self.problem.cost_of(self._pulls_made)

    @property
    def _pulls_made(self) -> IntArray:
        """For each arm, its pulls answered, including those of incomplete tickets, without fed results."""
        round, pulls = self.round, self._pulls.copy()
        pulls[round.tickets.arms] += np.where(round.is_told, round.tickets.counts, 0)
        return pulls + self._waiting_pulls

    @property
    def _waiting_pulls(self) -> IntArray:
        """For each arm, its pulls in parts of open tickets, and those that were not asked for yet."""
        round, pulls = self.round, np.zeros(self.problem.n, dtype=np.int64)
        if round.parts is not None:
            pulls[round.tickets.arms] += np.where(round.is_told, 0, round.parts.n_pulls)
        for (arm, _), scores in self.ahead.items():
            pulls[arm] += len(scores)
        return pulls

    @property
    def round(self) -> Round:
        """The current round; it has no tickets once the strategy has ended."""
        return self.rounds[-1]

    @property
    def is_final(self) -> bool:
        """Whether the strategy has ended by its own rule."""
        return bool(self.rules.verdict(self.state).is_final)

    def ending(self) -> list[Event]:
        """Return the end event, if the strategy has ended and the log does not contain it yet."""
        return [Ended(self.selected)] if self.is_final and not self.is_ended else []

    def find(self, number: int) -> Round:
        """Return a round by its number."""
        if not 0 <= number < len(self.rounds):
            raise NotAsked(f"round {number} has not started; the session is in round {len(self.rounds) - 1}.")
        return self.rounds[number]

    def parts_of(self, round: Round) -> PartialAnswers:
        """Return the answers to single calls of a round, split according to the settings."""
        if round.parts is None:
            round.parts = PartialAnswers(CallPlan.arranged(round.tickets, self.entropy, self.settings or {}))
        return round.parts

    @property
    def answered(self) -> Tickets:
        """The answered parts of open tickets of this round."""
        parts, round = self.parts_of(self.round), self.round
        if not parts.n_pulls.any():
            return parts.call_plan.parts(np.empty(0, dtype=np.int64))
        is_known = parts.is_answered(np.arange(parts.call_plan.n_calls)) & parts.call_plan.by_call(
            ~round.is_told
        )
        return parts.call_plan.parts(np.flatnonzero(is_known))

    @property
    def answered_means(self) -> FloatArray:
        """The means of these parts, in the same order."""
        parts = self.parts_of(self.round)
        found: FloatArray = parts.means[parts.call_plan.find(self.answered)]
        return found

    def take(self, events: Iterable[Event]) -> None:
        """Apply events in order. Answers and leases of a round are collected and applied together."""
        told: list[Told] = []
        leases: list[Leased] = []
        n_missing = self.round.n_missing
        for event in events:
            if isinstance(event, Told) and event.round == self.round.number:
                told.append(event)
                n_missing -= len(event.arms)
                if n_missing > 0:
                    continue
            elif isinstance(event, Leased) and event.round == self.round.number:
                leases.append(event)
                continue
            elif isinstance(event, Answered):
                self._keep(event)
                continue
            is_told = bool(told) and told[-1] is event
            self._count(told, leases)
            told, leases = [], []
            if not is_told:
                self._take(event)
            n_missing = self.round.n_missing
        self._count(told, leases)

    def _take(self, event: Event) -> None:
        match event:
            case Asked():
                self._compare(event)
            case Released() if event.round == self.round.number:
                self.round.leases.release(self.round.places(event.arms), event.worker, event.by)
                if self._late and not self.round.is_given_out:
                    self._change_state(self._with_late(self.state))
            case Conflict():
                self.conflicts.append(event)
            case Scored():
                self._scored.append(event)
            case Told() if event.round < self.round.number:
                self._count_first(event)
            case Bounded():
                self._declare(event)
            case Arranged():
                self._arrange(event.settings)
            case Suspended() if event.until is not None:
                self.waiting = event
            case Suspended():
                self.suspended, self.waiting = event, None
            case Stopped():
                self.n_stops += 1
                self.stopped, self._stopped_in = event, self.round.number
            case Narrowed():
                self._narrow(event.epsilon)
            case Limited():
                self._limit(event.left)
            case Fed():
                self._feed(event)
            case Withdrawn():
                self._withdraw(event)
            case Ended():
                self._compare_end(event)
            case Leased() | Released():
                pass  # of a finished round
            case _:
                raise CorruptLog(f"the log contains a {type(event).__name__} event at an invalid position.")

    def _narrow(self, epsilon: float) -> None:
        """Go on with a smaller epsilon: the question is the same otherwise."""
        if self.rules.anytime is None or not 0 <= epsilon < self.problem.epsilon:
            raise CorruptLog(f"the log contains a change of epsilon to {epsilon} that is not possible.")
        self._certified = None
        if self.problem.has_pool and self.problem.target == "pool":
            is_ahead = self.ahead or (self.reached >= self.problem.n_items).any()  # beyond the prefixes
            self.is_narrowed_late = self.is_narrowed_late or bool(is_ahead)
        self._ask_instead(self.problem.changed(epsilon=epsilon))
        if self.problem.m < self.problem.n:
            self._change_state(self.rules.anytime.narrow(self.state, epsilon))

    def _limit(self, left: float) -> None:
        """Ask for a smaller round, which the rest of a budget pays for."""
        if self.rules.anytime is None or self.rules.anytime.within is None or self.round.is_given_out:
            raise CorruptLog("the log contains a limit at an invalid position.")
        self._change_state(self.rules.anytime.within(self.state, left))

    def _feed(self, fed: Fed) -> None:
        """Add results that were not asked for, at once or, if this round has begun, together with it."""
        labels = fed.labels or ("",) * len(fed.arms)
        spreads = np.full(len(fed.arms), np.nan) if fed.variances is None else fed.variances
        rows = fed_rows(fed.counts, fed.means, spreads, fed.blocks or (fed.block,) * len(fed.arms))
        deltas: list[tuple[int, int, float, float]] = []
        blocks: list[str] = []
        starts: list[int] = []  # of the rows of each block
        for arm, label, row in zip(fed.arms.tolist(), labels, rows, strict=True):
            if not starts or row.block != blocks[-1]:
                starts.append(len(deltas))
            count, mean = row.count, row.mean
            before = self.fed.get((label, arm)) if label else None
            if before is not None:
                self.corrections.append(Correction(arm, label, before, row, fed.why))
                squares = before.squares(self.problem)
                deltas.append((arm, -before.count, -before.count * before.mean, -squares))
                blocks.append(before.block)
            if label and count:
                self.fed[label, arm] = row
            elif label:
                self.fed.pop((label, arm), None)
            deltas.append((arm, count, count * mean, row.squares(self.problem)))
            blocks.append(row.block)
        columns = zip(*deltas, strict=True)
        arms, counts = (np.array(next(columns), dtype=np.int64) for _ in range(2))
        sums, powers = (np.array(next(columns)) for _ in range(2))
        self.n_fed += int(counts.sum())
        np.add.at(self._fed_pulls, arms, counts)
        np.add.at(self._fed_sums, arms, sums)
        self._fed_sums[self._fed_pulls == 0] = 0.0  # what was taken back may leave a rounding error
        self.suspended = self.waiting = None
        if self.problem.m == self.problem.n:
            return
        merits = self.problem.merits(sums)
        for start, end in itertools.pairwise([*starts, len(deltas)]):
            part = slice(start, end)
            added = Added(arms[part], counts[part], merits[part], powers[part], tuple(blocks[part]))
            self._late.append(added)
        if not self.round.is_given_out:
            self._change_state(self._with_late(self.state))

    def _with_late(self, state: Any) -> Any:
        """Return the strategy's state with fed results that were not counted yet."""
        added, self._late = self._late, []
        if added and self.rules.anytime is not None:
            state = self.rules.anytime.add(state, added)
        return state

    def _change_state(self, state: Any) -> None:
        """Set the strategy's state. If nobody had a ticket of this round, another one takes its place."""
        self.state = state
        if self.rules.cap_from is not None:
            self.worst_case_pulls = self.rules.cap_from(self.state) or self.worst_case_pulls
        self.is_ended = self.is_ended and self.is_final
        batch, asked = self.rules.ask(state), self.round.tickets
        is_same = np.array_equal(batch.arms, asked.arms) and np.array_equal(batch.counts, asked.counts)
        if is_same or (len(asked) and self.round.is_given_out):
            return
        self.round.is_replaced = True
        self._open_round()

    def _withdraw(self, withdrawn: Withdrawn) -> None:
        """Take the answer to a ticket back."""
        round = self.round
        if withdrawn.round != round.number:
            raise CorruptLog(f"the log takes an answer of round {withdrawn.round} back, which was decided.")
        place = round.places(np.array([withdrawn.arm]))
        if not round.is_told[place].all():
            raise CorruptLog(f"the log takes an answer of round {withdrawn.round} back that is not there.")
        round.withdraw(place)
        self._n_told -= int(round.tickets.counts[place].sum())
        self.scored = [one for one in self.scored if (one.ticket.round, one.ticket.arm) != _key(withdrawn)]
        self.conflicts = [one for one in self.conflicts if (one.round, one.arm) != _key(withdrawn)]
        self.withdrawn.append(withdrawn)

    def _ask_instead(self, problem: Problem) -> None:
        """Change the question, in the log's first event and in all tickets as well."""
        self.problem = problem
        self.began = replace(self.began, problem=problem)
        self.rounds = [copy(round) for round in self.rounds]  # copies of this state have them as well
        for round in self.rounds:
            round.tickets = replace(round.tickets, problem=problem)

    def _declare(self, declared: Bounded) -> None:
        """Apply bounds that were declared after the run started: the question is the same, with bounds."""
        if not self.problem.knows_variances:
            raise CorruptLog("the log contains bounds, but the variances are unknown.")
        self._ask_instead(self.problem.changed(bounds=declared.bounds, rewards=declared.rewards))

    def _count(self, gathered: list[Told], leases: list[Leased]) -> None:
        """Apply leases and count answers of the current round."""
        if leases:
            self._lease(leases)
        if not gathered:
            return
        told, round = _together(gathered), self.round
        places = _places(round, told)
        if np.isnan(round.means[places]).all() and not has_repeats(places):
            self._count_new(round, places, told)
        else:
            for one in gathered:
                self._count_first(one)
        if round.n_missing == 0:
            self._close_round()

    def _count_first(self, told: Told) -> None:
        """Count the new part of an answer; record, and otherwise ignore, repeated answers."""
        round = self.find(told.round)
        places = _places(round, told)
        if has_repeats(places):
            raise _unfit(told)
        is_new = np.isnan(round.means[places])
        is_same = round.means[places] == told.means
        if told.scores is not None:
            own = split(told.scores, round.tickets.counts[places])
            is_same &= np.array([*map(round.has_scores, places.tolist(), own)], dtype=np.bool_)
        if round.spreads is not None and told.variances is not None:
            is_same &= ~(round.spreads[places] != told.variances) | np.isnan(round.spreads[places])
        for place in np.flatnonzero(~is_new).tolist():
            arm, kept, refused = int(told.arms[place]), round.means[places[place]], told.means[place]
            self.repeats.append(Repeat(told.round, arm, told.worker, bool(is_same[place])))
            if not is_same[place]:
                self.conflicts.append(Conflict(told.round, arm, float(kept), float(refused), told.worker))
        self._scores_of(told.round, told.arms[~is_new])  # these came with a second answer
        if is_new.any():
            self._count_new(round, places[is_new], part_of(told, is_new, round.tickets.counts[places]))

    def _scores_of(self, round: int, arms: IntArray) -> list[Scored]:
        """Return the scores of tickets that were open, and keep those of the others."""
        if not self._scored:
            return []
        told = set(arms.tolist())
        is_told = [one.ticket.round == round and one.ticket.arm in told for one in self._scored]
        found = [*compress(self._scored, is_told)]
        self._scored = [*compress(self._scored, map(not_, is_told))]
        return found

    def _count_new(self, round: Round, places: IntArray, told: Told) -> None:
        self.suspended = self.waiting = None
        round.count(places, told)
        self._n_told += int(round.tickets.counts[places].sum())
        self.scored += self._scores_of(round.number, round.tickets.arms[places])
        if round.parts is not None:
            self.n_partial -= int(round.parts.n_pulls[places].sum())
        is_again = round.leases.is_again(places)
        if told.again:
            is_again |= np.isin(round.tickets.arms[places], told.again)
        self.n_again += int(is_again.sum())

    def _keep(self, answered: Answered) -> None:
        """Record answers to parts of tickets of the current round, or scores that nobody asked for yet."""
        calls = Tickets(self.problem, answered.round, answered.arms, answered.counts, answered.first_pulls)
        parts = self.parts_of(self.round)
        numbers = parts.call_plan.find(calls)
        self.suspended = self.waiting = None
        if answered.scores is not None and (numbers < 0).all():
            self._keep_ahead(calls, split(answered.scores, calls.counts), answered.again)
            return
        is_known = (numbers < 0) | parts.is_answered(numbers)
        if answered.round != self.round.number or is_known.any():
            raise _unfit(answered)
        spreads = np.full(len(numbers), np.nan) if answered.variances is None else answered.variances
        parts.take(numbers, answered.means, spreads, answered.scores)
        self.n_partial += int(answered.counts.sum())
        self.round.leases.note_again(self.round.places(np.array(answered.again, dtype=np.int64)))

    def _keep_ahead(self, calls: Tickets, scores: list[FloatArray], again: tuple[int, ...]) -> None:
        """Record scores that nobody has asked for yet, unless they are known."""
        for arm, first, own in zip(calls.arms.tolist(), calls.first_pulls.tolist(), scores, strict=True):
            if first >= self.reached[arm]:
                self.ahead.setdefault((arm, first), own)
                if arm in again:
                    self._again_ahead |= {(arm, first)}

    @property
    def reached(self) -> IntArray:
        """For each arm, the number of its pulls when the current round is complete."""
        reached = self._pulls.copy()
        reached[self.round.tickets.arms] += self.round.tickets.counts
        return reached

    def _use_ahead(self) -> None:
        """Use scores for the current round that were measured before it was open."""
        if not self.ahead or not len(self.round.tickets):
            return
        parts = self.parts_of(self.round)
        calls = parts.call_plan.parts(np.arange(parts.call_plan.n_calls))
        keys = [*zip(calls.arms.tolist(), calls.first_pulls.tolist(), strict=True)]
        numbers = np.array([number for number, key in enumerate(keys) if key in self.ahead], dtype=np.int64)
        scores = [self.ahead.pop(keys[number]) for number in numbers.tolist()]
        arms = [keys[number][0] for number in numbers.tolist() if keys[number] in self._again_ahead]
        self.round.leases.note_again(self.round.places(np.unique(np.array(arms, dtype=np.int64))))
        if scores:
            unknown = np.full(len(scores), np.nan)
            parts.take(numbers, np.array([own.mean() for own in scores]), unknown, np.concatenate(scores))
            self.n_partial += sum(map(len, scores))

    def completions(self) -> list[Event]:
        """Return the answers to tickets all of whose parts were measured before their round was open."""
        round, parts = self.round, self.round.parts
        if parts is None or not parts.scores:
            return []
        places = np.flatnonzero(parts.is_complete & ~round.is_told)
        if not len(places):
            return []
        scores = parts.whole_scores(places, np.empty(0, dtype=np.int64), [])
        means = np.array([own.mean() for own in split(scores, round.tickets.counts[places])])
        told = Told(round.number, round.tickets.arms[places], means, scores=scores)
        return [*round.opening(), told]

    def _arrange(self, settings: dict[str, Any]) -> None:
        """Record the measurement settings; the split of tickets can change only before the first reward."""
        self.settings = settings
        if self.round.parts is not None and not self.round.parts.n_pulls.any():
            self.round.parts = None  # it was split as the settings before these say

    @property
    def is_stopped(self) -> bool:
        """Whether the last driver reached a limit, or was asked to stop, and nobody goes on."""
        return self.suspended is not None and is_limit(self.suspended)

    def _lease(self, leases: list[Leased]) -> None:
        if self.is_stopped or self.round.number > self._stopped_in:
            self.stopped = None
        if self.is_stopped:
            self.suspended = None  # somebody goes on
        arms = np.concatenate([lease.arms for lease in leases])
        sizes = [len(lease.arms) for lease in leases]
        until = np.repeat([lease.until for lease in leases], sizes)
        workers = [lease.worker for lease in leases]
        self.round.leases.note(self.round.places(arms, is_repeating=True), workers, sizes, until)

    def _open_round(self) -> None:
        batch: Batch = self.rules.ask(self.state)
        number, first_pulls = len(self.rounds), self._pulls[batch.arms]
        self.rounds.append(
            Round(
                Tickets(
                    self.problem, number, batch.arms, batch.counts, first_pulls, self.rules.needs_variances
                ),
                reissue=self.began.reissue,
            )
        )
        self._use_ahead()

    def _close_round(self) -> None:
        round = self.round
        asked, merits = round.tickets, self.problem.merits(round.means)
        scores = None
        if self.problem.items is not None:
            scores = self.problem.merits(np.concatenate([round.scores[place] for place in range(len(asked))]))
        self.state = self._with_late(self.rules.tell(self.state, Moments(merits, round.spreads, scores)))
        if self.rules.cap_from is not None:
            self.worst_case_pulls = self.rules.cap_from(self.state) or self.worst_case_pulls
        self._pulls[asked.arms] += asked.counts
        round.add_to(self._sums, np.arange(len(asked)))
        round.parts = None
        self._open_round()

    def _compare(self, asked: Asked) -> None:
        """Check that the tickets of a round in the log are those that the strategy asks for now."""
        round = self.find(asked.round)
        own = round.tickets
        is_own = asked.arms is own.arms or (
            np.array_equal(asked.arms, own.arms) and np.array_equal(asked.counts, own.counts)
        )
        if not is_own:
            raise _diverged(f"round {asked.round} asked for other pulls", self.began)
        round.is_logged = True

    def _compare_end(self, ended: Ended) -> None:
        verdict = self.rules.verdict(self.state)
        if not verdict.is_final or not np.array_equal(np.sort(verdict.selected), np.sort(ended.selected)):
            raise _diverged("the run ended with other arms", self.began)
        self.is_ended = True

    @property
    def selected(self) -> IntArray:
        """The selected arms, in no particular order; none before the end."""
        selected: IntArray = self.rules.verdict(self.state).selected
        return selected

    @property
    def is_reproducible(self) -> bool:
        """Whether measuring a ticket again gives the same rewards, by construction or by declaration."""
        settings = self.settings or {}
        measure = settings.get("measure")
        kind = measure.get("kind") if isinstance(measure, dict) else None
        return settings.get(REPRODUCIBLE) is True or kind in {"simulated", "table"}

    @property
    def n_reissued(self) -> int:
        """The number of answers that may have been selected from several because they arrived first."""
        return 0 if self.is_reproducible else self.n_again

    @property
    def certified(self) -> Certificate:
        """What is certified by the rounds that are complete."""
        if self._certified is None or self._certified[0] is not self.state:
            self._certified = self.state, self._certificate()
        return self._certified[1].provided(*self._assumptions)

    @property
    def is_void(self) -> bool:
        """Whether the run has ended, and its rewards contradict what the proof assumes."""
        anytime = self.rules.anytime
        return self.is_final and anytime is not None and anytime.may_be_void and self.certified.is_void

    @property
    def drift(self) -> Drift:
        """What to say if means of fed results change between blocks, or labels; otherwise nothing."""
        arms = np.array([arm for _, arm in self.fed], dtype=np.int64)
        rows, blocks = [*self.fed.values()], [row.block or label for (label, _), row in self.fed.items()]
        counts = np.array([row.count for row in rows], dtype=np.int64)
        means = np.array([row.mean for row in rows], dtype=np.float64)
        totals = Totals(arms, counts, means, np.full(len(arms), np.nan))
        return drift_note(self.problem, totals, blocks, is_by_block=self.is_by_block)

    @property
    def _assumptions(self) -> tuple[str, ...]:
        """What a guarantee assumes because of how rewards came about, and of what people did by hand."""
        return (
            *(("question-first",) * (self.problem.items is None and self.is_reproducible)),
            *((FED_IN_BLOCKS if self.is_by_block else FED) * bool(self.n_fed)),
            *(("first-answers",) * bool(self.n_reissued)),
            *(("not-withdrawn",) * bool(self.withdrawn)),
            *(("not-corrected",) * bool(self.corrections)),
            *(("epsilon-unseen",) * self.is_narrowed_late),
        )

    def _certificate(self) -> Certificate:
        problem, rules = self.problem, self.rules
        if rules.anytime is not None and problem.m < problem.n:
            return rules.anytime.certificate(self.state)
        promise = rules.guarantee(problem)
        if promise is None or not promise.answers(problem):
            return Certificate.of_nothing(problem, f"The strategy {rules.name} certifies no selection.")
        if not self.is_final:
            return Certificate.of_nothing(
                problem, f"The strategy {rules.name} certifies nothing before it ends."
            )
        return Certificate.at_end(problem, self.selected, promise)

    @property
    def result(self) -> Result:
        """The result so far."""
        is_final, certified = self.is_final, self.certified
        promise = self.rules.guarantee(self.problem) if is_final and not certified.is_void else None
        promise = promise and promise.provided(self.problem, *self._assumptions)
        stop = Stop.OPEN if len(self.round.tickets) else Stop.ITEMS  # a population may need more of them
        if is_final:
            stop = Stop.UNPROVED if promise is None else Stop.CERTIFIED
        arms = replace(self._measured(), statuses=certified.statuses)
        selected = self.selected if is_final else certified.indices
        return Result(
            problem=self.problem,
            strategy=self.began.strategy,
            seed=self.began.seed,
            indices=best_first(selected, self.problem.merits(arms.means)),
            stop=stop,
            guarantee=promise,
            n_pulls=self.n_pulls + self.n_fed,
            n_rounds=self.n_rounds,
            arms=arms,
            n_fed=self.n_fed,
            n_scored=sum(scored.ticket.count for scored in self.scored),
            n_reissued=self.n_reissued,
            certificate=certified,
            n_ahead=self.n_ahead,
        )

    def _measured(self) -> Arms:
        """Return means and pulls of every arm, including answers of the current round.

        In blocks the means are those of complete rounds.
        """
        pulls, sums = self._pulls + self._fed_pulls, self._sums + self._fed_sums
        places = np.flatnonzero(self.round.is_told)
        told = self.round.tickets.take(places)
        pulls[told.arms] += told.counts
        self.round.add_to(sums, places)
        with np.errstate(invalid="ignore"):
            means = sums / pulls
        in_mean = pulls
        if self.rules.estimates is not None and self._pulls.all():
            means = self.problem.merits(self.rules.estimates(self.state))
            in_mean = self._pulls + self._fed_pulls
        if self.problem.known is not None:
            means[self.problem.known.arms] = self.problem.known.scores.mean(axis=1)
        if self.problem.items is None:
            return Arms(pulls, means)
        pulls = pulls + self._waiting_pulls
        return Arms(pulls, means, left_out=pulls - in_mean if (pulls > in_mean).any() else None)


def is_limit(suspended: Suspended) -> bool:
    """Return whether a driver stopped since it reached a limit, or was asked to, and not since it failed."""
    return suspended.reason.startswith(STOPPED)


def _places(round: Round, told: Told) -> IntArray:
    """Return the positions of an answer's tickets; raise CorruptLog if the round did not ask for them."""
    if not round.takes(told):
        raise _unfit(told)
    try:
        return round.places(told.arms, is_repeating=True)
    except NotAsked:
        raise _unfit(told) from None


def _key(withdrawn: Withdrawn) -> tuple[int, int]:
    return withdrawn.round, withdrawn.arm


def _unfit(told: Told | Answered) -> CorruptLog:
    return CorruptLog(f"an answer in round {told.round} does not match the tickets of that round.")


def _together(told: list[Told]) -> Told:
    """Return several answers of one round, merged into one."""
    if len(told) == 1:
        return told[0]
    variances = None
    if any(one.variances is not None for one in told):
        unknown = (np.full(len(one.arms), np.nan) for one in told)
        found = [
            none if one.variances is None else one.variances for one, none in zip(told, unknown, strict=True)
        ]
        variances = np.concatenate(found)
    arms, means = (np.concatenate([getattr(one, name) for one in told]) for name in ("arms", "means"))
    scores = None if told[0].scores is None else np.concatenate([one.scores for one in told])
    again = sum((one.again for one in told), ())
    return Told(told[0].round, arms, means, variances, again=again, scores=scores)


def part_of(told: Told, is_kept: BoolArray, counts: IntArray) -> Told:
    """Return some of the answers; `counts` says how many scores each has, if there are any."""
    variances = None if told.variances is None else told.variances[is_kept]
    scores = None if told.scores is None else told.scores[np.repeat(is_kept, counts)]
    return replace(
        told, arms=told.arms[is_kept], means=told.means[is_kept], variances=variances, scores=scores
    )


def fed_rows(
    counts: IntArray, means: FloatArray, variances: FloatArray, blocks: tuple[str, ...]
) -> list[FedRow]:
    """Return fed results row by row; NaN is an unknown variance."""
    known = [None if math.isnan(one) else one for one in variances.tolist()]
    rows = zip(counts.tolist(), means.tolist(), blocks, known, strict=True)
    return [FedRow(*row) for row in rows]


def split(scores: FloatArray, counts: IntArray) -> list[FloatArray]:
    """Return scores that were given one after the other, in pieces of these sizes."""
    return np.split(scores, np.cumsum(counts)[:-1])


def _diverged(what: str, began: Began) -> CorruptLog:
    return CorruptLog(
        f"{what} than this version of Shortlist computes. The run was started by version {began.version}: "
        f"resume it with that version, or start a new run. Nothing was changed."
    )
