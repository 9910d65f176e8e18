"""The scheduler: submits the calls of a round to workers, and handles their answers and failures."""

import contextlib
import heapq
import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress, count
from typing import Any, TypeAlias, TypeVar

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.errors import (
    FinalFailure,
    MeasurementFailed,
    RetryLater,
    ShortlistError,
    StoreTrouble,
    WrongOutput,
)
from shortlist.escaping import printable
from shortlist.execution.failure_messages import (
    call_words,
    gave_up,
    named,
    put_off_words,
    ticket_of,
    words_of,
    workers_lost,
)
from shortlist.execution.interrupts import Interrupt
from shortlist.execution.lease_keeping import LEASE
from shortlist.execution.retries import AT_ONCE, Retries
from shortlist.execution.session_protocol import DrivenSession
from shortlist.execution.tasks import Outcome, Task, joined
from shortlist.execution.worker_pool import Workers
from shortlist.measure import Calls, Source, Summaries
from shortlist.session.answers import Answers
from shortlist.session.call_plan import CallPlan
from shortlist.store.events import Scored
from shortlist.tickets import Tickets

# --- how much work goes into one task ------------------------------------------------------------------


_SECONDS = 0.3  # target duration of a task
_MOST_CALLS = 1 << 16
_WEIGHT = 0.5  # weight of the latest task in the running estimates


