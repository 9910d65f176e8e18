"""Progress on standard error: a bar in a terminal or a notebook, otherwise a line from time to time."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from html import escape
from importlib import import_module
from typing import Any, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from shortlist.certificates import Certificate
from shortlist.certificates.certificate import OPEN
from shortlist.certificates.guarantee import at_least
from shortlist.execution.drive import is_notebook
from shortlist.execution.session_protocol import DrivenSession
from shortlist.report.text_format import counted
from shortlist.report.worker_text import waiting_words
from shortlist.session import Session
from shortlist.strategies import strategy_for

_BETWEEN_LINES, _BETWEEN_FRAMES = 5.0, 0.1  # seconds
_AT_FIRST = 0.3  # seconds without a bar, so that short runs show none
_BAR = 12  # characters
_LINE, _WIDE = 80, 200  # characters of a line where there is no terminal, and in a notebook
_BESIDES = _BAR + 9  # characters: the bar, the percentage and the spaces between
_LOOKING = 20  # looking at what is certified may take this part of the time
_ENOUGH = 3.0  # seconds of measuring before the time left is estimated

Frame: TypeAlias = Callable[[int], tuple[float | None, str]]
"""``frame(most)`` returns the share done, None if unknown, and words of at most so many characters."""
Show: TypeAlias = Callable[[Frame], None]
"""``show(frame)`` shows progress; `frame` is called only if it is displayed."""


@contextmanager
def pulls_shown(session: DrivenSession, *, quiet: bool) -> Iterator[Callable[[DrivenSession], None] | None]:
    """Yield a `progress` function for `drive` that shows the share done, open arms, and the time left."""
    account = Account(session)
    with _bar("pulling", quiet=quiet) as show:
        yield None if show is None else lambda now: show(partial(account.frame, now))


@contextmanager
def runs_shown(name: str, total: int, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a `progress` function for `simulate` that shows finished runs and total pulls."""

    def frame(ended: int, pulls: int, _most: int) -> tuple[float, str]:
        words = f"{ended:,} of {counted(total, 'run')} finished, {counted(pulls, 'pull')}"
        return ended / max(total, 1), words

    with _bar(name, quiet=quiet) as show:
        yield None if show is None else lambda ended, pulls: show(partial(frame, ended, pulls))


# --- what is shown -------------------------------------------------------------------------------------


