"""Progress on standard error: a bar on a terminal, otherwise a line from time to time."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from shortlist.bounds import lower_bound
from shortlist.execution.driven import Driven
from shortlist.report.worker_text import counted, waiting_words

_BETWEEN_LINES, _BETWEEN_FRAMES = 5.0, 0.1  # seconds
_LONGEST = 70  # characters, so that a line has at most 80

Words: TypeAlias = Callable[[], str]
Show: TypeAlias = Callable[[int, Words], None]
"""``show(done, words)`` shows progress; `words` is called only if its text is displayed."""


@contextmanager
def pulls_shown(session: Driven, *, quiet: bool) -> Iterator[Callable[[Driven], None] | None]:
    """Yield a `progress` function for `drive` that shows pulls, bounds, open arms and the rate."""
    words = pull_words(session)
    with _bar("pulling", session.worst_case_pulls, quiet=quiet) as show:
        yield None if show is None else lambda now: show(now.n_made, lambda: words(now))


@contextmanager
def runs_shown(name: str, total: int, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a `progress` function for `simulate` that shows finished runs and total pulls."""

    def words(ended: int, pulls: int) -> Words:
        return lambda: f"{ended:,} of {total:,} runs finished, {pulls:,} pulls"

    with _bar(name, total, quiet=quiet) as show:
        yield None if show is None else lambda ended, pulls: show(ended, words(ended, pulls))


def pull_words(session: Driven, clock: Callable[[], float] = time.monotonic) -> Callable[[Driven], str]:
    """Return a function that describes the progress of a session; its rate is counted from now."""
    start, before = clock(), session.n_made
    bound: list[str] = []

    def words(now: Driven) -> str:
        if not bound:  # may take a second to compute
            found = lower_bound(now.problem)
            bound.append("" if found is None else f"lower bound {found.words}")
        rate = (now.n_made - before) / max(clock() - start, 1e-9)
        cap, what = now.worst_case_pulls, "score" if now.problem.has_pool else "pull"
        done = counted(now.n_made, what) if cap is None else f"{now.n_made:,} of at most {cap:,} {what}s"
        if waiting := waiting_words(now.awaited()):
            return f"{waiting}; {done}"  # on a narrow terminal the end is cut off
        left = "" if cap is None or rate <= 0 else f"at most {duration((cap - now.n_made) / rate)} left"
        arms = f"{counted(len(now.asked), 'arm')} open"
        if (blocks := now.n_blocks_left) is not None:
            left = f"about {counted(blocks, 'more block')}"
        parts = [part for part in (done, arms, f"{rate:,.0f} {what}s/s", left, bound[0]) if part]
        while len(", ".join(parts)) > _LONGEST:
            parts.pop()
        return ", ".join(parts)

    return words


def duration(seconds: float) -> str:
    """Return a duration as text: 12 s, 5 min, 3 h, or 4 days."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"


@contextmanager
def _bar(title: str, total: int | None, *, quiet: bool) -> Iterator[Show | None]:
    """Yield a function that shows progress; None if quiet."""
    console = Console(stderr=True)
    if quiet:
        yield None
    elif not console.is_terminal:
        yield _at_most_every(_BETWEEN_LINES, lambda _, words: _line(f"{title}: {words()}"), first=False)
    else:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}"))
        with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
            task = bar.add_task(title, total=total, words="")
            yield _at_most_every(
                _BETWEEN_FRAMES, lambda done, words: bar.update(task, completed=done, words=words())
            )


def _line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _at_most_every(seconds: float, show: Show, *, first: bool = True) -> Show:
    """Return `show` rate-limited: calls within `seconds` of the last one are dropped."""
    last = -seconds if first else time.monotonic()

    def throttled(done: int, words: Words) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= seconds:
            last = now
            show(done, words)

    return throttled