@dataclass
class Pace:
    """Estimates of the time per call and per pull, and the largest task so far."""

    per_call: float = 0.0
    per_pull: float = 0.0
    most_blocks: int = 1

    def note(self, calls: int, pulls: int, seconds: float) -> None:
        """Update the estimates with the duration of a task."""
        weight = _WEIGHT if self.per_call else 1.0
        self.per_call += weight * (seconds / calls - self.per_call)
        self.per_pull += weight * (seconds / pulls - self.per_pull)

    def blocks(self, calls: int, pulls: int, remaining: int, n_workers: int) -> int:
        """Return the number of blocks for the next task.

        Parameters
        ----------
        calls, pulls
            The numbers of calls and of pulls of the next block.
        remaining
            The total number of blocks left.
        n_workers
            The number of workers that share them.
        """
        if not self.per_call:
            return 1
        expected = max(calls * self.per_call, pulls * self.per_pull, 1e-9)
        fair = remaining if n_workers == 1 else math.ceil(remaining / (2 * n_workers))
        wanted = min(int(_SECONDS / expected), 4 * self.most_blocks, fair, _MOST_CALLS // calls)
        self.most_blocks = max(self.most_blocks, wanted)
        return max(1, wanted)


# --- the scheduler -------------------------------------------------------------------------------------


_GRACE = 2.0  # seconds allowed for the transport of a task with a timeout

_LOOK = 0.1  # seconds between two checks for an interrupt during a pause
_BETWEEN_WORDS = 5.0  # seconds
_LONG = 5.0  # seconds: longer pauses are recorded in the log, for others who watch the run
_STORE_PATIENCE = 120.0  # seconds to wait for a store with a temporary failure

_LOG = logging.getLogger("shortlist")
T = TypeVar("T")

_AHEAD = 0.04  # calls are made ahead as long as those not used so far are at most this share of all,
_SURE = 0.5  # but up to this share of an arm's likely pulls
_SURE_AHEAD = 0.12  # as long as they are at most this share

_NO_BLOCK = -1  # for a pool that breaks before it has done anything

Under: TypeAlias = dict["Future[Outcome]", tuple[range, float]]
"""Running tasks: their blocks, and when they are overdue."""


@dataclass(frozen=True)
class Policy:
    """How calls are made, and what happens when one fails.

    Attributes
    ----------
    pulls_per_call
        The maximum number of pulls per call; None for no limit.
    turns
        The number of interleaved calls per ticket, if it has that many pulls.
    retries
        The retry policy.
    score
        The value of each pull of a call that failed at every attempt; None to stop the run.
    timeout
        The maximum duration of a call on a worker in seconds; None for no limit.
    is_one_by_one
        Whether every answer is recorded at once, also those of quick calls: a crash then loses only the calls
        that are being made.
    """

    pulls_per_call: int | None = None
    turns: int = 1
    retries: Retries = field(default_factory=Retries)
    score: float | None = None
    timeout: float | None = None
    is_one_by_one: bool = False


@dataclass(eq=False)
class Scheduler:
    """The scheduler of a run, for all its rounds: workers, policy and pace."""

    session: DrivenSession
    source: Source
    workers: Workers
    policy: Policy
    interrupt: Interrupt
    worker: str
    progress: Callable[[], None] | None = None
    pace: Pace = field(default_factory=Pace)
    numbers: "count[int]" = field(default_factory=count)
    held_until: float = -np.inf  # no call starts before that time
    not_recorded: Exception | None = None  # why an answer could not be recorded while others were measured
    said_at: float = -np.inf  # time of the last message about waiting
    hanging: "list[Future[Outcome]]" = field(default_factory=list)
    ahead: "dict[Future[Outcome], Tickets]" = field(default_factory=dict)  # calls that nobody asked for yet
    failed_ahead: set[tuple[int, int]] = field(default_factory=set)  # those of them that failed
    _call_plan: CallPlan | None = None  # of the current round

    @property
    def is_each(self) -> bool:
        """Whether the source measures the calls of a block each by itself, and answers them one by one."""
        return getattr(self.source, "answer_each", None) is not None

    def measure(self, budget: float | None) -> bool:
        """Measure the open tickets of the session's round within a budget; return whether it was sufficient.

        Tickets that others hold are left to them.
        """
        asked, is_open = self.patiently(lambda: self.session.still_open(self.worker))
        if self._call_plan is None or self._call_plan.tickets is not asked:
            policy = self.policy
            self._call_plan = CallPlan.of(
                asked, self.session.entropy, self.source.together, policy.pulls_per_call, policy.turns
            )
        left = None if budget is None else budget - self.session.cost_made
        round = _RoundScheduler(self, self._call_plan, is_open, left, may_run_ahead=budget is None)
        round.run()
        return not round.is_cut

    def end(self) -> None:
        """Give up calls that turned out not to be needed; those that are being made are recorded."""
        running = [future for future in self.ahead if not future.cancel()]
        for future in wait(running).done:
            if future.exception() is None and not future.result().errors:
                self.record_ahead(self.ahead[future], future.result())
        self.ahead.clear()

    def record_ahead(self, calls: Tickets, outcome: Outcome) -> None:
        """Record the scores of a call that was made ahead."""
        given = Summaries(calls.counts, outcome.means, outcome.variances, scores=outcome.scores)
        answers = Answers.of_calls(self.session.problem, calls, given, worker=self.worker)
        again = calls.arms[[key in self.failed_ahead for key in _keys(calls)]].tolist()
        answers = replace(answers, again=again).of_round(self.session.asked.round)
        self.patiently(lambda: self.session.answer(answers))

    def say_waiting(self, words: str, seconds: float, *, in_log: bool = True) -> None:
        """Report why the run waits: immediately, but not too often. Long waits are recorded in the log."""
        if not seconds or time.monotonic() < self.said_at + _BETWEEN_WORDS:
            return
        self.said_at = time.monotonic()
        _LOG.warning(printable(words))
        if in_log and seconds >= _LONG:
            with contextlib.suppress(ShortlistError):
                self.session.suspend(words, self.worker, until=time.time() + seconds)

    def patiently(self, do: Callable[[], T]) -> T:
        """Return the result of a store operation; retry temporary failures for two minutes."""
        start, number = time.monotonic(), 0
        while True:
            try:
                return do()
            except StoreTrouble as error:
                number += 1
                pause = Retries().pause(number)
                is_over = time.monotonic() - start + pause > _STORE_PATIENCE
                if not error.is_passing or is_over or self.interrupt.is_wanted:
                    raise
                self.say_waiting(f"{error} Trying again in {pause:.1f} s.", pause, in_log=False)
                self.sleep_until(time.monotonic() + pause)

    def sleep_until(self, due: float) -> None:
        """Sleep until a given time; an interrupt ends the sleep."""
        while (left := due - time.monotonic()) > 0 and not self.interrupt.is_wanted:
            time.sleep(min(left, _LOOK))
            if self.progress is not None:
                self.progress()


class _RoundScheduler:
    """The scheduler of one round: pending blocks, running tasks, and failures."""

    def __init__(
        self,
        job: Scheduler,
        call_plan: CallPlan,
        is_open: BoolArray,
        budget: float | None,
        *,
        may_run_ahead: bool,
    ) -> None:
        self.job, self.call_plan = job, call_plan
        is_parallel = job.workers.n > 1 and call_plan.together == 1 and job.policy.timeout is None
        is_parallel = is_parallel and not job.session.problem.is_lockstep
        self.may_run_ahead = may_run_ahead and is_parallel
        self.next: deque[tuple[Tickets, float]] | None = None  # calls that may be needed; None if not known
        self.is_wanted = call_plan.by_call(is_open)  # by call, until it is answered
        if call_plan.ends is not None:
            known = call_plan.find(job.session.answered())
            self.is_wanted[known[known >= 0]] = False
        self.is_held = np.zeros(call_plan.n_calls, dtype=bool)  # by call, while it is leased and not answered
        self.n_held = np.zeros(len(call_plan.tickets), dtype=np.int64)  # by ticket: number of its calls
        is_affordable = np.ones_like(self.is_wanted) if budget is None else self._affordable(budget)
        self.is_cut = not is_affordable.all()  # the budget ends within this round
        if job.is_each:
            self.is_wanted &= is_affordable  # the others of a block can be left out
            is_affordable = np.ones_like(self.is_wanted)
        is_running = np.zeros_like(self.is_wanted)
        is_running[self._numbers_ahead()] = True
        self.todo: deque[range] = deque(
            call_plan.blocks(self.is_wanted & ~is_running, ~is_affordable | is_running)
        )
        self.n_todo = sum(map(len, self.todo))
        self.suspects: deque[range] = deque()  # were running when workers were lost: each is tried alone
        self.accused: set[int] = set()  # blocks that were running when workers died, to be tried alone
        self.under_way: Under = {}
        self.late: Under = {}  # overdue and given up, but they may still arrive
        self.failures: Counter[int] = Counter()  # by block
        self.put_off: dict[int, list[float]] = {}  # by block: the delays in seconds
        self.wrong: dict[int, list[str]] = {}  # by block: what was wrong with the last output
        self.waiting: list[tuple[float, int]] = []  # times of retries, the next first
        self.whole: dict[int, range] = {}  # by block that waits: those to be measured together with it
        self.again: set[int] = set()  # calls that were started and must be repeated
        self.scores: dict[int, Scored] = {}  # by call, until it is recorded
        self.error: MeasurementFailed | None = None

    @property
    def is_by_block(self) -> bool:
        """Whether every task is one block, since every answer is to be recorded at once."""
        is_lockstep = self.job.session.problem.is_lockstep and self.call_plan.together == 1
        return self.job.policy.is_one_by_one and not (self.job.is_each or is_lockstep)

    def _affordable(self, budget: float) -> BoolArray:
        """Return which calls a budget pays for.

        Tickets are completed one after the other if that is possible. Blocks of several calls belong to many
        tickets; so they are paid for in the order in which they are made. In lockstep whole blocks are.
        """
        call_plan, every = self.call_plan, np.arange(self.call_plan.n_calls)
        parts, costs = call_plan.parts(every), self.job.session.problem.costs
        prices = np.where(self.is_wanted, parts.counts * (1 if costs is None else costs[parts.arms]), 0)
        if self.job.session.problem.is_lockstep:
            sums = np.bincount(parts.first_pulls, prices)
            return (np.cumsum(sums)[parts.first_pulls] <= budget) | ~self.is_wanted
        if call_plan.together == 1 or self.job.is_each:
            by_ticket = np.bincount(call_plan.places(every), prices, len(call_plan.tickets))
            return call_plan.by_call((np.cumsum(by_ticket) <= budget) | (by_ticket == 0))
        order = call_plan.numbers(0, call_plan.n_calls)
        ends = np.minimum((every // call_plan.together + 1) * call_plan.together, len(every)) - 1
        is_affordable = np.empty_like(self.is_wanted)
        is_affordable[order] = np.cumsum(prices[order])[ends] <= budget
        return is_affordable | ~self.is_wanted

    def run(self) -> None:
        """Measure until the round is done, or a failure is final."""
        try:
            while self.n_todo or self.suspects or self.under_way or self.waiting or self._is_ahead_awaited():
                if self.error is None and not self.job.interrupt.is_wanted:
                    self._wake()
                    self._issue()
                elif not self.under_way and not self.job.ahead:
                    break
                self._collect()
        finally:
            for future in (*self.under_way, *self.late):
                future.cancel()
            self._note_broken_off()
            self.job.hanging = [future for future in (*self.job.hanging, *self.late) if not future.done()]
        if self.error is not None:
            raise self.error
        if self.job.interrupt.is_wanted:
            self.job.workers.close(is_hurried=bool(self.job.hanging))  # others have finished their calls
        if self.job.interrupt.is_pressed:
            raise KeyboardInterrupt

    def _note_broken_off(self) -> None:
        """Record in the log the tickets with calls that were started and have no answer, if any."""
        begun = set(self.again)
        for blocks, _ in (*self.under_way.values(), *self.late.values()):
            begun.update(self._calls_of(blocks))
        calls = np.array(sorted(begun), dtype=np.int64)
        places = np.unique(self.call_plan.places(calls[self.is_wanted[calls]]))
        if len(places):
            worker = self.job.worker
            with contextlib.suppress(ShortlistError):  # the first error matters more
                self.job.session.release(worker, by=worker, begun=self.call_plan.tickets.take(places))

    def _calls_of(self, blocks: range) -> list[int]:
        """Return the numbers of the calls in some blocks."""
        numbers: list[int] = self.call_plan.numbers(*self.call_plan.bounds(blocks)).tolist()
        return numbers

    # --- submitting tasks -------------------------------------------------------------------------

    def _wake(self) -> None:
        """Make blocks pending again whose pause is over."""
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, block = heapq.heappop(self.waiting)
            self._do_again(self.whole.pop(block, range(block, block + 1)))

    def _issue(self) -> None:
        """Submit tasks while there is room; a suspect block only when nothing else is running."""
        if time.monotonic() < self.job.held_until:
            return
        if self.suspects:
            if not self.under_way:
                self._submit(self.suspects.popleft())
            return
        policy = self.job.policy
        room = self.job.workers.room(is_timed=policy.timeout is not None, is_one_by_one=policy.is_one_by_one)
        room -= len(self.late) + len(self.job.hanging)
        if room <= 0 and not self.under_way:
            hanging = [blocks for blocks, _ in self.late.values()]
            self.error = workers_lost(
                self.call_plan, hanging, "every worker hangs in a call that should have ended"
            )
        room -= len(self.job.ahead)
        while self.n_todo and len(self.under_way) < room and not (self.error or self.suspects):
            if self.job.interrupt.is_wanted or time.monotonic() < self.job.held_until:
                return
            self._submit(self._next(room - len(self.under_way)))
        if self.may_run_ahead and not (self.n_todo or self.error or self.suspects):
            self._run_ahead()

    # --- calls that nobody has asked for yet ------------------------------------------------------

    def _run_ahead(self) -> None:
        """Let workers that would wait for the end of the round make calls that will probably be needed."""
        session, n_workers = self.job.session, self.job.workers.n
        if len(self.under_way) + len(self.job.ahead) >= n_workers or not session.is_alone(self.job.worker):
            return
        if self.next is None:
            calls, shares = self.job.patiently(lambda: session.ahead(self.job.worker))
            running = {key for one in self.job.ahead.values() for key in _keys(one)}
            places = [place for place, key in enumerate(_keys(calls)) if key not in running]
            self.next = deque((calls[place : place + 1], float(shares[place])) for place in places)
        while self.next and len(self.under_way) + len(self.job.ahead) < n_workers:
            one, share = self.next[0]
            n_running = sum(int(calls.counts[0]) for calls in self.job.ahead.values())
            limit = _AHEAD if share > _SURE else _SURE_AHEAD
            if n_running + session.n_ahead > limit * session.n_made:
                return
            self.next.popleft()
            calls_of = Calls.for_tickets(session.entropy, one)
            try:
                future = self.job.workers.submit(Task(next(self.job.numbers), calls_of, 1, keeps_scores=True))
            except (BrokenExecutor, RuntimeError):  # it will be noticed with calls that are needed
                return
            self.job.ahead[future] = one

    def _note_failure_ahead(self, calls: Tickets, errors: list[BaseException]) -> None:
        """Remember that a call was tried, unless it only asked to be made later; wait if all calls are to."""
        later = [error for error in errors if isinstance(error, RetryLater)]
        if len(later) < len(errors) or not errors:
            self.job.failed_ahead.update(_keys(calls))
        for error in later:
            if error.all_calls:
                self.job.held_until = max(self.job.held_until, time.monotonic() + (error.seconds or 1.0))

    def _numbers_ahead(self) -> IntArray:
        """Return the numbers of calls of this round that were made ahead and are running."""
        numbers = [self.call_plan.find(one) for one in self.job.ahead.values()]
        found = np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64)
        return found[found >= 0]

    def _is_ahead_awaited(self) -> bool:
        """Return whether this round needs a call that was made ahead and is running; all, if it is to end."""
        if self.error is not None or self.job.interrupt.is_wanted:
            return bool(self.job.ahead)
        return bool(self.is_wanted[self._numbers_ahead()].any())

    def _take_ahead(self, future: "Future[Outcome]") -> None:
        """Record the scores of a call that was made ahead; if it failed, it is made again when needed."""
        calls = self.job.ahead.pop(future)
        (number,) = self.call_plan.find(calls).tolist()
        error = None if future.cancelled() else future.exception()
        errors = [] if error or future.cancelled() else [*future.result().errors.values()]
        if future.cancelled() or error is not None or errors:
            self._note_failure_ahead(calls, errors)
            if number >= 0 and self.is_wanted[number]:
                place = int(np.flatnonzero(self.call_plan.numbers(0, self.call_plan.n_calls) == number)[0])
                self._do_again(range(place, place + 1))
            return
        self.job.record_ahead(calls, future.result())
        if number >= 0:
            self.is_wanted[number] = False
        if self.job.progress is not None:
            self.job.progress()

    def _next(self, room: int) -> range:
        """Remove the blocks of the next task from the pending blocks, and return them.

        If every answer is recorded at once, each block is a task: these are then the blocks of up to `room`
        tasks, which are leased together.
        """
        blocks = self.todo.popleft()
        first, stop = self.call_plan.bounds(blocks[:1])
        pulls = int(self.call_plan.calls(first, stop).counts.sum())
        size = 1
        if self.job.session.problem.is_lockstep and self.call_plan.together == 1:
            starts = self.call_plan.calls(*self.call_plan.bounds(blocks)).first_pulls
            size = int((starts == starts[0]).sum())  # all arms of a block, one after the other
        elif self.is_by_block:
            size = room
        elif not self.job.is_each:
            size = self.job.pace.blocks(stop - first, pulls, self.n_todo, self.job.workers.n)
        if size < len(blocks):
            self.todo.appendleft(blocks[size:])
        taken = blocks[:size]
        self.n_todo -= len(taken)
        return taken

    def _submit(self, blocks: range) -> None:
        """Submit a task, without calls that others measure already."""
        for own in self._claimed(blocks):
            for task in (own[place : place + 1] for place in range(len(own))) if self.is_by_block else (own,):
                self._hand_out(task)

    def _claimed(self, blocks: range) -> list[range]:
        """Return which of some blocks have calls that no other worker makes or has made."""
        if self.job.session.is_private:
            return [blocks]
        numbers = self.call_plan.numbers(*self.call_plan.bounds(blocks))
        wanted = np.sort(numbers[self.is_wanted[numbers]])
        calls, worker = self.call_plan.parts(wanted), self.job.worker
        own = wanted[self.job.patiently(lambda: self.job.session.claim(calls, worker, LEASE))]
        new = own[~self.is_held[own]]
        self.is_held[new] = True
        np.add.at(self.n_held, self.call_plan.places(new), 1)
        return list(self.call_plan.blocks(self.is_held, within=blocks))

    def _hand_out(self, blocks: range) -> None:
        first, stop = self.call_plan.bounds(blocks)
        calls, keeps_scores = self.call_plan.calls(first, stop), self.job.session.problem.items is not None
        is_due = self._is_due(first, stop) if self.job.is_each else None
        task = Task(next(self.job.numbers), calls, self.call_plan.together, keeps_scores, is_due)
        timeout = self.job.policy.timeout
        try:
            if timeout is not None:
                self.job.workers.warm_up()
            due = np.inf if timeout is None else time.monotonic() + timeout * (stop - first) + _GRACE
            self.under_way[self.job.workers.submit(task, partial(self._record, first))] = (blocks, due)
        except KeyboardInterrupt:  # in a call that this thread made
            self.again.update(self._calls_of(blocks))
            raise
        except BrokenExecutor as error:  # the pool broke before this task was submitted
            self._do_again(blocks)
            self._replace(error, [])
        except RuntimeError as error:  # the pool was shut down
            self._do_again(blocks)
            self.error = workers_lost(self.call_plan, [], words_of(error), error)

    def _is_due(self, first: int, stop: int) -> BoolArray:
        """Return which calls at some positions of the order are to be made by this driver."""
        numbers = self.call_plan.numbers(first, stop)
        is_due = self.is_wanted[numbers]
        return is_due if self.job.session.is_private else is_due & self.is_held[numbers]

    def _record(self, first: int, outcome: Outcome, is_known: BoolArray) -> bool:
        """Record calls of a task that is running in this thread; return whether it shall go on.

        Other tools would swallow an error here, so it is raised when the task has ended.
        """
        if self.job.not_recorded is None and is_known.any():
            try:
                self._tell(first, outcome, is_known)
            except Exception as error:
                self.job.not_recorded = error
        return not (self.job.not_recorded or self.error or self.job.interrupt.is_wanted)

    def _do_again(self, blocks: range, *, is_begun: bool = False) -> None:
        """Make blocks pending again; record their calls if these may have been made."""
        if is_begun:
            self.again.update(self._calls_of(blocks))
        if blocks:
            self.todo.appendleft(blocks)
            self.n_todo += len(blocks)

    # --- collecting answers -----------------------------------------------------------------------

    def _collect(self) -> None:
        """Wait until a task has ended or is overdue, or a pause is over, and handle it."""
        if not self.under_way and not self.job.ahead:
            self._pause()
            return
        now = time.monotonic()
        due = min((due for _, due in self.under_way.values()), default=np.inf)
        if self.error is None and not self.job.interrupt.is_wanted:
            due = min([due, *(at for at, _ in self.waiting[:1]), *self._holding()])
        waiting = None if due == np.inf else max(0.0, due - now)
        done = wait((*self.under_way, *self.late, *self.job.ahead), waiting, FIRST_COMPLETED).done
        ended: list[tuple[range, Outcome]] = []
        broken: list[range] = []
        reason: BaseException | None = None
        for future in done:
            if future in self.job.ahead:
                self._take_ahead(future)
                continue
            blocks = (self.under_way.pop(future, None) or self.late.pop(future))[0]
            error = _cancelled() if future.cancelled() else future.exception()
            if error is None:
                ended.append((blocks, future.result()))
            elif isinstance(error, BrokenExecutor):
                broken.append(blocks)
                reason = error
            else:
                self._not_done(blocks, error)
        self._take_all(ended)
        if reason is not None:
            self._replace(reason, broken)
        self._give_up_overdue()

    def _holding(self) -> list[float]:
        """Return the time before which no call may start, if there is one and there are calls to make."""
        held = self.job.held_until
        return [held] if held > time.monotonic() and (self.n_todo or self.suspects) else []

    def _pause(self) -> None:
        """Wait for the end of a pause while nothing is running; an interrupt ends it immediately."""
        due = min([*(at for at, _ in self.waiting[:1]), *self._holding()], default=-np.inf)
        self.job.sleep_until(due)

    def _take_all(self, ended: list[tuple[range, Outcome]]) -> None:
        """Record the answers of tasks; single calls that have ended at the same time are written together."""
        is_alike = self.is_by_block and len({blocks for blocks, _ in ended}) == len(ended)
        whole = [one for one in ended if is_alike and not one[1].errors]
        if len(whole) > 1 and self.job.not_recorded is None:
            numbers = [self.call_plan.numbers(*self.call_plan.bounds(blocks)) for blocks, _ in whole]
            self._tell_calls(np.concatenate(numbers), joined([outcome for _, outcome in whole]))
            ended = [one for one in ended if one[1].errors]
        for blocks, outcome in ended:
            self._take(blocks, outcome)

    def _take(self, blocks: range, outcome: Outcome) -> None:
        """Record the answers of a task; retry its last block if a call in it failed."""
        first, _ = self.call_plan.bounds(blocks)
        n_calls = len(outcome.means)
        calls = self.call_plan.calls(first, first + n_calls)
        self.job.pace.note(n_calls, int(calls.counts.sum()), outcome.seconds)
        if self.job.not_recorded is not None:
            raise self.job.not_recorded
        if not outcome.errors:
            self._tell(first, outcome)
            return
        if self.job.session.problem.is_lockstep and self.call_plan.together == 1:
            self._take_broken_block(blocks, outcome)
            return
        n_good = (n_calls - 1) // self.call_plan.together
        n_told = n_good * self.call_plan.together
        if n_told:
            self._tell(first, outcome.first(n_told))
        self._do_again(blocks[n_good + 1 :])
        errors = {place - n_told: error for place, error in outcome.errors.items()}
        if self.job.is_each:
            is_good = np.ones(n_calls, dtype=np.bool_)
            is_good[list(errors)] = False
            self._tell(first, outcome, is_good)
        self._failed(blocks[n_good], outcome.after(n_told), errors)

    def _take_broken_block(self, blocks: range, outcome: Outcome) -> None:
        """In lockstep, measure all arms of a block again if one failed, since its conditions have passed."""
        first, _ = self.call_plan.bounds(blocks)
        place = len(outcome.means) - 1
        block, n_waiting = blocks[place], len(self.waiting)
        self._failed(block, outcome.after(place), {0: outcome.errors[place]})
        if len(self.waiting) > n_waiting:
            self.whole[block] = blocks
            self.again.update(self._calls_of(blocks[:place]))
        elif self.error is None:  # the failure was scored
            if place:
                self._tell(first, outcome.first(place))
            self._do_again(blocks[place + 1 :])

    def _failed(self, block: int, outcome: Outcome, errors: dict[int, BaseException]) -> None:
        """Retry a block; after the last retry score it, or end the run.

        Some failures are final: retrying a reward out of bounds would introduce selection bias.
        A failure that several calls share is not scored, since their rewards would not be independent.
        """
        first, stop = self.call_plan.bounds(range(block, block + 1))
        if not self.is_wanted[self.call_plan.numbers(first, stop)].any():
            return  # an earlier attempt, given up as overdue, has arrived after all
        final = [place for place, error in errors.items() if isinstance(error, FinalFailure)]
        if self._is_tried_again(block, list(errors.values()), first + next(iter(errors))):
            return
        place = final[0] if final else next(iter(errors))
        score = self.job.policy.score
        if final or score is None or outcome.is_shared:
            self.again.update(self._calls_of(range(block, block + 1)))
            others = len(errors) - 1 if self.call_plan.together > 1 else 0
            self.error = self.error or gave_up(
                call_words(self.call_plan, first + place), errors[place], self.failures[block], others
            )
            return
        for place, cause in errors.items():
            outcome.means[place], outcome.variances[place] = score, 0.0
            if outcome.scores is not None:
                outcome.scores[place][:] = score
            (number,) = self.call_plan.numbers(first + place, first + place + 1).tolist()
            self.scores[number] = Scored(ticket_of(self.call_plan, first + place), score, words_of(cause))
        self._tell(first, outcome)

    def _is_tried_again(self, block: int, errors: list[BaseException], call: int) -> bool:
        """Schedule the retry of a failed block; return whether there is one."""
        put_off = self.put_off.setdefault(block, [])
        wait = self.job.policy.retries.after(errors, self.failures[block] + 1, put_off)
        wrong = [str(error) for error in errors if isinstance(error, WrongOutput)]
        if wrong and self.wrong.get(block) == wrong:
            wait = None  # the same wrong output again: a third attempt would get it, too
        self.wrong[block] = wrong
        if wait is None or wait.is_failure:
            self.failures[block] += 1
        if wait is None:
            return False
        if wait.is_failure:
            self.again.update(self._calls_of(range(block, block + 1)))
        else:
            put_off.append(wait.seconds)
        due = time.monotonic() + wait.seconds
        if any(isinstance(error, RetryLater) and error.all_calls for error in errors):
            self.job.held_until = max(self.job.held_until, due)
        heapq.heappush(self.waiting, (due, block))
        times = self.failures[block], self.job.policy.retries.times
        self.job.say_waiting(
            put_off_words(call_words(self.call_plan, call), errors[0], wait, times), wait.seconds
        )
        return True

    def _tell(self, first: int, outcome: Outcome, is_known: BoolArray | None = None) -> None:
        """Record the answers to calls from a position on: all of them, or those that are known."""
        self._tell_calls(self.call_plan.numbers(first, first + len(outcome.means)), outcome, is_known)

    def _tell_calls(self, numbers: IntArray, outcome: Outcome, is_known: BoolArray | None = None) -> None:
        """Record the answers to calls, given their numbers."""
        is_new = self.is_wanted[numbers] if is_known is None else self.is_wanted[numbers] & is_known
        if not self.job.session.is_private:
            is_new = is_new & self.is_held[numbers]  # a block is measured whole: others have its other calls
        numbers = numbers[is_new]
        self.is_wanted[numbers] = False
        scores = None if outcome.scores is None else [*compress(outcome.scores, is_new.tolist())]
        if len(numbers):
            self._tell_session(numbers, outcome.means[is_new], outcome.variances[is_new], scores)
        if self.job.progress is not None:
            self.job.progress()

    def _tell_session(
        self, numbers: IntArray, means: FloatArray, variances: FloatArray, scores: list[FloatArray] | None
    ) -> None:
        """Record valid answers, even if others are invalid."""
        calls, released = self.call_plan.parts(numbers), self._let_go(numbers)
        given = Summaries(calls.counts, means, variances, scores=scores)
        if self.job.failed_ahead:
            is_failed = [key in self.job.failed_ahead for key in _keys(calls)]
            self.again.update(numbers[is_failed].tolist())
        known = self.again.intersection(numbers.tolist()) if self.again else ()
        again = np.array(sorted(known), dtype=np.int64)
        about: dict[str, Any] = {"worker": self.job.worker}
        about |= {"again": self.call_plan.parts(again).arms.tolist()}
        session, patiently = self.job.session, self.job.patiently
        parts = [slice(0, len(numbers))]  # to be recorded: all at once or, of those refused, each half
        while parts:
            part = parts.pop()
            own = numbers[part].tolist() if self.scores else []
            about["scored"] = [self.scores[one] for one in own if one in self.scores]
            some = (calls, given) if len(numbers) == part.stop - part.start else (calls[part], given[part])
            try:
                answers = Answers.of_calls(session.problem, *some, **about)
                patiently(partial(session.answer, answers, released=released))
            except MeasurementFailed as error:
                middle = (part.start + part.stop) // 2
                if middle > part.start:
                    parts += [slice(middle, part.stop), slice(part.start, middle)]
                    continue
                self.again.add(int(numbers[middle]))
                self.is_wanted[numbers[middle]] = True
                self.error = self.error or MeasurementFailed(
                    f"{named(calls[middle], self.call_plan)}: {error}"
                )

    def _let_go(self, numbers: IntArray) -> IntArray | None:
        """Return the arms that others may continue with after some calls: none of their calls is running."""
        held = numbers[self.is_held[numbers]]
        if not len(held):
            return None
        self.is_held[held] = False
        places = self.call_plan.places(held)
        np.subtract.at(self.n_held, places, 1)
        free = np.unique(places[self.n_held[places] == 0])
        return self.call_plan.tickets.take(free).arms

    # --- handling failures ------------------------------------------------------------------------

    def _not_done(self, blocks: range, error: BaseException) -> None:
        """Retry a task that never started its calls, or whose answers were lost."""
        self.again.update(self._calls_of(blocks))
        if (
            type(error).__name__ == "KilledWorker" and len(blocks) > 1
        ):  # Dask: one of its calls kills workers,
            self.suspects.extend((blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :]))
            return
        if type(error).__name__ == "KilledWorker" and blocks[0] not in self.accused:
            self.accused.add(blocks[0])  # or one that waited beside it on the same worker: it is tried alone
            self.suspects.append(blocks)
            return
        if isinstance(error, TypeError) and Outcome.__name__ in str(error):
            self._do_again(
                blocks
            )  # Dask reports an error for an answer: its worker was lost just after it arrived
            return
        if isinstance(error, FinalFailure):
            self.error = self.error or error
            return
        self.failures.update(blocks)
        is_final = max(self.failures[block] for block in blocks) > self.job.policy.retries.times
        if is_final or type(error).__name__ == "KilledWorker":
            self.error = self.error or workers_lost(self.call_plan, [blocks], words_of(error), error)
        else:
            pause = self.job.policy.retries.pause(self.failures[blocks[0]])
            for block in blocks:
                heapq.heappush(self.waiting, (time.monotonic() + pause, block))
            self.job.say_waiting(f"{words_of(error)} Trying again in {pause:.1f} s.", pause)

    def _replace(self, reason: BaseException, broken: list[range]) -> None:
        """Continue with a new pool after one of its processes died; find out which call caused it."""
        broken += [blocks for blocks, _ in self.under_way.values()]
        for blocks in broken:
            self.again.update(self._calls_of(blocks))
        self.under_way.clear()
        self.late.clear()
        if self.job.interrupt.is_wanted:
            return
        if not broken or (len(broken) == 1 and len(broken[0]) == 1):
            culprit = broken[0][0] if broken else _NO_BLOCK
            self.failures[culprit] += 1
            if self.failures[culprit] > min(self.job.policy.retries.times, AT_ONCE):
                self.error = self.error or workers_lost(self.call_plan, broken, words_of(reason), reason)
        if self.error is not None:
            return
        if not self.job.workers.replace():
            self.error = workers_lost(self.call_plan, broken, words_of(reason), reason)
        elif len(broken) == 1:
            (blocks,) = broken
            halves = (blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :])
            self.suspects.extendleft(half for half in reversed(halves) if half)
        else:
            self.suspects.extend(broken)

    def _give_up_overdue(self) -> None:
        now = time.monotonic()
        for future in [future for future, (_, due) in self.under_way.items() if due <= now]:
            blocks, due = self.under_way.pop(future)
            self.late[future] = (blocks, due)
            for block in reversed(blocks):
                if len(blocks) > 1:  # the call that hangs will be overdue
                    self._do_again(range(block, block + 1), is_begun=True)
                else:
                    first, stop = self.call_plan.bounds(blocks)
                    nothing = np.full((2, stop - first), np.nan)
                    has_scores = self.job.session.problem.items is not None
                    scores = (
                        [*np.full((stop - first, 1), np.nan)] if has_scores else None
                    )  # if scored: one pull
                    error = TimeoutError(
                        f"it took more than {self.job.policy.timeout:g} seconds for each call"
                    )
                    self._failed(
                        block,
                        Outcome(nothing[0], nothing[1], is_shared=stop - first > 1, scores=scores),
                        dict.fromkeys(range(stop - first), error),
                    )
        if self.late and self.job.workers.is_own and not self.error:
            self._start_over()

    def _start_over(self) -> None:
        """End our own workers that hang, and repeat the calls of the others."""
        for blocks, _ in self.under_way.values():
            self._do_again(blocks, is_begun=True)
        self.under_way.clear()
        self.late.clear()
        self.job.hanging.clear()
        self.job.workers.replace()


def _keys(calls: Tickets) -> list[tuple[int, int]]:
    """Return what distinguishes calls on shared items, whichever the round."""
    return [*zip(calls.arms.tolist(), calls.first_pulls.tolist(), strict=True)]


def _cancelled() -> BaseException:
    return RuntimeError("the executor cancelled the task")