class Account:
    """How far a session is: the share done, open arms, what is certified, and the time left.

    The share is an estimate that never exceeds 1 and never shrinks: epsilon as a part of the certified one,
    which is about the part of the pulls made if the arms are close to each other, and less if they are not;
    or the part of the maximum number of pulls, or of those that will probably be needed, if that is more.

    The time left is an estimate from the pace since the start of this process, and the pulls that will
    probably be needed: by the rewards so far where a strategy can tell that, else by its usual cost.
    """

    def __init__(self, session: DrivenSession, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._certified: Certificate | None = None
        self._looked: object = None  # when the certificate was computed: the round
        self._next_look = 0.0
        self._share = 0.0
        self._likely: tuple[int, float | None] = (-1, None)  # a round, and the pulls in the end as seen then
        self._look(session)
        self._started, self._before = clock(), session.n_made

    def share(self, now: DrivenSession) -> float | None:
        """Return the share done; None if nothing is known about it."""
        self._look(now)
        found, cap, left = [], now.worst_case_pulls, self._likely_left(now)
        if cap:
            found.append(now.n_made / cap)
        if left is not None:
            found.append(now.n_made / (now.n_made + left))
        if self._certified is not None:
            asked, certified = now.problem.epsilon, self._certified.epsilon
            found.append(1.0 if certified <= asked else asked / certified)  # both may be 0
        self._share = min(1.0, max([self._share, *found]))
        return self._share if found else None

    def frame(self, now: DrivenSession, most: int = _LINE) -> tuple[float | None, str]:
        """Return the share done, and the progress in at most so many characters, if that is possible."""
        share = self.share(now)
        return share, self._words(now, most)

    def _words(self, now: DrivenSession, most: int) -> str:
        what = "score" if now.problem.has_pool else "pull"
        made = counted(now.n_made, what)
        if waiting := waiting_words(now.awaited()):
            return f"{waiting}; {made}"  # on a narrow terminal the end is cut off
        n_open = len(now.asked) if self._certified is None else self._certified.statuses.count(OPEN)
        arms, certified, asked = f"{counted(n_open, 'arm')} open", "", ""
        if self._certified is not None and self._certified.guarantee is not None:
            certified = f"certified to within {at_least(self._certified.epsilon, 3)}"
            asked = f" (asked: {now.problem.epsilon:g})"
        elif self._certified is not None:
            certified = "nothing certified yet"
        left = self._left(now)
        choices = (
            (made, arms, certified + asked, left),
            (arms, certified + asked, left),
            (arms, certified, left),
            (arms, left),
        )
        said = [", ".join(filter(None, choice)) for choice in choices]
        return next((one for one in said if len(one) <= most), said[-1])

    def _likely_left(self, now: DrivenSession) -> float | None:
        """Return about how many more pulls are needed, by the rewards so far; None if that is unknown."""
        if self._likely[0] != now.asked.round:
            likely, after_round = now.likely_pulls, now.n_made + int(now.asked.counts.sum())
            self._likely = now.asked.round, None if likely is None else max(likely, after_round)
        return None if self._likely[1] is None else max(self._likely[1] - now.n_made, 1.0)

    def _left(self, now: DrivenSession) -> str:
        """Return the time left, by the pace of this process; empty if there is no good estimate."""
        spent, made = self._clock() - self._started, now.n_made - self._before
        if spent < _ENOUGH or made <= 0:
            return ""
        cap, epsilon, found = now.worst_case_pulls, now.problem.epsilon, []
        if (likely := self._likely_left(now)) is not None:
            found.append(likely)
        elif cap is None or now.problem.items is not None:
            return ""
        else:
            usual = strategy_for(now.strategy, now.problem).usual_share * cap
            found += [usual - now.n_made] if usual > now.n_made else []
            if self._certified is not None and epsilon > 0 and self._certified.epsilon < math.inf:
                found.append(now.n_made * max(0.0, self._certified.epsilon / epsilon - 1))
        seconds = min([*found, math.inf if cap is None else cap - now.n_made]) * spent / made
        words = "about" if found else "at most"
        return f"{words} {duration(seconds)} left" if seconds >= 1 else ""

    def _look(self, now: DrivenSession) -> None:
        """Compute what is certified, if a round has ended and that takes a small part of the time only."""
        if not isinstance(now, Session) or now.history.rules.anytime is None:
            return
        start = self._clock()
        if now.asked.round != self._looked and start >= self._next_look:
            self._certified, self._looked = now.certified, now.asked.round
            end = self._clock()
            self._next_look = end + _LOOKING * (end - start)


def duration(seconds: float) -> str:
    """Return a duration as text: 12 s, 5 min, 3 h, or 4 days."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"


# --- how it is shown -----------------------------------------------------------------------------------


@contextmanager
def _bar(title: str, *, quiet: bool) -> Iterator[Show | None]:
    """Yield a function that shows progress; None if quiet."""
    if quiet:
        yield None
        return
    console = Console(stderr=True)
    with ExitStack() as stack:
        if is_notebook():
            yield _at_most_every(_BETWEEN_FRAMES, _in_notebook(stack), _AT_FIRST)
        elif console.is_terminal:
            yield _at_most_every(_BETWEEN_FRAMES, _in_terminal(console, stack), _AT_FIRST)
        else:
            yield _at_most_every(_BETWEEN_LINES, partial(_line, title), _BETWEEN_LINES)


def _in_terminal(console: Console, stack: ExitStack) -> Show:
    """Return a function that draws a bar, which disappears at the end."""
    columns = (
        BarColumn(_BAR),
        TextColumn("{task.fields[share]:>5}", markup=False),
        TextColumn("{task.fields[words]}", markup=False),
    )
    # What is printed in the meantime appears above the bar, unless it goes elsewhere. The bar is drawn in
    # this thread, between measurements, since these may be timings.
    to_terminal = sys.stdout is not None and sys.stdout.isatty()
    bar = Progress(*columns, console=console, transient=True, auto_refresh=False, redirect_stdout=to_terminal)
    task = bar.add_task("", total=None, words="", share="")

    def show(frame: Frame) -> None:
        if not bar.live.is_started:
            stack.enter_context(bar)
        share, words = frame(most := max(20, console.width - _BESIDES))
        total, said = None if share is None else 1.0, _percent(share)
        bar.update(task, total=total, completed=share or 0.0, words=words[:most], share=said)
        bar.refresh()

    return show


def _in_notebook(stack: ExitStack) -> Show:
    """Return a function that draws a bar below the cell, which disappears at the end."""
    view = import_module("IPython.display")
    shown: list[Any] = []

    def show(frame: Frame) -> None:
        share, words = frame(_WIDE)
        value = "" if share is None else f' value="{share:.4f}"'
        drawn = view.HTML(f"<progress{value}></progress> {_with_share(share, escape(words))}")
        if not shown:
            shown.append(view.display(drawn, display_id=True))
            stack.callback(lambda: shown[0].update(view.HTML("")))
        else:
            shown[0].update(drawn)

    return show


def _line(title: str, frame: Frame) -> None:
    share, words = frame(_LINE - len(title) - 8)
    print(f"{title}: {_with_share(share, words)}", file=sys.stderr, flush=True)


def _with_share(share: float | None, words: str) -> str:
    return words if share is None else f"{_percent(share)}, {words}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * min(share, 0.99 if share < 1 else 1.0):.0f} %"


def _at_most_every(seconds: float, show: Show, first: float) -> Show:
    """Return `show` rate-limited, from `first` seconds on: calls within `seconds` of the last are dropped."""
    due = time.monotonic() + first

    def throttled(frame: Frame) -> None:
        nonlocal due
        if (now := time.monotonic()) >= due:
            due = now + seconds
            show(frame)

    return throttled
