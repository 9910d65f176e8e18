"""Workers of a run and their leases, as text."""

import re
import time
from collections.abc import Sequence

from shortlist.escaping import printable
from shortlist.report.text_format import counted, moment
from shortlist.session.lease_rules import Holding
from shortlist.session.state import ORDERED, STOPPED, RunState
from shortlist.session.worker_names import HERE, OVER_HTTP

_DRIVER = re.compile(rf"({HERE}|{OVER_HTTP})@(.*):([0-9]+):[0-9a-f]{{6}}(?:~[0-9]+)?")
_MOST = 3  # workers listed in one line


def worker_words(worker: str) -> str:
    """Return the name of a worker as given, or the process and machine of a driver."""
    driver = _DRIVER.fullmatch(worker)
    if driver is None:
        return printable(worker) or "an unknown worker"
    how = ", over HTTP" if driver[1] == OVER_HTTP else ""
    return f"process {driver[3]} on {printable(driver[2])}{how}"


def holding_words(holding: Holding, now: float | None = None) -> str:
    """Return who holds how many tickets, and until when."""
    tickets, now = counted(holding.n_tickets, "ticket"), time.time() if now is None else now
    end = "until" if holding.until > now else "overdue since"
    return f"{worker_words(holding.worker)} ({tickets} {end} {moment(holding.until, now)})"


def waiting_words(holdings: Sequence[Holding], now: float | None = None) -> str:
    """Return which workers to wait for; empty if none."""
    if not holdings:
        return ""
    named = [holding_words(holding, now) for holding in holdings[:_MOST]]
    more = len(holdings) - len(named)
    return "waiting for " + ", ".join(named) + (f" and {more} more" if more else "")


def why_stopped(history: RunState) -> str:
    """Return why a run does not go on, and who asked all drivers to stop; empty if it goes on, or may."""
    suspended, asked = history.suspended, history.stopped
    reason = "" if suspended is None else suspended.reason
    if asked is None:
        return reason.removeprefix(STOPPED)
    words = f"{worker_words(asked.by)} asked all drivers to stop{', because: ' * bool(asked.why)}{asked.why}"
    return words if reason in ("", ORDERED) else f"{reason.removeprefix(STOPPED)}; {words}"
